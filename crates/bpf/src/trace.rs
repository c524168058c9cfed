//! Trace of the kernel's TCP at every acknowledgment, by a BPF program:
//! `bpf/trace/tcp_trace.bpf.c`.
//!
//! The program is attached to the kernel's tracepoints for the lifetime of a [`Trace`]. File
//! descriptors hold all its parts and nothing is pinned: the kernel removes it when the process
//! ends in any way.

mod kernel;
mod record;

pub use kernel::Trace;
pub use record::{CaState, Kind, Record};

/// Sockets of a flow: those in a network namespace with this port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The namespace's cookie (`SO_NETNS_COOKIE`, socket(7)).
    pub namespace: u64,
    /// The port at which the passive end listens.
    pub port: u16,
    /// Whether the passive end is traced, and not its peer.
    pub listens: bool,
}

/// Detail of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Changes of the congestion state, each with the segment that follows it, and retransmissions.
    Events,
    /// Also every segment received.
    Segments,
}
