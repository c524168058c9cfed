//! Arrivals in front of the members' queues, from counters, as input of the simulator's controllers.
//!
//! The arrivals in a span are the bytes sent, plus the growth of the queues, plus the bytes that the
//! queues dropped. A span of several bins is spread evenly over them.

use anabranch_core::units::{Duration, Instant, Rate};
use anabranch_path::group::control::{AnyController, Config, Controller, Init};

use super::Time;
use crate::netlink::Totals;

/// Size of a dropped packet if the interface has sent none.
const DROPPED: u64 = 1500;

/// Bytes that arrived in one direction between two readings.
#[must_use]
pub fn arrived(before: &Totals, after: &Totals) -> u64 {
    let sent = after.tx_bytes.saturating_sub(before.tx_bytes);
    let packets = after.tx_packets.saturating_sub(before.tx_packets);
    let size = sent.checked_div(packets).unwrap_or(DROPPED);
    let drops = after.drops.saturating_sub(before.drops);
    (sent + drops * size + after.backlog).saturating_sub(before.backlog)
}

/// A controller of the simulator, fed with counters.
#[derive(Debug)]
pub struct Demand {
    control: AnyController,
    bin: Duration,
    at: Instant,
    wanted: u32,
}

impl Demand {
    /// Builds the controller.
    #[must_use]
    pub fn new(config: &Config, bin: Time, init: &Init<'_>) -> Self {
        Self {
            control: config.build(init),
            bin: instant(bin).saturating_since(Instant::START),
            at: Instant::START,
            wanted: init.members,
        }
    }

    /// Counts bytes that arrived since the last call, and returns the number of members to be on.
    pub fn sample(&mut self, now: Time, bytes: u64) -> u32 {
        let now = instant(now);
        let span = now.saturating_since(self.at).as_picos();
        let bins = (span / self.bin.as_picos().max(1)).max(1);
        let mut left = bytes;
        for number in 0..bins {
            // The middle of the part: a reading comes slightly after the bin's end.
            let at = self.at.as_picos()
                + (2 * u128::from(number) + 1)
                    .saturating_mul(u128::from(span))
                    .checked_div(2 * u128::from(bins))
                    .and_then(|offset| u64::try_from(offset).ok())
                    .unwrap_or(0);
            let at = Instant::from_picos(at);
            self.decide(at);
            let part = left / (bins - number);
            left -= part;
            let mut rest = part;
            while rest > 0 {
                let chunk = u32::try_from(rest).unwrap_or(u32::MAX);
                self.control.on_arrival(at, chunk);
                rest -= u64::from(chunk);
            }
        }
        self.at = now;
        self.decide(now);
        self.wanted
    }

    fn decide(&mut self, now: Instant) {
        while self.control.next_decision() <= now {
            let due = self.control.next_decision();
            self.wanted = self.control.decide(due);
        }
    }
}

fn instant(time: Time) -> Instant {
    Instant::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 1_000_000))
}

/// The number of members of a group, and their rate, as the controllers need them.
#[must_use]
pub fn init(rate: Rate, members: usize, lead: Time) -> Init<'static> {
    Init {
        rate,
        members: u32::try_from(members).unwrap_or(u32::MAX),
        lead: instant(lead).saturating_since(Instant::START),
        arrivals: None,
    }
}

#[cfg(test)]
mod tests {
    use anabranch_core::units::{Instant, Rate};
    use anabranch_path::group::control::{Config, Controller};
    use proptest::prelude::*;

    use super::{Demand, Time, arrived, init};
    use crate::netlink::Totals;

    const MS: Time = Time::from_millis(1);

    fn totals(tx_bytes: u64, tx_packets: u64, backlog: u64, drops: u64) -> Totals {
        Totals {
            tx_packets,
            tx_bytes,
            backlog,
            drops,
            ..Totals::default()
        }
    }

    #[test]
    fn queued_and_dropped_bytes_have_arrived() {
        let before = totals(10_000, 10, 3_000, 1);
        assert_eq!(arrived(&before, &totals(20_000, 20, 4_000, 3)), 13_000);
        // A queue that empties sends bytes that had arrived earlier.
        assert_eq!(arrived(&before, &totals(13_000, 12, 0, 1)), 0);
        assert_eq!(arrived(&before, &before), 0);
    }

    proptest! {
        /// The daemon's controller decides as the simulator's does for the same bins.
        #[test]
        fn decisions_equal_the_simulators(loads in prop::collection::vec(0_u32..200_000, 1..400)) {
            for name in ["peak-percentile", "peak-forecast", "moving-average", "ewma-hysteresis"] {
                let config = Config::named(name).unwrap();
                let init = init(Rate::from_mbit_per_s(100), 8, Time::from_millis(15));
                let mut demand = Demand::new(&config, MS, &init);
                let mut control = config.build(&init);
                let (mut wanted, mut expected) = (8, 8);
                for (number, load) in (0_u32..).zip(&loads) {
                    let at = MS * number + MS / 2;
                    let at = Instant::from_nanos(u64::try_from(at.as_nanos()).unwrap());
                    let end = Instant::from_millis(u64::from(number) + 1);
                    if *load > 0 {
                        control.on_arrival(at, *load);
                    }
                    while control.next_decision() <= end {
                        expected = control.decide(control.next_decision());
                    }
                    wanted = demand.sample(MS * (number + 1), u64::from(*load));
                }
                prop_assert_eq!(wanted, expected, "{}", name);
            }
        }

        /// A late reading changes no total.
        #[test]
        fn the_number_is_between_one_and_all(
            spans in prop::collection::vec((1_u32..50, 0_u64..10_000_000), 1..100)
        ) {
            let config = Config::named("peak-forecast").unwrap();
            let init = init(Rate::from_mbit_per_s(100), 4, Time::from_secs(2));
            let mut demand = Demand::new(&config, MS, &init);
            let mut now = Time::ZERO;
            for (span, bytes) in spans {
                now += MS * span;
                prop_assert!((1..=4).contains(&demand.sample(now, bytes)));
            }
        }
    }
}
