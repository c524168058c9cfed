//! Paths that fail, and return.

use super::{
    network::{End, Network, Wire, path},
    tunnel::{busy, kill, state, two},
};
use anabranch_core::units::Duration;
use anabranch_gateway::path::State;

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_black_hole_while_busy_costs_at_most_300_ms() {
    for (seed, directions) in [(1, &[0, 1][..]), (2, &[0]), (3, &[1])] {
        let mut network = busy(seed);
        let since = network.now;
        kill(&mut network, 0, directions, true);
        network.run(MS * 2_000);
        for end in [0, 1] {
            let gap = network.gap(end, since);
            assert!(
                gap <= MS * 300,
                "{directions:?}, end {end}: {} ms",
                gap.as_millis_f64()
            );
        }
        // Packets in flight are retransmitted on the other path.
        network.run(MS * 7_000);
        assert_eq!(
            (network.check_once(0), network.check_once(1)),
            (5_000, 5_000)
        );
    }
}

#[test]
fn black_holes_cost_300_ms_in_95_of_100_cases() {
    let gaps = |kind: u64| {
        let mut gaps: Vec<_> = (0..60)
            .map(|seed| {
                let jittery = Wire {
                    delay: MS * (5 + seed % 7 * 9),
                    jitter: MS * (seed % 5 * 2),
                    loss: if seed % 4 == 0 { 0.01 } else { 0.0 },
                    ..Wire::default()
                };
                let mut network = Network::new(
                    seed,
                    vec![[jittery; 2], [Wire::default(); 2]],
                    seed % 2 == 0,
                );
                let (first, second) =
                    [(20, 20), (20, 1_000), (4, 50)][usize::try_from(kind).expect("small")];
                network.flow(0, 1, MS * first, MS * 10_000);
                network.flow(1, 2, MS * second, MS * 10_000);
                network.run(MS * 3_000 + Duration::from_micros(7_900) * seed);
                let since = network.now;
                let directions: [&[End]; 3] = [&[0, 1], &[0], &[1]];
                kill(
                    &mut network,
                    0,
                    directions[usize::try_from(seed % 3).expect("small")],
                    true,
                );
                network.run(MS * 2_000);
                network.gap(1, since)
            })
            .collect();
        gaps.sort_unstable();
        (gaps[56], gaps[59])
    };
    for kind in 0..3 {
        let (p95, longest) = gaps(kind);
        let text = format!(
            "traffic {kind}: {} and {} ms",
            p95.as_millis_f64(),
            longest.as_millis_f64()
        );
        println!("p95 and longest gap, {text}");
        assert!(p95 <= MS * 300 && longest <= MS * 500, "{text}");
    }
}

#[test]
fn a_black_hole_while_idle_is_detected_within_a_second() {
    for directions in [&[0, 1][..], &[0], &[1]] {
        for phase in 0..10 {
            let mut network = Network::new(phase, two(), false);
            network.run(MS * (2_000 + 37 * phase));
            kill(&mut network, 0, directions, true);
            network.run(MS * 1_000);
            for &end in directions {
                let state = state(&network.stats(end), 0);
                assert!(
                    matches!(state, State::Dead { .. }),
                    "{directions:?}, end {end}: {state:?}"
                );
            }
            for end in [0, 1] {
                assert_eq!(state(&network.stats(end), 1), State::Active);
            }
        }
    }
}

#[test]
fn a_tunnel_whose_paths_are_all_dead_is_down() {
    let mut network = busy(17);
    assert!(network.stats(0).is_up && network.stats(1).is_up);
    for dead in [true, false] {
        for number in 0..network.wires.len() {
            kill(&mut network, number, &[0, 1], dead);
        }
        network.run(MS * 1_000);
        for end in [0, 1] {
            assert_eq!(network.stats(end).is_up, !dead, "end {end}");
        }
    }
}

#[test]
fn a_lost_carrier_costs_at_most_20_ms() {
    let mut network = busy(13);
    let (since, now) = (network.now, network.now);
    kill(&mut network, 0, &[0, 1], true);
    let id = path(0);
    network.tunnel(0).on_carrier_loss(id, now);
    network.run(MS * 1_000);
    // The other path is 15 ms longer.
    let gap = network.gap(1, since);
    assert!(gap <= MS * 20 + MS * 15, "{} ms", gap.as_millis_f64());
}

#[test]
fn a_path_returns_within_a_second() {
    for seed in 0..10 {
        let mut network = busy(seed);
        kill(&mut network, 0, &[0, 1], true);
        network.run(MS * 1_000 + MS * 13 * seed);
        assert!(matches!(state(&network.stats(0), 0), State::Dead { .. }));
        kill(&mut network, 0, &[0, 1], false);
        network.run(MS * 1_000);
        for end in [0, 1] {
            assert_eq!(state(&network.stats(end), 0), State::Active);
        }
    }
}

#[test]
fn a_path_with_a_loss_of_30_percent_hardly_flaps() {
    let lossy = Wire {
        loss: 0.3,
        ..Wire::default()
    };
    for (seed, both) in [(1, false), (2, false), (3, true), (4, true)] {
        let other = if both { lossy } else { Wire::default() };
        let mut network = Network::new(seed, vec![[lossy; 2], [other; 2]], false);
        network.run(MS * 120_000);
        for end in [0, 1] {
            let deaths = network.stats(end).paths[0].deaths;
            assert!(deaths <= 2, "{deaths} deaths in two minutes");
        }
    }
}

/// Half of the packets of the faster path are lost: most packets take the other one.
#[test]
fn a_path_that_loses_half_of_its_packets_carries_few() {
    let mut network = busy(5);
    network.run(MS * 500);
    for wire in &mut network.wires[0] {
        wire.loss = 0.5;
    }
    network.run(MS * 500);
    let before = network.datagrams[0].clone();
    network.run(MS * 2_000);
    let sent = |path: u8| network.datagrams[0][&path] - before[&path];
    assert!(3 * sent(0) < sent(1), "{} and {}", sent(0), sent(1));
}
