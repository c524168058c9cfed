//! Laws under any sequence of events: each packet at most once, in the order of its flow or counted
//! as late, no nonce twice, bounded memory. Traffic resumes within a second of the last event while
//! one path is alive.

use super::{
    network::{Network, Wire, path},
    states::Watch,
};
use anabranch_core::units::Duration;
use anabranch_gateway::policy::{Class, Match, Role, Rule};
use proptest::prelude::*;

const MS: Duration = Duration::from_millis(1);

#[derive(Debug, Clone, Copy)]
enum Event {
    Dead {
        path: usize,
        direction: usize,
        is_dead: bool,
    },
    Lossy {
        path: usize,
        loss: f64,
    },
    Jitter {
        path: usize,
        ms: u64,
    },
    Duplicate {
        path: usize,
    },
    Corrupt {
        path: usize,
    },
    Small {
        path: usize,
        mtu: usize,
    },
    Slow {
        path: usize,
    },
    NewPort {
        path: usize,
    },
    Hostile {
        end: usize,
        count: usize,
    },
    Restart {
        end: usize,
    },
    Carrier {
        end: usize,
        path: usize,
    },
    Reload {
        end: usize,
        path: usize,
        role: Role,
    },
}

fn role() -> impl Strategy<Value = Role> {
    prop_oneof![
        3 => Just(Role::Active),
        1 => Just(Role::Overflow),
        1 => Just(Role::Backup),
        1 => Just(Role::Metered),
    ]
}

fn event(paths: usize) -> impl Strategy<Value = Event> {
    let path = 0..paths;
    prop_oneof![
        6 => (path.clone(), 0_usize..2, any::<bool>())
            .prop_map(|(path, direction, is_dead)| Event::Dead { path, direction, is_dead }),
        2 => (path.clone(), 0.0..0.5).prop_map(|(path, loss)| Event::Lossy { path, loss }),
        2 => (path.clone(), 0_u64..80).prop_map(|(path, ms)| Event::Jitter { path, ms }),
        1 => path.clone().prop_map(|path| Event::Duplicate { path }),
        1 => path.clone().prop_map(|path| Event::Corrupt { path }),
        1 => (path.clone(), 1_200_usize..1_472).prop_map(|(path, mtu)| Event::Small { path, mtu }),
        1 => path.clone().prop_map(|path| Event::Slow { path }),
        1 => path.clone().prop_map(|path| Event::NewPort { path }),
        2 => (0_usize..2, path.clone()).prop_map(|(end, path)| Event::Carrier { end, path }),
        2 => (0_usize..2, path, role()).prop_map(|(end, path, role)| Event::Reload { end, path, role }),
        2 => (0_usize..2).prop_map(|end| Event::Restart { end }),
        2 => (0_usize..2, 0_usize..400).prop_map(|(end, count)| Event::Hostile { end, count }),
    ]
}

fn rule(paths: u8) -> impl Strategy<Value = Rule> {
    let pinned = (0..paths).prop_map(|number| Class::Pinned(path(number)));
    let class = prop_oneof![Just(Class::Interactive), pinned];
    class.prop_map(|class| Rule {
        matches: Match {
            dscp: vec![46],
            ..Match::default()
        },
        class,
    })
}

fn apply(network: &mut Network, event: Event) {
    let both = |network: &mut Network, path: usize, change: &dyn Fn(&mut Wire)| {
        network.wires[path].iter_mut().for_each(change);
    };
    match event {
        Event::Dead {
            path,
            direction,
            is_dead,
        } => network.wires[path][direction].is_dead = is_dead,
        Event::Lossy { path, loss } => both(network, path, &|wire| wire.loss = loss),
        Event::Jitter { path, ms } => both(network, path, &|wire| wire.jitter = MS * ms),
        Event::Corrupt { path } => both(network, path, &|wire| wire.corrupt = 0.2),
        Event::Duplicate { path } => both(network, path, &|wire| wire.duplicate = 0.3),
        Event::Small { path, mtu } => both(network, path, &|wire| wire.mtu = mtu),
        Event::Slow { path } => both(network, path, &|wire| wire.rate = 3e5),
        // An address translator is in front of the initiating end.
        Event::NewPort { path } => network.ports[0][path] += 100,
        Event::Restart { end } => network.restart(end),
        Event::Carrier { end, path } => {
            network.lose_carrier(end, u8::try_from(path).expect("small"));
        }
        Event::Reload { end, path, role } => {
            network.reload(end, u8::try_from(path).expect("small"), role);
        }
        // Garbage, initiations of unknown senders, and recorded datagrams: whole, truncated and
        // altered.
        Event::Hostile { end, count } => {
            for at in 0..count {
                let mut path = u8::try_from(at % 3).expect("small");
                let mut octets = match at % 4 {
                    0 => network.forged_initiation(u32::try_from(at).expect("small")),
                    1 => vec![u8::try_from(at % 6).expect("small"); at],
                    _ if network.recorded.is_empty() => continue,
                    _ => {
                        // Sent on its original path: from another address, an undelivered datagram
                        // would move the path to that address.
                        let (_, own, octets) = &network.recorded[at * 7 % network.recorded.len()];
                        path = *own;
                        octets.clone()
                    }
                };
                match at % 8 {
                    3 => octets.truncate(at % (octets.len() + 1)),
                    6 => octets
                        .iter_mut()
                        .skip(at % 60)
                        .take(1)
                        .for_each(|octet| *octet ^= 1),
                    _ => {}
                }
                network.inject(end, path, octets);
            }
        }
    }
}

fn check_memory(network: &Network) {
    for end in [0, 1] {
        let stats = network.stats(end);
        assert!(stats.queued <= 2 * 2_048 && stats.waiting <= 4_096);
        assert!(stats.repairing <= 2 * 512 && stats.answering <= 64);
        assert!(stats.buffers <= 2_048 && stats.collected <= 16 * 200);
        assert!(stats.paths.len() <= 16);
        for path in stats.paths {
            assert!(path.outstanding <= 8_192 && path.kept_octets <= 4 << 20);
        }
    }
}

proptest! {
    #![proptest_config(super::cases(48))]

    #[test]
    fn traffic_flows_within_a_second_of_any_events(
        seed in 0_u64..1 << 30,
        both_begin: bool,
        delays in proptest::collection::vec(2_u64..60, 3),
        events in proptest::collection::vec((event(3), 1_u64..900), 0..25),
        alive in 0_usize..3,
        roles in proptest::collection::vec(role(), 3),
        rules in proptest::collection::vec(rule(3), 0..2),
    ) {
        let wire = |&delay: &u64| [Wire { delay: MS * delay, ..Wire::default() }; 2];
        let mut network = Network::new(seed, delays.iter().map(wire).collect(), both_begin);
        network.dscp.insert(1, 46);
        network.rules(rules.clone());
        for (role, path) in roles.iter().zip(0_u8..) {
            network.role(&[0], path, *role);
        }
        network.watch = Some(Watch::default());
        let has_restart = events.iter().any(|(event, _)| matches!(event, Event::Restart { .. }));
        let time: u64 = events.iter().map(|&(_, pause)| pause).sum();
        network.flow(0, 1, MS * 20, MS * (time + 4_000));
        network.flow(1, 2, MS * 20, MS * (time + 4_000));
        for (event, pause) in events {
            apply(&mut network, event);
            network.run(MS * pause);
            check_memory(&network);
        }
        network.wires[alive] = wire(&delays[alive]);
        let since = network.now;
        network.run(MS * 3_500);
        for end in [0, 1] {
            network.check_once(end);
            if !has_restart {
                let late = network.stats(end).order.late;
                prop_assert!(network.out_of_order(end) <= late, "end {}: {} of {}", end, network.out_of_order(end), late);
            }
            let gap = network.gap(end, since);
            prop_assert!(gap <= MS * 1_000, "end {}: {} ms", end, gap.as_millis_f64());
        }
    }
}

/// An end that only answers has no address for a path that was reloaded until data arrives there.
/// Reports about earlier datagrams must not make it an active path, for which metered paths would
/// wait.
#[test]
fn a_path_without_an_address_does_not_silence_the_others() {
    let delays = [2, 30, 15];
    let wires = delays.map(|delay| {
        [Wire {
            delay: MS * delay,
            ..Wire::default()
        }; 2]
    });
    let mut network = Network::new(0, wires.to_vec(), false);
    network.role(&[0], 2, Role::Metered);
    for (from, flow) in [(0, 1), (1, 2)] {
        network.flow(from, flow, MS * 20, MS * 6_000);
    }
    network.run(MS * 25);
    network.wires[1][0].is_dead = true;
    network.run(MS * 1_840);
    network.reload(1, 1, Role::Active);
    network.run(MS);
    network.reload(0, 0, Role::Metered);
    let since = network.now;
    network.run(MS * 3_500);
    for end in [0, 1] {
        let gap = network.gap(end, since);
        assert!(gap <= MS * 300, "end {end}: {} ms", gap.as_millis_f64());
    }
}

/// Both ends begin a session at the same time, then one restarts. The other must accept the session
/// that follows, although it has just begun one itself: the keys of that one are lost.
#[test]
fn a_restart_after_simultaneous_handshakes_leaves_no_long_gap() {
    let delays = [22, 16, 14];
    let wires = delays.map(|delay| {
        [Wire {
            delay: MS * delay,
            ..Wire::default()
        }; 2]
    });
    let mut network = Network::new(762_691_077, wires.to_vec(), true);
    network.role(&[0], 2, Role::Overflow);
    for (from, flow) in [(0, 1), (1, 2)] {
        network.flow(from, flow, MS * 20, MS * 5_000);
    }
    network.wires[2][0].is_dead = true;
    network.run(MS * 3);
    network.ports[0][1] += 100;
    network.run(MS * 128);
    network.wires[0][0].is_dead = true;
    network.run(MS * 73);
    network.restart(0);
    network.run(MS * 573);
    network.lose_carrier(1, 1);
    network.run(MS * 89);
    let since = network.now;
    network.run(MS * 3_500);
    for end in [0, 1] {
        let gap = network.gap(end, since);
        assert!(gap <= MS * 1_000, "end {end}: {} ms", gap.as_millis_f64());
    }
}

/// Little traffic loses its packets in an outage, which is no sign of a slow path.
#[test]
fn the_faster_path_leads_again_after_an_outage_at_rest() {
    for seed in [71, 72, 73] {
        let [fast, slow] = [(10, 2.5e6), (35, 1.25e6)].map(|(delay, rate)| Wire {
            delay: MS * delay,
            rate,
            ..Wire::default()
        });
        let mut network = Network::new(seed, vec![[fast; 2], [slow; 2]], false);
        network.run(MS * 3_000);
        let start = network.now;
        for end in [0, 1] {
            network.flow(end, 1, MS * 50, MS * 20_000);
        }
        network.run(MS * 2_000);
        for is_dead in [true, false] {
            for wire in &mut network.wires[0] {
                wire.is_dead = is_dead;
            }
            network.run(MS * 3_000);
        }
        network.run(MS * 13_000);
        for end in [0, 1] {
            let last = network.delivered[end].last().expect("a packet");
            let took = last
                .at
                .saturating_since(start + MS * 50 * u64::from(last.number));
            assert!(took < MS * 30, "seed {seed}: {} ms", took.as_millis_f64());
        }
    }
}
