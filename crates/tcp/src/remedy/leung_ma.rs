//! A threshold from the mean and the mean deviation of reordering lengths (Leung and Ma, Enhancing
//! TCP performance to persistent packet reordering, Journal of Communications and Networks 7(3),
//! 2005).
//!
//! The parts of the source, by its abstract and the survey of Leung, Li and Yang (IEEE TPDS 18(4),
//! 2007): an exponentially weighted moving average of the lengths of reordering events, which DSACK
//! reports, and their mean deviation; an adaptive upper bound, so that enough duplicates can arrive
//! before the timer expires; and an exponential decrease when it does expire.
//!
//! ```text
//! mdev      <- (1 - h) mdev + h |length - mean|
//! mean      <- (1 - g) mean + g length
//! dupthresh  = mean + k mdev + 1, at most cwnd (RTO / SRTT - 1) in segments, at least the stack's
//! timeout:     mean <- b mean, mdev <- b mdev
//! ```
//!
//! # Differs from the source
//! - The gains *g* and *h* and the factors *k* and *b* are chosen here: the values of RFC 6298, and
//!   one half for *b*. The form of the bound is also chosen here: a window of duplicates arrives
//!   per round-trip time, and the timer, which restarted at the first duplicate, leaves RTO − SRTT
//!   for them. The source uses other values and another bound.
//!
//! # Differs from Linux
//! - Linux keeps the largest length seen.
//!
//! # Not implemented
//! - Nothing that the abstract mentions.

use anabranch_core::registry::{Meta, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Init, Late, Policy, RemedyParams, View, whole};
use anabranch_congestion::params::{Gain, Share};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "leung-ma",
    title: "Mean and deviation of reordering (Leung and Ma)",
    summary: "The threshold is the mean reordering length plus a multiple of the mean deviation; a timeout lowers it.",
    sources: &[
        Source {
            id: "Leung and Ma 2005 (J. Commun. Networks 7(3))",
            items: &["abstract"],
        },
        Source {
            id: "Leung, Li and Yang 2007 (IEEE TPDS 18(4))",
            items: &["survey"],
        },
    ],
};

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// *g*: weight of the latest length in the mean.
    pub mean_gain: Share,
    /// *h*: weight of the latest deviation.
    pub deviation_gain: Share,
    /// *k*: number of mean deviations added to the mean.
    pub deviations: Gain,
    /// *b*: factor of mean and deviation at a timeout.
    pub timeout_factor: Share,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            mean_gain: Share::new(0.125),
            deviation_gain: Share::new(0.25),
            deviations: Gain::new(4.0),
            timeout_factor: Share::new(0.5),
        }
    }
}

impl RemedyParams for Params {
    const NEEDS_DSACK: bool = true;
    const UNDOES: bool = true;
}

/// State of the estimator.
#[derive(Debug)]
pub struct LeungMa {
    params: Params,
    least: u32,
    /// Mean and mean deviation; `None` before the first length.
    estimate: Option<(f64, f64)>,
    dupthresh: u32,
}

impl LeungMa {
    /// Starts at the stack's threshold.
    #[must_use]
    pub fn new(params: &Params, init: &Init) -> Self {
        Self {
            params: params.clone(),
            least: init.dupthresh,
            estimate: None,
            dupthresh: init.dupthresh,
        }
    }

    fn bound(&mut self, view: &View) {
        let Some((mean, mdev)) = self.estimate else {
            return;
        };
        let most = if view.srtt.is_zero() {
            f64::INFINITY
        } else {
            let round_trips = view.rto.as_secs_f64() / view.srtt.as_secs_f64() - 1.0;
            view.cwnd as f64 / view.smss.max(1) as f64 * round_trips
        };
        let level = (mean + self.params.deviations.get() * mdev).ceil() + 1.0;
        self.dupthresh = whole(level.min(most.floor()).max(f64::from(self.least)));
    }
}

impl Policy for LeungMa {
    fn dupthresh(&self) -> u32 {
        self.dupthresh
    }
    fn on_duplicate(&mut self, view: &View) {
        self.bound(view);
    }
    fn on_late(&mut self, late: Late, view: &View) {
        let length = f64::from(late.length);
        self.estimate = Some(match self.estimate {
            // Initial values as in RFC 6298 (2.2).
            None => (length, length / 2.0),
            Some((mean, mdev)) => {
                let (g, h) = (
                    self.params.mean_gain.get(),
                    self.params.deviation_gain.get(),
                );
                (
                    mean + g * (length - mean),
                    mdev + h * ((length - mean).abs() - mdev),
                )
            }
        });
        self.bound(view);
    }
    fn on_timeout(&mut self, view: &View) {
        let left = self.params.timeout_factor.get();
        self.estimate = self.estimate.map(|(mean, mdev)| (mean * left, mdev * left));
        self.bound(view);
    }
}
