//! Pauses of a sender that are longer than a round trip, and their causes.

use crate::{limit::Limit, time::Nanos};

/// Pauses that are stored for each direction. All are counted.
pub(crate) const MOST: usize = 1_000;

/// A pause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stall {
    pub(crate) start: Nanos,
    pub(crate) duration: Nanos,
    pub(crate) cause: Limit,
    /// Most of it passed before the peer's application sent its message.
    pub(crate) is_peers: bool,
    /// The frames before and after it.
    pub(crate) packets: [Option<u64>; 2],
}
