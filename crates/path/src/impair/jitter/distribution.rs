//! Distributions of jitter's delays.

use anabranch_core::{
    bounded, math,
    rng::Draw,
    units::{Duration, text::MAX_DURATION},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{super::Contradiction, Params};

/// A family of distributions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Distribution {
    /// Exponential with `mean`.
    #[default]
    Exponential,
    /// Normal with `mean` and `deviation`.
    Normal,
    /// Pareto with `mean` and `shape`.
    Pareto,
    /// The delays of `table`.
    Table,
}

bounded! {
    /// Exponent of a Pareto distribution's tail; at 1 and below there is no mean.
    Shape, 1.01..=100.0, "the exponent of the tail"
}

impl Default for Shape {
    fn default() -> Self {
        Self::new(3.0)
    }
}

/// Distance of a normal distribution's mean from 0 s in standard deviations: minimum and default.
const LEAST_DEVIATIONS: u64 = 3;
const DEVIATIONS: u64 = 4;

impl Params {
    pub(super) fn check_distribution(&self) -> Result<(), Contradiction> {
        let wrong = |key, message: String, expected: String| {
            Err(Contradiction {
                key,
                message,
                expected,
            })
        };
        if self.distribution == Distribution::Table {
            if self.file.is_some() && !self.table.is_empty() {
                return wrong(
                    &["file"],
                    "the delays are given twice".to_owned(),
                    "`table` or `file`".to_owned(),
                );
            }
            if self.table.is_empty() && self.file.is_none() {
                return wrong(
                    &["distribution"],
                    "there are no delays to draw from".to_owned(),
                    "a `table` of one or more, for example [\"0 ms\", \"5 ms\", \"40 ms\"], or a `file`"
                        .to_owned(),
                );
            }
            if self.mean.is_some() {
                return wrong(
                    &["mean"],
                    "the mean of `distribution = \"table\"` is that of its delays".to_owned(),
                    "no `mean`, or another distribution".to_owned(),
                );
            }
        } else if !self.table.is_empty() || self.file.is_some() {
            return wrong(
                if self.file.is_some() {
                    &["file"]
                } else {
                    &["table"]
                },
                "a table of delays, and another distribution".to_owned(),
                "`distribution = \"table\"` beside it".to_owned(),
            );
        }
        if self.distribution == Distribution::Normal {
            let mean = self.mean.unwrap_or_default();
            match self.deviation {
                Some(deviation) if deviation.saturating_mul(LEAST_DEVIATIONS) > mean => {
                    return wrong(
                        &["deviation"],
                        format!(
                            "with a deviation of {deviation} around {mean} many delays would lie below 0 s"
                        ),
                        format!(
                            "{} at most; part of the link's `delay` can be put into `mean`",
                            mean / LEAST_DEVIATIONS
                        ),
                    );
                }
                _ => {}
            }
        } else if self.deviation.is_some() {
            return wrong(
                &["deviation"],
                "only a normal distribution takes a deviation".to_owned(),
                "`distribution = \"normal\"` beside it".to_owned(),
            );
        }
        if self.distribution != Distribution::Pareto && self.shape != Shape::default() {
            return wrong(
                &["shape"],
                "only a Pareto distribution takes a shape".to_owned(),
                "`distribution = \"pareto\"` beside it".to_owned(),
            );
        }
        if self.mean.is_none() && self.distribution != Distribution::Table {
            return wrong(
                &[],
                "`jitter` does not say how late packets are".to_owned(),
                "a `mean`, for example mean = \"5 ms\"".to_owned(),
            );
        }
        Ok(())
    }
}

/// A distribution to draw from; times in seconds.
#[derive(Debug)]
pub(super) enum Sampler {
    Exponential { mean: f64 },
    Normal { mean: f64, deviation: f64 },
    Pareto { least: f64, shape: f64 },
    Table(Box<[Duration]>),
}

impl Sampler {
    pub(super) fn new(params: &Params) -> Self {
        let mean = params.mean.unwrap_or_default();
        let seconds = mean.as_secs_f64();
        match params.distribution {
            Distribution::Exponential => Self::Exponential { mean: seconds },
            Distribution::Normal => Self::Normal {
                mean: seconds,
                deviation: params.deviation.unwrap_or(mean / DEVIATIONS).as_secs_f64(),
            },
            Distribution::Pareto => {
                let shape = params.shape.get();
                Self::Pareto {
                    least: seconds * (shape - 1.0) / shape,
                    shape,
                }
            }
            Distribution::Table => Self::Table(params.table.clone().into()),
        }
    }

    /// Draws a delay, at most the maximum duration of a scenario file.
    pub(super) fn sample(&self, draw: &mut Draw) -> Duration {
        let seconds = match self {
            Self::Exponential { mean } => draw.exponential(*mean),
            Self::Normal { mean, deviation } => mean + deviation * draw.standard_normal(),
            Self::Pareto { least, shape } => {
                // 1 - u is in (0, 1], so the power is finite.
                least * math::powf(1.0 - draw.uniform(), -1.0 / shape)
            }
            Self::Table(delays) => {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "below the length of the table"
                )]
                let place = (draw.uniform() * delays.len() as f64) as usize;
                return delays[place.min(delays.len() - 1)];
            }
        };
        Duration::from_secs_f64(seconds).min(MAX_DURATION)
    }
}
