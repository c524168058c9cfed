//! Round-trip time and retransmission timeout (RFC 6298).
//!
//! Samples come from segments that were sent once (Karn's algorithm), or from timestamps. RFC 7323
//! §4.1 takes timestamps only from acknowledgments that advance SND.UNA, and the stack does the
//! same without timestamps. With [`Timers::sample_sacked`](crate::policy::Timers::sample_sacked)
//! segments SACKed for the first time are samples as well, which RFC 6298 §3 allows, because the
//! copy received is known.
//!
//! # Differs from Linux
//! - The variance is RFC 6298's, updated by every sample; Linux tracks its maximum per round trip.
//! - Linux bounds the variance term, not the timeout, from below ([`Bounds::over_srtt`]).
//! - The backed-off timeout stays until a new sample is taken (RFC 6298 (5.7), Karn's algorithm);
//!   Linux resets it at the first acknowledgment of new data.
//!
//! # Not implemented
//! - RFC 7323 appendix G (weights by the number of samples per round trip).

use anabranch_core::units::Duration;

/// Bounds of the timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Lower bound (RFC 6298 (2.4)): 1 s there.
    pub min_rto: Duration,
    /// `min_rto` bounds the variance term instead of the whole.
    pub over_srtt: bool,
    /// Upper bound (RFC 6298 (2.5)): at least 60 s there.
    pub max_rto: Duration,
    /// G of RFC 6298 (2.3): the granularity of the clock.
    pub granularity: Duration,
}

/// The estimator of RFC 6298 §2. All times are zero before the first sample.
#[derive(Debug, Clone, Copy)]
pub struct RttEstimator {
    srtt: Duration,
    rttvar: Duration,
    min_rtt: Duration,
    /// Without backoff.
    base_rto: Duration,
    /// With backoff.
    rto: Duration,
}

impl RttEstimator {
    /// RFC 6298 (2.1): before the first sample the timeout is `initial_rto`.
    #[must_use]
    pub const fn new(initial_rto: Duration) -> Self {
        Self {
            srtt: Duration::ZERO,
            rttvar: Duration::ZERO,
            min_rtt: Duration::ZERO,
            base_rto: initial_rto,
            rto: initial_rto,
        }
    }

    /// Takes a sample. It must not come from a retransmitted segment unless timestamps identify the
    /// copy that was acknowledged (RFC 6298 §3, Karn's algorithm).
    #[expect(
        clippy::inline_always,
        reason = "measured: it is a step of the hot path"
    )]
    #[inline(always)]
    pub fn sample(&mut self, r: Duration, bounds: &Bounds) {
        if self.srtt.is_zero() {
            // RFC 6298 (2.2)
            self.srtt = r;
            self.rttvar = r / 2;
        } else {
            // RFC 6298 (2.3), with alpha = 1/8 and beta = 1/4: RTTVAR first, from the old SRTT.
            let difference = if r > self.srtt {
                r - self.srtt
            } else {
                self.srtt - r
            };
            self.rttvar = self.rttvar - self.rttvar / 4 + difference / 4;
            self.srtt = self.srtt - self.srtt / 8 + r / 8;
        }
        self.recompute(bounds);
    }

    /// Takes a sample from a clock with ticks of length `tick`: `crossed` ticks occurred between
    /// transmission and acknowledgment. SRTT is in whole eighths of a tick and RTTVAR in whole
    /// quarters, at least one of each, and the timeout in whole ticks (Wright and Stevens, TCP/IP
    /// Illustrated, Volume 2, ch. 25).
    pub fn sample_ticks(&mut self, crossed: u64, tick: Duration, bounds: &Bounds) {
        let crossed = crossed.min(1 << 20).cast_signed();
        let whole = |time: Duration, parts: u64| {
            i64::try_from(time.as_picos() / (tick.as_picos() / parts).max(1)).unwrap_or(i64::MAX)
        };
        let (srtt, rttvar) = if self.srtt.is_zero() {
            ((crossed + 1) * 8, (crossed + 1) * 2)
        } else {
            let (srtt, rttvar) = (whole(self.srtt, 8), whole(self.rttvar, 4));
            let delta = crossed - srtt / 8;
            let spread = delta.abs() - rttvar / 4;
            ((srtt + delta).max(1), (rttvar + spread).max(1))
        };
        let time = |n: i64, parts: u64| tick.saturating_mul(n.unsigned_abs()) / parts;
        self.srtt = time(srtt, 8);
        self.rttvar = time(rttvar, 4);
        self.base_rto = time(srtt / 8 + rttvar, 1)
            .max(bounds.min_rto)
            .min(bounds.max_rto);
        self.rto = self.base_rto;
    }

    /// RFC 6298 (2.2), (2.3), then (2.4) and (2.5).
    #[inline]
    fn recompute(&mut self, bounds: &Bounds) {
        let least = if bounds.over_srtt {
            bounds.min_rto
        } else {
            bounds.granularity
        };
        self.base_rto = (self.srtt + (self.rttvar * 4).max(least))
            .max(bounds.min_rto)
            .min(bounds.max_rto);
        // RFC 6298 §5: a new sample ends the backoff.
        self.rto = self.base_rto;
    }

    /// Updates the smallest sample.
    #[inline]
    pub fn note_min(&mut self, r: Duration) {
        if r < self.min_rtt || self.min_rtt.is_zero() {
            self.min_rtt = r;
        }
    }

    /// RFC 6298 (5.5): the timer backs off.
    pub fn back_off(&mut self, bounds: &Bounds) {
        self.rto = self
            .rto
            .saturating_mul(2)
            .min(bounds.max_rto.max(self.base_rto));
    }

    /// RFC 6298 (5.7): the SYN's timer expired; data starts with 3 s at least.
    pub fn after_syn_timeout(&mut self) {
        self.base_rto = self.base_rto.max(Duration::from_secs(3));
        self.rto = self.base_rto;
    }

    /// The retransmission timeout, with backoff.
    #[must_use]
    #[inline]
    pub const fn rto(&self) -> Duration {
        self.rto
    }
    /// Smoothed round-trip time.
    #[must_use]
    #[inline]
    pub const fn srtt(&self) -> Duration {
        self.srtt
    }
    /// Its variation.
    #[must_use]
    #[inline]
    pub const fn rttvar(&self) -> Duration {
        self.rttvar
    }
    /// The smallest sample.
    #[must_use]
    #[inline]
    pub const fn min_rtt(&self) -> Duration {
        self.min_rtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        min_rto: Duration::from_millis(1),
        over_srtt: false,
        max_rto: Duration::from_secs(60),
        granularity: Duration::from_millis(1),
    };
    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn rfc_6298_arithmetic() {
        let mut rtt = RttEstimator::new(Duration::from_secs(1));
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        rtt.sample(ms(80), &BOUNDS);
        assert_eq!(
            (rtt.srtt(), rtt.rttvar(), rtt.rto()),
            (ms(80), ms(40), ms(240))
        );
        rtt.sample(ms(120), &BOUNDS);
        // RTTVAR = 3/4 * 40 + 1/4 * 40 = 40; SRTT = 7/8 * 80 + 1/8 * 120 = 85.
        assert_eq!(
            (rtt.srtt(), rtt.rttvar(), rtt.rto()),
            (ms(85), ms(40), ms(245))
        );
        rtt.sample(ms(85), &BOUNDS);
        assert_eq!(
            (rtt.srtt(), rtt.rttvar(), rtt.rto()),
            (ms(85), ms(30), ms(205))
        );
    }

    #[test]
    fn the_timeout_stays_within_its_bounds() {
        let mut rtt = RttEstimator::new(Duration::from_secs(1));
        let bounds = Bounds {
            min_rto: Duration::from_secs(1),
            ..BOUNDS
        };
        rtt.sample(ms(10), &bounds);
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        for _ in 0..10 {
            rtt.back_off(&bounds);
        }
        assert_eq!(rtt.rto(), Duration::from_secs(60));
    }

    #[test]
    fn min_rto_may_be_added_to_the_round_trip_time() {
        let mut rtt = RttEstimator::new(Duration::from_secs(1));
        let bounds = Bounds {
            min_rto: ms(200),
            over_srtt: true,
            ..BOUNDS
        };
        for _ in 0..100 {
            rtt.sample(ms(150), &bounds);
        }
        assert_eq!(rtt.rto(), ms(350));
    }

    #[test]
    fn granularity_bounds_the_variance_term() {
        let mut rtt = RttEstimator::new(Duration::from_secs(1));
        let bounds = Bounds {
            granularity: ms(500),
            ..BOUNDS
        };
        for _ in 0..100 {
            rtt.sample(ms(40), &bounds);
        }
        assert_eq!(rtt.rto(), ms(540));
    }

    #[test]
    fn a_sample_ends_the_backoff() {
        let mut rtt = RttEstimator::new(Duration::from_secs(1));
        rtt.sample(ms(100), &BOUNDS);
        rtt.back_off(&BOUNDS);
        rtt.back_off(&BOUNDS);
        assert_eq!(rtt.rto(), ms(1200));
        rtt.sample(ms(100), &BOUNDS);
        assert_eq!(rtt.rto(), ms(250));
    }

    /// Volume 2, ch. 25 worked by hand, in ticks of 500 ms.
    #[test]
    fn ticks_are_counted_in_eighths_and_quarters() {
        let bounds = Bounds {
            min_rto: Duration::from_secs(1),
            max_rto: Duration::from_secs(64),
            ..BOUNDS
        };
        let mut rtt = RttEstimator::new(Duration::from_secs(6));
        let mut sample = |crossed| {
            rtt.sample_ticks(crossed, ms(500), &bounds);
            let eighths = rtt.srtt().as_picos() / ms(500).as_picos() * 8
                + rtt.srtt().as_picos() % ms(500).as_picos() * 8 / ms(500).as_picos();
            (eighths, rtt.rttvar() / 125_000_000_000, rtt.rto())
        };
        // The first counts one more: SRTT is 4 ticks, RTTVAR half of that, and 4 + 4 * 2 ticks the
        // timeout.
        assert_eq!(sample(3), (32, Duration::from_picos(8), ms(6_000)));
        // 1 - 4 = -3: SRTT 32 - 3; RTTVAR 8 + (3 - 2); 29/8 + 9 is 12 whole ticks.
        assert_eq!(sample(1), (29, Duration::from_picos(9), ms(6_000)));
        // 0 - 3: 29 - 3; 9 + (3 - 2); 26/8 + 10.
        assert_eq!(sample(0), (26, Duration::from_picos(10), ms(6_500)));
        // If no tick ever occurs, the fraction of a tick remains, and a timeout of three ticks.
        let last = (0..200).map(|_| sample(0)).last();
        assert_eq!(last, Some((7, Duration::from_picos(3), ms(1_500))));
    }

    #[test]
    fn after_a_lost_syn_data_starts_with_three_seconds() {
        let mut rtt = RttEstimator::new(Duration::from_secs(1));
        rtt.back_off(&BOUNDS);
        rtt.after_syn_timeout();
        assert_eq!(rtt.rto(), Duration::from_secs(3));
    }
}
