//! Splitters: the bytes of each route follow its line rate.

use anabranch_core::{
    packet::ConnectionId,
    units::{Instant, Rate},
};
use anabranch_elements::multipath::split::{
    Init, Split, View,
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

/// The routes of packets of these sizes.
fn taken(split: &mut impl Split, sizes: impl IntoIterator<Item = u32>) -> Vec<(usize, u32)> {
    let mut chosen = Vec::new();
    sizes
        .into_iter()
        .zip(0..)
        .map(|(size, index)| {
            let view = View {
                size,
                connection: ConnectionId(0),
                index,
            };
            split.split(Instant::START, view, &mut chosen);
            assert_eq!(chosen.len(), 1);
            (usize::from(chosen.pop().expect("one route")), size)
        })
        .collect()
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
            let off = worst_share(&rates, &taken(&mut round_robin(&rates), sizes));
            prop_assert!(off <= 0.01, "{off}");
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
