//! Classes of packets and roles of paths.

use super::network::{Network, Wire, packet, path};
use anabranch_core::units::Duration;
use anabranch_gateway::{
    inner::{Prefix, read},
    path::State,
    policy::{Class, Match, Role, Rule},
};
use proptest::prelude::*;

const MS: Duration = Duration::from_millis(1);
/// Expedited forwarding (RFC 3246).
const EF: u8 = 46;

fn wire(delay: u64, rate: f64) -> [Wire; 2] {
    [Wire {
        delay: MS * delay,
        rate,
        ..Wire::default()
    }; 2]
}

fn rule(class: Class) -> Rule {
    let matches = Match {
        dscp: vec![EF],
        ..Match::default()
    };
    Rule { matches, class }
}

/// A network whose flow 1 is of this class; other flows are bulk.
fn network(seed: u64, wires: Vec<[Wire; 2]>, class: Class) -> Network {
    let mut network = Network::new(seed, wires, false);
    network.rules(vec![rule(class)]);
    network.dscp.insert(1, EF);
    network.run(MS * 2_000);
    network
}

/// The longest delay of a packet of a flow that sends every `interval` from `since` on.
fn longest(
    network: &Network,
    flow: u16,
    since: anabranch_gateway::time::Instant,
    interval: Duration,
) -> Duration {
    let of_flow = network.delivered[1]
        .iter()
        .filter(|packet| packet.flow == flow);
    let took = of_flow.map(|packet| {
        let sent = since + interval * u64::from(packet.number);
        packet.at.saturating_since(sent)
    });
    took.max().unwrap_or(Duration::ZERO)
}

#[test]
fn an_interactive_packet_overtakes_the_bulk_queue() {
    let mut network = network(1, vec![wire(10, 1e6), wire(30, 1e6)], Class::Interactive);
    for flow in 2..10 {
        network.flow(0, flow, MS * 3, MS * 6_000);
    }
    network.run(MS * 2_000);
    let since = network.now;
    network.flow(0, 1, MS * 20, MS * 2_000);
    network.run(MS * 3_000);
    let took = longest(&network, 1, since, MS * 20);
    // 30 ms of the slower path and the queue that bulk keeps in the path; bulk itself waits much
    // longer.
    assert!(took <= MS * 80, "{} ms", took.as_millis_f64());
}

#[test]
fn a_call_loses_nothing_when_one_cheap_path_dies() {
    for phase in 0..20 {
        for dies in [0, 1] {
            let mut network = network(
                phase,
                vec![wire(20, 12.5e6), wire(35, 12.5e6)],
                Class::Interactive,
            );
            network.flow(0, 1, MS * 20, MS * 3_000);
            network.run(MS * 1_000 + Duration::from_micros(1_700) * phase);
            for wire in &mut network.wires[dies] {
                wire.is_dead = true;
            }
            network.run(MS * 3_000);
            assert_eq!(network.check_once(1), 150);
            let times = network.delivered[1].iter().map(|packet| packet.at);
            let gap = times
                .clone()
                .zip(times.skip(1))
                .map(|(before, after)| after.saturating_since(before))
                .max();
            assert!(gap <= Some(MS * 60), "{gap:?}");
        }
    }
}

#[test]
fn calls_lose_only_packets_lost_on_both_paths() {
    let lossy = |delay| {
        [Wire {
            loss: 0.05,
            ..wire(delay, 12.5e6)[0]
        }; 2]
    };
    let mut network = network(2, vec![lossy(20), lossy(35)], Class::Interactive);
    network.flow(0, 1, MS * 20, MS * 40_000);
    let since = network.now;
    network.run(MS * 42_000);
    assert!(
        network.check_once(1) >= 1_998,
        "{} of 2000",
        network.check_once(1)
    );
    let in_time = network.delivered[1]
        .iter()
        .filter(|packet| {
            packet
                .at
                .saturating_since(since + MS * 20 * u64::from(packet.number))
                <= MS * 60
        })
        .count();
    // Both paths lose 5 of 2,000 on average, and at most 13 in 999 of 1,000 cases (Poisson). Each
    // is retransmitted a round trip later, and two later packets wait for it.
    assert!(in_time >= 2_000 - 3 * 13, "{in_time} of 2000 within 60 ms");
}

#[test]
fn heavy_interactive_traffic_is_not_duplicated() {
    let mut network = network(3, vec![wire(10, 1e6), wire(30, 1e6)], Class::Interactive);
    network.flow(0, 1, MS * 2, MS * 4_000);
    network.run(MS * 5_000);
    let copies = network.stats(0).counters.copies;
    assert!(copies <= 200, "{copies} copies of 2000 packets");
    assert_eq!(network.check_once(1), 2_000);
}

#[test]
fn a_spare_path_gets_no_copies_and_few_probes() {
    let ends = [&[0][..], &[0, 1]].into_iter();
    let roles = [Role::Overflow, Role::Backup, Role::Metered];
    for (ends, role) in ends.flat_map(|ends| roles.map(|role| (ends, role))) {
        let mut network = Network::new(4, vec![wire(30, 12.5e6), wire(10, 12.5e6)], false);
        network.role(ends, 1, role);
        network.rules(vec![rule(Class::Interactive)]);
        network.dscp.insert(1, EF);
        network.run(MS * 3_000);
        network.flow(0, 1, MS * 20, MS * 20_000);
        network.flow(1, 2, MS * 2, MS * 20_000);
        let before = [0, 1].map(|end| network.datagrams[end][&1]);
        network.run(MS * 20_000);
        for end in [0, 1] {
            assert_eq!(network.stats(end).paths[1].state, State::Standby);
            let datagrams = network.datagrams[end][&1] - before[end];
            assert!(datagrams <= 4, "end {end}: {datagrams} in 20 s");
        }
        // It carries all traffic if no other path delivers.
        let since = network.now;
        network.flow(0, 1, MS * 20, MS * 3_000);
        for wire in &mut network.wires[0] {
            wire.is_dead = true;
        }
        network.run(MS * 2_500);
        let gap = network.gap(1, since);
        assert!(gap <= MS * 300, "{} ms", gap.as_millis_f64());
    }
}

/// Octets of both directions in an hour that a second path of this role carries, with 48 octets of
/// IPv6 and UDP below each datagram, beside a first path with little traffic. `is_dead`: the second
/// path delivers nothing.
fn octets_in_an_hour(role: Role, is_dead: bool) -> usize {
    let mut network = Network::new(9, vec![wire(15, 12.5e6), wire(30, 12.5e6)], false);
    network.role(&[0], 1, role);
    network.run(MS * 5_000);
    for wire in &mut network.wires[1] {
        wire.is_dead = is_dead;
    }
    let before = network.datagrams.clone();
    network.run(MS * 30_000);
    network.recorded.clear();
    network.flow(0, 1, MS * 1_000, MS * 3_600_000);
    network.run(MS * 3_600_000);
    assert!(network.datagrams != before);
    let on_path = network.recorded.iter().filter(|(_, path, _)| *path == 1);
    on_path.map(|(_, _, octets)| octets.len() + 48).sum()
}

/// 50 MB a month, also of a path that is dead.
#[test]
fn a_spare_path_carries_at_most_50_mb_a_month() {
    check_month(&[
        (Role::Overflow, false),
        (Role::Backup, true),
        (Role::Metered, false),
    ]);
}

#[test]
#[ignore = "many cases: make test-cases"]
fn a_spare_path_carries_at_most_50_mb_a_month_in_many_cases() {
    check_month(&[
        (Role::Overflow, true),
        (Role::Backup, false),
        (Role::Metered, true),
    ]);
}

fn check_month(cases: &[(Role, bool)]) {
    const HOURS: usize = 30 * 24;
    for &(role, is_dead) in cases {
        let month = octets_in_an_hour(role, is_dead) * HOURS;
        assert!(month <= 50_000_000, "{role:?}, dead {is_dead}: {month}");
    }
}

/// The octets of both directions in an hour that a second path of this role carries while the other
/// end is absent, after two minutes of its absence.
fn octets_without_an_answer(role: Role, had_session: bool) -> usize {
    let mut network = Network::new(9, vec![wire(15, 12.5e6), wire(30, 12.5e6)], false);
    network.role(&[0], 1, role);
    if had_session {
        network.run(MS * 5_000);
    }
    for wire in network.wires.iter_mut().flatten() {
        wire.is_dead = true;
    }
    // The session ends after 260 s.
    network.run(MS * 400_000);
    network.recorded.clear();
    network.run(MS * 3_600_000);
    let on = |number| {
        let of_path = network
            .recorded
            .iter()
            .filter(move |(_, path, _)| *path == number);
        of_path
            .map(|(_, _, octets)| octets.len() + 48)
            .sum::<usize>()
    };
    // The active path is tried four times a second.
    assert!(on(0) > 2_000_000, "{}", on(0));
    on(1)
}

/// 50 MB a month, also without a session.
#[test]
fn a_held_path_carries_few_handshakes_while_the_other_end_is_absent() {
    const HOURS: usize = 30 * 24;
    for role in [Role::Overflow, Role::Backup, Role::Metered] {
        for had_session in [false, true] {
            let month = octets_without_an_answer(role, had_session) * HOURS;
            assert!(month <= 50_000_000, "{role:?}: {month}");
            assert!(month > 0, "{role:?}");
        }
    }
}

/// The first ten seconds, and again when the better path's carrier is gone.
#[test]
fn a_held_path_brings_the_tunnel_up_alone() {
    let mut network = Network::new(9, vec![wire(15, 12.5e6), wire(30, 12.5e6)], false);
    network.role(&[0], 1, Role::Metered);
    for wire in &mut network.wires[0] {
        wire.is_dead = true;
    }
    network.run(MS * 1_000);
    assert_eq!(network.stats(0).sessions, 1);

    for loses_carrier in [false, true] {
        let mut network = Network::new(10, vec![wire(15, 12.5e6), wire(30, 12.5e6)], false);
        network.role(&[0], 1, Role::Metered);
        for wire in network.wires.iter_mut().flatten() {
            wire.is_dead = true;
        }
        network.run(MS * 600_000);
        for wire in &mut network.wires[1] {
            wire.is_dead = false;
        }
        if loses_carrier {
            network.lose_carrier(0, 0);
        }
        // An initiation each 30 s, or four a second.
        network.run(MS * if loses_carrier { 1_000 } else { 31_000 });
        assert_eq!(network.stats(0).sessions, 1, "{loses_carrier}");
    }
}

#[test]
fn an_overflow_path_relieves_active_ones_that_are_full() {
    let mut network = Network::new(10, vec![wire(10, 1e6), wire(20, 1e6)], false);
    network.role(&[0], 1, Role::Overflow);
    network.run(MS * 3_000);
    let count = |network: &Network| network.datagrams[0][&1];
    // Half of the rate of the active path.
    let before = count(&network);
    network.flow(0, 1, MS * 2, MS * 5_000);
    network.run(MS * 5_000);
    assert!(count(&network) - before <= 4);
    // One and a half of it: 15,000 packets in 10 s.
    let (before, delivered) = (count(&network), network.delivered[1].len());
    let interval = MS * 2 / 3;
    network.flow(0, 2, interval, MS * 10_000);
    network.run(MS * 10_000);
    let relieved = count(&network) - before;
    assert!(relieved >= 3_000, "{relieved} of 15000 packets");
    let delivered = network.delivered[1].len() - delivered;
    assert!(delivered >= 13_500, "{delivered} of 15000 packets");
    // Afterwards it is spare again.
    network.run(MS * 3_000);
    let before = count(&network);
    network.flow(0, 1, MS * 2, MS * 5_000);
    network.run(MS * 5_000);
    assert!(count(&network) - before <= 4);
}

/// The path with the lower delay has the role that is used later.
#[test]
fn roles_are_used_in_their_order() {
    for (later, sooner) in [
        (Role::Metered, Role::Backup),
        (Role::Backup, Role::Overflow),
    ] {
        let wires = vec![wire(10, 12.5e6), wire(5, 12.5e6), wire(60, 12.5e6)];
        let mut network = Network::new(5, wires, false);
        network.role(&[0], 1, later);
        network.role(&[0], 2, sooner);
        network.run(MS * 3_000);
        for wire in &mut network.wires[0] {
            wire.is_dead = true;
        }
        network.run(MS * 2_000);
        let before = [1, 2].map(|path| network.datagrams[0][&path]);
        network.flow(0, 1, MS * 5, MS * 2_000);
        network.run(MS * 2_000);
        let after = [1, 2].map(|path| network.datagrams[0][&path]);
        assert!(
            after[0] - before[0] <= 5 && after[1] - before[1] >= 400,
            "{later:?} {sooner:?}"
        );
    }
}

/// As at a data cap: one end changes the role, and both obey it.
#[test]
fn a_role_changes_while_the_tunnel_is_up() {
    let mut network = Network::new(12, vec![wire(10, 12.5e6), wire(10, 12.5e6)], false);
    network.run(MS * 2_000);
    let now = network.now;
    network.tunnel(0).set_role(path(1), Role::Metered, now);
    network.run(MS * 1_000);
    for end in [0, 1] {
        assert_eq!(network.stats(end).paths[1].state, State::Standby);
        let before = network.datagrams[end][&1];
        network.flow(end, 1, MS, MS * 3_000);
        network.run(MS * 3_000);
        assert!(network.datagrams[end][&1] - before <= 2, "end {end}");
    }
    let now = network.now;
    network.tunnel(0).set_role(path(1), Role::Active, now);
    network.run(MS * 11_000);
    for end in [0, 1] {
        assert_eq!(network.stats(end).paths[1].state, State::Active);
    }
    assert_eq!(network.stats(0).sessions, 1);
}

#[test]
fn a_path_sends_no_faster_than_its_limit() {
    let mut network = Network::new(13, vec![wire(10, 12.5e6)], false);
    network.run(MS * 1_000);
    network.tunnel(0).limit_rate(path(0), Some(2.5e5));
    let before = network.delivered[1].len();
    // 1 MB/s of packets of 1,000 octets.
    network.flow(0, 1, MS, MS * 10_000);
    network.run(MS * 10_000);
    let delivered = network.delivered[1].len() - before;
    assert!(
        (2_000..=2_500).contains(&delivered),
        "{delivered} of 10000 packets"
    );
    assert!(network.stats(0).paths[0].rate <= 2.5e5);
    network.tunnel(0).limit_rate(path(0), None);
    network.run(MS * 1_000);
    let before = network.delivered[1].len();
    network.flow(0, 1, MS, MS * 5_000);
    network.run(MS * 5_000);
    assert!(network.delivered[1].len() - before >= 4_500);
}

#[test]
fn a_pinned_flow_uses_its_path_while_it_is_alive() {
    // Its path is the slower one, which bulk would not choose.
    let mut network = network(
        6,
        vec![wire(10, 1e6), wire(60, 1e6)],
        Class::Pinned(path(1)),
    );
    network.flow(0, 1, MS * 10, MS * 6_000);
    let before = network.datagrams[0][&1];
    network.run(MS * 2_000);
    assert!(network.datagrams[0][&1] - before >= 200);
    let since = network.now;
    for wire in &mut network.wires[1] {
        wire.is_dead = true;
    }
    network.run(MS * 4_500);
    // The flow ends half a second before the run.
    assert!(network.gap(1, since) <= MS * 600);
    assert_eq!(network.check_once(1), 600);
}

#[test]
fn a_pinned_flow_does_not_delay_others() {
    // The pinned load exceeds the capacity of the path.
    let mut network = network(
        7,
        vec![wire(10, 2e6), wire(10, 1e5)],
        Class::Pinned(path(1)),
    );
    network.flow(0, 1, MS * 2, MS * 3_000);
    network.flow(0, 2, MS * 2, MS * 3_000);
    network.run(MS * 4_000);
    let bulk = network.delivered[1]
        .iter()
        .filter(|packet| packet.flow == 2)
        .count();
    assert_eq!(bulk, 1_500);
}

#[test]
fn pinned_and_bulk_share_a_path() {
    let mut network = network(8, vec![wire(10, 1e6)], Class::Pinned(path(0)));
    network.flow(0, 1, MS, MS * 6_000);
    network.flow(0, 2, MS, MS * 6_000);
    network.run(MS * 6_000);
    let count = |flow| {
        network.delivered[1]
            .iter()
            .filter(|packet| packet.flow == flow)
            .count()
    };
    let (pinned, bulk) = (count(1), count(2));
    assert!(
        pinned * 10 >= bulk * 8 && bulk * 10 >= pinned * 8,
        "{pinned} and {bulk}"
    );
}

#[test]
fn the_first_matching_rule_applies() {
    let prefix = Prefix::new([10, 0, 1, 0].into(), 24).expect("no bits beyond");
    let mut sent = packet(0, 443, 0, 100);
    sent[22..24].copy_from_slice(&53_u16.to_be_bytes());
    let summary = read(&sent).expect("a packet");
    let fits = |dscp: &[u8], ports: &[(u16, u16)], prefixes: &[Prefix]| {
        let matches = Match {
            dscp: dscp.to_vec(),
            ports: ports.iter().map(|&(first, last)| first..=last).collect(),
            prefixes: prefixes.to_vec(),
        };
        matches.fits(&summary)
    };
    assert!(fits(&[], &[], &[]));
    assert!(fits(&[0], &[(443, 443)], &[prefix]));
    assert!(fits(&[], &[(1, 2), (50, 60)], &[]));
    assert!(!fits(&[EF], &[(443, 443)], &[prefix]));
    assert!(!fits(&[], &[(444, 500)], &[]));
    let other = Prefix::new([10, 9, 0, 0].into(), 16).expect("no bits beyond");
    assert!(!fits(&[], &[], &[other]));
}

proptest! {
    #[test]
    fn code_points_of_both_families_are_read(dscp in 0_u8..64, low in 0_u8..4) {
        let mut v4 = packet(0, 1, 0, 60);
        v4[1] = dscp << 2 | low;
        prop_assert_eq!(read(&v4).map(|summary| summary.dscp), Some(dscp));
        let mut v6 = vec![0; 60];
        v6[0] = 0x60 | dscp >> 2;
        v6[1] = dscp << 6 | low << 4;
        v6[5] = 20;
        prop_assert_eq!(read(&v6).map(|summary| summary.dscp), Some(dscp));
    }
}

/// A path of the better role that loses half of its packets, reports among them, and a spare path
/// without loss. Reports take the spare path, too, if the other one does not deliver them; else an
/// end would take all paths for dead, and send nothing.
#[test]
fn a_lossy_path_does_not_hide_that_a_spare_path_delivers() {
    for seed in 0..8 {
        let clean = Wire::default();
        let lossy = Wire {
            loss: 0.5,
            jitter: MS * 36,
            ..clean
        };
        let mut network = Network::new(seed, vec![[lossy; 2], [clean; 2]], true);
        network.role(&[0, 1], 1, Role::Backup);
        for (from, flow) in [(0, 1), (1, 2)] {
            network.flow(from, flow, MS * 20, MS * 20_000);
        }
        network.run(MS * 1_000);
        for _ in 0..950 {
            network.run(MS * 20);
            for end in [0, 1] {
                let state = network.stats(end).paths[1].state;
                assert!(
                    !matches!(state, State::Dead { .. }),
                    "seed {seed}, end {end}: the path without loss is dead at {:?}",
                    network.now
                );
            }
        }
    }
}
