//! Splitters: the bytes of each route follow its line rate.

use anabranch_core::{
    packet::ConnectionId,
    tunnel::Report,
    units::{Instant, Rate},
};
use anabranch_path::multipath::{
    params::Silence,
    split::{
        AnySplit, Config, Due, Init, Split, View, deficit, earliest_arrival, redundant,
        weighted_round_robin::{Params, WeightedRoundRobin},
    },
};
use proptest::prelude::*;

/// Largest size of a packet here.
const LARGEST: u32 = 1_500;

fn routes(rates: &[u64]) -> Init {
    Init {
        rates: rates.iter().map(|rate| Rate::new(*rate)).collect(),
        names: (0..rates.len()).map(|k| format!("isp{k}")).collect(),
    }
}

fn round_robin(rates: &[u64]) -> WeightedRoundRobin {
    WeightedRoundRobin::new(&Params::default(), &routes(rates))
}

/// Splitters whose shares follow the line rates under a permanent backlog.
fn following() -> [Config; 3] {
    [
        Config::WeightedRoundRobin(Params::default()),
        Config::Deficit(deficit::Params::default()),
        Config::EarliestArrival(earliest_arrival::Params::default()),
    ]
}

/// Routes of packets of these sizes, including copies.
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

/// Largest deviation of a route from its share, relative to the share.
fn worst_share(rates: &[u64], taken: &[(usize, u32)]) -> f64 {
    let mut bytes = vec![0.0; rates.len()];
    for (route, size) in taken {
        bytes[*route] += f64::from(*size);
    }
    let (all, total) = (bytes.iter().sum::<f64>(), rates.iter().sum::<u64>() as f64);
    let off = |(given, rate): (&f64, &u64)| (given / (all * *rate as f64 / total) - 1.0).abs();
    bytes.iter().zip(rates).map(off).fold(0.0, f64::max)
}

/// Sizes in a repeating pattern, which a splitter that counts packets handles wrongly.
fn pattern() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(40..=LARGEST, 1..=6)
}

/// Random sizes.
fn mix(seed: u64) -> impl Iterator<Item = u32> {
    let stream = anabranch_core::rng::Stream::new(seed, "sizes");
    (0..).map(move |k| 40 + stream.at(k).bits() % (LARGEST - 39))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// At any time each route is within (routes × largest packet) of its share.
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
        // By the bound above: 4 routes × largest packet are 1 % of the smallest share, 1/31.
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
fn counting_packets_is_detected() {
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
    // A route three times as fast gets three of four packets, spread out.
    let order: Vec<usize> = taken(&mut round_robin(&[1_000_000, 3_000_000]), [1_500; 8])
        .into_iter()
        .map(|(route, _)| route)
        .collect();
    assert_eq!(order.iter().filter(|route| **route == 1).count(), 6);
    assert!(order.windows(2).all(|pair| pair != [0, 0]), "{order:?}");
}

/// The other end's report of a packet with a delay of `delay_ms`, by clocks that differ by
/// `offset`.
fn report(route: u8, route_number: u16, delay_ms: u32, offset: u32) -> Report {
    Report {
        route,
        loss: 0,
        route_number,
        missing: 0,
        delay: (delay_ms * 1_000).wrapping_add(offset),
    }
}

/// Sends one packet of 1,250 bytes, which takes 10 ms at 1 Mbit/s. Returns its route, without
/// copies.
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

/// The route with the longer delay is used only when the other's backlog makes up for the
/// difference; the clock offset of the two ends does not matter.
#[test]
fn earliest_arrival_goes_by_delay_and_backlog() {
    for offset in [0, 123_456_789, u32::MAX - 20_000] {
        let config = Config::EarliestArrival(earliest_arrival::Params::default());
        let mut split = config.build(&routes(&[1_000_000, 1_000_000]));
        let now = Instant::START;
        // The first packet is copied, so that each route is measured.
        assert_eq!(send_with_copies(&mut split, now), [0, 1]);
        // Transmission took 10 ms each; the second route's delay is 35 ms longer.
        split.hear(now, &report(0, 0, 15, offset));
        split.hear(now, &report(1, 0, 50, offset));
        let later = Instant::from_millis(20);
        let order: Vec<u16> = (0..8).map(|_| send(&mut split, later)).collect();
        assert_eq!(order, [0, 0, 0, 0, 1, 0, 1, 0], "{offset}");
    }
}

/// A splitter that tracks the delivery of routes, with these times in milliseconds.
fn noticing(silence: u64, probe: u64) -> [Config; 1] {
    [Config::EarliestArrival(earliest_arrival::Params {
        silence: Silence::from_millis(silence),
        probe: Silence::from_millis(probe),
        ..earliest_arrival::Params::default()
    })]
}

/// Transmissions of a splitter: time in milliseconds, route, and whether it is a probe.
type Sent = Vec<(u64, u16, bool)>;

/// Lets a splitter send a packet every `pause` ms until `until`, over routes with delays of 10 ms
/// and 15 ms. Each packet that `delivers` lets through is reported after another such delay.
fn play(
    split: &mut AnySplit,
    (pause, until): (u64, u64),
    delivers: impl Fn(u64, u16) -> bool,
) -> Sent {
    let mut sent = Sent::new();
    let mut numbers = [0_u16; 2];
    let mut reports: Vec<(u64, Report)> = Vec::new();
    let mut due = Due::default();
    for ms in 0..until {
        let now = Instant::from_millis(ms);
        while let Some(k) = reports.iter().position(|(at, _)| *at <= ms) {
            split.hear(now, &reports.remove(k).1);
        }
        let mut taken: Vec<(u16, bool)> = Vec::new();
        if split.timer().is_some_and(|at| at <= now) {
            split.on_timer(now, 52, &mut due);
            taken.extend(due.probes.drain(..).map(|route| (route, true)));
            due.silent.clear();
        }
        if ms % pause == 0 {
            let routes = send_with_copies(split, now).into_iter();
            taken.extend(routes.map(|route| (route, false)));
        }
        for (route, is_probe) in taken {
            sent.push((ms, route, is_probe));
            let number = &mut numbers[usize::from(route)];
            if delivers(ms, route) {
                let delay = 10 + 5 * u32::from(route);
                let at = ms + 2 * u64::from(delay);
                let route = u8::try_from(route).expect("small");
                reports.push((at, report(route, *number, delay, 0)));
            }
            *number = number.wrapping_add(1);
        }
    }
    sent
}

/// Number of packets, without probes, on this route from `from` and before `to`.
fn packets(sent: &Sent, route: u16, [from, to]: [u64; 2]) -> usize {
    let counts = |(at, taken, is_probe): &&(u64, u16, bool)| {
        (from..to).contains(at) && *taken == route && !is_probe
    };
    sent.iter().filter(counts).count()
}

#[test]
fn a_dead_route_is_left_and_reused() {
    for config in noticing(200, 500) {
        for pause in [1, 20, 70, 300] {
            let mut split = config.build(&routes(&[100_000_000, 100_000_000]));
            // The first route is dead from 2 s to 4 s.
            let delivers = |at, route| route != 0 || !(2_000..4_000).contains(&at);
            let sent = play(&mut split, (pause, 7_000), delivers);
            let name = config.name();
            assert!(packets(&sent, 0, [1_000, 2_000]) > 2, "{name} {pause}");
            // A packet, its round trip, `silence` and a step.
            assert_eq!(
                packets(&sent, 0, [2_350 + pause, 4_000]),
                0,
                "{name} {pause}"
            );
            let probes = sent.iter().filter(|(at, route, is_probe)| {
                (3_000..4_000).contains(at) && *route == 0 && *is_probe
            });
            assert_eq!(probes.count(), 2, "{name} {pause}: one per `probe`");
            // A probe, its round trip, the hold time, and one or two steps.
            let back = 4_000 + 500 + 20 + 200 + 100 + pause;
            assert!(
                packets(&sent, 0, [back, back + 2 * pause]) > 0,
                "{name} {pause}"
            );
        }
    }
}

/// A probe is only a header and never a copy of a packet; copies are sent only if no route is
/// alive.
#[test]
fn an_idle_route_gets_a_probe() {
    for config in noticing(200, 500) {
        let mut split = config.build(&routes(&[100_000_000, 100_000_000]));
        let sent = play(&mut split, (20, 5_000), |_, _| true);
        let name = config.name();
        assert_eq!(packets(&sent, 1, [100, 5_000]), 0, "{name}");
        let probes = sent
            .iter()
            .filter(|(_, route, is_probe)| *route == 1 && *is_probe);
        assert!((8..=10).contains(&probes.count()), "{name}");
    }
}

/// Each packet takes all routes with room, and the first route with a report takes over.
#[test]
fn without_a_live_route_packets_are_copied() {
    for config in noticing(200, 500) {
        let mut split = config.build(&routes(&[100_000_000, 100_000_000]));
        let delivers = |at, route| !(2_000..4_000).contains(&at) || route == 1 && at >= 3_000;
        let sent = play(&mut split, (20, 5_000), delivers);
        let name = config.name();
        for route in [0, 1] {
            assert!(
                packets(&sent, route, [2_600, 3_000]) >= 20,
                "{name} {route}"
            );
        }
        assert_eq!(packets(&sent, 0, [3_060, 4_000]), 0, "{name}");
        assert_eq!(packets(&sent, 1, [3_060, 4_000]), 47, "{name}");
    }
}

/// One packet in five is lost, and one report in five.
#[test]
fn losses_do_not_count_as_silence() {
    for config in noticing(200, 500) {
        let mut split = config.build(&routes(&[100_000_000, 100_000_000]));
        let draws = anabranch_core::rng::Stream::new(5, "losses");
        let delivers = |at: u64, route: u16| draws.at(2 * at + u64::from(route)).uniform() < 0.64;
        let sent = play(&mut split, (20, 20_000), delivers);
        let name = config.name();
        let [best, other] = [0, 1].map(|route| packets(&sent, route, [1_000, 20_000]));
        // During short periods without reports the other route gets copies; the original stays on
        // the best route.
        assert!(best >= 945, "{name}: {best} of 950");
        assert!(other <= 950 / 5, "{name}: {other}");
    }
}

/// Route 0 is dead in both directions from 2 s on. The other route reports its last delivery after
/// it has become silent. Detects a splitter that accepts any report of an earlier packet as a sign
/// of life.
#[test]
fn late_reports_of_earlier_packets_are_no_sign_of_life() {
    for config in noticing(200, 500) {
        // Delay of the packet that is reported late, and whether the route was slow.
        for (delay, was_slow) in [(10, false), (300, true)] {
            let mut split = config.build(&routes(&[100_000_000, 100_000_000]));
            let sent = play(&mut split, (20, 2_400), |at, route| {
                route != 0 || at < 2_000
            });
            let name = config.name();
            assert_eq!(packets(&sent, 0, [2_300, 2_400]), 0, "{name}");
            let numbers = sent.iter().filter(|(_, route, _)| *route == 0);
            let before = numbers.filter(|(at, ..)| *at < 2_010).count();
            let number = u16::try_from(before).expect("few") - 1;
            let now = Instant::from_millis(2_400);
            split.hear(now, &report(0, number, delay, 0));
            assert_eq!(split.is_silent(0), !was_slow, "{name} {delay}");
        }
    }
}

/// An old report is repeated while more than 65,536 probes are lost: it must be ignored when its
/// number recurs.
#[test]
fn a_repeated_report_is_ignored() {
    for config in noticing(40, 5) {
        let mut split = config.build(&routes(&[100_000_000, 100_000_000]));
        let mut due = Due::default();
        send_with_copies(&mut split, Instant::START);
        for route in [0, 1] {
            split.hear(Instant::from_millis(10), &report(route, 0, 10, 0));
        }
        let (mut probes, mut number, mut left) = (0, 0_u16, 0);
        for k in 0..66_000 {
            let now = Instant::from_millis(15 + 5 * k);
            split.hear(now, &report(0, 0, 10, 0));
            split.hear(now, &report(1, number, 10, 0));
            if split.timer().is_some_and(|at| at <= now) {
                split.on_timer(now, 52, &mut due);
                for route in due.probes.drain(..) {
                    probes += u32::from(route == 0);
                    number = number.wrapping_add(route);
                }
            }
            for route in send_with_copies(&mut split, now) {
                left += u64::from(route == 0 && k > 100);
                number = number.wrapping_add(route);
            }
        }
        assert!(probes > 65_536, "{probes}");
        assert_eq!(left, 0, "{}", config.name());
    }
}

/// More packets are in flight than the initial memory holds.
#[test]
fn a_long_fat_route_stays_live() {
    for config in noticing(200, 500) {
        let mut split = config.build(&routes(&[10_000_000_000, 10_000_000_000]));
        let mut silent = 0;
        let mut due = Due::default();
        let mut numbers = [0_u32; 2];
        let mut told = [0_u32; 2];
        for ms in 0..2_000 {
            let now = Instant::from_millis(ms);
            for _ in 0..200 {
                for route in send_with_copies(&mut split, now) {
                    numbers[usize::from(route)] += 1;
                }
            }
            // Packets sent 100 ms ago are reported: 20,000 packets are in flight.
            for route in [0_u16, 1] {
                let behind = numbers[usize::from(route)].saturating_sub(20_000);
                if behind > told[usize::from(route)] {
                    told[usize::from(route)] = behind;
                    #[expect(clippy::cast_possible_truncation, reason = "modulo 2^16")]
                    let number = behind as u16;
                    split.hear(
                        now,
                        &report(u8::try_from(route).expect("small"), number, 50, 0),
                    );
                }
            }
            if split.timer().is_some_and(|at| at <= now) {
                split.on_timer(now, 52, &mut due);
                due.probes
                    .drain(..)
                    .for_each(|route| numbers[usize::from(route)] += 1);
                silent += due
                    .silent
                    .drain(..)
                    .filter(|fallen| fallen.route == 0)
                    .count();
            }
        }
        assert_eq!(silent, 0, "{}", config.name());
        assert!(told[0] > 100_000, "{}: {told:?}", config.name());
    }
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
