//! Hosts with a random processing time for each packet that they send.
//!
//! Between deterministic flows and queues, small differences of phase decide which packets are
//! dropped, in every run; a random time per packet in the hosts, as in real ones, breaks the
//! pattern (Floyd and Jacobson, "On Traffic Phase Effects in Packet-Switched Gateways",
//! Internetworking: Research and Experience 3(3), 1992, §4). ns-2 calls it `overhead_`.
//!
//! A packet departs a uniform random time from [0, longest) after it is passed to the host, but
//! never before the host's preceding packet: packets do not overtake each other. The random time is
//! keyed by the host and the packet's number among all that the host sends. If packets are closer
//! together than the longest time, keeping order makes the mean longer than half of it.
//!
//! # Not implemented
//!
//! Packets that a host receives are not delayed.

use anabranch_core::{
    rng::Stream,
    units::{Duration, Instant},
};

/// The processing of one host.
#[derive(Debug)]
pub(super) struct Processing {
    stream: Stream,
    longest: Duration,
    /// The number of packets.
    count: u64,
    /// The departure of the last packet.
    last: Instant,
    /// The ring of its packets.
    pub(super) ring: u32,
}

impl Processing {
    pub(super) fn new(stream: Stream, longest: Duration, ring: u32) -> Self {
        Self {
            stream,
            longest,
            count: 0,
            last: Instant::START,
            ring,
        }
    }

    /// The processing of each host by name and longest time, with rings from `first_ring` on.
    pub(super) fn of_hosts(
        hosts: &[(String, Duration)],
        seed: u64,
        first_ring: usize,
    ) -> Vec<Self> {
        hosts
            .iter()
            .zip(first_ring..)
            .map(|((name, longest), ring)| {
                let ring = u32::try_from(ring).expect("rings are counted in 32 bits");
                Self::new(Stream::new(seed, name), *longest, ring)
            })
            .collect()
    }

    /// Returns the departure of a packet passed to the host at `now`.
    pub(super) fn departure(&mut self, now: Instant) -> Instant {
        let time = self.stream.at(self.count).uniform_duration(self.longest);
        self.count += 1;
        self.last = self.last.max(now.saturating_add(time));
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_millis(4);

    fn host(name: &str) -> Processing {
        Processing::new(Stream::new(1, name), LONGEST, 0)
    }

    /// Times of packets that are far apart.
    fn times(mut host: Processing, count: u64) -> Vec<Duration> {
        (0..count)
            .map(|number| {
                let now = Instant::START + Duration::from_millis(10 * number);
                host.departure(now) - now
            })
            .collect()
    }

    #[test]
    fn packets_far_apart_take_a_uniform_time() {
        let times = times(host("host.S"), 10_000);
        assert!(times.iter().all(|time| *time < LONGEST));
        let mean = times.iter().map(|t| t.as_secs_f64()).sum::<f64>() / 10_000.0;
        // Five standard errors of the mean of a uniform: 5 × 4 ms × √(1/12/n).
        assert!((mean - 0.002).abs() < 5.8e-5, "{mean}");
        // Four equal parts, each within five standard deviations: 5 × √(n × 3/16).
        for part in 0..4_u32 {
            let bounds = [
                LONGEST / 4 * u64::from(part),
                LONGEST / 4 * u64::from(part + 1),
            ];
            let inside = times.iter().filter(|t| bounds[0] <= **t && **t < bounds[1]);
            let count = inside.count();
            assert!((2_283..=2_717).contains(&count), "{count} in part {part}");
        }
    }

    #[test]
    fn packets_close_together_keep_their_order() {
        let mut host = host("host.S");
        let mut last = Instant::START;
        let mut held = 0;
        for number in 0..1_000 {
            let now = Instant::START + Duration::from_micros(100 * number);
            let departure = host.departure(now);
            assert!(departure >= last && departure >= now);
            assert!(departure < now + LONGEST);
            held += usize::from(departure == last);
            last = departure;
        }
        // With 40 packets within the longest time, most wait for a preceding one.
        assert!(held > 500, "{held}");
    }

    #[test]
    fn hosts_have_separate_random_times() {
        assert_eq!(times(host("host.S"), 50), times(host("host.S"), 50));
        assert_ne!(times(host("host.S"), 50), times(host("host.R"), 50));
    }
}
