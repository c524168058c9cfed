//! A threshold that follows the reordering seen (Blanton and Allman, On making TCP more robust to
//! packet reordering, ACM CCR 32(1), 2002), besides taking spurious reductions back.
//!
//! Every segment that had been retransmitted and that the peer reports as a duplicate tells how far
//! the path reorders. The source proposes several ways to raise the threshold by it; `variant`
//! picks one. A timeout after duplicates had come, and the beginning of a connection, put it back
//! to the stack's.
//!
//! In the formulas *n* is the threshold that would have been enough: the duplicates that the late
//! segment caused, and one.
//!
//! # Differs from the source
//! - The source restores ssthresh and slow-starts back; here the window is the control's to take
//!   back (`recovery::undo`, RFC 4015).
//! - What the source's figures leave open is a parameter: the gain of the moving average, and the
//!   share of the window that bounds the threshold so that duplicates enough can come at all.
//! - The largest so far (`maximum`) is what later practice made of it, and today's
//!   `max_dupthresh`.
//!
//! # Differs from Linux
//! - Linux takes segments that were late but not retransmitted for a measure as well, up to
//!   `max_dupthresh` and whatever the window.
//!
//! # Not implemented
//! - A rise with time instead of with reordering.

use anabranch_core::registry::{Meta, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Init, Late, Policy, RemedyParams, View, whole};
use anabranch_congestion::params::{Packets, Share};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "blanton-allman",
    title: "Adaptive threshold (Blanton and Allman)",
    summary: "A spurious fast retransmit is taken back and raises the threshold, by one of four rules.",
    sources: &[Source {
        id: "Blanton and Allman 2002 (ACM CCR 32(1))",
        items: &["abstract"],
    }],
};

/// How a late segment raises the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Variant {
    /// By `increment`, whatever the reordering.
    Increment,
    /// To the mean of the threshold and *n*.
    Average,
    /// To a moving average of *n*.
    Ewma,
    /// To *n*, if that is more.
    #[default]
    Maximum,
}

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// How a late segment raises the threshold.
    pub variant: Variant,
    /// By how much it rises in variant `increment`.
    pub increment: Packets,
    /// Weight of the latest segment in variant `ewma`.
    pub gain: Share,
    /// The threshold is no more than this share of the window in segments.
    pub most: Share,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            variant: Variant::Maximum,
            increment: Packets::new(1),
            gain: Share::new(0.25),
            most: Share::new(0.9),
        }
    }
}

impl RemedyParams for Params {
    const NEEDS_DSACK: bool = true;
    const UNDOES: bool = true;
}

/// The threshold at work.
#[derive(Debug)]
pub struct BlantonAllman {
    params: Params,
    least: u32,
    /// Before the bound; the moving average in variant `ewma`.
    level: f64,
    dupthresh: u32,
}

impl BlantonAllman {
    /// At the stack's threshold.
    #[must_use]
    pub fn new(params: &Params, init: &Init) -> Self {
        Self {
            params: params.clone(),
            least: init.dupthresh,
            level: f64::from(init.dupthresh),
            dupthresh: init.dupthresh,
        }
    }

    fn bound(&mut self, view: &View) {
        let most = (view.cwnd as f64 / view.smss.max(1) as f64 * self.params.most.get()).floor();
        let level = self.level.ceil().min(most).max(f64::from(self.least));
        self.dupthresh = whole(level);
    }
}

impl Policy for BlantonAllman {
    fn dupthresh(&self) -> u32 {
        self.dupthresh
    }
    fn on_duplicate(&mut self, view: &View) {
        self.bound(view);
    }
    fn on_late(&mut self, late: Late, view: &View) {
        if !late.resent {
            return;
        }
        let enough = f64::from(late.enough());
        self.level = match self.params.variant {
            Variant::Increment => self.level + self.params.increment.as_f64(),
            Variant::Average => f64::midpoint(self.level, enough).ceil(),
            Variant::Ewma => self.level + self.params.gain.get() * (enough - self.level),
            Variant::Maximum => self.level.max(enough),
        };
        self.bound(view);
    }
    fn on_timeout(&mut self, _view: &View) {
        self.level = f64::from(self.least);
        self.dupthresh = self.least;
    }
}
