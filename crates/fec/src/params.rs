//! The parameters of a flow's error correction in a scenario, and their consistency.

use std::fmt;

use anabranch_core::{
    parameters::{Contradiction, Count},
    quantity,
    registry::{Meta, Source},
    units::Duration,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use anabranch_erasure::{
    AnyCode, Code, reed_solomon::ReedSolomon, sliding_rlc::SlidingRlc, xor::Xor,
};

quantity! {
    /// Longest time for which acknowledgments are held.
    HoldTime, Duration, Duration::from_millis(1), Duration::from_secs(60)
}

/// The redundancy controller, as named in scenarios.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// A group is the congestion window minus the redundant packet, at most `fmax`: the study's.
    #[default]
    Cwnd,
    /// Every group has `group` packets.
    Fixed,
    /// Groups follow the observed losses such that the cost of redundancy plus remaining losses is
    /// minimal. With `sliding-rlc`, on short paths with few losses, a fixed `fmax` of `xor` has up
    /// to a quarter more goodput over Reno.
    LossAdaptive,
}

/// The transmission of held acknowledgments after a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Release {
    /// Each of them, with the content that it would have had without the loss.
    #[default]
    Each,
    /// One that acknowledges all data.
    One,
    /// Releases the packets individually, slightly faster than they became ready; releasing all at
    /// once would elicit a burst of the same size.
    Paced,
}

/// Whether a gap holds acknowledgments while earlier data is missing that redundancy cannot
/// recover, so that the sender is in recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InRecovery {
    /// It does not: the recovery needs the acknowledgments.
    #[default]
    No,
    /// It does, except for acknowledgments of data that fills the earlier gap.
    NewData,
    /// It does, for all acknowledgments. Data that arrives twice then shows that the sender's timer
    /// has expired, and releases them.
    All,
}

/// Error correction of a flow, for any code. Both ends have the same parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Params {
    /// The redundancy controller (Sato et al. §3.2 for `cwnd`). Default: `fixed` if `group` is
    /// given, else `cwnd`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub redundancy: Option<Choice>,
    /// Maximum number of data packets of a group. 0 sets no limit other than the code's (Sato et
    /// al. §3.2); with `loss-adaptive` it means 40, or 60 with `release = "paced"`.
    #[serde(deserialize_with = "fmax")]
    #[schemars(range(max = 65_535))]
    pub fmax: u32,
    /// Data packets of every group with `redundancy = "fixed"`; default 10. An error with any other
    /// `redundancy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<Count<65_535>>,
    /// Redundant packets of a group; 1 in the study. With `loss-adaptive`, the maximum; default
    /// there: the code's limit, at most 16.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redundant: Option<Count<255>>,
    /// Data packets covered by a redundant packet of `sliding-rlc`, at least the packets of its
    /// group. Default: three quarters of the congestion window, at most 160.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Count<255>>,
    /// The receiver holds acknowledgments while missing data may still be recovered (Sato et al.
    /// §3.3).
    pub hold_acks: bool,
    /// Longest hold; not specified in the study.
    pub hold_timeout: HoldTime,
    /// A hold ends as soon as more packets of a group are missing than its redundancy can recover
    /// (Sato et al. §3.3), before the end of the group.
    pub second_gap_releases: bool,
    /// Whether acknowledgments are held during a recovery as well; not specified in the study.
    pub hold_in_recovery: InRecovery,
    /// The transmission of held acknowledgments after a repair; not specified in the study.
    pub release: Release,
    /// A redundant packet occupies a packet's space in the congestion window until all data that it
    /// covers is acknowledged, later data has arrived, or the timer expires; not specified in the
    /// study.
    pub occupies_cwnd: bool,
    /// The congestion control is notified of recovered losses and of lost redundant packets as of
    /// other losses (RFC 9265 §3). In the study it is not.
    pub recovered_is_loss: bool,
}

/// Reads a number of 32 bits. The limit on a group depends on the code.
fn fmax<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    struct Fmax;
    impl de::Visitor<'_> for Fmax {
        type Value = u32;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("0 for no limit, or 1 to 65535")
        }
        fn visit_i64<E: de::Error>(self, number: i64) -> Result<u32, E> {
            u32::try_from(number)
                .map_err(|_| E::invalid_value(de::Unexpected::Signed(number), &self))
        }
        fn visit_u64<E: de::Error>(self, number: u64) -> Result<u32, E> {
            u32::try_from(number)
                .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))
        }
    }
    from.deserialize_u32(Fmax)
}

impl Default for Params {
    fn default() -> Self {
        Self {
            redundancy: None,
            fmax: 0,
            group: None,
            redundant: None,
            window: None,
            hold_acks: true,
            // RFC 6298 (2.1): the timeout of a sender without a measurement.
            hold_timeout: HoldTime::from_millis(1_000),
            second_gap_releases: true,
            hold_in_recovery: InRecovery::No,
            release: Release::Each,
            occupies_cwnd: true,
            recovered_is_loss: false,
        }
    }
}

impl HoldTime {
    /// # Panics
    /// If `ms` is 0 or above 60,000; in a `const` this is a compile error.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        assert!(ms >= 1 && ms <= 60_000, "1..60000 ms");
        Self(Duration::from_millis(ms))
    }
}

/// Default maximum of redundant packets of a group with `loss-adaptive`.
const ADAPTIVE_MOST: u16 = 16;
/// Default maximum of packets that a redundant packet of the sliding window covers.
const WINDOW: u32 = 160;

/// Default data packets of a group with `redundancy = "fixed"`.
const GROUP: u32 = 10;

impl Params {
    /// The redundancy controller.
    #[must_use]
    pub fn redundancy(&self) -> Choice {
        let own = self.group.map_or(Choice::Cwnd, |_| Choice::Fixed);
        self.redundancy.unwrap_or(own)
    }
    /// Data packets of a group with `redundancy = "fixed"`.
    #[must_use]
    pub fn group(&self) -> u32 {
        self.group.map_or(GROUP, Count::get)
    }
    /// Maximum number of data packets of a group, before the code's limit.
    #[must_use]
    pub fn most_sources(&self) -> u32 {
        match self.fmax {
            0 => u32::from(u16::MAX),
            fmax => fmax,
        }
    }
    /// Redundant packets of a group.
    #[must_use]
    pub fn redundant(&self) -> u16 {
        let given = self.redundant.map_or(1, Count::get);
        u16::try_from(given).unwrap_or(u16::MAX)
    }
}

/// A flow's error correction, as named in a scenario file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Config {
    /// None.
    #[default]
    Off,
    /// The XOR of a group recovers one of its packets.
    Xor(Params),
    /// A block recovers one lost packet per redundant packet.
    ReedSolomon(Params),
    /// Random sums over a sliding window recover most patterns of losses.
    SlidingRlc(Params),
}

impl Config {
    /// The code and its parameters; `None` without error correction.
    #[must_use]
    pub const fn parts(&self) -> Option<(AnyCode, &Params)> {
        match self {
            Self::Off => None,
            Self::Xor(params) => Some((AnyCode::Xor(Xor), params)),
            Self::ReedSolomon(params) => Some((AnyCode::ReedSolomon(ReedSolomon), params)),
            Self::SlidingRlc(params) => Some((AnyCode::SlidingRlc(SlidingRlc), params)),
        }
    }
    /// The name in scenario files.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Xor(_) => XOR.name,
            Self::ReedSolomon(_) => REED_SOLOMON.name,
            Self::SlidingRlc(_) => SLIDING_RLC.name,
        }
    }
    /// Minimum number of data packets that a redundant packet covers with a congestion window of
    /// `cwnd` packets, for a sliding window; 0 for blocks.
    ///
    /// Missing data is waited for until the window has slid past it. The default is therefore the
    /// number of packets that may be sent meanwhile, with a quarter reserved for groups and their
    /// redundancy.
    #[must_use]
    pub fn window(&self, cwnd: u32) -> u32 {
        match self {
            Self::SlidingRlc(params) => {
                let own = (cwnd - cwnd / 4).min(WINDOW);
                params.window.map_or(own, Count::get)
            }
            _ => 0,
        }
    }
    /// Maximum number of redundant packets of a group that `loss-adaptive` may choose.
    #[must_use]
    pub fn most_adaptive(&self) -> u16 {
        let Some((code, params)) = self.parts() else {
            return 0;
        };
        let own = params
            .redundant
            .map_or(ADAPTIVE_MOST, |_| params.redundant());
        own.min(u16::try_from(code.most_redundant()).unwrap_or(u16::MAX))
    }

    /// The configuration with derived parameters written out.
    #[must_use]
    pub fn settled(mut self) -> Self {
        if let Self::Xor(params) | Self::ReedSolomon(params) | Self::SlidingRlc(params) = &mut self
        {
            let redundancy = params.redundancy();
            if redundancy == Choice::Fixed {
                params.group = Some(Count::new(params.group()));
            }
            params.redundancy = Some(redundancy);
        }
        self
    }

    /// Checks whether the parameters are consistent with each other and with the code.
    ///
    /// # Errors
    /// The first inconsistency.
    pub fn check(&self) -> Result<(), Contradiction> {
        let Some((code, params)) = self.parts() else {
            return Ok(());
        };
        let name = self.name();
        let wrong = |key, message, expected| {
            Err(Contradiction {
                key,
                message,
                expected,
            })
        };
        let most = code.most_sources();
        if params.fmax > u32::from(u16::MAX) {
            return wrong(
                &["fmax"],
                format!(
                    "`fmax` is {}; a group has 65535 packets at most",
                    params.fmax
                ),
                "0 for no limit, or 1 to 65535".to_owned(),
            );
        }
        if params.fmax > most {
            return wrong(
                &["fmax"],
                format!(
                    "`fmax` is {}, and `{name}` covers {most} packets at most",
                    params.fmax
                ),
                format!("0 for no limit but the code's, or 1 to {most}"),
            );
        }
        if params.group.is_some() && params.redundancy() != Choice::Fixed {
            return wrong(
                &["group"],
                "`group` is the size of every group, and here groups change".to_owned(),
                "no `group` here, or `redundancy = \"fixed\"`; `fmax` bounds a group".to_owned(),
            );
        }
        if params.redundancy() == Choice::Fixed && params.group() > most {
            return wrong(
                &["group"],
                format!(
                    "`group` is {}, and `{name}` covers {most} packets at most",
                    params.group()
                ),
                format!("1 to {most}"),
            );
        }
        let most = code.most_redundant();
        if let Some(redundant) = params.redundant
            && redundant.get() > most
        {
            return wrong(
                &["redundant"],
                format!(
                    "`redundant` is {}, and `{name}` makes {most} redundant packet of a group",
                    redundant.get()
                ),
                "1, or another code: `reed-solomon`, `sliding-rlc`".to_owned(),
            );
        }
        if params.window.is_some() && !matches!(self, Self::SlidingRlc(_)) {
            return wrong(
                &["window"],
                format!("`{name}` codes each group separately and has no window"),
                "no `window` here; `fmax` bounds a group".to_owned(),
            );
        }
        Ok(())
    }
}

/// Description of `xor`.
pub const XOR: Meta = Meta {
    name: "xor",
    title: "XOR parity inside TCP",
    summary: "One redundant packet per group, the XOR of its packets, recovers one lost packet. The size of the group \
              follows the congestion window, and acknowledgments wait for the repair.",
    sources: &[
        Source {
            id: "Sato, Koga and Ikenaga, Performance Evaluation of TCP Throughput Improvement Methods Using FEC",
            items: &["§3"],
        },
        Source {
            id: "RFC 9265",
            items: &["§3"],
        },
    ],
};

/// Description of `reed-solomon`.
pub const REED_SOLOMON: Meta = Meta {
    name: "reed-solomon",
    title: "Reed-Solomon inside TCP",
    summary: "R redundant packets of a group recover any R lost packets of the group.",
    sources: &[
        Source {
            id: "RFC 5510",
            items: &["§8"],
        },
        Source {
            id: "RFC 9265",
            items: &["§3"],
        },
    ],
};

/// Description of `sliding-rlc`.
pub const SLIDING_RLC: Meta = Meta {
    name: "sliding-rlc",
    title: "Sliding-window random linear code inside TCP",
    summary: "Each redundant packet is a random linear combination of the last packets. Their windows overlap, so that \
              several of them together recover a burst.",
    sources: &[
        Source {
            id: "RFC 8681",
            items: &["§3", "§4"],
        },
        Source {
            id: "RFC 9265",
            items: &["§3"],
        },
    ],
};

/// The description and defaults of each code.
#[must_use]
pub fn registry() -> Vec<(&'static Meta, Config, schemars::Schema)> {
    let schema = || schemars::schema_for!(Params);
    vec![
        (&XOR, Config::Xor(Params::default()), schema()),
        (
            &REED_SOLOMON,
            Config::ReedSolomon(Params::default()),
            schema(),
        ),
        (
            &SLIDING_RLC,
            Config::SlidingRlc(Params::default()),
            schema(),
        ),
    ]
}
