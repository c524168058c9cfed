//! Two tunnels over a network.

use super::network::{End, Network, Wire};
use anabranch_core::units::Duration;
use anabranch_gateway::{path::State, policy::Role, time::Instant, tunnel::Stats};

const MS: Duration = Duration::from_millis(1);

pub fn two() -> Vec<[Wire; 2]> {
    let slower = Wire {
        delay: MS * 35,
        ..Wire::default()
    };
    vec![[Wire::default(); 2], [slower; 2]]
}

/// Two paths that have been in use for two seconds, with both ends sending.
pub fn busy(seed: u64) -> Network {
    let mut network = Network::new(seed, two(), false);
    network.flow(0, 1, MS * 2, MS * 10_000);
    network.flow(1, 2, MS * 2, MS * 10_000);
    network.run(MS * 2_000);
    network
}

pub fn kill(network: &mut Network, path: usize, directions: &[End], is_dead: bool) {
    for &direction in directions {
        network.wires[path][direction].is_dead = is_dead;
    }
}

pub fn state(stats: &Stats, path: usize) -> State {
    stats.paths[path].state
}

#[test]
fn packets_arrive_once_and_in_order() {
    let mut network = Network::new(1, two(), false);
    network.flow(0, 1, MS * 2, MS * 2_000);
    network.flow(1, 2, MS * 2, MS * 2_000);
    network.run(MS * 3_000);
    assert_eq!(
        (network.check_once(1), network.check_once(0)),
        (1_000, 1_000),
        "{:#?}",
        network.stats(0)
    );
    assert_eq!((network.out_of_order(0), network.out_of_order(1)), (0, 0));
}

#[test]
fn a_dead_first_path_does_not_delay_the_tunnel() {
    let mut wires = two();
    for wire in &mut wires[0] {
        wire.is_dead = true;
    }
    let mut network = Network::new(2, wires, false);
    network.flow(0, 1, MS * 10, MS * 1_000);
    network.run(MS * 1_500);
    assert!(network.delivered[1][0].at < Instant::START + MS * 1_000);
    assert_eq!(network.check_once(1), 100);
}

#[test]
fn both_ends_may_begin() {
    for seed in 0..20 {
        let mut network = Network::new(seed, two(), true);
        network.flow(0, 1, MS * 10, MS * 1_000);
        network.flow(1, 2, MS * 10, MS * 1_000);
        network.run(MS * 2_000);
        assert_eq!((network.check_once(0), network.check_once(1)), (100, 100));
    }
}

#[test]
fn a_new_address_is_followed() {
    for end in [0, 1] {
        let mut network = busy(5);
        let since = network.now;
        network.ports[end][0] = 7_777;
        network.ports[end][1] = 7_778;
        network.run(MS * 2_000);
        assert!(network.gap(0, since) <= MS * 300 && network.gap(1, since) <= MS * 300);
        assert_eq!(network.stats(1 - end).paths[0].roamed, 1);
    }
}

#[test]
fn a_tunnel_recovers_from_a_restart_of_an_end() {
    for end in [0, 1] {
        let mut network = busy(6);
        network.restart(end);
        let since = network.now;
        network.run(MS * 3_000);
        for receiver in [0, 1] {
            let gap = network.gap(receiver, since);
            assert!(
                gap <= MS * 1_000,
                "end {receiver}: {} ms",
                gap.as_millis_f64()
            );
            network.check_once(receiver);
        }
        assert_eq!(network.stats(1 - end).counters.peer_restarts, 1);
    }
}

#[test]
fn keys_are_replaced_without_a_gap() {
    for both_begin in [false, true] {
        let mut network = Network::new(7, two(), both_begin);
        network.flow(0, 1, MS * 50, MS * 400_000);
        network.flow(1, 2, MS * 50, MS * 400_000);
        network.run(MS * 401_000);
        assert_eq!(
            (network.check_once(0), network.check_once(1)),
            (8_000, 8_000)
        );
        let sessions = network.stats(0).sessions;
        assert!((4..=7).contains(&sessions), "{sessions} sessions in 400 s");
    }
}

#[test]
fn losses_are_repaired_and_order_is_kept() {
    let lossy = Wire {
        loss: 0.03,
        ..Wire::default()
    };
    let mut network = Network::new(8, vec![[lossy; 2]; 2], false);
    network.flow(0, 1, MS * 2, MS * 4_000);
    network.run(MS * 5_000);
    let arrived = network.check_once(1);
    assert!(arrived >= 1_995, "{arrived} of 2000");
    assert!(
        network.out_of_order(1) <= 5,
        "{} late",
        network.out_of_order(1)
    );
}

#[test]
fn a_lost_tail_is_retransmitted_within_two_round_trips() {
    let mut network = Network::new(14, vec![[Wire::default(); 2]], false);
    network.flow(0, 1, MS * 10, MS * 1_000);
    network.run(MS * 2_000);
    // No later packet reveals the loss.
    network.flow(0, 1, MS, MS * 20);
    network.run(MS * 14);
    network.wires[0][0].is_dead = true;
    network.run(MS * 8);
    network.wires[0][0].is_dead = false;
    let before = network.delivered[1].len();
    let sent = network.now;
    network.run(MS * 200);
    assert!(before < network.check_once(1));
    assert_eq!(network.check_once(1), 120);
    // A quarter of a round trip until the probe, and 10 ms for which its report may wait.
    let last = network.delivered[1].iter().map(|packet| packet.at).max();
    let took = last.map(|last| last.saturating_since(sent));
    assert!(took.is_some_and(|took| took <= MS * 80), "{took:?}");
}

#[test]
fn garbage_and_unknown_peers_get_no_answer() {
    let mut network = Network::new(10, two(), false);
    network.run(MS * 1_000);
    let before = network.stats(1);
    for first in 0..=5 {
        for size in [0, 1, 40, 64, 84, 144, 1_472] {
            let mut octets = vec![first; size];
            if size > 2 {
                octets[1] = 1;
                octets[3] = 0;
            }
            network.inject(1, 0, octets);
        }
    }
    let quiet: u64 = network.datagrams[1].values().sum();
    network.run(Duration::from_nanos(1));
    let after: u64 = network.datagrams[1].values().sum();
    assert_eq!(quiet, after);
    assert_eq!(before.sessions, network.stats(1).sessions);
}

#[test]
fn an_idle_tunnel_sends_little() {
    let mut network = Network::new(11, two(), false);
    network.run(MS * 5_000);
    let before: u64 = network.datagrams[0].values().sum();
    network.run(MS * 10_000);
    let after: u64 = network.datagrams[0].values().sum();
    let per_second = (after - before) / 10;
    assert!(per_second <= 60, "{per_second} datagrams per second");
}

#[test]
fn two_paths_carry_more_than_one() {
    // Each path carries 1 MB/s; the offered load is 1.6 MB/s.
    let narrow = Wire {
        rate: 1e6,
        ..Wire::default()
    };
    let carried = |wires: Vec<[Wire; 2]>| {
        let mut network = Network::new(12, wires, false);
        for flow in 0..8 {
            network.flow(0, flow, MS * 5, MS * 10_000);
        }
        network.run(MS * 10_000);
        network.check_once(1)
    };
    let (one, both) = (carried(vec![[narrow; 2]]), carried(vec![[narrow; 2]; 2]));
    assert!(one >= 8_000, "one path carries {one} packets in 10 s");
    assert!(both * 2 >= one * 3, "one path carries {one}, both {both}");
}

#[test]
fn a_second_path_never_costs_throughput() {
    let wire = |rate: f64, delay: u64| Wire {
        rate,
        delay: MS * delay,
        ..Wire::default()
    };
    let lossy = Wire {
        loss: 0.05,
        ..wire(5e5, 20)
    };
    let jittery = Wire {
        jitter: MS * 20,
        ..wire(5e5, 20)
    };
    let best = wire(1e6, 10);
    let carried = |wires: Vec<[Wire; 2]>| {
        let mut network = Network::new(13, wires, false);
        for flow in 0..8 {
            network.flow(0, flow, MS * 4, MS * 8_000);
        }
        network.run(MS * 8_000);
        network.check_once(1)
    };
    let one = carried(vec![[best; 2]]);
    for second in [
        wire(5e4, 300),
        wire(2.5e5, 30),
        wire(1e6, 160),
        lossy,
        jittery,
    ] {
        let both = carried(vec![[best; 2], [second; 2]]);
        assert!(
            both * 100 >= one * 97,
            "alone {one}, both {both}: {second:?}"
        );
    }
}

#[test]
fn a_standby_path_carries_packets_only_if_no_other_does() {
    let mut network = Network::new(14, two(), false);
    network.role(&[0, 1], 1, Role::Backup);
    network.flow(0, 1, MS * 5, MS * 4_000);
    network.run(MS * 2_000);
    assert_eq!(state(&network.stats(0), 1), State::Standby);
    let before = network.datagrams[0][&1];
    assert!(before < 100, "{before} datagrams on the standby path");
    kill(&mut network, 0, &[0, 1], true);
    network.run(MS * 3_000);
    assert_eq!(network.check_once(1), 800);
}

#[test]
fn packets_with_foreign_sources_are_dropped() {
    let mut network = Network::new(15, two(), false);
    network.sources(1, &["10.0.9.0/24"]);
    network.run(MS * 2_000);
    network.flow(0, 1, MS * 10, MS * 1_000);
    network.run(MS * 2_000);
    assert_eq!(network.check_once(1), 0);
    assert_eq!(network.stats(1).counters.foreign_sources, 100);
    network.sources(1, &["10.0.9.0/24", "10.0.0.0/24"]);
    network.run(MS * 2_000);
    network.flow(0, 1, MS * 10, MS * 1_000);
    network.run(MS * 2_000);
    assert_eq!(network.check_once(1), 100);
}

#[test]
fn an_unknown_peer_with_the_public_key_gets_no_answer() {
    let mut network = Network::new(21, two(), false);
    network.run(MS * 1_000);
    let before: u64 = network.datagrams[1].values().sum();
    network.inject(1, 0, network.forged_initiation(1));
    network.run(Duration::from_nanos(1));
    assert_eq!(before, network.datagrams[1].values().sum::<u64>());
}

#[test]
fn a_flood_of_handshakes_gets_cookies_and_admits_the_peer() {
    let mut network = Network::new(19, two(), false);
    network.run(MS * 200);
    network.restart(0);
    let since = network.now;
    network.flow(0, 1, MS * 10, MS * 2_000);
    let forged: Vec<_> = (0..100)
        .map(|index| network.forged_initiation(index))
        .collect();
    for _ in 0..200 {
        let before: u64 = network.datagrams[1].values().sum();
        for initiation in &forged {
            network.inject(1, 0, initiation.clone());
        }
        network.run(MS * 10);
        // At most one reply to each; the number of waiting replies is bounded.
        let replies = network.datagrams[1].values().sum::<u64>() - before;
        assert!(replies <= 100, "{replies}");
    }
    network.run(MS * 500);
    assert!(network.gap(1, since) <= MS * 1_000);
    assert!(network.stats(1).counters.cookies > 1_000);
}

#[test]
fn replayed_datagrams_change_nothing() {
    let mut network = busy(20);
    network.restart(0);
    network.run(MS * 2_000);
    let recorded = network.recorded.clone();
    // Waits until all have arrived: a copy that overtakes its original is not a replay.
    network.run(MS * 200);
    let before = [network.stats(0), network.stats(1)];
    let ports = network.ports.clone();
    network.flow(0, 3, MS * 10, MS * 500);
    for (to, path, octets) in recorded {
        // They come from another address, so that a route that followed them would be detected.
        network.ports[1 - to][usize::from(path)] += 1;
        network.inject(to, path, octets);
        network.run(Duration::from_nanos(1));
        network.ports.clone_from(&ports);
    }
    network.run(MS * 1_000);
    for end in [0, 1] {
        network.check_once(end);
        let after = network.stats(end);
        let roamed = |stats: &Stats| {
            stats
                .paths
                .iter()
                .map(|path| path.roamed)
                .collect::<Vec<_>>()
        };
        assert_eq!(roamed(&before[end]), roamed(&after));
        assert_eq!(before[end].sessions, after.sessions);
    }
    assert_eq!(
        network.delivered[1]
            .iter()
            .filter(|packet| packet.flow == 3)
            .count(),
        50
    );
}

#[test]
fn unequal_paths_are_used_to_capacity() {
    for (rate, delay) in [(3e6, 10), (3e6, 30), (8e5, 30)] {
        let first = Wire {
            rate: 3e6,
            delay: MS * 10,
            ..Wire::default()
        };
        let second = Wire {
            rate,
            delay: MS * delay,
            ..Wire::default()
        };
        let mut network = Network::new(22, vec![[first; 2], [second; 2]], false);
        let capacity = 3e6 + rate;
        // A tenth more than the capacity.
        let interval = Duration::from_secs_f64(16.0 * 1_000.0 / (1.1 * capacity));
        for flow in 0..16 {
            network.flow(0, flow, interval, MS * 3_000);
        }
        network.run(MS * 1_000);
        let before = network.delivered[1].len();
        network.run(MS * 2_000);
        let carried = (network.delivered[1].len() - before) as f64 * 1_068.0 / 2.0;
        assert!(
            carried >= 0.93 * capacity,
            "{carried} of {capacity}, {rate} {delay}"
        );
    }
}

/// A fast path, and a slower one that many flows use in addition.
fn many_flows() -> Network {
    let first = Wire {
        rate: 3e6,
        delay: MS * 10,
        ..Wire::default()
    };
    let second = Wire {
        rate: 8e5,
        delay: MS * 40,
        ..Wire::default()
    };
    Network::new(27, vec![[first; 2], [second; 2]], false)
}

#[test]
fn a_start_with_pauses_ends_at_the_delivery_rate() {
    let mut network = many_flows();
    for burst in 0..30 {
        network.run(MS * (1_000 * u64::from(burst == 0)));
        for flow in 0..100 {
            network.flow(0, flow, MS, MS * 6);
        }
        network.run(MS * 200);
    }
    let rate = network.stats(0).paths[1].rate;
    assert!(rate <= 2.0 * 8e5, "{rate} octets a second");
}

/// Delays are measured between arrivals, however long a datagram waits for the host's processor.
#[test]
fn a_busy_processor_does_not_count_as_path_delay() {
    let first = Wire {
        rate: 3e6,
        delay: MS * 10,
        ..Wire::default()
    };
    let second = Wire {
        delay: MS * 30,
        ..first
    };
    for (wait, share) in [(5, 0.9), (15, 0.85), (30, 0.8)] {
        let mut network = Network::new(22, vec![[first; 2], [second; 2]], false);
        network.busy(0, MS * wait);
        network.busy(1, MS * (wait + 1));
        let interval = Duration::from_secs_f64(16.0 * 1_000.0 / 6.6e6);
        for flow in 0..16 {
            network.flow(0, flow, interval, MS * 5_000);
        }
        network.run(MS * 2_000);
        let before = network.delivered[1].len();
        network.run(MS * 3_000);
        let carried = (network.delivered[1].len() - before) as f64 * 1_068.0 / 3.0;
        assert!(carried >= share * 6e6, "{carried} with waits of {wait} ms");
        let stats = network.stats(0);
        assert!(stats.paths.iter().all(|path| path.deaths == 0), "{stats:?}");
    }
}

#[test]
fn the_tunnel_recovers_from_a_sleep_of_any_length() {
    for seconds in [1, 100, 125, 200, 3_600, 100_000] {
        let mut network = Network::new(23, two(), false);
        network.run(MS * 2_000);
        network.now = network.now + Duration::from_secs(seconds);
        let since = network.now;
        network.flow(0, 1, MS * 10, MS * 2_000);
        network.flow(1, 2, MS * 10, MS * 2_000);
        network.run(MS * 3_000);
        for end in [0, 1] {
            let first = network.delivered[end].first().expect("a packet").at;
            assert!(
                first.saturating_since(since) <= MS * 1_000,
                "{seconds} s, end {end}"
            );
            assert!(network.check_once(end) >= 150);
        }
    }
}

#[test]
fn late_datagrams_from_old_addresses_do_not_move_the_path() {
    let mut network = busy(24);
    // Datagrams that are delayed, and arrive after later ones.
    kill(&mut network, 0, &[0], true);
    let before = network.recorded.len();
    network.run(MS * 30);
    let is_data = |(to, path, octets): &&(End, u8, Vec<u8>)| (*to, *path, octets[0]) == (1, 0, 4);
    let held: Vec<_> = network.recorded[before..]
        .iter()
        .filter(is_data)
        .cloned()
        .collect();
    assert!(!held.is_empty());
    kill(&mut network, 0, &[0], false);
    network.run(MS * 1_000);
    network.ports[0][0] += 1;
    for (to, path, octets) in held {
        network.inject(to, path, octets);
    }
    network.run(Duration::from_nanos(1));
    network.ports[0][0] -= 1;
    network.run(MS * 100);
    assert_eq!(network.stats(1).paths[0].roamed, 0);
}

#[test]
fn a_burst_avoids_a_path_that_delivers_it_later() {
    let far = Wire {
        delay: MS * 300,
        ..Wire::default()
    };
    let mut network = Network::new(25, vec![[Wire::default(); 2], [far; 2]], false);
    network.run(MS * 3_000);
    let since = network.now;
    for flow in 0..40 {
        network.flow(0, flow, MS * 500, MS * 2_000);
    }
    network.run(MS * 2_500);
    assert_eq!(network.check_once(1), 160);
    for packet in &network.delivered[1] {
        let sent = since + MS * 500 * u64::from(packet.number);
        let took = packet.at.saturating_since(sent);
        assert!(
            took <= MS * 100,
            "{packet:?} took {} ms",
            took.as_millis_f64()
        );
    }
}

#[test]
fn a_dead_path_is_tried_at_its_configured_address() {
    let mut network = busy(26);
    let ports = network.ports[1].clone();
    for port in &mut network.ports[1] {
        *port += 100;
    }
    network.run(MS * 1_000);
    assert_eq!(network.stats(0).paths[0].roamed, 1);
    // It restarts at its former address, without state of the other end.
    network.ports[1] = ports;
    network.restart(1);
    let since = network.now;
    network.run(MS * 2_000);
    assert!(network.gap(1, since) <= MS * 1_000 && network.gap(0, since) <= MS * 1_000);
}
