//! Remedies for reordering: the interpretation of duplicate acknowledgments.
//!
//! RFC 5681 treats the third duplicate as a loss. That is too early if the path reorders, and a
//! larger threshold is too late if it does not. A remedy receives the sender's events: duplicates,
//! late segments and their lateness, timeouts, and progress. It returns the threshold, the amount
//! of new data allowed meanwhile, and, if it works by time instead, the age at which a segment is
//! lost. It has no clock and never touches the endpoint. A new remedy is a file in `remedy/` and a
//! line in the registry below. A remedy from outside the workspace implements [`Policy`] and is
//! passed as [`Remedy::Boxed`].
//!
//! Mechanisms common to all remedies are elsewhere: `recovery::undo` undoes spurious reductions,
//! and RACK detects losses by time (`recovery::rack`).

use std::{fmt, sync::Arc};

use anabranch_core::{
    component, components,
    units::{Duration, Instant},
};

use anabranch_wire::seq::Seq;

pub mod choice;
pub mod late;

pub use choice::Choice;

/// The fewest duplicates that indicate a loss (RFC 5681 §3.2).
pub const LEAST: u32 = 3;

/// State of the sender; amounts in octets.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// The current time.
    pub now: Instant,
    /// Payload of a full segment.
    pub smss: u64,
    /// The congestion window.
    pub cwnd: u64,
    /// Data not acknowledged cumulatively: FlightSize of RFC 5681 §2.
    pub flight_size: u64,
    /// Data in flight: the pipe of RFC 6675 §4.
    pub pipe: u64,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Duration,
    /// The retransmission timeout.
    pub rto: Duration,
}

impl View {
    /// Segments of `octets`, rounded down.
    #[must_use]
    pub fn segments(&self, octets: u64) -> u32 {
        u32::try_from(octets / self.smss.max(1)).unwrap_or(u32::MAX)
    }
}

/// An acknowledgment of new data.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Octets newly acknowledged.
    pub acked: u64,
    /// No loss was being repaired.
    pub open: bool,
    /// Data above a gap is SACKed, by this acknowledgment or an earlier one.
    pub reports: bool,
    /// The round-trip time that it measured.
    pub rtt: Option<Duration>,
}

/// Lateness of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Late {
    /// Duplicates that it caused: the number of segments sent later that arrived before it.
    pub length: u32,
    /// It had been retransmitted spuriously.
    pub resent: bool,
}

impl Late {
    /// The threshold that would have avoided its retransmission.
    #[must_use]
    pub const fn enough(&self) -> u32 {
        self.length.saturating_add(1)
    }
}

/// Interpretation of duplicate acknowledgments.
pub trait Policy: fmt::Debug + Send {
    /// Duplicates that currently indicate a loss: at least [`LEAST`], unless the stack's own
    /// threshold is lower.
    fn dupthresh(&self) -> u32;
    /// Handles a duplicate acknowledgment outside of any recovery, before loss detection.
    fn on_duplicate(&mut self, _view: &View) {}
    /// Handles an acknowledgment of new data. Remedies that [attend](Self::attends) receive every
    /// such acknowledgment, others only an acknowledgment that follows duplicates or has SACK
    /// information.
    fn on_progress(&mut self, _progress: &Progress, _view: &View) {}
    /// Handles a segment that arrived late.
    fn on_late(&mut self, _late: Late, _view: &View) {}
    /// Handles the first expiry of the retransmission timer since the last progress.
    fn on_timeout(&mut self, _view: &View) {}
    /// Handles the first transmission of a segment that ends before `end`. Only remedies that
    /// [attend](Self::attends) receive it.
    fn on_sent(&mut self, _end: Seq, _view: &View) {}
    /// Octets of new data that may be sent while the duplicates are too few. The default is RFC
    /// 6675's: the window minus the pipe.
    fn room(&self, view: &View) -> u64 {
        view.cwnd.saturating_sub(view.pipe)
    }
    /// Whether [`room`](Self::room) applies even if no duplicate has arrived since the last
    /// progress.
    fn extends(&self) -> bool {
        false
    }
    /// An upper bound on the data in flight, after duplicates that did not indicate a loss.
    fn ramp(&self) -> Option<u64> {
        None
    }
    /// Whether the remedy, not cwnd, is the limit if it keeps the data in flight below cwnd. The
    /// window does not grow then.
    fn holds(&self) -> bool {
        self.ramp().is_some()
    }
    /// Handles a loss shown by duplicates. Returns the window to reduce, if it is not the current
    /// one.
    fn on_loss(&mut self) -> Option<u64> {
        None
    }
    /// The age at which a segment is lost, for remedies that do not use duplicates at all.
    fn lifetime(&self) -> Option<Duration> {
        None
    }
    /// The window that a loss of the segment starting at `start` reduces, if it is not the current
    /// one.
    fn window_of(&self, _start: Seq) -> Option<u64> {
        None
    }
    /// Handles segments that have exceeded their lifetime; `segments` is their total in one
    /// recovery. Returns whether this is treated as a timeout.
    fn on_overdue(&mut self, _segments: u32, _view: &View) -> bool {
        false
    }
    /// Whether the remedy needs every acknowledgment and every segment.
    fn attends(&self) -> bool {
        false
    }
}

/// Converts the result of an equation to a threshold.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and is cut to its bounds before"
)]
const fn whole(level: f64) -> u32 {
    level as u32
}

/// Inputs of a remedy in addition to its parameters.
#[derive(Debug, Clone, Copy)]
pub struct Init {
    /// The stack's threshold.
    pub dupthresh: u32,
}

/// Constructor of a remedy from outside the workspace.
pub type Factory = Arc<dyn Fn(&Init) -> Box<dyn Policy> + Send + Sync>;

/// Parameters and factory of a remedy from outside the workspace.
pub type Custom = component::Custom<Factory>;

/// Requirements that the parameters of every built-in remedy declare.
pub trait RemedyParams: Default {
    /// It uses the duplicates that the peer reports (RFC 2883).
    const NEEDS_DSACK: bool = false;
    /// It uses SACK information.
    const NEEDS_SACK: bool = false;
    /// Its source undoes spurious reductions.
    const UNDOES: bool = false;
}

/// Requirements of a remedy on the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Selective acknowledgments.
    pub sack: bool,
    /// Reports of duplicates (RFC 2883).
    pub dsack: bool,
    /// Undo of spurious reductions, unless the scenario says otherwise.
    pub undo: bool,
}

components! {
    enum Remedy: Policy(init: &Init);

    #[serde(rename = "none")]
    none::Unchanged,
    blanton_allman::BlantonAllman,
    rr_tcp::RrTcp,
    leung_ma::LeungMa,
    ncr::Ncr,
    tcp_pr::TcpPr,
}

impl Config {
    /// Returns the remedy's requirements on the stack.
    #[must_use]
    pub fn needs(&self) -> Needs {
        fn of<P: RemedyParams>(_: &P) -> Needs {
            Needs {
                sack: P::NEEDS_SACK || P::NEEDS_DSACK,
                dsack: P::NEEDS_DSACK,
                undo: P::UNDOES,
            }
        }
        let nothing = Needs {
            sack: false,
            dsack: false,
            undo: false,
        };
        each!(self, params => of(params), custom => nothing)
    }
}

impl Policy for Remedy {
    fn dupthresh(&self) -> u32 {
        each!(self, r => r.dupthresh())
    }
    fn on_duplicate(&mut self, view: &View) {
        each!(self, r => r.on_duplicate(view));
    }
    fn on_progress(&mut self, progress: &Progress, view: &View) {
        each!(self, r => r.on_progress(progress, view));
    }
    fn on_late(&mut self, late: Late, view: &View) {
        each!(self, r => r.on_late(late, view));
    }
    fn on_timeout(&mut self, view: &View) {
        each!(self, r => r.on_timeout(view));
    }
    fn on_sent(&mut self, end: Seq, view: &View) {
        each!(self, r => r.on_sent(end, view));
    }
    fn room(&self, view: &View) -> u64 {
        each!(self, r => r.room(view))
    }
    fn extends(&self) -> bool {
        each!(self, r => r.extends())
    }
    fn ramp(&self) -> Option<u64> {
        each!(self, r => r.ramp())
    }
    fn holds(&self) -> bool {
        each!(self, r => r.holds())
    }
    fn on_loss(&mut self) -> Option<u64> {
        each!(self, r => r.on_loss())
    }
    fn lifetime(&self) -> Option<Duration> {
        each!(self, r => r.lifetime())
    }
    fn window_of(&self, start: Seq) -> Option<u64> {
        each!(self, r => r.window_of(start))
    }
    fn on_overdue(&mut self, segments: u32, view: &View) -> bool {
        each!(self, r => r.on_overdue(segments, view))
    }
    fn attends(&self) -> bool {
        each!(self, r => r.attends())
    }
}
