//! Stand-ins for types of the elements crate; [`super::types`] says which are in use.

/// Queues.
pub mod queue {
    use std::num::NonZeroU32;

    use anabranch_core::units::{Bytes, text::Limit};
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    /// Any queue with its parameters.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Config {
        /// First in, first out; what does not fit is dropped.
        DropTail(DropTail),
        /// One from outside the workspace.
        #[serde(skip)]
        Custom(Custom),
    }

    /// Parameters of the drop-tail queue.
    #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct DropTail {
        /// How much may wait, the packet being sent not counted.
        pub limit: Limit,
    }

    /// A queue from outside.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Custom {
        /// Its name.
        pub name: String,
        /// Its parameters.
        pub params: serde_json::Value,
    }

    impl Default for Config {
        fn default() -> Self {
            Self::DropTail(DropTail::default())
        }
    }

    impl Config {
        /// Whether a limit or threshold is a multiple of the bandwidth-delay product.
        #[must_use]
        pub fn needs_bdp(&self) -> bool {
            matches!(
                self,
                Self::DropTail(DropTail {
                    limit: Limit::Bdp(_)
                })
            )
        }
        /// Puts the bandwidth-delay product in.
        pub fn set_bdp(&mut self, bdp: Bytes) {
            if let Self::DropTail(params) = self {
                params.limit = params.limit.with_bdp(bdp);
            }
        }
    }

    /// Reordering inside the queue.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Reorder {
        /// Periodic.
        Interval(Interval),
    }

    /// Parameters of periodic reordering.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct Interval {
        /// Packets from one reordering event to the next.
        pub interval: NonZeroU32,
    }
}

/// Impairments.
pub mod impair {
    use anabranch_core::units::Fraction;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    /// Any impairment with its parameters.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Config {
        /// Loses each packet independently.
        BernoulliLoss(BernoulliLoss),
        /// One from outside the workspace.
        #[serde(skip)]
        Custom(super::queue::Custom),
    }

    /// Parameters of independent loss.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct BernoulliLoss {
        /// The probability that a packet is lost.
        pub rate: Fraction,
    }

    impl Config {
        /// The name that scenario files use.
        #[must_use]
        pub fn name(&self) -> &str {
            match self {
                Self::BernoulliLoss(_) => "bernoulli-loss",
                Self::Custom(custom) => &custom.name,
            }
        }
    }
}

/// What applications send.
pub mod workload {
    use anabranch_core::units::{Bytes, Rate};
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    use super::super::kind::Choice;

    /// Any workload with its parameters.
    #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Config {
        /// As much as the network takes, until the flow stops.
        #[default]
        Bulk,
        /// One file; the flow ends when it has arrived.
        File(File),
        /// Files that arrive at random.
        Poisson(Poisson),
    }

    /// Parameters of a file.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct File {
        /// How large it is.
        pub size: Bytes,
    }

    /// Parameters of files that arrive as a Poisson process.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct Poisson {
        /// The offered load: the mean size times the mean number of arrivals per second.
        pub rate: Rate,
        /// How large the files are.
        pub sizes: Choice<Sizes>,
    }

    /// A distribution of file sizes.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Sizes {
        /// All the same.
        Fixed {
            /// How large each is.
            size: Bytes,
        },
        /// Exponential.
        Exponential {
            /// The mean.
            mean: Bytes,
        },
        /// Pareto: a heavy tail.
        Pareto {
            /// The mean.
            mean: Bytes,
            /// The tail index; above 1, so that there is a mean.
            shape: f64,
        },
    }
}

/// TCP stacks.
pub mod tcp {
    use anabranch_core::units::{Bytes, Duration};
    use anabranch_elements::cc;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};
    use serde_json::Value;

    /// Switches over the stack's.
    #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct Overrides {
        /// Payload bytes of a full segment.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub mss: Option<Bytes>,
        /// Selective acknowledgment.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub sack: Option<bool>,
        /// Timestamps.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub timestamps: Option<bool>,
        /// The initial window, in segments.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub initial_cwnd: Option<u32>,
        /// The smallest retransmission timeout.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub min_rto: Option<Duration>,
        /// The receive window.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub receive_window: Option<Bytes>,
        /// When to acknowledge.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub delayed_ack: Option<Value>,
    }

    /// Every switch of a stack.
    #[derive(Debug, Clone, PartialEq, Default, Serialize)]
    pub struct Settings {
        /// What was set over the profile.
        #[serde(flatten)]
        pub overrides: Overrides,
    }

    /// Two switches that contradict each other, or a value out of range.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Problem {
        /// The switch.
        pub field: &'static str,
        /// What is wrong with it.
        pub message: String,
    }

    /// The profiles' names.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        vec!["rfc", "ns3-2018"]
    }

    /// The profile's switches.
    #[must_use]
    pub fn settings(profile: &str) -> Option<Settings> {
        names().contains(&profile).then(Settings::default)
    }

    /// The profile's congestion control.
    #[must_use]
    pub fn default_control(_profile: &str) -> cc::Config {
        cc::Config::Reno(cc::reno::Params::default())
    }

    impl Settings {
        /// The same with some switches set otherwise.
        ///
        /// # Errors
        /// If switches contradict each other.
        pub fn with(&self, overrides: &Overrides) -> Result<Self, Problem> {
            Ok(Self {
                overrides: overrides.clone(),
            })
        }
    }
}
