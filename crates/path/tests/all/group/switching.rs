//! Laws of link groups: switching loses no packets, flows keep their order, both ends agree on the
//! members, and the states of the ports add up.

use crate::group::support;

use std::collections::BTreeMap;

use anabranch_core::{
    packet::{ConnectionId, Direction, Ecn, FlowId, PacketId},
    units::{Duration, Fraction, Instant, text::Limit},
};
use anabranch_path::{
    group::{
        Members, Spread,
        energy::PowerModel,
        lacp::State,
        members,
        members::{LowPowerIdle, PortPower},
    },
    impair,
    impair::bernoulli_loss,
    link::Window,
    queue::Item,
};
use proptest::prelude::*;
use support::{Rig, Sent, Setup};

fn micros(us: u64) -> Instant {
    Instant::START + Duration::from_micros(us)
}

/// Decisions over 1.2 s, from several per millisecond to rare ones, then more than two seconds
/// without decisions.
fn setup() -> impl Strategy<Value = Setup> {
    let decision = (prop_oneof![1..800_u64, 1..80_000_u64], 1..=6_u32);
    (
        1..=6_u32,
        prop::bool::ANY,
        prop_oneof![Just(0), 1..5_000_u64],
        prop_oneof![Just(0), 1..20_000_u64],
        prop::collection::vec(decision, 1..60),
        prop_oneof![Just(Limit::Unlimited), (1..60_u64).prop_map(Limit::Packets)],
        any::<u64>(),
    )
        .prop_map(|(members, per_flow, delay, wake, steps, limit, seed)| {
            let mut at = 0;
            let mut decisions = Vec::new();
            for (gap, wanted) in steps {
                at += gap;
                decisions.push((micros(at), wanted));
            }
            Setup {
                members,
                spread: if per_flow {
                    Spread::PerFlow
                } else {
                    Spread::PerPacket
                },
                delay: Duration::from_micros(delay),
                wake_time: Duration::from_micros(wake),
                limit,
                decisions,
                end: micros(at + 3_500_000),
                seed,
                ..Setup::default()
            }
        })
}

/// Bursts in both directions, in order of time.
fn traffic() -> impl Strategy<Value = Vec<Sent>> {
    let packet = (0..3_000_u64, 0..2_usize, 0..7_u32, 40..=1_500_u32);
    prop::collection::vec(packet, 0..1_200).prop_map(|packets| {
        let mut at = 0;
        let mut sent = Vec::new();
        for (gap, end, connection, size) in packets {
            // Mostly closer together than one member's transmission time.
            at += if gap > 2_900 { 10 * gap } else { gap / 4 };
            sent.push(Sent {
                at: micros(at),
                end,
                connection: connection * 2 + u32::from(end == 1),
                size,
            });
        }
        sent
    })
}

fn losses(rate: f64) -> Vec<impair::Config> {
    vec![impair::Config::BernoulliLoss(bernoulli_loss::Params {
        rate: Fraction::new(rate),
        max_burst: None,
    })]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Detects a group that puts a port to sleep with a packet to send, sends packets to a sleeping
    /// port, discards packets in line for a member, or sends twice.
    #[test]
    fn switching_loses_no_packets(setup in setup(), sent in traffic()) {
        let mut rig = Rig::new(&setup);
        rig.run(&sent);
        let accounted = rig.arrived.len() as u64 + rig.dropped + rig.in_flight();
        prop_assert_eq!(accounted, sent.len() as u64);
        prop_assert_eq!(rig.missed, 0);
        if setup.limit == Limit::Unlimited {
            prop_assert_eq!(rig.dropped, 0);
        }
        let mut numbers: Vec<u32> = rig.arrived.iter().map(|a| a.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        prop_assert_eq!(numbers.len(), rig.arrived.len(), "each arrives once");
    }

    /// Detects a group that moves a flow while its old member still sends.
    #[test]
    fn per_flow_keeps_the_order_of_each_flow(setup in setup(), sent in traffic()) {
        let setup = Setup { spread: Spread::PerFlow, ..setup };
        let mut rig = Rig::new(&setup);
        rig.run(&sent);
        let mut last: BTreeMap<u32, u32> = BTreeMap::new();
        for arrived in &rig.arrived {
            let before = last.insert(arrived.connection, arrived.number);
            prop_assert!(before.is_none_or(|before| before < arrived.number), "{arrived:?}");
        }
    }

    /// A second after the last decision, both directions have the requested members, and the others
    /// sleep at both ends. Detects an end that misses an announcement.
    #[test]
    fn both_directions_reach_the_same_number(setup in setup(), sent in traffic()) {
        let mut rig = Rig::new(&setup);
        rig.run(&sent);
        let wanted = setup.decisions.last().expect("one at least").1.clamp(1, setup.members);
        check_converged(&rig, &setup, wanted)?;
    }

    /// If a third of all packets and LACPDUs is lost, neither end distributes to more members than
    /// requested after several periods.
    #[test]
    fn lost_announcements_are_repeated(setup in setup(), seed in any::<u64>()) {
        let end = setup.end + Duration::from_secs(60);
        let setup = Setup { impair: losses(0.3), seed, end, ..setup };
        let mut rig = Rig::new(&setup);
        rig.run(&[]);
        prop_assert!(rig.group.counters().lacpdus_sent > 0);
        // Ports that have received nothing for three periods are out of sync until they receive a
        // PDU. The check is therefore limited to a bound that always holds.
        for end in 0..2 {
            let wanted = setup.decisions.last().expect("one at least").1.clamp(1, setup.members);
            let set = rig.members(end).distributing();
            prop_assert_eq!(set & !members::all(wanted), 0, "more than wanted at {}", end);
        }
    }

    /// Detects ports whose states overlap or leave gaps, and energy that is not their sum.
    #[test]
    fn states_add_up_and_energy_is_their_sum(setup in setup(), sent in traffic()) {
        let mut rig = Rig::new(&setup);
        rig.run(&sent);
        let length = setup.end - Instant::START;
        for end in 0..2 {
            let times = rig.members(end).times(setup.end);
            prop_assert_eq!(times.len(), setup.members as usize);
            for (port, times) in times.iter().enumerate() {
                prop_assert_eq!(times.total(), length);
                // Sleeping and waking times, computed again from the recorded power changes.
                let mut in_state = BTreeMap::new();
                let mut since = (Instant::START, PortPower::Awake);
                let own = rig.powers.iter().filter(|(_, e, p, _)| (*e, *p) == (end, port));
                for (at, _, _, power) in own {
                    *in_state.entry(since.1 as u8).or_insert(Duration::ZERO) += *at - since.0;
                    since = (*at, *power);
                }
                *in_state.entry(since.1 as u8).or_insert(Duration::ZERO) += setup.end - since.0;
                let of = |power: PortPower| in_state.get(&(power as u8)).copied().unwrap_or(Duration::ZERO);
                prop_assert_eq!(times.sleeping, of(PortPower::Sleeping));
                prop_assert_eq!(times.waking, of(PortPower::Waking));
                let power = PowerModel::default();
                let joules = 0.5 * (times.active + times.idle + times.waking).as_secs_f64()
                    + 0.05 * times.sleeping.as_secs_f64();
                prop_assert!((power.joules(times) - joules).abs() < 1e-9 * joules.max(1.0));
            }
        }
    }

    /// The underlying invariant, at every event, whatever LACPDUs are lost: no end distributes to a
    /// port whose partner sleeps. Detects an end that takes an old answer for the answer to its
    /// last announcement.
    #[test]
    fn no_end_distributes_while_the_other_sleeps(
        setup in setup(),
        sent in traffic(),
        loss in prop_oneof![Just(0.0), 0.01..0.6],
    ) {
        let setup = Setup { impair: losses(loss), ..setup };
        let mut rig = Rig::new(&setup);
        let mut worst = None;
        rig.run_watched(&sent, &mut |rig| {
            for end in 0..2 {
                for port in 0..rig.members(end).len() {
                    let gives = rig.members(end).distributing() >> port & 1 == 1;
                    let other = rig.members(1 - end).power(port);
                    if gives && other != PortPower::Awake {
                        worst = Some((rig.now, end, port, other));
                    }
                }
            }
        });
        prop_assert_eq!(worst, None);
        prop_assert_eq!(rig.missed, 0);
        let accounted = rig.arrived.len() as u64 + rig.dropped + rig.lost + rig.in_flight();
        prop_assert_eq!(accounted, sent.len() as u64);
    }
}

fn check_converged(rig: &Rig, setup: &Setup, wanted: u32) -> Result<(), TestCaseError> {
    for end in 0..2 {
        prop_assert_eq!(rig.members(end).distributing(), members::all(wanted));
        for port in 0..setup.members as usize {
            let on = port < wanted as usize;
            let power = if on {
                PortPower::Awake
            } else {
                PortPower::Sleeping
            };
            prop_assert_eq!(rig.members(end).power(port), power);
            let state = rig
                .group
                .port(end, port)
                .expect("members are switched")
                .state();
            prop_assert_eq!(state.has(State::DISTRIBUTING), on);
            prop_assert_eq!(state.has(State::COLLECTING), on);
        }
    }
    Ok(())
}

/// The exchange step by step: out takes one round trip, in takes one and a half.
#[test]
fn a_member_leaves_and_comes_back() {
    let setup = Setup {
        members: 2,
        decisions: vec![(Instant::from_millis(10), 1), (Instant::from_millis(50), 2)],
        end: Instant::from_millis(100),
        ..Setup::default()
    };
    let mut rig = Rig::new(&setup);
    let mut seen: Vec<(Instant, [u64; 2])> = Vec::new();
    rig.run_watched(&[], &mut |rig| {
        let now = [0, 1].map(|end| rig.members(end).distributing());
        if seen.last().is_none_or(|(_, last)| *last != now) {
            seen.push((rig.now, now));
        }
    });
    // 110 octets at 10 Mbit/s take 88 µs, plus 700 µs of propagation: 788 µs.
    let one_way = 788;
    let at = |ms: u64, us: u64| Instant::from_millis(ms) + Duration::from_micros(us);
    assert_eq!(
        seen,
        [
            (at(10, 0), [0b01, 0b11]),
            (at(10, one_way), [0b01, 0b01]),
            // 3 ms to wake up; the other end wakes 0.7 ms later, announces that it is ready, and
            // then that it collects.
            (at(50, 3_000 + 700 + 2 * 88 + 700), [0b11, 0b01]),
            (at(50, 3_000 + 700 + 88 + 700 + one_way), [0b11, 0b11]),
        ]
    );
    let powers: Vec<_> = rig
        .powers
        .iter()
        .map(|(at, end, _, power)| (*at, *end, *power))
        .collect();
    assert_eq!(
        powers,
        [
            // The answer has arrived, and the port's own last PDU has left.
            (at(10, 2 * one_way + 88), 0, PortPower::Sleeping),
            (at(10, 2 * one_way + 88 + 700), 1, PortPower::Sleeping),
            (at(50, 0), 0, PortPower::Waking),
            (at(50, 700), 1, PortPower::Waking),
            (at(53, 0), 0, PortPower::Awake),
            (at(53, 700), 1, PortPower::Awake),
        ]
    );
}

/// The current transmission ends before the port sleeps.
#[test]
fn a_member_drains() {
    let setup = Setup {
        members: 2,
        delay: Duration::ZERO,
        decisions: vec![(Instant::from_millis(1), 1)],
        end: Instant::from_millis(20),
        ..Setup::default()
    };
    let mut rig = Rig::new(&setup);
    // 1250 octets at 10 Mbit/s take a millisecond.
    let packet = |us: u64| Sent {
        at: micros(us),
        end: 0,
        connection: 0,
        size: 1_250,
    };
    rig.run(&[packet(500), packet(600), packet(700)]);
    let times: Vec<_> = rig.arrived.iter().map(|a| (a.at, a.member)).collect();
    assert_eq!(
        times,
        [(micros(1_500), 0), (micros(1_600), 1), (micros(2_500), 0)]
    );
    let slept = rig.powers.first().expect("it sleeps");
    assert!(slept.0 > micros(1_600), "{slept:?}");
}

/// By definition: rests after 200 µs, wakes up in 30 µs.
#[test]
fn low_power_idle_delays_a_packet_at_rest() {
    let setup = Setup {
        members: 1,
        delay: Duration::ZERO,
        idle: Some(LowPowerIdle {
            sleep_time: Duration::from_micros(200),
            wake_time: Duration::from_micros(30),
        }),
        end: micros(10_000),
        ..Setup::default()
    };
    let mut rig = Rig::new(&setup);
    let packet = |us: u64| Sent {
        at: micros(us),
        end: 0,
        connection: 0,
        size: 125,
    };
    // 125 octets take 100 µs. Cases: at rest; becoming quiet (until 630); back to back.
    rig.run(&[packet(300), packet(500), packet(760), packet(5_000)]);
    let times: Vec<_> = rig.arrived.iter().map(|a| a.at).collect();
    assert_eq!(
        times,
        [
            micros(300 + 30 + 100),
            micros(430 + 200 + 30 + 100),
            micros(760 + 100),
            micros(5_000 + 30 + 100)
        ]
    );
    let [times] = rig.members(0).times(setup.end)[..] else {
        panic!("one port")
    };
    let us = Duration::from_micros;
    assert_eq!(times.active, us(400));
    assert_eq!(times.waking, us(90));
    // 200 to 300, nothing before 630, 1060 to 5000, 5330 to the end.
    assert_eq!(times.sleeping, us(100 + 3_940 + 4_670));
    assert_eq!(times.total(), us(10_000));
}

/// Two packets of nearly 4 GiB in line: their bytes exceed 32 bits.
#[test]
fn staged_bytes_may_exceed_four_gibibytes() {
    let window = Window::new(Instant::START, micros(1));
    let mut members = Members::new(2, Spread::PerFlow, None, window);
    for number in 0..2 {
        members.stage(
            0,
            Item {
                packet: PacketId(number),
                size: u32::MAX,
                flow: FlowId(0),
                connection: ConnectionId(0),
                arrived: Instant::START,
                ecn: Ecn::NotEct,
                dscp: 0,
                has_data: true,
                direction: Direction::Forward,
                order: number,
            },
        );
    }
    assert_eq!(members.staged(), (2, 2 * u64::from(u32::MAX)));
    members.unstage().expect("the member is idle");
    assert_eq!(members.staged(), (1, u64::from(u32::MAX)));
}
