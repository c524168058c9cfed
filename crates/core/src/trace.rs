//! What is observed of a packet, and where.

/// An element of the compiled network (a queue, an impairment, an endpoint), numbered in the
/// order of the scenario file, whatever the engine folds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ElementId(pub u32);

/// What happened to the packet at that element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Fate {
    /// An endpoint sent it.
    Sent,
    /// An endpoint received it.
    Received,
    /// The element accepted it, or let it pass.
    Passed,
    /// A queue dropped it.
    Dropped,
    /// A queue set Congestion Experienced (RFC 3168).
    Marked,
    /// An impairment lost it.
    Lost,
    /// An impairment delayed it.
    Delayed,
    /// An impairment doubled it.
    Duplicated,
    /// An impairment damaged it.
    Corrupted,
    /// A queue moved it behind others.
    Moved,
    /// An element made it (redundancy, a link-layer copy).
    Injected,
    /// An element rebuilt it from others.
    Rebuilt,
    /// A link sent it again by itself.
    Resent,
    /// A link did not take it, because it is larger than the MTU.
    TooBig,
}
