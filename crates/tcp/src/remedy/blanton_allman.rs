//! A threshold that adapts to the reordering seen, with undo of spurious reductions (Blanton and
//! Allman, On making TCP more robust to packet reordering, ACM CCR 32(1), 2002).
//!
//! A retransmitted segment that the peer reports as a duplicate shows the extent of reordering. The
//! source proposes several ways to raise the threshold by it; `variant` selects one. A timeout
//! after duplicates resets the threshold to the stack's, as does the beginning of a connection.
//!
//! In the formulas *n* is the threshold that would have sufficed: one more than the duplicates that
//! the late segment caused.
//!
//! # Differs from the source
//! - The source restores ssthresh and slow-starts back; here the control restores its window
//!   (`recovery::undo`, RFC 4015).
//! - Two values that the source's figures leave open are parameters: the gain of the moving
//!   average, and the share of the window that bounds the threshold so that enough duplicates can
//!   arrive.
//! - `maximum`, the largest value seen, is the form of later practice and of today's
//!   `max_dupthresh`.
//!
//! # Differs from Linux
//! - Linux also measures segments that were late but not retransmitted, up to `max_dupthresh` and
//!   regardless of the window.
//!
//! # Not implemented
//! - An increase with time instead of with reordering.

use anabranch_core::registry::{Meta, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Init, Late, Policy, RemedyParams, View, whole};
use anabranch_congestion::params::{Packets, Share};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "blanton-allman",
    title: "Adaptive threshold (Blanton and Allman)",
    summary: "A spurious fast retransmit is undone and raises the threshold, by one of four rules.",
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
    /// By `increment`, regardless of the extent of reordering.
    Increment,
    /// To the mean of the threshold and *n*.
    Average,
    /// To a moving average of *n*.
    Ewma,
    /// To *n*, if *n* is larger.
    #[default]
    Maximum,
}

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// How a late segment raises the threshold.
    pub variant: Variant,
    /// Increase per late segment in variant `increment`.
    pub increment: Packets,
    /// Weight of the latest segment in variant `ewma`.
    pub gain: Share,
    /// Upper bound of the threshold, as a share of the window in segments.
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

/// State of the threshold.
#[derive(Debug)]
pub struct BlantonAllman {
    params: Params,
    least: u32,
    /// The threshold before the bound; the moving average in variant `ewma`.
    level: f64,
    dupthresh: u32,
}

impl BlantonAllman {
    /// Starts at the stack's threshold.
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
