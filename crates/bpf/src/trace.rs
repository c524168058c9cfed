//! What the kernel's TCP does at every acknowledgment, as a BPF program of ours sees it: `bpf/trace/tcp_trace.bpf.c`.
//!
//! The program hangs on the kernel's tracepoints as long as a [`Trace`] lives. File descriptors hold each part of it and
//! nothing is pinned: however the process ends, the kernel drops all of it.

mod kernel;
mod record;

pub use kernel::Trace;
pub use record::{CaState, Kind, Record};

/// The sockets of a flow: those of a network namespace with this port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The namespace's cookie (`SO_NETNS_COOKIE`, socket(7)).
    pub namespace: u64,
    /// The port at which the passive end listens.
    pub port: u16,
    /// Whether that end is the one to be traced, and not its peer.
    pub listens: bool,
}

/// How much is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Changes of the congestion state, each with the segment that follows it, and what is retransmitted.
    Events,
    /// Besides every segment that is received.
    Segments,
}
