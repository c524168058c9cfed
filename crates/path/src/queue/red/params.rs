//! RED's parameters. `preferential-red` has them too and adds its own, so they are written as a macro:
//! flattening would cost the check for unknown keys.

use anabranch_core::units::{Bytes, text::Limit};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{
    super::{Contradiction, Init, drop_tail},
    adaptive::Adaptive,
};

/// A probability or a weight that is not 0.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Probability(f64);

impl Probability {
    /// # Panics
    /// If `value` is not above 0 and at most 1; in a `const` this is a compile error.
    #[must_use]
    pub const fn new(value: f64) -> Self {
        assert!(value > 0.0 && value <= 1.0, "above 0 and at most 1");
        Self(value)
    }
    /// The number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Probability {
    type Error = String;
    fn try_from(value: f64) -> Result<Self, String> {
        if value > 0.0 && value <= 1.0 {
            Ok(Self(value))
        } else {
            Err(format!(
                "{value} is out of range; expected a bare number above 0, and 1 at most"
            ))
        }
    }
}

impl From<Probability> for f64 {
    fn from(value: Probability) -> Self {
        value.0
    }
}

impl JsonSchema for Probability {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Probability".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 })
    }
}

/// The size of an IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Bytes", into = "Bytes")]
pub struct PacketSize(u32);

impl PacketSize {
    /// The largest, and the most that an IP header can say.
    pub const MAX: u32 = 65_535;

    /// # Panics
    /// If `bytes` is 0 or above [`Self::MAX`]; in a `const` this is a compile error.
    #[must_use]
    pub const fn new(bytes: u32) -> Self {
        assert!(bytes >= 1 && bytes <= Self::MAX, "1..65535 bytes");
        Self(bytes)
    }
    /// As a size.
    #[must_use]
    pub fn bytes(self) -> Bytes {
        Bytes::new(u64::from(self.0))
    }
}

impl TryFrom<Bytes> for PacketSize {
    type Error = String;
    fn try_from(size: Bytes) -> Result<Self, String> {
        match u32::try_from(size.get()) {
            Ok(bytes @ 1..=Self::MAX) => Ok(Self(bytes)),
            _ => Err(format!(
                "{size} is no packet; expected from 1 to {} bytes",
                Self::MAX
            )),
        }
    }
}

impl From<PacketSize> for Bytes {
    fn from(size: PacketSize) -> Self {
        size.bytes()
    }
}

impl JsonSchema for PacketSize {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PacketSize".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Bytes::json_schema(generator);
        schema.insert("x-minimum".to_owned(), Self(1).bytes().to_string().into());
        let most = Self(Self::MAX).bytes().to_string();
        schema.insert("x-maximum".to_owned(), most.into());
        schema
    }
}

/// How the probability is spread over the packets, at an average that stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Spacing {
    /// The gap from one drop to the next is uniform in 1..1/p packets (Floyd and Jacobson §7, method
    /// 2).
    #[default]
    Uniform,
    /// Uniform as well, but the random number is drawn once for each gap: the packet is dropped at which count × p
    /// exceeds it (Floyd and Jacobson §11; FreeBSD's dummynet). With one p for all it is the same; where packets'
    /// probabilities differ, the largest gets nearly every drop.
    Drawn,
    /// Each packet has the probability as it is (method 1).
    Geometric,
    /// The gap is uniform in 1/p..2/p packets (the ns-2 manual's `wait_`).
    Waiting,
    /// The packets' probabilities are added up; the one that takes the sum to a number uniform in 1/2..3/2 is
    /// dropped. The gap is uniform in 1/(2p)..3/(2p), and packets of different probabilities are dropped in proportion to them.
    Summed,
}

macro_rules! red_params {
    (@spacing) => { $crate::queue::red::Spacing::Uniform };
    (@spacing $Spacing:ident) => { $crate::queue::red::Spacing::$Spacing };
    (
        $(#[$meta:meta])*
        pub struct $Name:ident {
            $($(#[$extra_meta:meta])* pub $extra:ident : $Extra:ty = $default:expr,)*
        }
        $(spacing: $Spacing:ident)?
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct $Name {
            /// What may wait, the packet being sent not counted: packets, bytes or bandwidth-delay
            /// products (`"100 packets"`, `"64 KiB"`, `"1 bdp"`); by default without limit.
            pub limit: anabranch_core::units::text::Limit,
            /// Average below which nothing is dropped (`min_th`). In packets, or in bytes: then the queue
            /// is measured in bytes. 5 packets as Floyd recommends (1997).
            pub min_threshold: anabranch_core::units::text::Limit,
            /// Average at which the probability reaches `max_probability` (`max_th`), in the unit of
            /// `min_threshold`. Three times that as Floyd recommends (1997).
            pub max_threshold: anabranch_core::units::text::Limit,
            /// Probability at `max_threshold` (`max_p`): above 0, and 1 at most. 0.1 as Floyd recommends
            /// (1997); 0.02 in the paper.
            pub max_probability: $crate::queue::red::Probability,
            /// What an arrival counts in the average (`w_q`): above 0, and 1 at most (Floyd and Jacobson §6).
            pub weight: $crate::queue::red::Probability,
            /// From `max_threshold` to twice that the probability rises to 1 instead of jumping
            /// there (Floyd 2000).
            pub gentle: bool,
            /// How drops are spread over the packets, at a probability p: `uniform` makes the gap from one to
            /// the next uniform in 1..1/p (Floyd and Jacobson §7, method 2), `drawn` as well, but with one random
            /// number for each gap (§11, dummynet), `geometric` tries each packet by itself (method 1),
            /// `waiting` makes it uniform in 1/p..2/p, as ns-2 does by default, `summed` in 1/(2p)..3/(2p), so
            /// that probabilities that differ from packet to packet add up.
            pub spacing: $crate::queue::red::Spacing,
            /// Marks packets of ECN-capable transports instead of dropping them, unless the queue is full
            /// (RFC 3168 §5).
            pub ecn: bool,
            /// With `ecn`: drops where the average is so high that every packet would be marked (RFC 3168 §7);
            /// off, it marks there as well.
            pub hard_drop: bool,
            /// With thresholds in bytes: the probability is proportional to the packet's size (Floyd and
            /// Jacobson §8). RFC 7141 §2.2 advises against it.
            pub scale_by_size: bool,
            /// The size to which that probability belongs: the largest packet's in Floyd and Jacobson
            /// §8.
            pub reference_packet: $crate::queue::red::PacketSize,
            /// For an idle time the average falls as if packets of this size had passed an empty queue; 500
            /// bytes in ns-2 (`mean_pktsize_`), small packets in Floyd and Jacobson §4.
            pub idle_packet: $crate::queue::red::PacketSize,
            /// `max_probability` follows the average so that it stays between the thresholds (Adaptive
            /// RED): `true`, or a table with `target`, `interval`, `alpha`, `beta`, `floor` and `ceiling`.
            pub adaptive: $crate::queue::red::Adaptive,
            $($(#[$extra_meta])* pub $extra: $Extra,)*
        }

        impl Default for $Name {
            fn default() -> Self {
                use anabranch_core::units::text::Limit;
                use $crate::queue::red::{Adaptive, PacketSize, Probability};
                Self {
                    limit: Limit::Unlimited,
                    min_threshold: Limit::Packets(5),
                    max_threshold: Limit::Packets(15),
                    max_probability: Probability::new(0.1),
                    weight: Probability::new(0.002),
                    gentle: false,
                    spacing: $crate::queue::red::red_params!(@spacing $($Spacing)?),
                    ecn: false,
                    hard_drop: true,
                    scale_by_size: true,
                    reference_packet: PacketSize::new(1500),
                    idle_packet: PacketSize::new(500),
                    adaptive: Adaptive::Off,
                    $($extra: $default,)*
                }
            }
        }

        impl $Name {
            /// RED's own.
            #[must_use]
            pub fn common(&self) -> $crate::queue::red::Common {
                $crate::queue::red::Common {
                    limit: self.limit,
                    min_threshold: self.min_threshold,
                    max_threshold: self.max_threshold,
                    max_probability: self.max_probability,
                    weight: self.weight,
                    gentle: self.gentle,
                    spacing: self.spacing,
                    ecn: self.ecn,
                    hard_drop: self.hard_drop,
                    scale_by_size: self.scale_by_size,
                    reference_packet: self.reference_packet,
                    idle_packet: self.idle_packet,
                    adaptive: self.adaptive,
                }
            }
        }

        impl $crate::queue::QueueParams for $Name {
            const CHANGEABLE: &'static [&'static str] = $crate::queue::red::CHANGEABLE;
            fn in_bdp(&self) -> Option<&'static [&'static str]> {
                self.common().in_bdp()
            }
            fn set_bdp(&mut self, bdp: anabranch_core::units::Bytes) {
                for limit in [&mut self.limit, &mut self.min_threshold, &mut self.max_threshold] {
                    *limit = limit.with_bdp(bdp);
                }
            }
            fn limit(&self) -> anabranch_core::units::text::Limit {
                self.limit
            }
            fn limit_mut(&mut self) -> &mut anabranch_core::units::text::Limit {
                &mut self.limit
            }
            fn flows(&self) -> Option<(&'static [&'static str], &[String])> {
                $crate::queue::red::RedParams::named(self)
            }
            fn check(&self) -> Result<(), $crate::queue::Contradiction> {
                self.common().check()?;
                $crate::queue::red::RedParams::check_own(self)
            }
        }
    };
}
pub(in crate::queue) use red_params;

/// What can change in mid-run: the average, which is in the unit of the thresholds, stays.
pub(in crate::queue) const CHANGEABLE: &[&str] = &[
    "limit",
    "min_threshold",
    "max_threshold",
    "max_probability",
    "weight",
    "gentle",
    "ecn",
    "hard_drop",
];

/// What a member of the family's own parameters can say.
pub trait RedParams {
    /// See [`crate::queue::QueueParams::flows`].
    fn named(&self) -> Option<(&'static [&'static str], &[String])> {
        None
    }
    /// Whether its own parameters go together.
    ///
    /// # Errors
    /// With the first that do not.
    fn check_own(&self) -> Result<(), Contradiction> {
        Ok(())
    }
}

/// The parameters that every RED has; each is described at [`super::Params`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "each is documented at `Params`")]
#[expect(clippy::struct_excessive_bools, reason = "switches of their own")]
pub struct Common {
    pub limit: Limit,
    pub min_threshold: Limit,
    pub max_threshold: Limit,
    pub max_probability: Probability,
    pub weight: Probability,
    pub gentle: bool,
    pub spacing: Spacing,
    pub ecn: bool,
    pub hard_drop: bool,
    pub scale_by_size: bool,
    pub reference_packet: PacketSize,
    pub idle_packet: PacketSize,
    pub adaptive: Adaptive,
}

impl Common {
    /// The first key with a multiple of the bandwidth-delay product.
    pub(in crate::queue) fn in_bdp(&self) -> Option<&'static [&'static str]> {
        const KEYS: [&[&str]; 3] = [&["limit"], &["min_threshold"], &["max_threshold"]];
        let limits = [self.limit, self.min_threshold, self.max_threshold];
        KEYS.into_iter()
            .zip(limits)
            .find(|(_, limit)| matches!(limit, Limit::Bdp(_)))
            .map(|(key, _)| key)
    }

    /// Whether they go together, once there is no multiple of the bandwidth-delay product any more.
    pub(in crate::queue) fn check(&self) -> Result<(), Contradiction> {
        let wrong = |key, message: String, expected: String| {
            Err(Contradiction {
                key,
                message,
                expected,
            })
        };
        let (min, max) = (self.min_threshold, self.max_threshold);
        for (key, name, threshold) in [
            (&["min_threshold"], "min_threshold", min),
            (&["max_threshold"], "max_threshold", max),
        ] {
            if Unit::of(threshold).is_none() {
                return wrong(
                    key,
                    format!("`{name}` is {threshold}"),
                    "a threshold in packets or bytes, or in bdp".to_owned(),
                );
            }
        }
        if Unit::of(min) != Unit::of(max) {
            return wrong(
                &["max_threshold"],
                format!("`min_threshold` ({min}) and `max_threshold` ({max}) differ in unit"),
                "both in packets, or both in bytes or bdp".to_owned(),
            );
        }
        if self.min() >= self.max() {
            return wrong(
                &["max_threshold"],
                format!("`max_threshold` ({max}) is not above `min_threshold` ({min})"),
                format!("more than {min}"),
            );
        }
        let limit = self.limit;
        if Unit::of(limit) == Unit::of(max) && amount(limit) < self.max() {
            return wrong(
                &["max_threshold"],
                format!("`max_threshold` ({max}) is above `limit` ({limit})"),
                format!("{limit} at most, or a larger `limit`"),
            );
        }
        self.adaptive.check(self.max_probability)
    }

    /// Whether the queue is measured in bytes.
    pub(super) fn in_bytes(&self) -> bool {
        Unit::of(self.min_threshold) == Some(Unit::Bytes)
    }
    pub(super) fn min(&self) -> f64 {
        amount(self.min_threshold)
    }
    pub(super) fn max(&self) -> f64 {
        amount(self.max_threshold)
    }
    /// An empty store.
    pub(in crate::queue) fn store(&self, init: &Init<'_>) -> drop_tail::DropTail {
        drop_tail::DropTail::new(&drop_tail::Params { limit: self.limit }, init)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Packets,
    Bytes,
}

impl Unit {
    fn of(limit: Limit) -> Option<Self> {
        match limit {
            Limit::Packets(_) => Some(Self::Packets),
            Limit::Bytes(_) => Some(Self::Bytes),
            Limit::Unlimited | Limit::Bdp(_) => None,
        }
    }
}

fn amount(limit: Limit) -> f64 {
    match limit {
        Limit::Packets(packets) => packets as f64,
        Limit::Bytes(bytes) => bytes.get() as f64,
        Limit::Unlimited | Limit::Bdp(_) => f64::INFINITY,
    }
}
