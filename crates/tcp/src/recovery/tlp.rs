//! Tail loss probes (RFC 8985 §7). If no acknowledgment arrives for two round trips, a probe
//! segment is sent that makes the peer acknowledge, so that RACK and not the retransmission timeout
//! detects the loss.
//!
//! # Differs from Linux
//! - Linux adds two ticks of the kernel's clock to two round trips; this implementation adds
//!   [`SLACK`], which equals two ticks at 1,000 Hz.
//! - A probe needs a round-trip time measured since the last probe (§7.3), whatever kind that was.
//!   Whether Linux requires this has not been measured. With timestamps nearly every acknowledgment
//!   yields a measurement. The first probe of a connection needs none in Linux
//!   ([`Timers::sample_after_syn_timeout`](crate::policy::Timers::sample_after_syn_timeout)).
//!
//! # Not implemented
//! - Nothing of §7.

use anabranch_core::units::Duration;

use anabranch_wire::seq::Seq;

/// The wait of a probe in addition to two round trips.
pub const SLACK: Duration = Duration::from_millis(2);
/// The wait before the first round-trip time is known (§7.2).
const UNKNOWN: Duration = Duration::from_secs(1);

/// The last probe.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tlp {
    /// TLP.end_seq, while the probe is in flight.
    end_seq: Option<Seq>,
    /// TLP.is_retrans
    is_retrans: bool,
    /// No round-trip time has been measured since the probe.
    unmeasured: bool,
}

/// Condition for the next probe, as the steady state needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Probing {
    /// The next probe may be sent when its timer expires.
    #[default]
    Free,
    /// No probe is in flight, and none may be sent before a round-trip time is measured (§7.3).
    Unmeasured,
    /// A probe is in flight (§7.4).
    UnderWay,
}

/// Information of an acknowledgment about the probe.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// The acknowledgment number.
    pub ack: Seq,
    /// The end of the duplicate that it reports.
    pub duplicate_end: Option<Seq>,
    /// A duplicate acknowledgment without any SACK block.
    pub bare_duplicate: bool,
}

/// The longest delay of an acknowledgment by the receiver (TLP.max_ack_delay, §7.2).
pub const MAX_ACK_DELAY: Duration = Duration::from_millis(200);

impl Tlp {
    /// TLP_calc_PTO (§7.2). `lone`: a single segment is in flight, whose acknowledgment the
    /// receiver may delay for [`MAX_ACK_DELAY`].
    #[must_use]
    pub fn pto(srtt: Duration, lone: bool) -> Duration {
        if srtt.is_zero() {
            return UNKNOWN;
        }
        srtt.saturating_mul(2) + if lone { MAX_ACK_DELAY } else { SLACK }
    }

    /// Records the transmission of a probe; `nxt` is SND.NXT after it.
    pub const fn sent(&mut self, nxt: Seq, is_retrans: bool) {
        self.end_seq = Some(nxt);
        self.is_retrans = is_retrans;
        self.unmeasured = true;
    }

    /// Whether a probe may be sent (§7.3), or the condition that forbids it.
    #[must_use]
    pub const fn probing(&self) -> Probing {
        match (self.end_seq, self.unmeasured) {
            (Some(_), _) => Probing::UnderWay,
            (None, true) => Probing::Unmeasured,
            (None, false) => Probing::Free,
        }
    }

    /// Records that a round-trip time has been measured.
    pub const fn on_measured(&mut self) {
        self.unmeasured = false;
    }

    /// Records that the connection begins without a round-trip time, because its SYN was
    /// retransmitted.
    pub const fn on_unmeasured_start(&mut self) {
        self.unmeasured = true;
    }

    /// The end of the probe in flight, if it was a retransmission.
    #[must_use]
    pub fn resent_end(&self) -> Option<Seq> {
        self.end_seq.filter(|_| self.is_retrans)
    }

    /// Discards the probe, because another algorithm repairs the loss.
    pub const fn cancel(&mut self) {
        self.end_seq = None;
    }

    /// TLP_process_ack (§7.4.2). Returns `true` if the probe has repaired a loss, which indicates
    /// congestion.
    pub fn on_ack(&mut self, answer: &Answer) -> bool {
        let Some(end) = self.end_seq.filter(|end| answer.ack >= *end) else {
            return false;
        };
        let repaired = self.is_retrans && answer.duplicate_end != Some(end) && answer.ack > end;
        let spurious = answer.duplicate_end == Some(end) || answer.bare_duplicate;
        if !self.is_retrans || repaired || spurious {
            self.end_seq = None;
        }
        repaired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn two_round_trips_and_a_delayed_acknowledgment_for_a_lone_segment() {
        assert_eq!(Tlp::pto(Duration::ZERO, false), ms(1000));
        assert_eq!(Tlp::pto(ms(50), false), ms(102));
        assert_eq!(Tlp::pto(ms(50), true), ms(300));
    }

    /// RFC 8985 §7.4.2, case by case.
    #[test]
    fn acknowledgments_of_a_probe_follow_rfc_8985() {
        let end = Seq::first(1000);
        let answer = |ack, duplicate_end, bare_duplicate| Answer {
            ack,
            duplicate_end,
            bare_duplicate,
        };
        // (retransmission, answer, loss repaired, still in flight)
        let cases = [
            (false, answer(end, None, false), false, false),
            (true, answer(end, None, false), false, true),
            (true, answer(end, Some(end), false), false, false),
            (true, answer(end + 1, Some(end), false), false, false),
            (true, answer(end + 1, None, false), true, false),
            (true, answer(end, None, true), false, false),
            (true, answer(end - 1, None, true), false, true),
        ];
        for (is_retrans, answer, repaired, outstanding) in cases {
            let mut tlp = Tlp::default();
            tlp.sent(end, is_retrans);
            assert_eq!(tlp.on_ack(&answer), repaired, "{is_retrans} {answer:?}");
            let under_way = tlp.probing() == Probing::UnderWay;
            assert_eq!(under_way, outstanding, "{is_retrans} {answer:?}");
        }
    }
}
