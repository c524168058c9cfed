//! Error correction across paths: restored packets, overhead, and cases without repair packets.

use super::network::{Network, Wire, packet};
use anabranch_core::{rng::Stream, units::Duration};
use anabranch_gateway::{
    blocks::{Protector, Rebuilder, SOURCES},
    path::{Loss, Pattern},
    pool::Pool,
    time::Instant,
    wire::{Place, Repair},
};
use proptest::prelude::*;
use std::collections::BTreeSet;

const MS: Duration = Duration::from_millis(1);
/// The longest path delay and the longest wait for a gap. A retransmission would take 780 ms.
const LIMIT: Duration = Duration::from_millis(280 + 350 + 50);

fn far(loss: f64, burst: f64, delay: u64) -> [Wire; 2] {
    let forward = Wire {
        delay: MS * delay,
        loss,
        burst,
        ..Wire::default()
    };
    [
        forward,
        Wire {
            loss: 0.0,
            ..forward
        },
    ]
}

/// The share of 1,000 packets per second that does not arrive within 680 ms, and repair packets per
/// packet, over paths that have been in use for 20 s.
fn residual(seed: u64, wires: Vec<[Wire; 2]>, seconds: u64) -> (f64, f64) {
    let mut network = Network::new(seed, wires, false);
    network.size = 500;
    for flow in 0..4 {
        network.flow(0, flow, MS * 4, MS * 1_000 * (20 + seconds));
    }
    network.run(MS * 20_000);
    let (before, first) = (network.stats(0).counters, network.sent[0][&0]);
    network.run(MS * 1_000 * seconds);
    let (after, last) = (network.stats(0).counters, network.sent[0][&0]);
    network.run(MS * 3_000);
    network.check_once(1);
    let in_time = |flow: u16, number: u32, at: Instant| {
        let sent = Instant::START + MS * 4 * u64::from(number);
        (first..last).contains(&number) && at.saturating_since(sent) <= LIMIT && flow < 4
    };
    let arrived = network.delivered[1]
        .iter()
        .filter(|packet| in_time(packet.flow, packet.number, packet.at))
        .count();
    let total = f64::from(4 * (last - first));
    let repairs = (after.repairs - before.repairs) as f64;
    let result = (1.0 - arrived as f64 / total, repairs / total);
    println!(
        "residual and redundancy, {} paths: {result:?}",
        network.wires.len()
    );
    result
}

/// The means over runs with these seeds. A block that cannot be rebuilt is 0.0005 of a run's
/// packets.
fn mean(seeds: [u64; 4], wires: &[[Wire; 2]]) -> (f64, f64) {
    let runs = seeds.map(|seed| residual(seed, wires.to_vec(), 40));
    let sum = runs
        .iter()
        .fold((0.0, 0.0), |sum, run| (sum.0 + run.0, sum.1 + run.1));
    (sum.0 / 4.0, sum.1 / 4.0)
}

/// One path, or two.
fn far_paths(count: usize, burst: f64) -> Vec<[Wire; 2]> {
    [250, 280][..count]
        .iter()
        .map(|&delay| far(0.05, burst, delay))
        .collect()
}

fn check_random_loss(paths: usize) {
    let (left, redundancy) = mean([1, 2, 3, 4], &far_paths(paths, 1.0));
    assert!(left <= 0.001 && redundancy <= 0.133, "{left} {redundancy}");
}

fn check_bursts_of_four(paths: usize) {
    let (left, redundancy) = mean([1, 2, 3, 4], &far_paths(paths, 4.0));
    assert!(left <= 0.003 && redundancy <= 0.25, "{left} {redundancy}");
}

#[test]
fn random_loss_of_5_percent_leaves_a_thousandth() {
    check_random_loss(2);
}

#[test]
fn bursts_of_four_leave_three_thousandths() {
    check_bursts_of_four(1);
}

#[test]
#[ignore = "many cases: make test-cases"]
fn the_other_number_of_paths_leaves_as_few_in_many_cases() {
    check_random_loss(1);
    check_bursts_of_four(2);
}

#[test]
fn short_paths_and_paths_without_loss_get_no_repair_packets() {
    // A flow of 250 packets per second begins one burst of losses in nine retransmission times.
    for wires in [vec![far(0.0, 1.0, 250)], vec![far(0.004, 1.0, 40)]] {
        let (left, redundancy) = residual(3, wires, 10);
        assert!(left <= 0.001 && redundancy <= 0.0, "{left} {redundancy}");
    }
}

#[test]
fn a_flow_with_permanent_gaps_waits_no_round_trip() {
    // Four bursts of losses per retransmission time. A flow of a hundredth of the rate waits for
    // retransmissions.
    let wire = |loss| Wire {
        loss,
        delay: MS * 40,
        ..Wire::default()
    };
    let late = |interval: u64| {
        let mut network = Network::new(5, vec![[wire(0.02), wire(0.0)]], false);
        network.size = 500;
        network.flow(0, 1, Duration::from_micros(interval), MS * 30_000);
        network.run(MS * 31_000);
        let arrived = network.check_once(1);
        let sent = f64::from(network.sent[0][&1]);
        assert!(arrived as f64 >= 0.9995 * sent, "{arrived} of {sent}");
        let waited = network.delivered[1].iter().filter(|packet| {
            let sent = Instant::START + Duration::from_micros(interval) * u64::from(packet.number);
            packet.at.saturating_since(sent) > MS * 100
        });
        (waited.count() as f64 / sent, network.stats(0).counters)
    };
    let (waited, counters) = late(500);
    assert!(
        waited <= 0.1 && counters.protected > 50_000,
        "{waited} {counters:?}"
    );
    let (waited, counters) = late(50_000);
    assert!(
        waited <= 0.08 && counters.repairs == 0,
        "{waited} {counters:?}"
    );
}

#[test]
fn losses_beyond_the_repair_packets_are_retransmitted() {
    // Bursts longer than a block's repair packets.
    let wire = |loss| Wire {
        loss,
        burst: 6.0,
        delay: MS * 40,
        ..Wire::default()
    };
    let mut network = Network::new(6, vec![[wire(0.03), wire(0.0)]], false);
    network.size = 500;
    network.flow(0, 1, Duration::from_micros(500), MS * 30_000);
    network.run(MS * 32_000);
    // One packet of a round that looks congested is given up (RFC 9265), and the queue in front of
    // a congested path drops packets.
    let signalled = network.stats(1).order.abandoned + network.stats(0).queue_dropped;
    let arrived = network.check_once(1) as u64 + signalled;
    let counters = network.stats(0).counters;
    assert!(
        counters.retransmitted > 100 && counters.protected > 10_000,
        "{counters:?}"
    );
    assert!(
        f64::from(network.sent[0][&1]) * 0.9998 <= arrived as f64,
        "{arrived} {signalled}"
    );
}

#[test]
fn loss_by_congestion_is_not_hidden() {
    // The offered load is twice the capacity of the path, whose queue is too short for the rate
    // control to detect.
    let narrow = Wire {
        rate: 3e5,
        queue: MS * 4,
        delay: MS * 250,
        ..Wire::default()
    };
    let mut network = Network::new(4, vec![[narrow; 2]], false);
    network.flow(0, 1, MS * 2, MS * 20_000);
    network.run(MS * 22_000);
    let counters = network.stats(0).counters;
    let arrived = network.check_once(1);
    assert!(
        counters.rebuilt <= 100 && arrived <= 9_000,
        "{counters:?} {arrived}"
    );
}

#[test]
fn the_residual_loss_matches_a_simulated_channel() {
    for (share, burst) in [(0.05, 1.0), (0.05, 4.0), (0.02, 2.0)] {
        let pattern = Pattern {
            begins: share / burst,
            burst,
        };
        let (mut draw, mut lost, mut bad) = (Stream::new(7, "channel").at(0), 0_usize, false);
        let (blocks, total, most) = (20_000, 110, 9);
        for _ in 0..blocks {
            let of_block = (0..total)
                .filter(|_| {
                    bad = draw.chance(if bad {
                        1.0 - 1.0 / burst
                    } else {
                        share / burst / (1.0 - share)
                    });
                    bad
                })
                .count();
            lost += if of_block > most { of_block } else { 0 };
        }
        let (seen, said) = (
            lost as f64 / f64::from(blocks * 110),
            pattern.residual(total, most),
        );
        assert!(
            said >= 0.6 * seen && said <= 1.6 * seen,
            "{share} {burst}: {seen} seen, {said} said"
        );
    }
}

#[test]
fn a_pattern_is_learned_from_losses() {
    let mut loss = Loss::default();
    assert_eq!(loss.pattern(), None);
    for number in 0..4_000_u64 {
        match number % 100 {
            0..4 => loss.on_lost(number),
            _ => loss.on_arrived(1),
        }
        if number % 250 == 249 {
            loss.on_round(false);
        }
    }
    let pattern = loss.pattern().expect("losses");
    assert!((pattern.burst - 4.0).abs() < 0.1 && (pattern.share() - 0.04).abs() < 0.002);
    // A congested round that loses half of its packets is not counted.
    for number in 4_000..4_100 {
        if number % 2 == 0 {
            loss.on_lost(number);
        } else {
            loss.on_arrived(1);
        }
    }
    loss.on_round(true);
    assert!(loss.is_by_congestion());
    assert_eq!(loss.pattern(), Some(pattern));
}

proptest! {
    #![proptest_config(super::cases(64))]

    #[test]
    fn any_symbols_as_numerous_as_its_packets_restore_a_block(
        sizes in proptest::collection::vec(32_usize..300, 1..60), repairs in 1_usize..12, seed: u64,
    ) {
        let (mut protector, mut pool, mut block) = (Protector::default(), Pool::default(), 0);
        let place = |number: usize| Place { flow: 9, number: u32::try_from(number + 65_530).expect("small") };
        let packets: Vec<_> = sizes.iter().zip(0..).map(|(&size, number)| packet(0, 9, number, size)).collect();
        let mut symbols = Vec::new();
        for (number, packet) in packets.iter().enumerate() {
            let (block, index) = protector.add(place(number), packet, &mut block, Instant::START, &mut pool);
            symbols.push((block, Ok((index, number))));
        }
        protector.close(repairs, &mut pool);
        let made: Vec<(Repair, Vec<u8>)> = std::iter::from_fn(|| protector.pop()).collect();
        prop_assert_eq!(made.len(), repairs);
        symbols.extend(made.into_iter().map(|repair| (block, Err(repair))));
        // As many as there are packets, in any order.
        let mut draw = Stream::new(seed, "order").at(0);
        for k in (1..symbols.len()).rev() {
            symbols.swap(k, usize::try_from(draw.bits()).expect("32 bits") % (k + 1));
        }
        symbols.truncate(packets.len());
        let mut rebuilder = Rebuilder::default();
        let (mut there, mut back) = (BTreeSet::new(), BTreeSet::new());
        for (block, symbol) in symbols {
            let rebuilt = match symbol {
                Ok((index, number)) => {
                    there.insert(number);
                    rebuilder.on_source((block, index), place(number), &packets[number], Instant::START, &mut pool)
                }
                Err((repair, content)) => rebuilder.on_repair(repair, &content, Instant::START, &mut pool),
            };
            for (near, packet) in rebuilt {
                let number = packets.iter().position(|one| *one == packet).expect("a packet of the block");
                prop_assert_eq!(u32::from(near.low), place(number).number % 65_536);
                back.insert(number);
            }
        }
        prop_assert!(there.is_disjoint(&back));
        prop_assert_eq!(there.len() + back.len(), packets.len());
    }

    #[test]
    fn arbitrary_repair_packets_use_bounded_memory(
        steps in proptest::collection::vec((1_u16..40, any::<[u8; 7]>(), 0_usize..40, any::<bool>()), 1..300),
    ) {
        let (mut rebuilder, mut pool) = (Rebuilder::default(), Pool::default());
        for (block, [key, of, count, a, b, c, d], size, is_source) in steps {
            let content = vec![a; size];
            if is_source {
                let place = Place { flow: a.into(), number: b.into() };
                rebuilder.on_source((block, key), place, &content, Instant::START, &mut pool);
            } else {
                let repair = Repair { block, key, of, count, place: [a, b, c, d] };
                rebuilder.on_repair(repair, &content, Instant::START, &mut pool);
            }
            prop_assert!(rebuilder.held() <= 16 * SOURCES);
        }
    }
}
