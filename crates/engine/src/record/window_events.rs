//! Changes of the congestion windows of a run's flows, for diagnosis.

use anabranch_core::{
    packet::FlowId,
    units::{Bytes, Instant},
};
use anabranch_tcp::{WindowChange, WindowEvent};

/// A change of a flow's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowRow {
    /// The flow.
    pub flow: FlowId,
    /// The time.
    pub at: Instant,
    /// The change.
    pub change: WindowChange,
    /// The congestion window before and after.
    pub cwnd: (Bytes, Bytes),
    /// The slow start threshold after it; `None` before the first reduction.
    pub ssthresh: Option<Bytes>,
}

impl WindowRow {
    pub(super) const fn new(flow: FlowId, event: &WindowEvent) -> Self {
        Self {
            flow,
            at: event.at,
            change: event.change,
            cwnd: event.cwnd,
            ssthresh: event.ssthresh.1,
        }
    }

    /// The name of the change in tables.
    #[must_use]
    pub const fn event(&self) -> &'static str {
        match self.change {
            WindowChange::Recovery(_) => "recovery-entered",
            WindowChange::Recovered => "recovery-left",
            WindowChange::Timeout => "rto",
            WindowChange::Restart => "timer-rule",
            WindowChange::Mark => "ecn",
            WindowChange::Repaired => "loss-repaired",
            WindowChange::ProbeRepaired => "tlp",
            WindowChange::Undone => "undo",
        }
    }
}
