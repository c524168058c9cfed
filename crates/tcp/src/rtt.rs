//! Round-trip time and retransmission timeout (RFC 6298).
//!
//! Samples come from segments that were sent once (Karn's algorithm), or from timestamps. RFC 7323
//! §4.1 takes timestamps only from acknowledgments that advance SND.UNA, and the stack does the
//! same without timestamps. With [`Timers::sample_sacked`](crate::policy::Timers::sample_sacked)
//! segments SACKed for the first time are samples as well, which RFC 6298 §3 allows, because the
//! copy received is known.
//!
//! With [`Bounds::by_round`] the variance term is Linux's (Sarolahti and Kuznetsov, "Congestion
//! control in Linux TCP", FREENIX 2002; measured of 6.12 by the timeouts after an outage): the
//! largest variance of a round trip raises it at once, and at the end of a round trip with less it
//! loses a quarter of the difference. It therefore takes about ten round trips from the half
//! of the first sample to its lower bound. A sample below SRTT that exceeds the variance has an
//! eighth of its weight, because a shorter queue is no reason for a longer timeout.
//!
//! # Differs from Linux
//! - The backed-off timeout stays until a new sample is taken (RFC 6298 (5.7), Karn's algorithm);
//!   Linux resets it at the first acknowledgment of new data.
//!
//! # Not implemented
//! - RFC 7323 appendix G (weights by the number of samples per round trip).

use anabranch_core::units::Duration;
use anabranch_wire::seq::Seq;

/// Bounds of the timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Lower bound (RFC 6298 (2.4)): 1 s there.
    pub min_rto: Duration,
    /// `min_rto` bounds the variance term instead of the whole, and the term decays once per round
    /// trip.
    pub by_round: bool,
    /// Upper bound (RFC 6298 (2.5)): at least 60 s there.
    pub max_rto: Duration,
    /// G of RFC 6298 (2.3): the granularity of the clock.
    pub granularity: Duration,
    /// The timeout is in whole ticks of the clock, rounded up, when it backs off.
    pub whole_ticks: bool,
}

/// The estimator of RFC 6298 §2. All times are zero before the first sample.
#[derive(Debug, Clone, Copy)]
pub struct RttEstimator {
    srtt: Duration,
    rttvar: Duration,
    rounds: Rounds,
    min_rtt: Duration,
    /// Without backoff.
    base_rto: Duration,
    /// With backoff.
    rto: Duration,
}

/// The variance by round trip; see the module.
#[derive(Debug, Clone, Copy)]
struct Rounds {
    /// The variance of the timeout.
    kept: Duration,
    /// The largest of the current round trip.
    largest: Duration,
    /// SND.NXT at its start.
    end: Seq,
}

impl Rounds {
    /// Takes the variance after a sample. `least` bounds the kept one.
    #[inline]
    fn take(&mut self, rttvar: Duration, least: Duration, flight: &Flight) {
        if rttvar > self.largest {
            self.largest = rttvar;
            self.kept = self.kept.max(rttvar);
        }
        if flight.una > self.end {
            if self.largest < self.kept {
                self.kept = self.kept - (self.kept - self.largest) / 4;
            }
            (self.end, self.largest) = (flight.nxt, least);
        }
    }
}

/// SND.UNA and SND.NXT after the acknowledgment that gave a sample.
#[derive(Debug, Clone, Copy)]
pub struct Flight {
    /// SND.UNA
    pub una: Seq,
    /// SND.NXT
    pub nxt: Seq,
}

impl RttEstimator {
    /// RFC 6298 (2.1): before the first sample the timeout is `initial_rto`.
    #[must_use]
    pub const fn new(initial_rto: Duration) -> Self {
        Self {
            srtt: Duration::ZERO,
            rttvar: Duration::ZERO,
            rounds: Rounds {
                kept: Duration::ZERO,
                largest: Duration::ZERO,
                end: Seq::START,
            },
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
    pub fn sample(&mut self, r: Duration, flight: &Flight, bounds: &Bounds) {
        if self.srtt.is_zero() {
            // RFC 6298 (2.2)
            self.srtt = r;
            self.rttvar = r / 2;
            if bounds.by_round {
                let kept = self.rttvar.max(bounds.min_rto / 4);
                self.rounds = Rounds {
                    kept,
                    largest: kept,
                    end: flight.nxt,
                };
            }
        } else {
            // RFC 6298 (2.3), with alpha = 1/8 and beta = 1/4: RTTVAR first, from the old SRTT.
            let difference = if r > self.srtt {
                r - self.srtt
            } else {
                self.srtt - r
            };
            self.rttvar = if bounds.by_round && r < self.srtt && difference > self.rttvar {
                self.rttvar + (difference - self.rttvar) / 32
            } else {
                self.rttvar - self.rttvar / 4 + difference / 4
            };
            self.srtt = self.srtt - self.srtt / 8 + r / 8;
            if bounds.by_round {
                self.rounds.take(self.rttvar, bounds.min_rto / 4, flight);
            }
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
        let variation = if bounds.by_round {
            self.rounds.kept * 4
        } else {
            (self.rttvar * 4).max(bounds.granularity)
        };
        self.base_rto = (self.srtt + variation)
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
        let mut rto = self.rto;
        if bounds.whole_ticks && !bounds.granularity.is_zero() {
            let ticks = rto.as_picos().div_ceil(bounds.granularity.as_picos());
            rto = bounds.granularity.saturating_mul(ticks);
        }
        self.rto = rto.saturating_mul(2).min(bounds.max_rto.max(self.base_rto));
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
        by_round: false,
        max_rto: Duration::from_secs(60),
        granularity: Duration::from_millis(1),
        whole_ticks: false,
    };
    const FLIGHT: Flight = Flight {
        una: Seq::START,
        nxt: Seq::START,
    };
    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn rfc_6298_arithmetic() {
        let mut rtt = RttEstimator::new(Duration::from_secs(1));
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        rtt.sample(ms(80), &FLIGHT, &BOUNDS);
        assert_eq!(
            (rtt.srtt(), rtt.rttvar(), rtt.rto()),
            (ms(80), ms(40), ms(240))
        );
        rtt.sample(ms(120), &FLIGHT, &BOUNDS);
        // RTTVAR = 3/4 * 40 + 1/4 * 40 = 40; SRTT = 7/8 * 80 + 1/8 * 120 = 85.
        assert_eq!(
            (rtt.srtt(), rtt.rttvar(), rtt.rto()),
            (ms(85), ms(40), ms(245))
        );
        rtt.sample(ms(85), &FLIGHT, &BOUNDS);
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
        rtt.sample(ms(10), &FLIGHT, &bounds);
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        for _ in 0..10 {
            rtt.back_off(&bounds);
        }
        assert_eq!(rtt.rto(), Duration::from_secs(60));
    }

    /// Measured of Linux 6.12 at 250 Hz: after a timeout of 430 ms, which are 108 ticks, the next has
    /// 216 ticks.
    #[test]
    fn whole_ticks_double() {
        let after = |whole_ticks| {
            let bounds = Bounds {
                granularity: ms(4),
                whole_ticks,
                ..BOUNDS
            };
            let mut rtt = RttEstimator::new(ms(430));
            rtt.back_off(&bounds);
            let first = rtt.rto();
            rtt.back_off(&bounds);
            (first, rtt.rto())
        };
        assert_eq!(after(true), (ms(864), ms(1728)));
        assert_eq!(after(false), (ms(860), ms(1720)));
    }

    /// Timeouts after round trips of ten segments, which take these times in milliseconds.
    fn by_round(rounds: &[u64]) -> Vec<Duration> {
        let bounds = Bounds {
            min_rto: ms(200),
            by_round: true,
            ..BOUNDS
        };
        let mut rtt = RttEstimator::new(Duration::from_secs(1));
        let mut flight = FLIGHT;
        let timeout = |&time: &u64| {
            for _ in 0..11 {
                rtt.sample(ms(time), &flight, &bounds);
                flight.una += 1;
                flight.nxt = flight.una + 10;
            }
            rtt.rto()
        };
        rounds.iter().map(timeout).collect()
    }

    #[test]
    fn the_variance_of_linux_decays_once_per_round_trip() {
        let timeouts = by_round(&[200; 40]);
        // 4 * 100 ms at first; a bound of 200 ms in the end, which each round trip approaches by a
        // quarter.
        let above = |at: usize| timeouts[at] - ms(400);
        assert!(above(1) > ms(100), "{timeouts:?}");
        for at in 3..12 {
            let share = above(at + 1).as_secs_f64() / above(at).as_secs_f64();
            assert!((share - 0.75).abs() < 0.01, "{at}: {share}");
        }
        assert!(above(39) < ms(1));
    }

    #[test]
    fn the_variance_of_linux_rises_at_once_and_not_by_a_shorter_queue() {
        let mut rounds = [100; 40].to_vec();
        rounds.push(500);
        let longer = by_round(&rounds);
        assert!(longer[40] > longer[39] + ms(400), "{:?}", &longer[39..]);
        let mut rounds = [500; 60].to_vec();
        rounds.push(100);
        let shorter = by_round(&rounds);
        assert!(shorter[60] < shorter[59], "{:?}", &shorter[59..]);
    }

    #[test]
    fn granularity_bounds_the_variance_term() {
        let mut rtt = RttEstimator::new(Duration::from_secs(1));
        let bounds = Bounds {
            granularity: ms(500),
            ..BOUNDS
        };
        for _ in 0..100 {
            rtt.sample(ms(40), &FLIGHT, &bounds);
        }
        assert_eq!(rtt.rto(), ms(540));
    }

    #[test]
    fn a_sample_ends_the_backoff() {
        let mut rtt = RttEstimator::new(Duration::from_secs(1));
        rtt.sample(ms(100), &FLIGHT, &BOUNDS);
        rtt.back_off(&BOUNDS);
        rtt.back_off(&BOUNDS);
        assert_eq!(rtt.rto(), ms(1200));
        rtt.sample(ms(100), &FLIGHT, &BOUNDS);
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
