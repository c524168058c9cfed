//! RED's parameters. `preferential-red` and `share-red` share them and add their own, so a macro
//! defines them: serde's `flatten` would disable the check for unknown keys.

use anabranch_core::units::{Bytes, text::Limit};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{
    super::{Contradiction, Init, drop_tail},
    adaptive::Adaptive,
};

/// A probability or a weight above 0.
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
    /// Value.
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
    /// Maximum, the largest value of an IP header.
    pub const MAX: u32 = 65_535;

    /// # Panics
    /// If `bytes` is 0 or above [`Self::MAX`]; in a `const` this is a compile error.
    #[must_use]
    pub const fn new(bytes: u32) -> Self {
        assert!(bytes >= 1 && bytes <= Self::MAX, "1..65535 bytes");
        Self(bytes)
    }
    /// Size as bytes.
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

/// Distribution of drops over the packets, at a constant average.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Spacing {
    /// The gap between drops is uniform in 1..1/p packets (Floyd and Jacobson §7, method 2).
    #[default]
    Uniform,
    /// Also uniform, but the random number is drawn once for each gap: the packet is dropped at
    /// which count × p exceeds it (Floyd and Jacobson §11; FreeBSD's dummynet). With the same p for
    /// all packets the result is the same; if probabilities differ, the packets with the largest
    /// get nearly every drop.
    Drawn,
    /// Each packet has the probability p, independently (method 1).
    Geometric,
    /// The gap is uniform in 1/p..2/p packets (the ns-2 manual's `wait_`).
    Waiting,
    /// The packets' probabilities are added, and the packet is dropped that takes the sum to a
    /// number uniform in 1/2..3/2. The gap is uniform in 1/(2p)..3/(2p), and packets of different
    /// probabilities are dropped in proportion to them.
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
            /// Limit of waiting packets, without the packet in transmission: packets, bytes or
            /// bandwidth-delay products (`"100 packets"`, `"64 KiB"`, `"1 bdp"`). By default there
            /// is no limit.
            pub limit: anabranch_core::units::text::Limit,
            /// Average below which no packet is dropped (`min_th`), in packets or in bytes; the
            /// queue is measured in the same unit. 5 packets, as Floyd recommends (1997).
            pub min_threshold: anabranch_core::units::text::Limit,
            /// Average at which the probability reaches `max_probability` (`max_th`), in the unit
            /// of `min_threshold`. Three times `min_threshold`, as Floyd recommends (1997).
            pub max_threshold: anabranch_core::units::text::Limit,
            /// Probability at `max_threshold` (`max_p`): above 0, at most 1. 0.1, as Floyd
            /// recommends (1997); 0.02 in the paper.
            pub max_probability: $crate::queue::red::Probability,
            /// Weight of an arrival in the average (`w_q`): above 0, at most 1 (Floyd and Jacobson
            /// §6).
            pub weight: $crate::queue::red::Probability,
            /// From `max_threshold` to twice that, the probability rises to 1 instead of jumping to
            /// it (Floyd 2000).
            pub gentle: bool,
            /// Distribution of drops over the packets at a probability p. `uniform`: the gap
            /// between drops is uniform in 1..1/p (Floyd and Jacobson §7, method 2). `drawn`: the
            /// same with one random number for each gap (§11, dummynet). `geometric`: each packet
            /// is tried independently (method 1). `waiting`: the gap is uniform in 1/p..2/p, as in
            /// ns-2 by default. `summed`: the gap is uniform in 1/(2p)..3/(2p), and probabilities
            /// that differ from packet to packet add up.
            pub spacing: $crate::queue::red::Spacing,
            /// Marks packets of ECN-capable transports instead of dropping them, unless the queue
            /// is full (RFC 3168 §5).
            pub ecn: bool,
            /// With `ecn`: drops packets if the average is so high that every packet would be
            /// marked (RFC 3168 §7). If off, it marks them.
            pub hard_drop: bool,
            /// With thresholds in bytes: makes the probability proportional to the packet's size
            /// (Floyd and Jacobson §8). RFC 7141 §2.2 advises against it.
            pub scale_by_size: bool,
            /// Packet size at which the probability is unscaled: the largest packet in Floyd and
            /// Jacobson §8.
            pub reference_packet: $crate::queue::red::PacketSize,
            /// An idle period lowers the average as if packets of this size had passed an empty
            /// queue; 500 bytes in ns-2 (`mean_pktsize_`), small packets in Floyd and Jacobson §4.
            pub idle_packet: $crate::queue::red::PacketSize,
            /// Adapts `max_probability` so that the average stays between the thresholds (Adaptive
            /// RED): `true`, or a table with `target`, `interval`, `alpha`, `beta`, `floor` and
            /// `ceiling`.
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
            /// Parameters common to all variants of RED.
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

/// Keys that can change in mid-run. The average is kept, so its unit cannot change.
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

/// Properties of a variant's own parameters.
pub trait RedParams {
    /// Flow names in the parameters ([`crate::queue::QueueParams::flows`]).
    fn named(&self) -> Option<(&'static [&'static str], &[String])> {
        None
    }
    /// Checks that the variant's own parameters are consistent.
    ///
    /// # Errors
    /// Names the first contradiction.
    fn check_own(&self) -> Result<(), Contradiction> {
        Ok(())
    }
}

/// Parameters common to all variants of RED, described at [`super::Params`].
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
    /// First key with a multiple of the bandwidth-delay product.
    pub(in crate::queue) fn in_bdp(&self) -> Option<&'static [&'static str]> {
        const KEYS: [&[&str]; 3] = [&["limit"], &["min_threshold"], &["max_threshold"]];
        let limits = [self.limit, self.min_threshold, self.max_threshold];
        KEYS.into_iter()
            .zip(limits)
            .find(|(_, limit)| matches!(limit, Limit::Bdp(_)))
            .map(|(key, _)| key)
    }

    /// Checks that the parameters are consistent, when no multiple of the bandwidth-delay product
    /// is left.
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
    /// Creates an empty store.
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
