//! Delivery-rate samples (draft-ietf-ccwg-bbr §4.1), for the controls that request them.
//!
//! # Not implemented
//! - Nothing of §4.1.

use std::collections::VecDeque;

use anabranch_core::units::{Bytes, Duration, Instant};

use crate::{Lost, RateSample};

/// State recorded when a segment is sent.
#[derive(Debug, Clone, Copy)]
struct Stamp {
    /// P.delivered
    delivered: u64,
    /// P.delivered_time
    delivered_at: Instant,
    /// P.first_send_time
    first_sent_at: Instant,
    /// P.send_time
    sent_at: Instant,
    /// P.is_app_limited
    app_limited: bool,
    /// P.tx_in_flight
    in_flight: u64,
    /// P.lost
    lost: u64,
}

/// Connection state of the estimator. Segments are identified by the number of their record in the
/// scoreboard.
#[derive(Debug)]
pub struct RateSampler {
    /// C.delivered
    delivered: u64,
    /// C.delivered_time
    delivered_at: Instant,
    /// C.first_send_time
    first_sent_at: Instant,
    /// C.app_limited: samples are lower bounds until this much is delivered; zero if not limited.
    app_limited: u64,
    /// C.lost; counted only for controls that request losses.
    lost: u64,
    stamps: VecDeque<Stamp>,
    /// Number of stamps removed at the front.
    gone: u64,
}

/// Data delivered by an acknowledgment.
#[derive(Debug, Clone, Copy)]
pub struct Delivery {
    /// When it arrived.
    pub now: Instant,
    /// Octets delivered.
    pub octets: u64,
    /// The number of the most recently sent segment among them.
    pub latest: Option<u64>,
    /// Segments before this number are acknowledged.
    pub gone: u64,
    /// The smallest round-trip time so far; zero before the first.
    pub min_rtt: Duration,
}

impl RateSampler {
    /// The estimator before the first transmission.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            delivered: 0,
            delivered_at: Instant::START,
            first_sent_at: Instant::START,
            app_limited: 0,
            lost: 0,
            stamps: VecDeque::new(),
            gone: 0,
        }
    }

    /// Segment `number` is sent or retransmitted. `in_flight` octets are in flight, this segment
    /// included. `idle`: nothing was outstanding.
    pub fn on_sent(&mut self, number: u64, now: Instant, idle: bool, in_flight: u64) {
        if idle {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        let stamp = Stamp {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            sent_at: now,
            app_limited: self.app_limited != 0,
            in_flight,
            lost: self.lost,
        };
        let index = usize::try_from(number.saturating_sub(self.gone)).unwrap_or(usize::MAX);
        if let Some(old) = self.stamps.get_mut(index) {
            *old = stamp;
        } else {
            if self.stamps.is_empty() {
                self.gone = number;
            }
            self.stamps.push_back(stamp);
        }
    }

    /// The application has no more data to send, with `in_flight` octets in flight and the window
    /// open.
    pub const fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited = self.delivered + in_flight;
        if self.app_limited == 0 {
            self.app_limited = 1;
        }
    }

    /// An acknowledgment delivered data.
    pub fn on_delivered(&mut self, delivery: &Delivery) -> Option<RateSample> {
        let Delivery {
            now,
            octets,
            latest,
            gone,
            min_rtt,
        } = *delivery;
        self.delivered += octets;
        self.delivered_at = now;
        if self.app_limited != 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let index = usize::try_from(latest?.checked_sub(self.gone)?).ok()?;
        let stamp = *self.stamps.get(index)?;
        while self.gone < gone && self.stamps.pop_front().is_some() {
            self.gone += 1;
        }
        self.first_sent_at = self.first_sent_at.max(stamp.sent_at);
        let send_elapsed = stamp.sent_at.saturating_since(stamp.first_sent_at);
        let ack_elapsed = now.saturating_since(stamp.delivered_at);
        let interval = send_elapsed.max(ack_elapsed);
        Some(RateSample {
            delivered: Bytes::new(self.delivered - stamp.delivered),
            interval,
            is_reliable: !interval.is_zero() && interval >= min_rtt,
            prior_delivered: Bytes::new(stamp.delivered),
            app_limited: stamp.app_limited,
            tx_in_flight: Bytes::new(stamp.in_flight),
            lost: Bytes::new(self.lost - stamp.lost),
        })
    }

    /// Segment `number` is split into `pieces`; the numbers of later segments increase.
    pub fn split(&mut self, number: u64, pieces: usize) {
        let index = number.checked_sub(self.gone).map(usize::try_from);
        if let Some(Ok(index)) = index
            && let Some(stamp) = self.stamps.get(index).copied()
        {
            for _ in 1..pieces {
                self.stamps.insert(index, stamp);
            }
        }
    }

    /// Segment `number` of `octets` is marked lost.
    pub fn on_lost(
        &mut self,
        now: Instant,
        (number, octets): (u64, u64),
        selective: bool,
    ) -> Option<Lost> {
        self.lost += octets;
        let index = usize::try_from(number.checked_sub(self.gone)?).ok()?;
        let stamp = self.stamps.get(index)?;
        Some(Lost {
            now,
            number,
            bytes: Bytes::new(octets),
            tx_in_flight: Bytes::new(stamp.in_flight),
            lost: Bytes::new(self.lost - stamp.lost),
            app_limited: stamp.app_limited,
            delivered: Bytes::new(self.delivered),
            selective,
        })
    }
}

impl Default for RateSampler {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_stream_is_sampled_at_its_rate() {
        // A segment of 1,000 octets each ms, a round-trip time of 10 ms.
        let mut rate = RateSampler::new();
        let mut samples = Vec::new();
        for n in 0..40 {
            if n >= 10 {
                let number = n - 10;
                let sample = rate.on_delivered(&Delivery {
                    now: Instant::from_millis(n),
                    octets: 1000,
                    latest: Some(number),
                    gone: number + 1,
                    min_rtt: Duration::from_millis(10),
                });
                samples.extend(sample);
            }
            rate.on_sent(n, Instant::from_millis(n), n == 0, 1000 * (n + 1).min(10));
        }
        let last = samples.last().expect("samples");
        assert_eq!(
            (last.delivered, last.interval),
            (Bytes::new(10_000), Duration::from_millis(10))
        );
        assert_eq!(last.prior_delivered, Bytes::new(20_000));
        assert!(samples.iter().all(|sample| !sample.app_limited));
    }

    #[test]
    fn a_sample_shorter_than_the_smallest_round_trip_is_not_reliable() {
        // Copies are sent at 40 and 50 ms. The original of the second is acknowledged 4 ms later.
        for (now, interval, is_reliable) in [(54, 10, false), (75, 25, true)] {
            let mut rate = RateSampler::new();
            rate.on_sent(0, Instant::START, true, 1000);
            rate.on_sent(1, Instant::START, false, 2000);
            let delivered = |rate: &mut RateSampler, at, number| {
                rate.on_delivered(&Delivery {
                    now: Instant::from_millis(at),
                    octets: 1000,
                    latest: Some(number),
                    gone: number + 1,
                    min_rtt: Duration::from_millis(20),
                })
                .expect("a sample")
            };
            rate.on_sent(0, Instant::from_millis(40), false, 2000);
            assert!(delivered(&mut rate, 50, 0).is_reliable);
            rate.on_sent(1, Instant::from_millis(50), false, 1000);
            let sample = delivered(&mut rate, now, 1);
            assert_eq!(sample.interval, Duration::from_millis(interval));
            assert_eq!(sample.prior_delivered, Bytes::new(1000));
            assert_eq!(sample.is_reliable, is_reliable);
        }
    }

    #[test]
    fn samples_after_an_application_pause_are_lower_bounds() {
        let mut rate = RateSampler::new();
        rate.on_sent(0, Instant::START, true, 1000);
        rate.on_app_limited(1000);
        rate.on_sent(1, Instant::from_millis(5), false, 2000);
        let sample = |rate: &mut RateSampler, at, number| {
            rate.on_delivered(&Delivery {
                now: Instant::from_millis(at),
                octets: 1000,
                latest: Some(number),
                gone: number + 1,
                min_rtt: Duration::ZERO,
            })
            .map(|sample| sample.app_limited)
        };
        assert_eq!(sample(&mut rate, 10, 0), Some(false));
        assert_eq!(sample(&mut rate, 15, 1), Some(true));
        rate.on_sent(2, Instant::from_millis(15), true, 1000);
        assert_eq!(sample(&mut rate, 25, 2), Some(false));
    }

    #[test]
    fn losses_count_from_the_transmission_of_each_segment() {
        let mut rate = RateSampler::new();
        for n in 0..4 {
            rate.on_sent(n, Instant::from_millis(n), n == 0, 1000 * (n + 1));
        }
        // Segment 2 of four arrives; segments 0 and 1 are lost.
        let delivered = |rate: &mut RateSampler, at, number, gone| {
            rate.on_delivered(&Delivery {
                now: Instant::from_millis(at),
                octets: 1000,
                latest: Some(number),
                gone,
                min_rtt: Duration::ZERO,
            })
            .expect("a sample")
        };
        assert_eq!(delivered(&mut rate, 12, 2, 0).lost, Bytes::ZERO);
        for (number, lost) in [(0, 1000), (1, 2000)] {
            let told = rate
                .on_lost(Instant::from_millis(12), (number, 1000), true)
                .expect("it is outstanding");
            assert_eq!(told.tx_in_flight, Bytes::new(1000 * (number + 1)));
            assert_eq!(
                (told.lost, told.delivered),
                (Bytes::new(lost), Bytes::new(1000))
            );
        }
        // Segment 0, retransmitted after the losses, counts none of them. Segment 3 counts both.
        rate.on_sent(0, Instant::from_millis(13), false, 2000);
        let last = delivered(&mut rate, 14, 3, 0);
        assert_eq!(
            (last.lost, last.tx_in_flight),
            (Bytes::new(2000), Bytes::new(4000))
        );
        let again = delivered(&mut rate, 23, 0, 1);
        assert_eq!(
            (again.lost, again.tx_in_flight),
            (Bytes::ZERO, Bytes::new(2000))
        );
        // An acknowledged segment yields no loss event.
        assert!(
            rate.on_lost(Instant::from_millis(24), (0, 1000), true)
                .is_none()
        );
    }
}
