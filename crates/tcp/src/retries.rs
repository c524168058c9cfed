//! Retransmission timeouts without progress, and giving up a peer that no longer answers (RFC 9293
//! §3.8.3): after a number of timeouts (R2 as a count), or after the time that they take (R2 as a
//! time).
//!
//! # Differs from Linux
//! - A closed socket with data or a FIN outstanding is given up like an open one;
//!   `tcp_orphan_retries` is not modelled.

use anabranch_core::units::{Duration, Instant};

use crate::settings::Settings;

/// Bound on the number of retries.
pub(crate) const MOST_RETRIES: u32 = u16::MAX as u32 - 1;

/// Total time of `retries` timeouts and the last one, if the first takes `base` and each twice the
/// time of the one before, up to `max_rto`. Counted from the end of the first, at which the first
/// retransmission is sent.
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

/// Expiries of the retransmission timer since the last progress.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retries {
    expiries: u16,
    exhausted: bool,
    /// First expiry of the timer since the last progress.
    since: Instant,
}

impl Retries {
    pub(crate) const fn new() -> Self {
        Self {
            expiries: 0,
            exhausted: false,
            since: Instant::START,
        }
    }

    /// Expiries since the last progress.
    #[inline]
    pub(crate) const fn expiries(&self) -> u16 {
        self.expiries
    }

    /// Whether an open connection has been given up.
    #[inline]
    pub(crate) const fn are_exhausted(&self) -> bool {
        self.exhausted
    }

    /// New data is acknowledged.
    #[inline]
    pub(crate) const fn on_progress(&mut self) {
        self.expiries = 0;
    }

    /// The retransmission timer has expired.
    pub(crate) const fn on_expiry(&mut self) {
        self.expiries = self.expiries.saturating_add(1);
    }

    /// The retransmission timer of an open connection has expired. Returns whether that ends it.
    /// Linux compares the time since the first retransmission, not the number of timeouts.
    pub(crate) fn on_timeout(&mut self, now: Instant, settings: &Settings) -> bool {
        let Settings {
            max_rto, retries, ..
        } = *settings;
        self.on_expiry();
        self.exhausted = match settings.timers.retries_base_rto() {
            Some(base_rto) => self.last_for(now, patience(base_rto, max_rto, retries)),
            None => u32::from(self.expiries) > retries.min(MOST_RETRIES),
        };
        self.exhausted
    }

    /// Whether the expiry just counted is the last of a SYN, if times are compared.
    pub(crate) fn end_syn(&mut self, now: Instant, settings: &Settings) -> bool {
        let Settings {
            initial_rto,
            max_rto,
            syn_retries,
            ..
        } = *settings;
        self.last_for(now, patience(initial_rto, max_rto, syn_retries))
    }

    /// Whether `time` has passed since the first retransmission, which is sent now if this is the
    /// first expiry.
    fn last_for(&mut self, now: Instant, time: Duration) -> bool {
        if self.expiries <= 1 {
            self.since = now;
        }
        now.saturating_since(self.since) >= time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// `tcp_retries2` = 15 means 924.6 s from the first transmission (ip-sysctl).
    #[test]
    fn fifteen_retries_from_200_ms_take_924_s() {
        let whole = |retries| ms(200) + patience(ms(200), Duration::from_secs(120), retries);
        assert_eq!(whole(15), ms(924_600));
        assert_eq!(whole(8), ms(102_200));
        assert_eq!(whole(5), ms(12_600));
        assert_eq!(whole(0), ms(200));
    }

    /// Times from the first retransmission, of a kernel 6.18 whose SYNs are not answered: the
    /// timeout before the last and the last, with `tcp_syn_retries` 1 to 4 and
    /// `tcp_syn_linear_timeouts` 0, 1 and 4.
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
