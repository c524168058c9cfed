//! The persist timer (RFC 9293 §3.8.6.1): probes of a closed window.
//!
//! A probe is a segment without payload just below the window; the peer must answer it with an
//! acknowledgment that reports its window (RFC 9293 §3.10.7.4). RFC 9293 lets a probe carry an
//! octet of new data; without one, no octet has to be retransmitted if the peer discards it.
//!
//! # Differs from Linux
//! - Not compared except for the number of unanswered probes. The interval follows RFC 9293
//!   §3.8.6.1: the retransmission timeout at first, then with its exponential backoff.

use anabranch_core::units::Duration;

/// Time until the next probe: the timeout, doubled with every probe, at most `max_rto`.
#[must_use]
pub fn interval(rto: Duration, probes: u32, max_rto: Duration) -> Duration {
    rto.saturating_mul(1 << probes.min(20)).min(max_rto)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_intervals_grow_up_to_the_bound() {
        let interval = |probes| interval(Duration::from_secs(1), probes, Duration::from_secs(60));
        assert_eq!(interval(0), Duration::from_secs(1));
        assert_eq!(interval(3), Duration::from_secs(8));
        assert_eq!(interval(6), Duration::from_secs(60));
        assert_eq!(interval(u32::MAX), Duration::from_secs(60));
    }
}
