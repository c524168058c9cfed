//! What the layer counts.

/// Counters of one end since it was made; a sender's half and a receiver's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Redundant packets sent.
    pub redundant_sent: u64,
    /// Their IP bytes.
    pub redundant_bytes: u64,
    /// Losses that only the layer saw, as the peer has reported them.
    pub hidden_losses: u64,
    /// Reductions of the window for them (`recovered_is_loss`).
    pub hidden_reductions: u64,
    /// Redundant packets that arrived.
    pub redundant_received: u64,
    /// Redundant packets that brought something back.
    pub redundant_useful: u64,
    /// Redundant packets that cannot be right, or brought back what their checksum denies.
    pub redundant_refused: u64,
    /// Data packets brought back.
    pub recovered_packets: u64,
    /// Times that acknowledgments began to be held.
    pub holds: u64,
    /// Acknowledgments held.
    pub held_acks: u64,
    /// Holds that ended because what was missing was brought back.
    pub released_repaired: u64,
    /// Because more was missing than the redundancy of the group can bring back.
    pub released_second_gap: u64,
    /// Because the group was over, or a later one's redundancy had come, and something was missing still.
    pub released_group_over: u64,
    /// Because it took too long.
    pub released_timeout: u64,
    /// Because what was missing was retransmitted.
    pub released_retransmitted: u64,
}

macro_rules! all {
    ($a:expr, $op:tt, $b:expr) => {
        all!(@ $a, $op, $b, redundant_sent redundant_bytes hidden_losses hidden_reductions
            redundant_received redundant_useful redundant_refused recovered_packets holds held_acks
            released_repaired released_second_gap released_group_over released_timeout
            released_retransmitted)
    };
    (@ $a:expr, $op:tt, $b:expr, $($field:ident)*) => {
        Self { $($field: $a.$field $op $b.$field,)* }
    };
}

impl Stats {
    /// Every counter less `earlier`'s.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        all!(self, -, earlier)
    }
    /// Every counter with `other`'s added.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        all!(self, +, other)
    }
}
