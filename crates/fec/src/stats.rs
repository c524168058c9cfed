//! The counters of the layer.

/// Counters of one end, of its sending and receiving halves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Redundant packets sent.
    pub redundant_sent: u64,
    /// Their IP bytes.
    pub redundant_bytes: u64,
    /// Losses that only the layer detected, as reported by the peer.
    pub hidden_losses: u64,
    /// Reductions of the window for them (`recovered_is_loss`).
    pub hidden_reductions: u64,
    /// Redundant packets that arrived.
    pub redundant_received: u64,
    /// Redundant packets that recovered a packet.
    pub redundant_useful: u64,
    /// Redundant packets that are implausible, or whose checksum contradicts the recovered packets.
    pub redundant_refused: u64,
    /// Data packets recovered.
    pub recovered_packets: u64,
    /// Holds begun.
    pub holds: u64,
    /// Acknowledgments held.
    pub held_acks: u64,
    /// Holds that ended because the missing data was recovered.
    pub released_repaired: u64,
    /// Holds that ended because more was missing than the group's redundancy can recover.
    pub released_second_gap: u64,
    /// Holds that ended because the group ended, or a later group's redundancy arrived, with data
    /// still missing.
    pub released_group_over: u64,
    /// Holds that timed out.
    pub released_timeout: u64,
    /// Holds that ended because the missing data was retransmitted.
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
    /// The counters minus `earlier`.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        all!(self, -, earlier)
    }
    /// The sum of the counters and `other`.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        all!(self, +, other)
    }
}
