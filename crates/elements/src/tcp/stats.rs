//! What an endpoint counts, and what can be seen of its state.

use anabranch_core::units::{Bytes, Duration, Rate};

/// Counters of one endpoint since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Segments with payload sent, retransmissions included.
    pub sent_packets: u64,
    /// IP bytes of everything sent.
    pub sent_bytes: u64,
    /// Segments with payload sent again.
    pub retransmitted_packets: u64,
    /// Segments without payload sent.
    pub sent_acks: u64,
    /// Segments received, of every kind.
    pub received_packets: u64,
    /// Octets given to the application in order, each once.
    pub delivered_bytes: u64,
    /// Segments with payload received in which nothing was new.
    pub duplicate_segments: u64,
    /// Segments received beyond the next expected number.
    pub out_of_order_segments: u64,
    /// Times that a fast recovery began.
    pub fast_recoveries: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Times that a timer rule ended a fast recovery.
    pub timer_losses: u64,
    /// Duplicate acknowledgments received (RFC 5681 §2).
    pub duplicate_acks: u64,
    /// Window probes sent.
    pub window_probes: u64,
    /// Reductions for marks (RFC 3168).
    pub ecn_reductions: u64,
    /// Segments received with Congestion Experienced.
    pub ce_segments: u64,
    /// Segments and blocks received that no correct peer sends: acknowledging what was not sent,
    /// outside the window, impossible SACK blocks, wrong flags.
    pub malformed: u64,
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
    /// `slow-start`, `open`, `disorder`, `recovery` or `loss`.
    pub state: &'static str,
    /// Rate that the congestion control asks for.
    pub pacing_rate: Option<Rate>,
}
