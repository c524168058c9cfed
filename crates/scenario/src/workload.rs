//! The traffic of applications.

mod arrivals;
mod on_off;
mod paced;
pub mod profile;
pub mod replay;
mod request_response;
pub mod sendings;
mod writes;

pub use arrivals::{Arrivals, Transfer};
pub use on_off::{OnOff, Spans};
pub use paced::{Pace, Paced};
pub use profile::{Level, Profile};
pub use replay::{CaptureSummary, Recording, RecordingError, Replay};
pub use request_response::RequestResponse;
pub use sendings::Sendings;
pub use writes::Writes;

use anabranch_core::{
    math,
    rng::Draw,
    units::{Bytes, Rate},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Choice;

/// Any workload with its parameters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Config {
    /// Unlimited data, until the flow stops.
    #[default]
    Bulk,
    /// One file; the flow ends when it has arrived.
    File(File),
    /// Files that arrive as a Poisson process, each on a separate connection; over UDP, datagrams.
    Poisson(Poisson),
    /// A fixed amount per time, evenly spaced: a call, a video, a sensor.
    Paced(Paced),
    /// Alternation of evenly spaced datagrams and silence, over UDP.
    OnOff(OnOff),
    /// A recording, over UDP.
    Replay(Replay),
    /// Requests of one end and responses of the other, over one connection.
    RequestResponse(RequestResponse),
}

/// Parameters of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The size.
    pub size: Bytes,
}

/// Parameters of files that arrive as a Poisson process. Over UDP each is one datagram, and all
/// have one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Poisson {
    /// The offered load: the mean size times the mean number of arrivals per second.
    pub rate: Rate,
    /// The distribution of file sizes.
    pub sizes: Choice<Sizes>,
    /// The variation of the load around its mean; constant if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
}

impl Poisson {
    /// Mean number of arrivals per second.
    #[must_use]
    pub fn arrivals_per_s(&self) -> f64 {
        self.rate.bits_per_s() as f64 / 8.0 / self.sizes.0.mean()
    }
}

/// A distribution of file sizes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sizes {
    /// All equal.
    Fixed {
        /// The size of each.
        size: Bytes,
    },
    /// Exponential.
    Exponential {
        /// The mean.
        mean: Bytes,
    },
    /// Log-normal: many small, some large.
    LogNormal {
        /// The median.
        median: Bytes,
        /// Standard deviation of the natural logarithm, above 0 and up to 4.
        sigma: f64,
    },
    /// Pareto: a heavy tail.
    Pareto {
        /// The mean.
        mean: Bytes,
        /// The tail index; above 1, so that the mean exists.
        shape: f64,
    },
}

impl Sizes {
    /// Draws the size of a file in bytes, at least 1.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float-to-int cast saturates"
    )]
    pub fn draw(self, draw: &mut Draw) -> u64 {
        let bytes = match self {
            Self::Fixed { size } => return size.get().max(1),
            Self::Exponential { mean } => draw.exponential(mean.get() as f64),
            Self::LogNormal { median, sigma } => {
                // Box and Muller: one normal from two uniforms, the first of which is never 0.
                let radius = (-2.0 * math::ln(1.0 - draw.uniform())).sqrt();
                let angle = std::f64::consts::TAU * draw.uniform();
                median.get() as f64 * math::exp(sigma * radius * math::cos(angle))
            }
            Self::Pareto { mean, shape } => {
                let least = mean.get() as f64 * (shape - 1.0) / shape;
                least / math::powf(1.0 - draw.uniform(), 1.0 / shape)
            }
        };
        (bytes as u64).max(1)
    }

    /// Returns the size if it is fixed.
    #[must_use]
    pub const fn fixed(self) -> Option<Bytes> {
        match self {
            Self::Fixed { size } => Some(size),
            _ => None,
        }
    }

    /// The mean size in bytes.
    #[must_use]
    pub fn mean(self) -> f64 {
        match self {
            Self::Fixed { size } => size.get().max(1) as f64,
            Self::Exponential { mean } | Self::Pareto { mean, .. } => mean.get() as f64,
            Self::LogNormal { median, sigma } => {
                median.get() as f64 * math::exp(sigma * sigma / 2.0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_core::rng::Stream;

    #[test]
    fn sizes_have_their_mean_and_median() {
        let stream = Stream::new(3, "flow.web.workload");
        let draws = |sizes: Sizes| -> Vec<u64> {
            (0..40_001).map(|i| sizes.draw(&mut stream.at(i))).collect()
        };
        let mean =
            |values: &[u64]| values.iter().map(|&v| v as f64).sum::<f64>() / values.len() as f64;

        let exponential = Sizes::Exponential {
            mean: Bytes::new(50_000),
        };
        // Five standard errors of the mean: 5 / sqrt(n) = 0.025 of it.
        assert!((mean(&draws(exponential)) / exponential.mean() - 1.0).abs() < 0.025);

        let normal = Sizes::LogNormal {
            median: Bytes::new(10_000),
            sigma: 1.0,
        };
        let mut values = draws(normal);
        // The standard deviation of the size is mean * sqrt(e - 1) = 1.31 of the mean.
        assert!((mean(&values) / normal.mean() - 1.0).abs() < 0.033);
        values.sort_unstable();
        // Standard error of the median's logarithm: 1.2533 / sqrt(n) = 0.0063.
        assert!(math::ln(values[20_000] as f64 / 10_000.0).abs() < 0.031);

        let pareto = Sizes::Pareto {
            mean: Bytes::new(10_000),
            shape: 2.5,
        };
        let values = draws(pareto);
        // Variance of the mean-normalised Pareto: 1 / (shape (shape - 2)) = 0.8.
        assert!((mean(&values) / pareto.mean() - 1.0).abs() < 0.023);
        assert!(
            values.iter().all(|&v| v >= 5_999),
            "the least is mean (shape - 1) / shape"
        );
    }
}
