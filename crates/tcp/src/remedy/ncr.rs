//! Non-congestion robustness (RFC 4653): duplicates indicate a loss only after about a window of
//! data has left the network since the first. Meanwhile new data keeps the acknowledgments
//! arriving.
//!
//! The threshold follows FlightSize, which grows by the data sent meanwhile (§3.3). *Careful* sends
//! a segment for every second duplicate, as if the window had been halved at the first.
//! *Aggressive* sends one for each, and decides later on the reduction, which starts from the
//! flight at the first duplicate (§3.4). If the gap closes before, a bound on the data in flight
//! begins at the current flight and grows back to the flight at the first duplicate as in slow
//! start (§3.2), so that no burst is sent.
//!
//! # Differs from the source
//! - §3.2 sets cwnd and ssthresh. Here the control's window remains unchanged, for every control,
//!   and these two values are a separate bound ([`Policy::ramp`]). The data in flight does not
//!   exceed the cwnd of RFC 4653 and RFC 5681 §3.1: slow start up to ssthresh, then congestion
//!   avoidance. While the bound or extended limited transmit holds data back, the control's window
//!   does not grow. The bound ends when it reaches that window. A loss, but not a timeout, gives up
//!   the part of the control's window beyond the flight at the first duplicate. `bbr` and `bbr3`,
//!   which have a model instead of a history, keep that part.
//! - The threshold is rounded down; the source does not specify the rounding.
//!
//! # Limits of the source
//! - If an acknowledgment closes a gap and reports another, the flight from before the first gap is
//!   kept (T.4 repeats I.2 and I.3, not I.1). Under reordering without end, as over two paths of
//!   unequal delay, throughput therefore stays at the flight with which it began. It depends on the
//!   initial window and never grows.
//!
//! # A variant of ours
//! - `restart = "anew"` uses the control's window at that point, which grows meanwhile as if it
//!   were used. RFC 4653 has no such rule. If every gap is followed by another, this discards the
//!   initial flight. If gaps close in between, as with a window of a few segments in the careful
//!   variant, §3.2 applies unchanged.
//!
//! # Differs from Linux
//! - Linux has no equivalent.
//!
//! # Not implemented
//! - Nothing of §3.

use anabranch_core::registry::{Meta, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Init, LEAST, Policy, Progress, RemedyParams, View};
use anabranch_wire::seq::Seq;

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "ncr",
    title: "TCP-NCR",
    summary: "Marks a gap as lost after about a round trip of duplicate ACKs; keeps no history of the path.",
    sources: &[Source {
        id: "RFC 4653",
        items: &["§3"],
    }],
};

/// New data sent while the duplicates are too few.
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

/// The flight to keep if a gap closes while another is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Restart {
    /// The flight before the first gap (RFC 4653 §3.2 T.4).
    #[default]
    Keep,
    /// The current window: repeats I.1, with cwnd. Not in the source.
    Anew,
}

/// Parameters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// New data sent while the duplicates are too few.
    pub variant: Variant,
    /// The flight to keep if a gap closes while another is open.
    pub restart: Restart,
}

impl RemedyParams for Params {
    const NEEDS_SACK: bool = true;
}

/// State of TCP-NCR. Amounts in octets.
#[derive(Debug)]
pub struct Ncr {
    params: Params,
    dupthresh: u32,
    extended: Option<Extended>,
    bound: Option<Bound>,
}

/// Extended limited transmit.
#[derive(Debug, Clone, Copy)]
struct Extended {
    /// `FlightSizePrev`
    flight_size_prev: u64,
    /// `Skipped`
    skipped: u64,
    /// The next segment is sent by T.3 and does not count as skipped.
    uncounted: bool,
}

/// The cwnd and ssthresh of §3.2.
#[derive(Debug, Clone, Copy)]
struct Bound {
    cwnd: u64,
    ssthresh: u64,
}

impl Bound {
    /// RFC 5681 §3.1, equations 2 and 3.
    fn grow(&mut self, acked: u64, smss: u64) {
        let step = acked.min(smss);
        self.cwnd += if self.cwnd < self.ssthresh {
            step
        } else {
            (step * smss / self.cwnd.max(1)).max(1)
        };
    }
}

impl Ncr {
    /// Creates the state before the first duplicate.
    #[must_use]
    pub fn new(params: &Params, init: &Init) -> Self {
        Self {
            params: params.clone(),
            dupthresh: init.dupthresh.max(LEAST),
            extended: None,
            bound: None,
        }
    }

    /// I.3 and E.6, with `LT_F`: threshold and FlightSize meet when the number of duplicates equals
    /// the number of segments initially in flight.
    fn reset(&mut self, view: &View) {
        let (of, parts) = match self.params.variant {
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
        // I.1 and I.2.
        self.extended.get_or_insert(Extended {
            flight_size_prev: view.flight_size,
            skipped: 0,
            uncounted: false,
        });
        self.reset(view);
    }
    fn on_progress(&mut self, progress: &Progress, view: &View) {
        if let Some(extended) = self.extended.take() {
            let before = extended.flight_size_prev;
            let more = view.flight_size + view.smss;
            // T.1 and T.2.
            self.bound = Some(Bound {
                cwnd: more.min(before),
                ssthresh: before,
            });
            if progress.reports {
                // T.3 and T.4.
                self.extended = Some(Extended {
                    flight_size_prev: match self.params.restart {
                        Restart::Keep => before,
                        Restart::Anew => view.cwnd,
                    },
                    skipped: 0,
                    uncounted: more <= before,
                });
                self.reset(view);
            }
        } else if progress.open
            && let Some(bound) = &mut self.bound
        {
            bound.grow(progress.acked, view.smss);
        }
        self.bound = self.bound.filter(|bound| bound.cwnd < view.cwnd);
    }
    fn on_timeout(&mut self, _view: &View) {
        self.extended = None;
        self.bound = None;
    }
    fn on_loss(&mut self) -> Option<u64> {
        self.bound = None;
        let extended = self.extended.take()?;
        Some(extended.flight_size_prev)
    }
    fn on_sent(&mut self, _end: Seq, view: &View) {
        let careful = self.params.variant == Variant::Careful;
        if let Some(extended) = &mut self.extended
            && !std::mem::take(&mut extended.uncounted)
            && careful
        {
            // E.4.
            extended.skipped += view.smss;
        }
    }
    fn room(&self, view: &View) -> u64 {
        // E.2.
        let (window, skipped) = self.extended.map_or((view.cwnd, 0), |extended| {
            (extended.flight_size_prev, extended.skipped)
        });
        window.saturating_sub(view.pipe.saturating_add(skipped))
    }
    fn extends(&self) -> bool {
        self.extended.is_some()
    }
    fn ramp(&self) -> Option<u64> {
        // E.2 does not use cwnd.
        let bound = self.bound.filter(|_| self.extended.is_none());
        bound.map(|bound| bound.cwnd)
    }
    fn attends(&self) -> bool {
        true
    }
    fn holds(&self) -> bool {
        let keeps = self.params.restart == Restart::Keep;
        self.ramp().is_some() || (keeps && self.extended.is_some())
    }
}
