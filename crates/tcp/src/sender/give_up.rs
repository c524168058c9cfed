//! Giving up a connection whose peer no longer answers (RFC 9293 §3.8.3): after a number of timeouts (R2 as a count), or after
//! the time that they take (R2 as a time).
//!
//! # Differs from Linux
//! - A closed socket with data or a FIN outstanding is given up like an open one; `tcp_orphan_retries` is not modelled.

use anabranch_core::{
    body::Body,
    units::{Duration, Instant},
};

use super::Sender;
use crate::settings::Settings;

/// More retries than this are as many as this.
pub(crate) const MOST_RETRIES: u32 = u16::MAX as u32 - 1;

/// How long `retries` timeouts and the one that gives up take together, the first of which is `base` and each twice
/// the last, up to `max_rto`; counted from the end of the first, with which the first retransmission leaves.
fn patience(base: Duration, max_rto: Duration, retries: u32) -> Duration {
    let (mut sum, mut rto, mut left) = (0_u64, base, retries);
    while left > 0 && rto < max_rto {
        rto = rto.saturating_mul(2).min(max_rto);
        sum = sum.saturating_add(rto.as_picos());
        left -= 1;
    }
    let rest = max_rto.saturating_mul(u64::from(left));
    Duration::from_picos(sum.saturating_add(rest.as_picos()))
}

impl<B: Body> Sender<B> {
    /// The retransmission timer of an open connection has expired, [`Self::expiries`] times since the last progress. Whether
    /// that ends it. Linux compares the time since the first retransmission, not the number of timeouts.
    pub(super) fn is_out_of_patience(&mut self, now: Instant) -> bool {
        let Settings {
            max_rto, retries, ..
        } = *self.settings;
        let Some(base_rto) = self.settings.timers.retries_base_rto() else {
            return u32::from(self.expiries) > retries.min(MOST_RETRIES);
        };
        self.is_unanswered_for(now, patience(base_rto, max_rto, retries))
    }

    /// The same of a SYN, whose first timeout is `initial_rto`.
    pub(crate) fn is_out_of_patience_with_syn(&mut self, now: Instant) -> bool {
        let Settings {
            initial_rto,
            max_rto,
            syn_retries,
            ..
        } = *self.settings;
        self.is_unanswered_for(now, patience(initial_rto, max_rto, syn_retries))
    }

    /// Whether that much time has passed since the first retransmission, which leaves now if this is the first expiry.
    fn is_unanswered_for(&mut self, now: Instant, time: Duration) -> bool {
        if self.expiries <= 1 {
            self.cold.retransmitting_since = now;
        }
        now.saturating_since(self.cold.retransmitting_since) >= time
    }

    /// What came in answer ends the count of probes.
    #[cold]
    pub(crate) fn note_probe_answered(&mut self) {
        self.cold.unanswered = 0;
    }

    /// A probe of a closed window is due. Whether as many have gone unanswered as the connection lasts: only answers
    /// keep it open (RFC 9293 §3.8.6.1).
    pub(crate) fn gives_up_probing(&mut self) -> bool {
        let most = self.settings.retries.min(MOST_RETRIES);
        let over = u32::from(self.cold.unanswered) >= most;
        self.cold.unanswered = self.cold.unanswered.saturating_add(1);
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// `tcp_retries2` = 15 stands for 924.6 s from the first transmission (ip-sysctl).
    #[test]
    fn fifteen_retries_from_200_ms_take_924_s() {
        let whole = |retries| ms(200) + patience(ms(200), Duration::from_secs(120), retries);
        assert_eq!(whole(15), ms(924_600));
        assert_eq!(whole(8), ms(102_200));
        assert_eq!(whole(5), ms(12_600));
        assert_eq!(whole(0), ms(200));
    }

    /// Times from the first retransmission, of a kernel 6.18 whose SYNs nobody answers: the timeout before the last and
    /// the last, with `tcp_syn_retries` 1 to 4 and `tcp_syn_linear_timeouts` 0, 1 and 4.
    #[test]
    fn a_syn_is_given_up_at_the_first_timeout_after_the_time_of_its_retries() {
        for (retries, before, last) in [
            (1, 0, 2_020),
            (1, 1_030, 3_040),
            (1, 1_030, 2_050),
            (2, 2_020, 6_150),
            (2, 3_040, 7_200),
            (2, 4_100, 6_110),
            (3, 6_170, 14_360),
            (3, 7_200, 15_400),
            (3, 10_280, 18_470),
            (4, 18_390, 34_520),
        ] {
            let time = patience(ms(1_000), Duration::from_secs(120), retries);
            assert!(ms(before) < time && time <= ms(last), "{retries}");
        }
    }

    #[test]
    fn patience_without_bound_does_not_overflow() {
        let long = patience(ms(200), Duration::from_secs(120), u32::MAX);
        assert!(long > Duration::from_secs(1_000_000));
        assert_eq!(patience(ms(200), ms(200), 3), ms(600));
    }
}
