//! Non-congestion robustness (RFC 4653): a duplicate stands for a loss only once about a window of
//! data has left the network since the first, while new data keeps the acknowledgments coming.
//!
//! The threshold follows FlightSize, which grows by what leaves meanwhile (§3.3). *Careful* sends a
//! segment for every second duplicate, as if the window had been halved at the first; *aggressive*
//! one for each, and decides on the reduction later, of the flight at the first (§3.4). When the gap
//! closes before, what may be in flight begins at what is and grows back to that flight as in slow
//! start (§3.2), so that nothing leaves in a burst.
//!
//! # Differs from the source
//! - §3.2 sets cwnd and ssthresh. Here the control's window stands, whatever the control, and the
//!   two are kept beside it as a bound ([`Policy::ramp`]). The rule: no more is in flight than cwnd
//!   of RFC 4653 and RFC 5681 §3.1 would allow, slow start up to ssthresh and congestion avoidance
//!   from there on. While the bound, or extended limited transmit, holds data back, the control's
//!   window does not grow by it; the bound vanishes when it reaches that window. What a control's
//!   window has beyond the flight at the first duplicate is given up at a loss, not at a timeout; `bbr`
//!   and `bbr3`, which have a model instead of a history, keep it.
//! - The threshold is rounded down, of which the source says nothing.
//!
//! # Limits of the source
//! - Where an acknowledgment closes a gap and reports another, the flight from before the first gap
//!   is kept (T.4: I.2 and I.3 are done again, not I.1). Under reordering that never ends, as over
//!   two paths of unequal delay, throughput is so that of the flight at which it began: it depends on
//!   the initial window, and never grows.
//!
//! # A variant of ours
//! - `restart = "anew"` begins there with the control's window, which grows meanwhile as if it were
//!   used. RFC 4653 has no such thing. Where every gap is followed by another it forgets the flight of
//!   the beginning; where gaps close in between, as with a window of a few segments in the careful
//!   variant, §3.2 rules as ever.
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
use anabranch_wire::seq::Seq;

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

/// The flight to keep where a gap closes and another is open already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Restart {
    /// That from before the first gap (RFC 4653 §3.2 T.4).
    #[default]
    Keep,
    /// The window then: I.1 once more, with cwnd. Not the source's.
    Anew,
}

/// Parameters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// How much leaves while the duplicates are too few.
    pub variant: Variant,
    /// The flight to keep where a gap closes and another is open already.
    pub restart: Restart,
}

impl RemedyParams for Params {
    const NEEDS_SACK: bool = true;
}

/// TCP-NCR at work. Amounts in octets.
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
    /// The next segment leaves by T.3, and skips none.
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
    /// Before the first duplicate.
    #[must_use]
    pub fn new(params: &Params, init: &Init) -> Self {
        Self {
            params: params.clone(),
            dupthresh: init.dupthresh.max(LEAST),
            extended: None,
            bound: None,
        }
    }

    /// I.3 and E.6, with `LT_F`: so that threshold and FlightSize meet when as many duplicates have
    /// come as there were segments in flight at first.
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
        // E.2 does not ask for cwnd.
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
