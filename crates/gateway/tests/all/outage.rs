//! Outages of all paths, and a path that fails again and again.

use super::network::{Network, Wire, path};
use anabranch_core::units::Duration;
use anabranch_gateway::{
    path::State,
    policy::{Class, Match, Rule},
};

const MS: Duration = Duration::from_millis(1);
/// A packet of each flow leaves once per interval.
const INTERVAL: Duration = Duration::from_millis(20);
const BULK: u16 = 1;
const CALL: u16 = 2;

fn set_dead(network: &mut Network, paths: &[usize], is_dead: bool) {
    for &path in paths {
        for wire in &mut network.wires[path] {
            wire.is_dead = is_dead;
        }
    }
}

/// Two paths, a bulk flow and an interactive one, from the first end.
fn network(seed: u64) -> Network {
    let mut network = Network::new(seed, vec![[Wire::default(); 2]; 2], false);
    network.dscp.insert(CALL, 46);
    network.rules(vec![Rule {
        matches: Match {
            dscp: vec![46],
            ..Match::default()
        },
        class: Class::Interactive,
    }]);
    network.run(MS * 1_000);
    network
}

/// A path that returns shows the loss of its packets, not that of the outage, also if it carries only
/// probes afterwards.
#[test]
fn an_outage_does_not_count_as_loss() {
    for outage in [400, 3_000, 20_000] {
        for is_busy in [false, true] {
            let mut network = Network::new(outage, vec![[Wire::default(); 2]], false);
            network.run(MS * 1_000);
            if is_busy {
                network.flow(0, BULK, MS * 2, MS * (2_000 + outage));
            }
            network.run(MS * 2_000);
            set_dead(&mut network, &[0], true);
            network.run(MS * outage);
            set_dead(&mut network, &[0], false);
            for _ in 0..40 {
                network.run(MS * 1_000);
                for end in [0, 1] {
                    let loss = network.stats(end).paths[0].loss;
                    assert!(loss < 0.02, "{loss} after {outage} ms, busy: {is_busy}");
                }
            }
        }
    }
}

/// Random loss still counts, on a path that carries only probes, too.
#[test]
fn random_loss_counts() {
    for share in [0.2, 0.4] {
        let wire = Wire {
            loss: share,
            ..Wire::default()
        };
        let mut network = Network::new(3, vec![[wire; 2]], false);
        network.run(MS * 200_000);
        let loss = network.stats(1).paths[0].loss;
        assert!(
            (share * 0.5..share * 1.4).contains(&loss),
            "{loss} of {share}"
        );
    }
}

/// The age of the packets when they arrive is bounded by the age of their class when they leave
/// (1 s and 200 ms, twice that for retransmissions), the delay of the path, and the wait for gaps.
#[test]
fn the_backlog_of_an_outage_is_not_delivered_late() {
    for seed in 1..=10 {
        let mut network = network(seed);
        let begin = network.now;
        for flow in [BULK, CALL] {
            network.flow(0, flow, INTERVAL, MS * 30_000);
        }
        network.run(MS * (3_000 + 7 * seed));
        set_dead(&mut network, &[0, 1], true);
        network.run(MS * 20_000);
        set_dead(&mut network, &[0, 1], false);
        let end = network.now;
        network.run(MS * 9_000);
        for (flow, limit) in [(BULK, 2_000), (CALL, 400)] {
            let mut after = 0;
            for packet in network.delivered[1].iter().filter(|one| one.flow == flow) {
                let sent = begin + INTERVAL * u64::from(packet.number);
                let age = packet.at.saturating_since(sent);
                assert!(
                    age <= MS * (limit + 400),
                    "flow {flow}: {} ms",
                    age.as_millis_f64()
                );
                after += u32::from(sent > end + MS * 1_000);
            }
            // Later packets arrive. None of the call's is lost, since there is a copy of each.
            assert!(after >= 280, "flow {flow}: {after}");
        }
        network.check_once(1);
        assert!(network.stats(0).queue_dropped > 1_500);
    }
}

#[test]
fn a_path_that_fails_again_and_again_is_used_five_seconds_after_it_delivers() {
    let mut network = network(3);
    network.flow(0, BULK, INTERVAL, MS * 200_000);
    for times in 0..12_u64 {
        set_dead(&mut network, &[0], true);
        network.run(MS * 800);
        set_dead(&mut network, &[0], false);
        let since = network.now;
        while network.stats(0).paths[0].state != State::Active {
            network.run(MS * 10);
            let unused = network.now.saturating_since(since);
            assert!(unused <= MS * 5_600, "{} ms", unused.as_millis_f64());
        }
        network.run(MS * (500 + 37 * times));
    }
    assert_eq!(network.stats(0).paths[0].path, path(0));
    assert_eq!(network.stats(0).paths[0].deaths, 12);
}
