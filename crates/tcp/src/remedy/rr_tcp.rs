//! RR-TCP: a threshold that avoids a given share of spurious fast retransmits and adapts that share
//! (Zhang, Karp, Floyd and Peterson, RR-TCP: A reordering-robust TCP with DSACK, ICNP 2003 and ICSI
//! TR-02-006).
//!
//! The lengths of the last reorderings form a histogram. The threshold is one above its percentile
//! *FA*, the false-fast-retransmit avoidance ratio: if 90 % of the lengths are 8 or less, it is 9.
//! Limited transmit continues until one more window has been sent. A reduction that DSACK proves
//! spurious is undone.
//!
//! The costs of the three kinds of mistake move *FA*, in segments not sent:
//!
//! ```text
//! spurious fast retransmit:  W / 2         half a window for a round trip, then undone
//! timeout:                   W RTO / SRTT  silence
//! limited transmit used up:  1             for each duplicate that permits no transmission
//! ```
//!
//! A spurious fast retransmit raises *FA* by `step` times its share of the sum of the first two
//! costs. A timeout after duplicates lowers *FA* by `step` times the timeout's share. A duplicate
//! that permits no transmission lowers it by `step` times one segment's share. *FA* thus settles
//! where the expected costs of retransmitting too early and too late are equal.
//!
//! # Differs from the source
//! - The source weighs the same three events. Its constants were not available; the constants above
//!   are derived here.
//! - Round-trip times of late segments are sampled by timestamps, if these are in use (RFC 7323),
//!   not by a separate rule.
//! - The control restores the window after a spurious reduction (`recovery::undo`).
//!
//! # Differs from Linux
//! - Linux keeps the largest length seen.
//!
//! # Not implemented
//! - The halving of the window over the time of an extended limited transmit.

use std::collections::VecDeque;

use anabranch_core::registry::{Meta, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Init, Late, Policy, RemedyParams, View};
use anabranch_congestion::params::{Samples, Share};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "rr-tcp",
    title: "RR-TCP",
    summary: "The threshold is a percentile of the observed reordering lengths. The percentile follows from the cost \
              of spurious retransmissions and of timeouts.",
    sources: &[Source {
        id: "Zhang, Karp, Floyd and Peterson 2003 (ICNP; ICSI TR-02-006)",
        items: &["DSACK-FA", "DSACK-TAES"],
    }],
};

/// Larger lengths are counted as this one.
const LONGEST: usize = 4096;

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Initial share of spurious fast retransmits to avoid.
    pub fa: Share,
    /// Step size of `fa`; 0 keeps `fa` constant (DSACK-FA).
    pub step: Share,
    /// Late segments that the histogram holds.
    pub history: Samples,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            fa: Share::new(0.9),
            step: Share::new(0.05),
            history: Samples::new(1000),
        }
    }
}

impl RemedyParams for Params {
    const NEEDS_DSACK: bool = true;
    const UNDOES: bool = true;
}

/// State of RR-TCP.
#[derive(Debug)]
pub struct RrTcp {
    step: f64,
    history: usize,
    least: u32,
    fa: f64,
    /// The last lengths, oldest first. The histogram counts each of them.
    lengths: VecDeque<u16>,
    histogram: Vec<u32>,
    /// The threshold before the bound.
    level: u32,
    dupthresh: u32,
}

impl RrTcp {
    /// Starts at the stack's threshold.
    #[must_use]
    pub fn new(params: &Params, init: &Init) -> Self {
        Self {
            step: params.step.get(),
            history: params.history.get() as usize,
            least: init.dupthresh,
            fa: params.fa.get(),
            lengths: VecDeque::new(),
            histogram: Vec::new(),
            level: init.dupthresh,
            dupthresh: init.dupthresh,
        }
    }

    /// *FA*.
    #[must_use]
    pub const fn fa(&self) -> f64 {
        self.fa
    }

    fn note(&mut self, length: u32) {
        if self.lengths.len() == self.history
            && let Some(oldest) = self.lengths.pop_front()
        {
            self.histogram[usize::from(oldest)] -= 1;
        }
        let length = (length as usize).min(LONGEST);
        if self.histogram.len() <= length {
            self.histogram.resize(length + 1, 0);
        }
        self.histogram[length] += 1;
        self.lengths
            .push_back(u16::try_from(length).expect("at most LONGEST"));
    }

    /// The smallest length such that at least the share *FA* of the lengths do not exceed it.
    fn percentile(&self) -> Option<u32> {
        let wanted = self.fa * self.lengths.len() as f64;
        let mut count = 0;
        for (length, n) in self.histogram.iter().enumerate() {
            count += n;
            if count > 0 && f64::from(count) >= wanted {
                return u32::try_from(length).ok();
            }
        }
        None
    }

    fn recompute(&mut self, view: &View) {
        self.level = self.percentile().map_or(0, |length| length + 1);
        self.bound(view);
    }

    /// Bounds the threshold, because two windows can cause no more duplicates.
    fn bound(&mut self, view: &View) {
        let most = view.segments(view.cwnd.saturating_mul(2)).saturating_sub(1);
        self.dupthresh = self.level.min(most).max(self.least);
    }

    /// Costs of a spurious fast retransmit and of a timeout.
    fn costs(view: &View) -> (f64, f64) {
        let window = view.cwnd as f64 / view.smss.max(1) as f64;
        let timeouts = if view.srtt.is_zero() {
            1.0
        } else {
            view.rto.as_secs_f64() / view.srtt.as_secs_f64()
        };
        (window / 2.0, window * timeouts)
    }

    fn turn(&mut self, share: f64, view: &View) {
        self.fa = (self.fa + self.step * share).clamp(0.0, 1.0);
        self.recompute(view);
    }
}

impl Policy for RrTcp {
    fn dupthresh(&self) -> u32 {
        self.dupthresh
    }
    fn on_duplicate(&mut self, view: &View) {
        self.bound(view);
        if view.flight_size >= view.cwnd.saturating_mul(2) {
            let (early, late) = Self::costs(view);
            self.turn(-1.0 / (early + late), view);
        }
    }
    fn on_late(&mut self, late: Late, view: &View) {
        self.note(late.length);
        if late.resent {
            let (early, timeout) = Self::costs(view);
            self.turn(early / (early + timeout), view);
        } else {
            self.recompute(view);
        }
    }
    fn on_timeout(&mut self, view: &View) {
        if view.pipe < view.flight_size {
            let (early, timeout) = Self::costs(view);
            self.turn(-timeout / (early + timeout), view);
        }
    }
    fn room(&self, view: &View) -> u64 {
        let most = view.cwnd.saturating_mul(2).saturating_sub(view.flight_size);
        view.cwnd.saturating_sub(view.pipe).min(most)
    }
}
