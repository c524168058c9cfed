//! The log of changes of the congestion window.

use anabranch_core::units::{Bytes, Instant};
use serde::Serialize;

use crate::cause::RetransmitCause;

/// Cause of a change of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "cause")]
pub enum WindowChange {
    /// Fast recovery begins.
    Recovery(RetransmitCause),
    /// Fast recovery, or the one after a timeout, is over.
    Recovered,
    /// The retransmission timer expired.
    Timeout,
    /// A timer rule ended a recovery and started over.
    Restart,
    /// The peer echoes a mark (RFC 3168).
    Mark,
    /// The peer reports that a loss was repaired below TCP (RFC 9265).
    Repaired,
    /// A probe has repaired a loss (RFC 8985 §7.4.2).
    ProbeRepaired,
    /// The last reduction was spurious and is undone.
    Undone,
}

/// A change of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct WindowEvent {
    /// Time of the change.
    #[serde(skip)]
    pub at: Instant,
    /// The cause.
    pub change: WindowChange,
    /// The congestion window before and after.
    pub cwnd: (Bytes, Bytes),
    /// The slow start threshold before and after; none before the first reduction.
    pub ssthresh: (Option<Bytes>, Option<Bytes>),
}
