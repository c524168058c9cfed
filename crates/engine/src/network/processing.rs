//! Hosts that take a random time over each packet before they send it.
//!
//! Between deterministic flows and queues small differences of phase decide who is dropped, run after
//! run; a random time per packet in the hosts, as real ones take it, breaks the pattern (Floyd and
//! Jacobson, "On Traffic Phase Effects in Packet-Switched Gateways", Internetworking: Research and
//! Experience 3(3), 1992, §4). ns-2 knows it as `overhead_`.
//!
//! A packet leaves a uniform draw from [0, longest) after it was handed over, but never before the one
//! that the host sent last: packets do not overtake each other. The draw belongs to the host and to the
//! packet's number among all that the host sends. Where packets are closer together than the longest
//! time, the order that is kept makes the mean longer than half of it.
//!
//! # Not implemented
//!
//! What a host receives is not delayed.

use anabranch_core::{
    rng::Stream,
    units::{Duration, Instant},
};

/// One host's.
#[derive(Debug)]
pub(super) struct Processing {
    stream: Stream,
    longest: Duration,
    /// Packets so far.
    count: u64,
    /// When the last of them leaves.
    last: Instant,
    /// The ring where they wait.
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

    /// That of each host by name and longest time, in rings from `first_ring` on.
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

    /// When a packet that is handed over at `now` leaves.
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
        // Four equal parts, each by five standard deviations: 5 × √(n × 3/16).
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
        // With 40 packets in the longest time most wait for one before them.
        assert!(held > 500, "{held}");
    }

    #[test]
    fn hosts_have_times_of_their_own() {
        assert_eq!(times(host("host.S"), 50), times(host("host.S"), 50));
        assert_ne!(times(host("host.S"), 50), times(host("host.R"), 50));
    }
}
