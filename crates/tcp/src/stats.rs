//! Counters of an endpoint, and a snapshot of its state.

use anabranch_core::units::{Bytes, Duration, Rate};

use super::congestion_state::CongestionState;

/// Counters of one endpoint since it was made. Counters of 32 bits are for rare events, and wrap: a
/// difference is correct in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Segments with payload sent, retransmissions included.
    pub sent_packets: u64,
    /// IP bytes of everything sent.
    pub sent_bytes: u64,
    /// Retransmissions of payload and of the SYN, or the answer to one; not of a lone FIN.
    pub retransmitted_packets: u64,
    /// Segments without payload sent.
    pub sent_acks: u64,
    /// Segments received, of every kind.
    pub received_packets: u64,
    /// Octets delivered to the application in order, each once.
    pub delivered_bytes: u64,
    /// Segments received with payload of which nothing was new.
    pub duplicate_segments: u64,
    /// Segments received beyond the next expected number.
    pub out_of_order_segments: u64,
    /// Number of fast recoveries.
    pub fast_recoveries: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Fast recoveries that a timer rule ended.
    pub timer_losses: u64,
    /// Duplicate acknowledgments received (RFC 5681 §2).
    pub duplicate_acks: u64,
    /// Window probes sent.
    pub window_probes: u64,
    /// Reductions for marks (RFC 3168).
    pub ecn_reductions: u64,
    /// Segments received with Congestion Experienced.
    pub ce_segments: u64,
    /// Part of `retransmitted_packets`: the SYN or SYN/ACK. Bounded by the number of retries.
    pub retransmitted_syns: u32,
    /// Duplicates that the peer has reported (RFC 2883).
    pub duplicates_reported: u32,
    /// Reductions taken back because they proved spurious (RFC 4015).
    pub undone: u32,
    /// Tail loss probes sent (RFC 8985 §7).
    pub probes: u32,
    /// Times that the peer reneged on SACKed data (RFC 2018 §8).
    pub reneged: u32,
    /// Challenge ACKs: answers to segments that a blind attacker may have sent (RFC 5961).
    pub challenge_acks: u32,
    /// Segments and blocks received that no correct peer sends, for any
    /// [reason](super::refusal::Refusal).
    pub malformed: u64,
}

impl Stats {
    /// Every counter less `earlier`'s: the events in between.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            sent_packets: self.sent_packets - earlier.sent_packets,
            sent_bytes: self.sent_bytes - earlier.sent_bytes,
            retransmitted_packets: self.retransmitted_packets - earlier.retransmitted_packets,
            retransmitted_syns: self.retransmitted_syns - earlier.retransmitted_syns,
            sent_acks: self.sent_acks - earlier.sent_acks,
            received_packets: self.received_packets - earlier.received_packets,
            delivered_bytes: self.delivered_bytes - earlier.delivered_bytes,
            duplicate_segments: self.duplicate_segments - earlier.duplicate_segments,
            out_of_order_segments: self.out_of_order_segments - earlier.out_of_order_segments,
            fast_recoveries: self.fast_recoveries - earlier.fast_recoveries,
            timeouts: self.timeouts - earlier.timeouts,
            timer_losses: self.timer_losses - earlier.timer_losses,
            duplicate_acks: self.duplicate_acks - earlier.duplicate_acks,
            window_probes: self.window_probes - earlier.window_probes,
            ecn_reductions: self.ecn_reductions - earlier.ecn_reductions,
            ce_segments: self.ce_segments - earlier.ce_segments,
            duplicates_reported: self
                .duplicates_reported
                .wrapping_sub(earlier.duplicates_reported),
            undone: self.undone.wrapping_sub(earlier.undone),
            probes: self.probes.wrapping_sub(earlier.probes),
            reneged: self.reneged.wrapping_sub(earlier.reneged),
            challenge_acks: self.challenge_acks.wrapping_sub(earlier.challenge_acks),
            malformed: self.malformed - earlier.malformed,
        }
    }
    /// Every counter with `other`'s added.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            sent_packets: self.sent_packets + other.sent_packets,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            retransmitted_packets: self.retransmitted_packets + other.retransmitted_packets,
            retransmitted_syns: self.retransmitted_syns + other.retransmitted_syns,
            sent_acks: self.sent_acks + other.sent_acks,
            received_packets: self.received_packets + other.received_packets,
            delivered_bytes: self.delivered_bytes + other.delivered_bytes,
            duplicate_segments: self.duplicate_segments + other.duplicate_segments,
            out_of_order_segments: self.out_of_order_segments + other.out_of_order_segments,
            fast_recoveries: self.fast_recoveries + other.fast_recoveries,
            timeouts: self.timeouts + other.timeouts,
            timer_losses: self.timer_losses + other.timer_losses,
            duplicate_acks: self.duplicate_acks + other.duplicate_acks,
            window_probes: self.window_probes + other.window_probes,
            ecn_reductions: self.ecn_reductions + other.ecn_reductions,
            ce_segments: self.ce_segments + other.ce_segments,
            duplicates_reported: self
                .duplicates_reported
                .wrapping_add(other.duplicates_reported),
            undone: self.undone.wrapping_add(other.undone),
            probes: self.probes.wrapping_add(other.probes),
            reneged: self.reneged.wrapping_add(other.reneged),
            challenge_acks: self.challenge_acks.wrapping_add(other.challenge_acks),
            malformed: self.malformed + other.malformed,
        }
    }
}

/// Counters of the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SenderStats {
    pub(crate) sent_packets: u64,
    pub(crate) retransmitted_packets: u64,
    pub(crate) fast_recoveries: u64,
    pub(crate) timeouts: u64,
    pub(crate) timer_losses: u64,
    pub(crate) duplicate_acks: u64,
    pub(crate) window_probes: u64,
    pub(crate) ecn_reductions: u64,
    pub(crate) retransmitted_syns: u32,
    pub(crate) duplicates_reported: u32,
    pub(crate) undone: u32,
    pub(crate) probes: u32,
    pub(crate) reneged: u32,
    pub(crate) malformed: u64,
}

/// Counters of the receiver, which builds every header, and of the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReceiverStats {
    pub(crate) sent_bytes: u64,
    pub(crate) sent_acks: u64,
    pub(crate) received_packets: u64,
    pub(crate) delivered_bytes: u64,
    pub(crate) duplicate_segments: u64,
    pub(crate) out_of_order_segments: u64,
    pub(crate) ce_segments: u64,
    pub(crate) challenge_acks: u32,
    pub(crate) malformed: u64,
}

impl Stats {
    /// Combines the counters of the two halves of an endpoint.
    #[inline]
    pub(crate) const fn of(sent: &SenderStats, received: &ReceiverStats) -> Self {
        Self {
            sent_packets: sent.sent_packets,
            sent_bytes: received.sent_bytes,
            retransmitted_packets: sent.retransmitted_packets,
            sent_acks: received.sent_acks,
            received_packets: received.received_packets,
            delivered_bytes: received.delivered_bytes,
            duplicate_segments: received.duplicate_segments,
            out_of_order_segments: received.out_of_order_segments,
            fast_recoveries: sent.fast_recoveries,
            timeouts: sent.timeouts,
            timer_losses: sent.timer_losses,
            duplicate_acks: sent.duplicate_acks,
            window_probes: sent.window_probes,
            ecn_reductions: sent.ecn_reductions,
            ce_segments: received.ce_segments,
            retransmitted_syns: sent.retransmitted_syns,
            duplicates_reported: sent.duplicates_reported,
            undone: sent.undone,
            probes: sent.probes,
            reneged: sent.reneged,
            challenge_acks: received.challenge_acks,
            malformed: sent.malformed + received.malformed,
        }
    }
}

/// The state of the sending side at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Snapshot {
    /// Congestion window, inflation excluded.
    pub cwnd: Bytes,
    /// Slow start threshold; `None` before the first reduction.
    pub ssthresh: Option<Bytes>,
    /// In flight, as the recovery in use estimates it.
    pub in_flight: Bytes,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Duration,
    /// Its variation.
    pub rttvar: Duration,
    /// Smallest round-trip time; zero before the first sample.
    pub min_rtt: Duration,
    /// Retransmission timeout, backoff included.
    pub rto: Duration,
    /// State of the congestion control.
    pub state: CongestionState,
    /// Pacing rate, if data is paced.
    pub pacing_rate: Option<Rate>,
    /// The congestion control's estimate of the bandwidth, if it makes one.
    pub bandwidth_estimate: Option<Rate>,
}
