//! Impairments: what a path does to one packet, decided without a queue or a clock.
//!
//! Adding one is a file in `impair/` and a line in the registry below; one from outside the
//! workspace implements [`Impairment`] and travels as [`AnyImpairment::Boxed`].

use std::{fmt, sync::Arc};

use anabranch_core::{
    packet::Ecn,
    registry::Meta,
    rng::Draw,
    units::{Duration, Instant},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an impairment decided for one packet; the link carries it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing happens to it.
    Pass,
    /// It is lost.
    Lose,
    /// It is late by this much. With `may_overtake` others may pass it on the way; without, those
    /// behind it wait.
    Delay {
        /// How much.
        by: Duration,
        /// Whether order may change.
        may_overtake: bool,
    },
    /// It arrives twice, the copy right behind.
    Duplicate,
    /// It arrives damaged; the receiver's checksum rejects it.
    Corrupt,
}

/// What an impairment may see of a packet.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// Size of the IP packet in bytes.
    pub size: u32,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Its number at this element, from 0.
    pub index: u64,
}

/// An impairment. The draws it is given belong to the packet's number at this element, so that
/// the n-th packet has the same fate in every engine.
pub trait Impairment: fmt::Debug + Send {
    /// Decides a packet's fate.
    fn judge(&mut self, now: Instant, packet: View, draw: &mut Draw) -> Verdict;
    /// Whether packets may leave in another order than they came.
    fn reorders(&self) -> bool {
        false
    }
}

/// Makes an impairment from outside the workspace.
pub type Factory = Arc<dyn Fn() -> Box<dyn Impairment> + Send + Sync>;

/// An impairment from outside the workspace, as a scenario carries it.
#[derive(Clone)]
pub struct Custom {
    /// The name it goes by.
    pub name: String,
    /// The parameters written beside `kind`, for the resolved scenario.
    pub params: serde_json::Value,
    /// Makes one.
    pub build: Factory,
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Custom")
            .field("name", &self.name)
            .field("params", &self.params)
            .finish_non_exhaustive()
    }
}
impl PartialEq for Custom {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.params == other.params
    }
}

macro_rules! impairments {
    ($($(#[$attr:meta])* $file:ident :: $Type:ident,)*) => {
        $(pub mod $file;)*

        /// Any impairment with its parameters, as a scenario file names it.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum Config {
            $(#[doc = concat!("See [`", stringify!($file), "`].")] $(#[$attr])* $Type($file::Params),)*
            /// One from outside the workspace.
            #[serde(skip)]
            Custom(Custom),
        }

        /// An impairment at work. Built-in ones are dispatched without indirection.
        #[derive(Debug)]
        #[expect(missing_docs, reason = "each is documented at its type")]
        pub enum AnyImpairment {
            $($Type($file::$Type),)*
            Boxed(Box<dyn Impairment>),
        }

        impl Config {
            /// Makes the impairment.
            #[must_use]
            pub fn build(&self) -> AnyImpairment {
                match self {
                    $(Self::$Type(params) => AnyImpairment::$Type($file::$Type::new(params)),)*
                    Self::Custom(custom) => AnyImpairment::Boxed((custom.build)()),
                }
            }
            /// The name that scenario files use.
            #[must_use]
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$Type(_) => $file::META.name,)*
                    Self::Custom(custom) => &custom.name,
                }
            }
        }

        /// Every built-in impairment's self-description and defaults, in registry order.
        #[must_use]
        pub fn registry() -> Vec<(&'static Meta, Config, schemars::Schema)> {
            vec![$((&$file::META, Config::$Type($file::Params::default()), schemars::schema_for!($file::Params)),)*]
        }

        impl Impairment for AnyImpairment {
            #[inline]
            fn judge(&mut self, now: Instant, packet: View, draw: &mut Draw) -> Verdict {
                match self {
                    $(Self::$Type(i) => i.judge(now, packet, draw),)*
                    Self::Boxed(i) => i.judge(now, packet, draw),
                }
            }
            fn reorders(&self) -> bool {
                match self {
                    $(Self::$Type(i) => i.reorders(),)*
                    Self::Boxed(i) => i.reorders(),
                }
            }
        }
    };
}

impairments! {
    bernoulli_loss::BernoulliLoss,
}
