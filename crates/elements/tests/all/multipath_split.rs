//! Splitters: the bytes of each route follow its line rate.

use anabranch_core::{
    packet::ConnectionId,
    tunnel::Report,
    units::{Instant, Rate},
};
use anabranch_elements::multipath::split::{
    AnySplit, Config, Init, Split, View, deficit, earliest_arrival, lowest_delay, redundant,
    weighted_round_robin::{Params, WeightedRoundRobin},
};
use proptest::prelude::*;

/// Largest size of a packet here.
const LARGEST: u32 = 1_500;

fn routes(rates: &[u64]) -> Init {
    Init {
        rates: rates.iter().map(|rate| Rate::new(*rate)).collect(),
    }
}

fn round_robin(rates: &[u64]) -> WeightedRoundRobin {
    WeightedRoundRobin::new(&Params::default(), &routes(rates))
}

/// Those whose shares follow the line rates when there is always something to send.
fn following() -> [Config; 3] {
    [
        Config::WeightedRoundRobin(Params::default()),
        Config::Deficit(deficit::Params::default()),
        Config::EarliestArrival(earliest_arrival::Params::default()),
    ]
}

/// The routes of packets of these sizes, copies included.
fn taken(split: &mut impl Split, sizes: impl IntoIterator<Item = u32>) -> Vec<(usize, u32)> {
    let mut taken = Vec::new();
    let mut chosen = Vec::new();
    for (size, index) in sizes.into_iter().zip(0..) {
        let view = View {
            size,
            connection: ConnectionId(0),
            index,
        };
        split.split(Instant::START, view, &mut chosen);
        assert!(!chosen.is_empty());
        taken.extend(chosen.drain(..).map(|route| (usize::from(route), size)));
    }
    taken
}

/// The largest distance of a route from its share, relative to the share.
fn worst_share(rates: &[u64], taken: &[(usize, u32)]) -> f64 {
    let mut bytes = vec![0.0; rates.len()];
    for (route, size) in taken {
        bytes[*route] += f64::from(*size);
    }
    let (all, total) = (bytes.iter().sum::<f64>(), rates.iter().sum::<u64>() as f64);
    let off = |(given, rate): (&f64, &u64)| (given / (all * *rate as f64 / total) - 1.0).abs();
    bytes.iter().zip(rates).map(off).fold(0.0, f64::max)
}

/// Sizes in a pattern that repeats, which is what a splitter that counts packets falls for.
fn pattern() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(40..=LARGEST, 1..=6)
}

/// Sizes in no pattern.
fn mix(seed: u64) -> impl Iterator<Item = u32> {
    let stream = anabranch_core::rng::Stream::new(seed, "sizes");
    (0..).map(move |k| 40 + stream.at(k).bits() % (LARGEST - 39))
}

proptest! {
    /// At every moment each route is within (routes × largest packet) of its share.
    #[test]
    fn no_route_is_far_from_its_share(
        rates in prop::collection::vec(64_000_u64..10_000_000_000, 2..=8),
        pattern in pattern(),
        seed in any::<u64>(),
    ) {
        let total: u64 = rates.iter().sum();
        let sizes = pattern.iter().copied().cycle().take(300).chain(mix(seed).take(300));
        let mut given = vec![0_u64; rates.len()];
        for (route, size) in taken(&mut round_robin(&rates), sizes) {
            given[route] += u64::from(size);
            let all: u64 = given.iter().sum();
            for (given, rate) in given.iter().zip(&rates) {
                let share = all as f64 * *rate as f64 / total as f64;
                let bound = (rates.len() * LARGEST as usize) as f64;
                prop_assert!((*given as f64 - share).abs() <= bound, "{given} of {share}");
            }
        }
    }

    /// Shares follow line rates within 1 %, whatever the sizes.
    #[test]
    fn shares_follow_line_rates(
        rates in prop::collection::vec(1_000_000_u64..=10_000_000, 2..=4),
        pattern in pattern(),
        seed in any::<u64>(),
    ) {
        // By the bound above: 4 routes × largest packet are 1 % of the least share, 1/31.
        let enough = 100 * 4 * u64::from(LARGEST) * 31;
        for sizes in [
            Box::new(pattern.iter().copied().cycle()) as Box<dyn Iterator<Item = u32>>,
            Box::new(mix(seed)),
        ] {
            let mut sum = 0;
            let sizes = sizes.take_while(|size| {
                sum += u64::from(*size);
                sum <= enough + u64::from(LARGEST)
            });
            let sizes: Vec<u32> = sizes.collect();
            for config in following() {
                let mut split = config.build(&routes(&rates));
                let off = worst_share(&rates, &taken(&mut split, sizes.iter().copied()));
                prop_assert!(off <= 0.01, "{}: {off}", config.name());
            }
        }
    }
}

/// Counts packets instead of bytes.
#[derive(Debug)]
struct Counting(WeightedRoundRobin);

impl Split for Counting {
    fn split(&mut self, now: Instant, packet: View, routes: &mut Vec<u16>) {
        self.0.split(now, View { size: 1, ..packet }, routes);
    }
}

#[test]
fn counting_packets_would_be_found_out() {
    let rates = [5_000_000, 5_000_000];
    let sizes = || [1_500, 40].into_iter().cycle().take(10_000);
    assert!(worst_share(&rates, &taken(&mut Counting(round_robin(&rates)), sizes())) > 0.9);
    assert!(worst_share(&rates, &taken(&mut round_robin(&rates), sizes())) < 0.01);
}

#[test]
fn equal_routes_and_sizes_take_turns() {
    let order: Vec<usize> = taken(&mut round_robin(&[1_000_000; 3]), [1_500; 7])
        .into_iter()
        .map(|(route, _)| route)
        .collect();
    assert_eq!(order, [0, 1, 2, 0, 1, 2, 0]);
    // A route three times as fast has three packets of four, spread out.
    let order: Vec<usize> = taken(&mut round_robin(&[1_000_000, 3_000_000]), [1_500; 8])
        .into_iter()
        .map(|(route, _)| route)
        .collect();
    assert_eq!(order.iter().filter(|route| **route == 1).count(), 6);
    assert!(order.windows(2).all(|pair| pair != [0, 0]), "{order:?}");
}

/// What the other end says of a packet that took so long, in milliseconds, by clocks that differ by `offset`.
fn report(route: u8, route_number: u16, delay_ms: u32, offset: u32) -> Report {
    Report {
        route,
        loss: 0,
        route_number,
        missing: 0,
        delay: (delay_ms * 1_000).wrapping_add(offset),
    }
}

/// Sends one packet of 1,250 bytes: 10 ms at 1 Mbit/s. The route that it takes; copies do not count.
fn send(split: &mut AnySplit, at: Instant) -> u16 {
    send_with_copies(split, at)[0]
}

fn send_with_copies(split: &mut AnySplit, at: Instant) -> Vec<u16> {
    let mut chosen = Vec::new();
    let view = View {
        size: 1_250,
        connection: ConnectionId(0),
        index: 0,
    };
    split.split(at, view, &mut chosen);
    chosen
}

/// The route with the longer way waits until the other has as much in front of it; the clocks of the two ends do not matter.
#[test]
fn earliest_arrival_goes_by_delay_and_backlog() {
    for offset in [0, 123_456_789, u32::MAX - 20_000] {
        let config = Config::EarliestArrival(earliest_arrival::Params::default());
        let mut split = config.build(&routes(&[1_000_000, 1_000_000]));
        let now = Instant::START;
        // The first packet is copied, so that something becomes known of each route.
        assert_eq!(send_with_copies(&mut split, now), [0, 1]);
        // Sending took 10 ms each; the second way takes 35 ms longer than the first.
        split.hear(now, &report(0, 0, 15, offset));
        split.hear(now, &report(1, 0, 50, offset));
        let later = Instant::from_millis(20);
        let order: Vec<u16> = (0..8).map(|_| send(&mut split, later)).collect();
        assert_eq!(order, [0, 0, 0, 0, 1, 0, 1, 0], "{offset}");
    }
}

/// A route that was bad once is tried again, by copies, and believed when it has become better.
#[test]
fn probes_are_copies() {
    let config = Config::EarliestArrival(earliest_arrival::Params::default());
    let mut split = config.build(&routes(&[1_000_000, 1_000_000]));
    assert_eq!(send_with_copies(&mut split, Instant::START), [0, 1]);
    split.hear(Instant::START, &report(0, 0, 500, 0));
    split.hear(Instant::START, &report(1, 0, 15, 0));
    let at = |k: u64| Instant::from_millis(50 * k);
    for k in 1..10 {
        assert_eq!(send_with_copies(&mut split, at(k)), [1], "{k}");
    }
    assert_eq!(send_with_copies(&mut split, at(10)), [1, 0]);
    split.hear(at(11), &report(0, 1, 12, 0));
    assert_eq!(send_with_copies(&mut split, at(11)), [0]);
}

/// A route of which nothing is heard takes no packets but probes, until something is; where nothing is heard at all, all do.
#[test]
fn a_silent_route_is_left() {
    let config = Config::EarliestArrival(earliest_arrival::Params::default());
    let mut split = config.build(&routes(&[1_000_000, 1_000_000]));
    let at = |k: u64| Instant::from_millis(5 * k);
    // By route: packets, and copies.
    let send = |split: &mut AnySplit, from: u64, count: u64| -> [[u16; 2]; 2] {
        let mut taken = [[0; 2]; 2];
        for k in from..from + count {
            for (place, route) in send_with_copies(split, at(k)).into_iter().enumerate() {
                taken[usize::from(route)][place.min(1)] += 1;
            }
        }
        taken
    };
    assert_eq!(send_with_copies(&mut split, at(0)), [0, 1]);
    for route in [0, 1] {
        split.hear(at(1), &report(route, 0, 15, 0));
    }
    // Nothing is heard of either.
    let [[first, _], [second, _]] = send(&mut split, 2, 80);
    assert!(first > 20 && second > 20, "{first} {second}");
    // Now of the second alone.
    split.hear(at(90), &report(1, second, 15, 0));
    let [[none, copies], [all, _]] = send(&mut split, 90, 200);
    assert_eq!((none, copies, all), (0, 2, 200));
    // The second probe of the first has arrived.
    split.hear(at(300), &report(0, first + copies, 15, 0));
    assert!(send(&mut split, 600, 80)[0][0] > 20);
}

#[test]
fn lowest_delay_fills_the_quickest_route_first() {
    let config = Config::LowestDelay(lowest_delay::Params::default());
    let mut split = config.build(&routes(&[1_000_000, 1_000_000]));
    let now = Instant::START;
    // Nothing is known: the first while no more than 20 ms wait, then the other, then the emptier one.
    let order: Vec<u16> = (0..8).map(|_| send(&mut split, now)).collect();
    assert_eq!(order, [0, 0, 0, 1, 1, 1, 0, 1]);
    split.hear(now, &report(0, 0, 60, 0));
    split.hear(now, &report(1, 0, 15, 0));
    let later = Instant::from_millis(200);
    let order: Vec<u16> = (0..4).map(|_| send(&mut split, later)).collect();
    assert_eq!(order, [1, 1, 1, 0]);
}

#[test]
fn redundant_takes_every_route() {
    let config = Config::Redundant(redundant::Params::default());
    let mut split = config.build(&routes(&[1_000_000; 5]));
    let mut chosen = Vec::new();
    let view = View {
        size: 1_500,
        connection: ConnectionId(0),
        index: 0,
    };
    split.split(Instant::START, view, &mut chosen);
    assert_eq!(chosen, [0, 1, 2, 3, 4]);
}
