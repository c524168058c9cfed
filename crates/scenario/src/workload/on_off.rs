//! A source that alternates between on and off. The sum of many such sources is self-similar if
//! their times have a heavy tail (W. Willinger et al., "Self-similarity through high-variability",
//! IEEE/ACM Transactions on Networking 5(1), 1997, §2).

use anabranch_core::{
    math,
    rng::Draw,
    units::{Bytes, Duration, Rate},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::profile::Wrong;
use crate::Choice;

/// Parameters of a source that alternates between on and off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnOff {
    /// Application bytes per time while on, in evenly spaced datagrams; each on period begins with
    /// a datagram.
    pub rate: Rate,
    /// The length of on periods.
    pub on: Choice<Spans>,
    /// The length of off periods.
    pub off: Choice<Spans>,
    /// Bytes of a datagram's payload, 1 to 65,507; if omitted, 1,472 bytes, which fill an IPv4
    /// packet of 1,500 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Bytes", extend("x-minimum" = "1 bytes", "x-maximum" = "65507 bytes"))]
    pub payload: Option<Bytes>,
}

/// A distribution of times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Spans {
    /// All equal.
    Fixed {
        /// The length of each.
        time: Duration,
    },
    /// Exponential.
    Exponential {
        /// The mean.
        mean: Duration,
    },
    /// Pareto: a heavy tail.
    Pareto {
        /// The mean.
        mean: Duration,
        /// The tail index; above 1, so that the mean exists. Below 2 the variance is infinite.
        shape: f64,
    },
}

impl Spans {
    /// Draws a time.
    #[must_use]
    pub fn draw(self, draw: &mut Draw) -> Duration {
        match self {
            Self::Fixed { time } => time,
            Self::Exponential { mean } => {
                Duration::from_secs_f64(draw.exponential(mean.as_secs_f64()))
            }
            Self::Pareto { mean, shape } => {
                let least = mean.as_secs_f64() * (shape - 1.0) / shape;
                Duration::from_secs_f64(least / math::powf(1.0 - draw.uniform(), 1.0 / shape))
            }
        }
    }
    /// The mean time.
    #[must_use]
    pub const fn mean(self) -> Duration {
        match self {
            Self::Fixed { time } => time,
            Self::Exponential { mean } | Self::Pareto { mean, .. } => mean,
        }
    }
    fn check(self) -> Result<(), Wrong> {
        if self.mean() < Duration::from_micros(1) {
            let key: &[&str] = if matches!(self, Self::Fixed { .. }) {
                &["time"]
            } else {
                &["mean"]
            };
            return Err((
                key,
                format!("a period of {} is out of range", self.mean()),
                "1 us or more",
            ));
        }
        match self {
            Self::Pareto { shape, .. } if shape.is_nan() || shape <= 1.0 => Err((
                &["shape"],
                format!("a Pareto distribution of shape {shape} has no mean"),
                "a number above 1",
            )),
            _ => Ok(()),
        }
    }
}

impl OnOff {
    /// Checks that its times have a mean. The first word of the error is `on` or `off`.
    ///
    /// # Errors
    /// For the first distribution without a mean.
    pub fn check(&self) -> Result<(), (&'static str, Wrong)> {
        self.on.0.check().map_err(|wrong| ("on", wrong))?;
        self.off.0.check().map_err(|wrong| ("off", wrong))
    }
}
