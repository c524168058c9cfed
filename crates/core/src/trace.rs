//! Observations of a packet: the element and the outcome.

/// An element of the compiled network (a queue, an impairment, an endpoint). The number is its
/// position in the scenario file, independent of the links that the engine folds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ElementId(pub u32);

/// Outcome for the packet at that element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Fate {
    /// An endpoint sent it.
    Sent,
    /// An endpoint received it.
    Received,
    /// The element accepted it or forwarded it.
    Passed,
    /// A queue dropped it.
    Dropped,
    /// A queue set Congestion Experienced (RFC 3168).
    Marked,
    /// An impairment lost it.
    Lost,
    /// An impairment delayed it.
    Delayed,
    /// An impairment duplicated it.
    Duplicated,
    /// An impairment corrupted it.
    Corrupted,
    /// A queue moved it back, after later packets.
    Moved,
    /// An element generated it (redundancy, a link-layer copy).
    Injected,
    /// An element rebuilt it from other packets.
    Rebuilt,
    /// A link retransmitted it.
    Resent,
    /// A link rejected it, because it exceeds the MTU.
    TooBig,
}
