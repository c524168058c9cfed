//! The limits of a sender: each interval between two of its segments is attributed to one limit.
//!
//! The rules are checked in the order of [`Limit::ALL`], and the first that holds decides. The last
//! one always holds.

mod rules;

pub use crate::term::{Meta, Party};

use crate::{term::terms, time::Nanos};

/// The step after losses whose place is unknown.
pub(crate) const LOSSES: &str = "find where the segments are lost: capture at {receiver} as well";

/// An interval without a segment of the sender, and the sender's state in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one observation")]
pub(crate) struct Wait {
    pub(crate) mss: i64,
    /// The receiver's window, and its room beyond the sent data.
    pub(crate) window: Option<i64>,
    pub(crate) room: Option<i64>,
    /// The window was full at most a quarter of a round trip ago.
    pub(crate) was_full: bool,
    /// Payload of the segment that ends the interval.
    pub(crate) next_length: i64,
    pub(crate) is_opening: bool,
    pub(crate) has_gap: bool,
    /// The peer's application had not sent its message.
    pub(crate) is_peers: bool,
    /// The peer's message, or the data that it answers, was in transit.
    pub(crate) is_turn: bool,
    /// The sender always has data to send, and the interval is not long enough to be the
    /// application's.
    pub(crate) is_bulk: bool,
    /// All data was acknowledged when the interval began.
    pub(crate) is_idle: bool,
    /// No segment follows.
    pub(crate) is_last: bool,
    /// An acknowledgment released the segment that ends the interval.
    pub(crate) is_blocked: bool,
    /// The previous segment was smaller than the MSS.
    pub(crate) is_small: bool,
    pub(crate) is_next_small: bool,
    /// The interval ends with a retransmission that no acknowledgment released.
    pub(crate) ends_with_timer: bool,
    pub(crate) is_recovering: bool,
    pub(crate) is_ack_delayed: bool,
    /// Full segments were sent at their own pace.
    pub(crate) is_paced: bool,
    /// The amount in flight has been constant for many round trips.
    pub(crate) is_level: bool,
    /// The amount in flight is constant far from the sender, where pacing looks like a send buffer.
    pub(crate) is_pace_or_buffer: bool,
    /// The sender waits where its writes end.
    pub(crate) ends_writes: bool,
    /// The segment that ends the interval refills a send buffer; or it may do so if others do.
    pub(crate) is_refill: bool,
    pub(crate) may_refill: bool,
    /// The interval looks like a refill, but the sender's waits as a whole indicate neither a
    /// refill nor the application.
    pub(crate) is_unclear: bool,
    /// The constant amount is near the receiver's window.
    pub(crate) fills_window: bool,
    /// Less is in flight than any congestion window holds.
    pub(crate) is_unfilled: bool,
    /// The round-trip time is longer than the minimum.
    pub(crate) is_queued: bool,
}

impl Wait {
    /// The interval if the sender's own record says whether the congestion window was full after
    /// the last segment, and whether its pacer takes as long.
    pub(crate) fn with_record(self, is_full: bool, may_be_paced: bool) -> Self {
        Self {
            // Only a full window or the application holds data back: a QUIC sender has no socket
            // buffer.
            is_level: false,
            is_refill: false,
            may_refill: false,
            is_unclear: false,
            is_pace_or_buffer: false,
            is_unfilled: false,
            is_bulk: false,
            // A full receive window also waits for acknowledgments.
            is_blocked: !self.is_idle && (is_full || (self.is_blocked && self.was_full)),
            is_small: self.is_small && !is_full,
            is_paced: self.is_paced && may_be_paced,
            ..self
        }
    }
}

terms! {
    /// A limit of a sender. Rules are checked in this order.
    Limit: holds(&Wait) -> bool;
    Handshake = rules::handshake,
    CaptureGap = rules::capture_gap,
    ZeroWindow = rules::zero_window,
    RetransmissionTimeout = rules::retransmission_timeout,
    ReceiveWindow = rules::receive_window,
    FastRecovery = rules::fast_recovery,
    DelayedAckNagle = rules::delayed_ack_nagle,
    RoundTrips = rules::round_trips,
    Application = rules::application,
    Pacing = rules::pacing,
    SendBuffer = rules::send_buffer,
    Bottleneck = rules::bottleneck,
    CongestionWindow = rules::congestion_window,
    Reordering = rules::reordering,
    Undecidable = rules::undecidable,
}

impl Limit {
    /// The first limit whose rule holds.
    pub(crate) fn of(wait: &Wait) -> Self {
        let mut all = Self::ALL.into_iter();
        all.find(|limit| limit.holds(wait))
            .unwrap_or(Self::Undecidable)
    }
}

/// Time by limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Shares {
    spent: [Nanos; Limit::ALL.len()],
}

impl Shares {
    pub(crate) fn add(&mut self, limit: Limit, time: Nanos) {
        self.spent[limit as usize] += time;
    }

    pub(crate) fn of(&self, limit: Limit) -> Nanos {
        self.spent[limit as usize]
    }

    pub(crate) fn all(&self) -> Nanos {
        self.spent.iter().sum()
    }

    /// Moves time from one limit to another.
    pub(crate) fn give(&mut self, from: Limit, to: Limit, time: Nanos) {
        let time = time.min(self.of(from));
        self.spent[from as usize] -= time;
        self.spent[to as usize] += time;
    }
}
