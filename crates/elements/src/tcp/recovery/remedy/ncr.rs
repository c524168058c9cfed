//! Non-congestion robustness (RFC 4653): a duplicate stands for a loss only once about a window of
//! data has left the network since the first, while new data keeps the acknowledgments coming.
//!
//! The threshold follows FlightSize, which grows by what leaves meanwhile (§3.3). *Careful* sends a
//! segment for every second duplicate, as if the window had been halved at the first; *aggressive*
//! one for each, and decides on the reduction later. When the gap closes before, what may be in
//! flight begins at what is and grows back as in slow start (§3.2), so that nothing leaves in a
//! burst.
//!
//! # Differs from the source
//! - The control's window stands while §3.2 would set cwnd and ssthresh: the bound is kept beside
//!   it ([`Policy::ramp`]) and vanishes when it reaches the window.
//!
//! # Differs from Linux
//! - Linux has nothing of the kind.
//!
//! # Not implemented
//! - Nothing of §3.

use anabranch_core::registry::{Meta, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Init, LEAST, Policy, Progress, RemedyParams, View};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "ncr",
    title: "TCP-NCR",
    summary: "Waits about a round trip's worth of duplicates before it takes a gap for a loss; needs no memory of the path.",
    sources: &[Source {
        id: "RFC 4653",
        items: &["§3"],
    }],
};

/// How much leaves while the duplicates are too few.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Variant {
    /// A segment for every second duplicate.
    #[default]
    Careful,
    /// A segment for each.
    Aggressive,
}

/// Parameters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// How much leaves while the duplicates are too few.
    pub variant: Variant,
}

impl RemedyParams for Params {
    const NEEDS_SACK: bool = true;
}

/// TCP-NCR at work.
#[derive(Debug)]
pub struct Ncr {
    variant: Variant,
    dupthresh: u32,
    /// `FlightSizePrev`, while duplicates come.
    flight_size_prev: Option<u64>,
    ramp: Option<u64>,
}

impl Ncr {
    /// Before the first duplicate.
    #[must_use]
    pub fn new(params: &Params, init: &Init) -> Self {
        Self {
            variant: params.variant,
            dupthresh: init.dupthresh.max(LEAST),
            flight_size_prev: None,
            ramp: None,
        }
    }

    /// `LT_F` (§3.1): so that threshold and FlightSize meet when as many duplicates have come as
    /// there were segments in flight at first.
    fn reset(&mut self, view: &View) {
        let (of, parts) = match self.variant {
            Variant::Careful => (2, 3),
            Variant::Aggressive => (1, 2),
        };
        let segments = view.flight_size.saturating_mul(of) / (parts * view.smss.max(1));
        self.dupthresh = u32::try_from(segments).unwrap_or(u32::MAX).max(LEAST);
    }
}

impl Policy for Ncr {
    fn dupthresh(&self) -> u32 {
        self.dupthresh
    }
    fn on_duplicate(&mut self, view: &View) {
        self.flight_size_prev.get_or_insert(view.flight_size);
        self.reset(view);
    }
    fn on_progress(&mut self, progress: &Progress, view: &View) {
        if progress.after_duplicates
            && let Some(before) = self.flight_size_prev
        {
            // §3.2: FlightSize once the gap has closed.
            self.ramp = Some((view.flight_size + view.smss).min(before));
            if !progress.reports {
                self.flight_size_prev = None;
            }
        } else {
            self.flight_size_prev = None;
            self.ramp = self
                .ramp
                .map(|ramp| ramp.saturating_add(progress.acked.min(view.smss)));
        }
        self.ramp = self.ramp.filter(|ramp| *ramp < view.cwnd);
    }
    fn on_timeout(&mut self, _view: &View) {
        self.flight_size_prev = None;
        self.ramp = None;
    }
    fn room(&self, view: &View) -> u64 {
        let before = self.flight_size_prev.unwrap_or(view.cwnd);
        let skipped = match self.variant {
            Variant::Careful => view.limited,
            Variant::Aggressive => 0,
        };
        before.saturating_sub(view.pipe.saturating_add(skipped))
    }
    fn ramp(&self) -> Option<u64> {
        self.ramp
    }
    fn attends(&self) -> bool {
        true
    }
}
