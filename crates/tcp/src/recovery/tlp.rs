//! Tail loss probes (RFC 8985 §7): when nothing comes back for two round trips, a segment leaves
//! that makes the peer acknowledge, so that RACK and not the retransmission timeout finds the loss.
//!
//! # Differs from Linux
//! - Two ticks of the kernel's clock are added to two round trips there; here
//!   [`SLACK`], which is as much at 1,000 Hz.
//! - A probe needs a round-trip time measured since the last one (§7.3), whatever that one was; whether
//!   Linux asks for it has not been measured. With timestamps nearly every acknowledgment measures one.
//!   The first probe of a connection needs none in Linux
//!   ([`Timers::sample_after_syn_timeout`](crate::policy::Timers::sample_after_syn_timeout)).
//!
//! # Not implemented
//! - Nothing of §7.

use anabranch_core::units::Duration;

use anabranch_wire::seq::Seq;

/// What a probe waits for beyond two round trips.
pub const SLACK: Duration = Duration::from_millis(2);
/// The wait before the first round-trip time is known (§7.2).
const UNKNOWN: Duration = Duration::from_secs(1);

/// The last probe.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tlp {
    /// TLP.end_seq, while it is under way.
    end_seq: Option<Seq>,
    /// TLP.is_retrans
    is_retrans: bool,
    /// No round-trip time has been measured since it left.
    unmeasured: bool,
}

/// Where a sender stands with its probes: what the steady state has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Probing {
    /// The next probe may leave when its time has come.
    #[default]
    Free,
    /// None is under way, and none may leave before a round-trip time is measured (§7.3).
    Unmeasured,
    /// One is under way (§7.4).
    UnderWay,
}

/// What an acknowledgment tells of the probe.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// The number it acknowledges.
    pub ack: Seq,
    /// It reports a duplicate that ends there.
    pub duplicate_end: Option<Seq>,
    /// A duplicate acknowledgment without any SACK block.
    pub bare_duplicate: bool,
}

/// How long a receiver may hold an acknowledgment back (TLP.max_ack_delay, §7.2).
pub const MAX_ACK_DELAY: Duration = Duration::from_millis(200);

impl Tlp {
    /// TLP_calc_PTO (§7.2). `lone`: a single segment is in flight, whose acknowledgment the receiver
    /// may hold back for [`MAX_ACK_DELAY`].
    #[must_use]
    pub fn pto(srtt: Duration, lone: bool) -> Duration {
        if srtt.is_zero() {
            return UNKNOWN;
        }
        srtt.saturating_mul(2) + if lone { MAX_ACK_DELAY } else { SLACK }
    }

    /// A probe has left; `nxt` is SND.NXT behind it.
    pub const fn sent(&mut self, nxt: Seq, is_retrans: bool) {
        self.end_seq = Some(nxt);
        self.is_retrans = is_retrans;
        self.unmeasured = true;
    }

    /// Whether a probe may leave (§7.3), or what forbids it.
    #[must_use]
    pub const fn probing(&self) -> Probing {
        match (self.end_seq, self.unmeasured) {
            (Some(_), _) => Probing::UnderWay,
            (None, true) => Probing::Unmeasured,
            (None, false) => Probing::Free,
        }
    }

    /// A round-trip time has been measured.
    pub const fn on_measured(&mut self) {
        self.unmeasured = false;
    }

    /// The connection begins without a round-trip time: its SYN was sent twice.
    pub const fn on_unmeasured_start(&mut self) {
        self.unmeasured = true;
    }

    /// The end of the probe under way, if it was sent before.
    #[must_use]
    pub fn resent_end(&self) -> Option<Seq> {
        self.end_seq.filter(|_| self.is_retrans)
    }

    /// Forgets the probe: something else repairs the loss.
    pub const fn cancel(&mut self) {
        self.end_seq = None;
    }

    /// TLP_process_ack (§7.4.2). `true` if the probe has repaired a loss, which is congestion.
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
    fn what_an_acknowledgment_tells_of_the_probe() {
        let end = Seq::first(1000);
        let answer = |ack, duplicate_end, bare_duplicate| Answer {
            ack,
            duplicate_end,
            bare_duplicate,
        };
        // (sent before, answer, a loss was repaired, still under way)
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
