//! Remedies for reordering: what duplicate acknowledgments stand for.
//!
//! RFC 5681 takes the third for a loss. Where a path reorders that is too soon, and where it does
//! not a larger number is too late. A remedy hears what the sender sees (duplicates, segments that
//! came late and by how much, timeouts, progress) and answers with the threshold, with how much may
//! leave meanwhile, and, if it goes by time instead, with the age at which a segment is lost. It has
//! no clock and never touches the endpoint. Adding one is a file in `remedy/` and a line in the
//! registry below; one from outside the workspace implements [`Policy`] and travels as
//! [`Remedy::Boxed`].
//!
//! What belongs to no single remedy is elsewhere: a reduction that proves spurious is taken back by
//! `recovery::undo`, and losses found by time are RACK's (`recovery::rack`).

use std::{fmt, sync::Arc};

use anabranch_core::{
    component, components,
    units::{Duration, Instant},
};

use anabranch_wire::seq::Seq;

pub mod choice;
pub mod late;

pub use choice::Choice;

/// The fewest duplicates that stand for a loss (RFC 5681 §3.2).
pub const LEAST: u32 = 3;

/// Where the sender stands; amounts in octets.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// The present.
    pub now: Instant,
    /// Payload of a full segment.
    pub smss: u64,
    /// The congestion window.
    pub cwnd: u64,
    /// What is not acknowledged cumulatively: FlightSize of RFC 5681 §2.
    pub flight_size: u64,
    /// What is not reported either: the pipe of RFC 6675 §4.
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

/// New data is acknowledged.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// How much, in octets.
    pub acked: u64,
    /// No loss was being repaired.
    pub open: bool,
    /// SACK tells of something above a gap, with this acknowledgment or before.
    pub reports: bool,
    /// The round-trip time that it measured.
    pub rtt: Option<Duration>,
}

/// A segment came late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Late {
    /// Duplicates that it caused: segments sent later that came before it.
    pub length: u32,
    /// It had been retransmitted, spuriously.
    pub resent: bool,
}

impl Late {
    /// The threshold with which it would not have been retransmitted.
    #[must_use]
    pub const fn enough(&self) -> u32 {
        self.length.saturating_add(1)
    }
}

/// What duplicates stand for.
pub trait Policy: fmt::Debug + Send {
    /// Duplicates that stand for a loss now: [`LEAST`] at least, unless the stack itself has less.
    fn dupthresh(&self) -> u32;
    /// A duplicate acknowledgment, outside of any recovery, before it is judged.
    fn on_duplicate(&mut self, _view: &View) {}
    /// An acknowledgment of new data. Heard of all of them by those that [attend](Self::attends),
    /// else of those that follow duplicates or report something.
    fn on_progress(&mut self, _progress: &Progress, _view: &View) {}
    /// A segment came late.
    fn on_late(&mut self, _late: Late, _view: &View) {}
    /// The retransmission timer expired; the first time since the last progress.
    fn on_timeout(&mut self, _view: &View) {}
    /// A segment that ends before `end` leaves for the first time. Heard by those that
    /// [attend](Self::attends).
    fn on_sent(&mut self, _end: Seq, _view: &View) {}
    /// Octets of new data that may leave while the duplicates are too few. The default is RFC
    /// 6675's: as much as the pipe leaves of the window.
    fn room(&self, view: &View) -> u64 {
        view.cwnd.saturating_sub(view.pipe)
    }
    /// Whether [`room`](Self::room) rules although no duplicate has come since the last progress.
    fn extends(&self) -> bool {
        false
    }
    /// A bound on what may be in flight, after duplicates that stood for nothing.
    fn ramp(&self) -> Option<u64> {
        None
    }
    /// Whether it is the remedy that holds back what it keeps below cwnd: cwnd was not the limit
    /// then, and does not grow.
    fn holds(&self) -> bool {
        self.ramp().is_some()
    }
    /// Duplicates have shown a loss. The window that it reduces instead of the present one, if it is
    /// another.
    fn on_loss(&mut self) -> Option<u64> {
        None
    }
    /// The age at which a segment is lost, for those that do not go by duplicates at all.
    fn lifetime(&self) -> Option<Duration> {
        None
    }
    /// The window from which a loss of the segment that begins with `start` takes its share, if it
    /// is not the present one.
    fn window_of(&self, _start: Seq) -> Option<u64> {
        None
    }
    /// Segments have outlived their age during one recovery, so many in all. Whether that is to be
    /// treated as a timeout.
    fn on_overdue(&mut self, _segments: u32, _view: &View) -> bool {
        false
    }
    /// Whether every acknowledgment and every segment concerns it.
    fn attends(&self) -> bool {
        false
    }
}

/// A threshold that an equation gives.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and is cut to its bounds before"
)]
const fn whole(level: f64) -> u32 {
    level as u32
}

/// What a remedy is made from besides its own parameters.
#[derive(Debug, Clone, Copy)]
pub struct Init {
    /// The stack's threshold.
    pub dupthresh: u32,
}

/// Makes a remedy from outside the workspace.
pub type Factory = Arc<dyn Fn(&Init) -> Box<dyn Policy> + Send + Sync>;

/// A remedy from outside the workspace.
pub type Custom = component::Custom<Factory>;

/// What the parameters of every built-in remedy can say.
pub trait RemedyParams: Default {
    /// It learns from duplicates that the peer reports (RFC 2883).
    const NEEDS_DSACK: bool = false;
    /// It goes by what SACK reports.
    const NEEDS_SACK: bool = false;
    /// Its source takes reductions back that prove spurious.
    const UNDOES: bool = false;
}

/// What a remedy asks of the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Selective acknowledgments.
    pub sack: bool,
    /// Reports of duplicates.
    pub dsack: bool,
    /// Reductions are taken back, unless the scenario says otherwise.
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
    /// What it asks of the stack.
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
