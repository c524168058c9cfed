//! The keys of a link. Each is declared once, for a link, for each of its directions and for a group.

use anabranch_core::{
    packet::Direction,
    units::{
        Bytes, Duration,
        text::{Limit, LinkRate},
    },
};
use anabranch_path::{
    group::{Spread, energy::PowerModel},
    link::Properties,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Delay, Queue, Service};
use crate::{
    kind::Kind,
    types::{control, impair, lacp},
};

/// The type of a key in the table of a link or group: optional if it has no default. With a
/// lifetime, a reference to the value.
macro_rules! value {
    ($life:lifetime $type:ty) => { Option<&$life $type> };
    ($life:lifetime $type:ty, $default:literal) => { &$life $type };
    ($type:ty) => { Option<$type> };
    ($type:ty, $default:literal) => { $type };
}

/// The value of a direction, or else that of its link.
macro_rules! inherited {
    ($own:expr, $link:expr) => {
        $own.or($link.as_ref())
    };
    ($own:expr, $link:expr, $default:literal) => {
        $own.unwrap_or(&$link)
    };
}

/// The value in a table for one direction; `None` if it is not written out.
macro_rules! written {
    ($value:expr, if $skip:literal) => {
        $value.cloned()
    };
    ($value:expr, $default:literal) => {
        Some($value.clone())
    };
    ($value:expr, $default:literal, if $skip:literal) => {
        Some($value.clone()).filter(|value| !is_default(value))
    };
}

/// Declares the keys. One with a default (the path of a function) always has a value; `skipped if`
/// names the function that returns whether it is left out of a resolved scenario. The attributes
/// after `link` and `group` apply to the key in those tables only.
macro_rules! link_keys {
    ($(
        $(#[$doc:meta])+ $key:ident: $type:ty $(= $default:literal)? $(, skipped if $skip:literal)?
        $(, link $(#[$link:meta])+)? $(, group $(#[$group:meta])+)?;
    )+) => {
        /// A link between two nodes.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct Link {
            /// The two ends; `forward` is from the first to the second.
            pub between: [String; 2],
            /// A ready path (`anabranch list paths`), whose values apply if this table gives none. A
            /// value in this table applies to both directions, even if the path gives different values
            /// for each; a table without `kind` is merged over the path's.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub path: Option<String>,
            $(
                $(#[$doc])+ $($(#[$link])+)?
                $(#[serde(default = $default)])? $(#[serde(skip_serializing_if = $skip)])?
                pub $key: value!($type $(, $default)?),
            )+
            /// Values for the direction from the first end to the second.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub forward: Option<OneWay>,
            /// Values for the direction from the second end to the first.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub reverse: Option<OneWay>,
        }

        /// Values for one direction of a link; each replaces the link's value as a whole.
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct OneWay {
            $(
                $(#[$doc])+
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $key: Option<$type>,
            )+
        }

        /// An aggregated link.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct Group {
            /// The two ends.
            pub between: [String; 2],
            /// The number of its links, 1 to 64.
            pub members: u32,
            $(
                $(#[$doc])+ $($(#[$group])+)?
                $(#[serde(default = $default)])? $(#[serde(skip_serializing_if = $skip)])?
                pub $key: value!($type $(, $default)?),
            )+
            /// Values for the direction from the first end to the second.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub forward: Option<OneWay>,
            /// Values for the direction from the second end to the first.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub reverse: Option<OneWay>,
            /// The choice of the member for the next packet.
            #[serde(default)]
            pub spread: Spread,
            /// The controller that decides how many members are on.
            #[serde(default)]
            pub control: Kind<control::Config>,
            /// The time to wake up a member that was switched off; at most the controller's interval.
            #[serde(default)]
            pub wake_time: Duration,
            /// How often both ends send LACPDUs if members are switched (IEEE 802.1AX-2014 §6.4.13).
            #[serde(default)]
            pub lacp_rate: lacp::LacpRate,
            /// The power of one port; each member has a port at both ends.
            #[serde(default)]
            pub power: PowerModel,
        }

        impl From<&Group> for Link {
            /// The link that one member is.
            fn from(group: &Group) -> Self {
                Self {
                    between: group.between.clone(),
                    path: None,
                    $($key: group.$key.clone(),)+
                    forward: group.forward.clone(),
                    reverse: group.reverse.clone(),
                }
            }
        }

        /// A key, under its name in the file.
        #[expect(non_camel_case_types, reason = "names of the file")]
        #[expect(dead_code, reason = "errors refer to some keys only")]
        #[derive(Debug, Clone, Copy)]
        pub(crate) enum Key {
            $($key,)+
        }

        impl Key {
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$key => stringify!($key),)+
                }
            }
        }

        /// The values of one direction: its own, or else the link's.
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct Way<'a> {
            own: Option<&'a OneWay>,
            $(pub(crate) $key: value!('a $type $(, $default)?),)+
        }

        impl Link {
            pub(crate) fn way(&self, direction: Direction) -> Way<'_> {
                let own = match direction {
                    Direction::Forward => self.forward.as_ref(),
                    Direction::Reverse => self.reverse.as_ref(),
                };
                Way {
                    own,
                    $($key: inherited!(
                        own.and_then(|own| own.$key.as_ref()), self.$key $(, $default)?
                    ),)+
                }
            }
        }

        impl Way<'_> {
            /// Whether the direction has a value for this key.
            pub(crate) fn is_own(&self, key: Key) -> bool {
                self.own.is_some_and(|own| match key {
                    $(Key::$key => own.$key.is_some(),)+
                })
            }

            /// The table of the direction with every value written out.
            pub(crate) fn written(&self) -> OneWay {
                OneWay { $($key: written!(self.$key $(, $default)? $(, if $skip)?),)+ }
            }
        }
    };
}

link_keys! {
    /// The rate at which it sends.
    rate: LinkRate = "LinkRate::default",
        group #[doc = "It is that of one member, and not unlimited."];
    /// The propagation delay.
    delay: Delay, skipped if "Option::is_none",
        link #[doc = "It is constant or from a trace; if omitted, that of the trace of `service`, or 0 s."],
        group #[serde(default = "no_delay", deserialize_with = "constant")]
            #[schemars(with = "Duration")];
    /// Whether a packet that departs after the delay has fallen may overtake earlier packets, which
    /// keep the delay of their departure. Otherwise the link keeps order: the packet arrives after
    /// them.
    overtake: bool = "bool::default", skipped if "is_default",
        group #[serde(skip)];
    /// The queue.
    queue: Queue = "Queue::default",
        link #[doc = "If omitted, an unlimited drop-tail queue."],
        group #[doc = "All members share it."];
    /// The limit on all packets that it holds: queued, in transmission and propagating, in packets,
    /// bytes or bandwidth-delay products. A packet that arrives at the limit is dropped.
    /// The `limit` of netem is such a bound, by default 1000 packets regardless of the delay.
    held_limit: Limit = "Limit::default", skipped if "is_default";
    /// The impairments of packets in flight, in this order.
    impair: Vec<Kind<impair::Config>> = "Vec::<Kind<impair::Config>>::new";
    /// The capacity over time.
    service: Kind<Service> = "Kind::<Service>::default";
    /// Whether it works.
    up: bool = "yes";
    /// The largest IP packet that it carries, 68 to 65535 bytes; if omitted, packets of any size.
    /// Larger packets are dropped, never fragmented.
    #[schemars(extend("x-minimum" = "68 bytes", "x-maximum" = "65535 bytes"))]
    mtu: Bytes, skipped if "Option::is_none";
    /// Whether the router before the link answers a packet that it drops for its size with the MTU
    /// (ICMP, RFC 1191, RFC 8201), so that senders adapt; this is the default. `false` makes the
    /// link a black hole.
    mtu_reports: bool, skipped if "Option::is_none";
}

impl Way<'_> {
    /// Properties that equal their keys; `resolve/link.rs` sets the others.
    pub(crate) fn properties(&self) -> Properties {
        Properties {
            overtake: *self.overtake,
            up: *self.up,
            ..Properties::new(None, Duration::ZERO)
        }
    }
}

fn yes() -> bool {
    true
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[expect(clippy::unnecessary_wraps, reason = "serde's form of a default")]
fn no_delay() -> Option<Delay> {
    Some(Duration::ZERO.into())
}

fn constant<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Delay>, D::Error> {
    Duration::deserialize(from).map(|delay| Some(delay.into()))
}
