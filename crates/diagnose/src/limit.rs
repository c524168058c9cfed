//! The limits of a sender: each interval between two of its segments is attributed to one limit.
//!
//! The rules are checked in the order of [`Limit::ALL`], and the first that holds decides. The last
//! one always holds.

pub use crate::term::{Meta, Party};

use crate::term::terms;

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
    Handshake {
        name: "handshake",
        title: "Handshake",
        meaning: "The connection was still being opened.",
        evidence: "The interval lies before the first segment that carries data or completes the handshake.",
        confusion: "A server that accepts late looks like a long path.",
        next: "capture at {receiver} as well: is the SYN late, or the answer?",
        costs_time: true,
    } => |wait| wait.is_opening;
    CaptureGap {
        name: "capture-gap",
        title: "Capture gap",
        meaning: "The capture lacks packets of this interval.",
        evidence: "Acknowledgments cover data that the capture does not have.",
        confusion: "Packets that took another path look the same.",
        next: "capture again, headers alone and with a larger buffer (`tcpdump -s 96 -B 65536`)",
    } => |wait| wait.has_gap;
    ZeroWindow {
        name: "zero-window",
        title: "Zero window",
        meaning: "The receiver's window was closed: its application did not read.",
        evidence: "The last window was smaller than a segment and all data was acknowledged, or the sender probed.",
        confusion: "A receive buffer that is smaller than a segment.",
        next: "find out why the program at {receiver} does not read",
        party: Some(Party::Receiver),
        costs_time: true,
    } => |wait| {
        wait.window.is_some_and(|window| window < wait.mss)
            && wait.room.is_some_and(|room| room < wait.mss)
    };
    RetransmissionTimeout {
        name: "retransmission-timeout",
        title: "Retransmission timeout",
        meaning: "The sender waited for its retransmission timer or a tail loss probe.",
        evidence: "The interval ends with a retransmission that no acknowledgment released, or with one full segment of new data after twice the round trip.",
        confusion: "A delay on the path that is longer than the timer looks the same until the acknowledgment arrives.",
        next: LOSSES,
        party: Some(Party::Network),
        costs_time: true,
    } => |wait| wait.ends_with_timer;
    ReceiveWindow {
        name: "receive-window",
        title: "Receive window",
        meaning: "The receiver's window was full: more could have been sent into a larger one.",
        evidence: "What was in flight left less than a segment of room in the window, after the last segment or one shortly before.",
        confusion: "A sender that has sent all its data just when the window was full.",
        next: "enlarge the receive buffer of {receiver} (SO_RCVBUF, tcp_rmem); both SYNs must scale windows",
        party: Some(Party::Receiver),
        costs_time: true,
    } => |wait| {
        let is_full = wait
            .room
            .is_some_and(|room| room < wait.mss.max(wait.next_length));
        // Nothing could be sent into a full window, whatever released the segment later.
        (is_full && !wait.is_idle && !wait.is_last)
            || (wait.is_blocked && (wait.was_full || (wait.is_level && wait.fills_window)))
    };
    FastRecovery {
        name: "fast-recovery",
        title: "Fast recovery",
        meaning: "The sender repaired a loss and sent no more than recovery permits.",
        evidence: "The interval lies between the first retransmission of an episode and the acknowledgment of all data sent before it.",
        confusion: "A recovery without a loss is given to reordering.",
        next: LOSSES,
        party: Some(Party::Network),
        costs_time: true,
    } => |wait| wait.is_recovering;
    DelayedAckNagle {
        name: "delayed-ack-nagle",
        title: "Delayed acknowledgment with Nagle",
        meaning: "A small segment waited for an acknowledgment that the receiver delayed.",
        evidence: "The acknowledgment came later than the path explains and released a segment that was smaller than the MSS.",
        confusion: "An application that writes at the same pace.",
        next: "set TCP_NODELAY at {sender}, or let its program write whole messages",
        costs_time: true,
    } => |wait| wait.is_blocked && wait.is_ack_delayed && (wait.is_small || wait.is_next_small);
    RoundTrips {
        name: "round-trips",
        title: "Round trips of requests",
        meaning: "The sender waited for a request that was on its way, or for the data that the request answers.",
        evidence: "The next segment follows data of the other end, and that end sent it as soon as it had the data before.",
        confusion: "A program that takes the same time before each message, from the first one on: the path seems that much longer.",
        next: "send requests together or without waiting for each answer (batch, pipeline), keep connections open, or move the programs closer to each other",
        party: Some(Party::Network),
    } => |wait| wait.is_turn;
    Application {
        name: "application",
        title: "Application",
        meaning: "The application had nothing to send.",
        evidence: "All data was acknowledged, the last segment was smaller than the MSS, or no acknowledgment released the next one.",
        confusion: "A sender that paces small segments.",
        next: "find out why the program at {sender} had nothing to send",
        party: Some(Party::Sender),
    } => |wait| {
        // If the last segment is full and outstanding, it is unknown whether more data would follow.
        let is_outstanding = wait.is_last && !wait.is_small;
        let is_held = wait.is_blocked && (wait.is_small || wait.is_unfilled);
        let is_late = !wait.is_blocked && !wait.is_paced && !is_outstanding;
        !wait.is_bulk && !wait.is_refill && !wait.is_unclear && (wait.is_idle || is_held || is_late)
    };
    Pacing {
        name: "pacing",
        title: "Pacing",
        meaning: "The sender spread its segments over time.",
        evidence: "Full segments followed each other without an acknowledgment that released them, and the last one did not end a write.",
        confusion: "An application that writes full segments at an even pace.",
        next: "find the cause of the pacing of {sender}: SO_MAX_PACING_RATE, its congestion control or its program",
        party: Some(Party::Sender),
    } => |wait| wait.is_paced && !wait.is_blocked && !wait.is_refill;
    SendBuffer {
        name: "send-buffer",
        title: "Send buffer",
        meaning: "The sender's socket buffer held no more data.",
        evidence: "The amount in flight stayed the same over many round trips without a loss, below the receiver's window, no queue built up, and the sender's waits were not where writes ended; or half of it had been acknowledged before an acknowledgment released more, again and again.",
        confusion: "A congestion window that does not grow; an application whose large writes come once per round trip.",
        next: "enlarge the send buffer of {sender} (SO_SNDBUF, tcp_wmem)",
        party: Some(Party::Sender),
        costs_time: true,
    } => |wait| {
        // A small segment waits for Nagle's algorithm. With a queue on the path, more data in the
        // buffer would only wait in that queue.
        let is_held = wait.is_level && !wait.ends_writes && !wait.is_queued && !wait.is_next_small;
        wait.is_refill || (wait.is_blocked && is_held && !wait.is_pace_or_buffer)
    };
    Bottleneck {
        name: "bottleneck",
        title: "Bottleneck",
        meaning: "The sender filled the path, and its data waited in a queue.",
        evidence: "Acknowledgments released the segments, and the round trip was longer than the least one by a quarter.",
        confusion: "Cross traffic that fills the same queue.",
        next: "the path is full: more capacity, or less beside it; CAKE or FQ-CoDel keeps its delay down",
        party: Some(Party::Network),
    } => |wait| wait.is_blocked && wait.is_queued && !wait.is_unclear;
    CongestionWindow {
        name: "congestion-window",
        title: "Congestion window",
        meaning: "The congestion window limited the sender; the path had spare capacity.",
        evidence: "Acknowledgments released the segments, and the round trip was near the least one.",
        confusion: "A send buffer that is small.",
        next: "let --advise try other congestion controls of {sender}",
        party: Some(Party::Network),
    } => |wait| wait.is_blocked && !wait.is_unclear && !wait.is_pace_or_buffer;
    // Never holds during the account: the verdicts on a recovery's retransmissions move its time here
    // from fast recovery.
    Reordering {
        name: "reordering",
        title: "Reordering",
        meaning: "The sender took reordered or delayed packets for lost ones and reduced its window.",
        evidence: "The interval is a fast recovery of which every retransmission proved spurious.",
        confusion: "Acknowledgments that were lost.",
        next: "look for links that packets are spread over; RACK at {sender} waits for late segments",
        party: Some(Party::Network),
        costs_time: true,
    } => |_| false;
    Undecidable {
        name: "undecidable",
        title: "Undecidable",
        meaning: "The capture does not show what the sender waited for.",
        evidence: "No rule holds. Far from the sender, an even flow of full segments may be a pace or a small send buffer.",
        confusion: "",
        next: "capture nearer to {sender}",
    } => |_| true;
}

impl Limit {
    /// The first limit whose rule holds.
    pub(crate) fn of(wait: &Wait) -> Self {
        let mut all = Self::ALL.into_iter();
        all.find(|limit| limit.holds(wait))
            .unwrap_or(Self::Undecidable)
    }
}
