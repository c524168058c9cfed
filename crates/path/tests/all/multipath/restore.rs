//! Restorers: every packet is released once, in order unless a gap was abandoned, and waiting time
//! and memory are bounded.

use crate::multipath::support;

use anabranch_core::{
    packet::{ConnectionId, PacketId},
    tunnel::{Content, Header},
    units::{Duration, Instant},
};
use anabranch_path::multipath::{
    params::{Memory, Silence, Wait},
    restore::{
        AnyRestore, Arrived, Config, Init, Restore, TcpPlace, adaptive, in_order,
        in_order::Release, timed,
    },
};
use proptest::{
    prelude::*,
    test_runner::{TestCaseError, TestError, TestRunner},
};
use support::{
    Order, Promise, Step, Trial,
    naive::{Fault, Naive},
    run, trials,
};

const WAIT: u64 = 25;
const MEMORY: u64 = 12;

fn promise(order: Order, wait_ms: u64) -> Promise {
    Promise {
        order,
        wait: Duration::from_millis(wait_ms),
        memory: MEMORY,
    }
}

fn timed(memory: u64) -> Config {
    Config::Timed(timed::Params {
        limit: Wait::from_millis(WAIT),
        memory: Memory::packets(memory),
    })
}

fn adaptive(memory: u64) -> Config {
    Config::Adaptive(adaptive::Params {
        limit: Wait::from_millis(WAIT),
        silence: Silence::from_millis(100),
        memory: Memory::packets(memory),
    })
}

fn in_order(memory: u64, release: Release) -> Config {
    Config::InOrder(in_order::Params {
        release,
        silence: Silence::from_millis(WAIT),
        memory: Memory::packets(memory),
    })
}

/// A restorer whose timer does not expire in a trial.
fn patient(release: Release) -> Config {
    Config::InOrder(in_order::Params {
        release,
        silence: Silence::from_millis(10_000),
        memory: Memory::packets(100),
    })
}

fn all() -> [(Config, Promise); 5] {
    [
        (timed(MEMORY), promise(Order::Tunnel, WAIT)),
        (adaptive(MEMORY), promise(Order::Tunnel, WAIT)),
        (adaptive(MEMORY), promise(Order::TunnelOfTcp, WAIT)),
        (in_order(MEMORY, Release::Either), promise(Order::Tcp, WAIT)),
        (in_order(MEMORY, Release::Both), promise(Order::Tcp, WAIT)),
    ]
}

fn build(config: &Config, trial: &Trial) -> AnyRestore {
    config.build(&Init {
        routes: trial.routes,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_restorer_keeps_its_promise(trial in trials()) {
        for (config, promise) in all() {
            let outcome = run(&trial, build(&config, &trial), promise);
            prop_assert!(outcome.is_ok(), "{}: {}", config.name(), outcome.unwrap_err());
        }
    }
}

/// Runs until a trial detects this wrong restorer; `None` if none does.
fn found_out(fault: Fault) -> Option<String> {
    let mut runner = TestRunner::deterministic();
    let result = runner.run(&trials(), |trial| {
        let limit = Duration::from_millis(WAIT);
        let memory = usize::try_from(MEMORY).expect("small");
        let naive = AnyRestore::Boxed(Box::new(Naive::new(fault, limit, memory)));
        match run(&trial, naive, promise(Order::Tunnel, WAIT)) {
            Ok(_) => Ok(()),
            Err(why) => Err(TestCaseError::fail(why)),
        }
    });
    match result {
        Ok(()) => None,
        Err(TestError::Fail(why, _)) => Some(why.message().to_owned()),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn wrong_restorers_are_detected() {
    assert_eq!(found_out(Fault::None), None);
    for (fault, why) in [
        (Fault::Hasty, "overtakes"),
        (Fault::OneOrder, "waits"),
        (Fault::Stalls, "left behind"),
        (Fault::Slow, "waited too long"),
        (Fault::Greedy, "packets wait"),
        (Fault::Forgets, "left behind"),
        (Fault::Doubles, "lets each packet go once"),
        (Fault::Silent, "gaps given up"),
    ] {
        let found = found_out(fault).unwrap_or_else(|| panic!("{fault:?} is not found out"));
        assert!(
            found.contains(why) || fault == Fault::OneOrder || fault == Fault::Forgets,
            "{fault:?}: {found}"
        );
    }
}

/// Packets of one flow over two routes in turn. Packets in `lost` are lost, and the second route's
/// delay is longer by `skew`.
fn trial(count: u64, lost: &[u64], skew: u64) -> Trial {
    let step = |k: u64| Step {
        flow: 0,
        len: 40,
        pause: 1_000,
        delay: (!lost.contains(&k)).then_some(0),
        copy: None,
        again: false,
    };
    Trial {
        routes: 2,
        delays: vec![5_000, 5_000 + skew, 0, 0],
        fifo: true,
        steps: (0..count).map(step).collect(),
    }
}

/// The study's second rule: both routes have delivered later packets, so the packet is lost. The
/// wait is far below the timer.
#[test]
fn in_order_gives_up_when_every_route_has_passed_the_gap() {
    let trial = trial(40, &[20], 0);
    let long = patient(Release::Either);
    let promise = Promise {
        memory: 100,
        // The packet after the lost one waits one pause, for the next on the same route.
        ..promise(Order::Tcp, 1)
    };
    let outcome = run(&trial, build(&long, &trial), promise).expect("kept");
    assert_eq!(
        (outcome.report.gaps_given_up, outcome.report.waited),
        (1, 1)
    );
    assert_eq!(outcome.report.released_by_timer, 0);
}

#[test]
fn in_order_waits_for_the_retransmission_with_release_both() {
    // Packet 20 is lost and not retransmitted: all later packets wait for the timer.
    let trial = trial(40, &[20], 0);
    let promise = Promise {
        memory: 100,
        ..promise(Order::Tcp, 10_000)
    };
    let outcome = run(&trial, build(&patient(Release::Both), &trial), promise).expect("kept");
    assert_eq!(outcome.report.gaps_given_up, 1);
    assert!(outcome.report.waited >= 19, "{}", outcome.report.waited);
    assert!(outcome.report.released_by_timer >= 19);
}

/// The missing packet fills the gap, and the waiting packets follow it.
#[test]
fn in_order_continues_when_the_missing_packet_arrives() {
    let mut trial = trial(6, &[], 0);
    // Every other packet arrives long after its neighbours.
    trial.delays = vec![5_000, 400_000, 0, 0];
    let long = patient(Release::Either);
    let promise = promise(Order::Tcp, 395);
    let outcome = run(&trial, build(&long, &trial), promise).expect("kept");
    assert_eq!(outcome.report.gaps_given_up, 0);
    let of_flow = outcome.out.iter().filter(|(_, flow, _)| *flow == 0);
    let order: Vec<u32> = of_flow.map(|(_, _, index)| *index).collect();
    assert_eq!(order, [0, 1, 2, 3, 4, 5, 6]);
}

/// On lossless routes of unequal delay, adaptive restores the order completely and abandons nothing
/// after it has measured.
#[test]
fn adaptive_waits_out_the_skew() {
    let trial = trial(400, &[], 12_000);
    let outcome = run(
        &trial,
        build(&adaptive(100), &trial),
        Promise {
            memory: 100,
            ..promise(Order::Tunnel, WAIT)
        },
    )
    .expect("kept");
    assert_eq!(outcome.report.gaps_given_up, 0);
    assert!(outcome.out.is_sorted_by_key(|out| out.2));
}

/// On routes of equal delay all gaps are losses: both routes pass them within one or two packets,
/// and after a while nothing waits.
#[test]
fn adaptive_does_not_wait_for_lost_packets() {
    let lost: Vec<u64> = (0..2_000).filter(|k| k % 20 == 7).collect();
    let trial = trial(2_000, &lost, 0);
    let outcome = run(
        &trial,
        build(&adaptive(100), &trial),
        Promise {
            memory: 100,
            ..promise(Order::Tunnel, 2)
        },
    )
    .expect("no more than two pauses");
    assert_eq!(outcome.report.gaps_given_up, lost.len() as u64);
    let waited = outcome.report.waited;
    assert!(waited < lost.len() as u64, "{waited}");
}

/// Without adaptation the same skew is too much for a short limit.
#[test]
fn timed_gives_up_at_its_limit() {
    let trial = trial(100, &[], 40_000);
    let outcome = run(
        &trial,
        build(&timed(100), &trial),
        Promise {
            memory: 100,
            ..promise(Order::Tunnel, WAIT)
        },
    )
    .expect("kept");
    assert!(outcome.report.gaps_given_up > 0);
    let longest = outcome.report.p95_wait().expect("some waited");
    assert!(longest >= Duration::from_millis(WAIT - 1), "{longest}");
}

/// A route is dead, and the other end has announced that it abandoned the route: the restorer stops
/// waiting for its packets. Detects a restorer that ignores the notice.
#[test]
fn adaptive_abandons_packets_of_an_abandoned_route() {
    let config = Config::Adaptive(adaptive::Params {
        limit: Wait::from_millis(500),
        ..adaptive::Params::default()
    });
    let mut restore = config.build(&Init { routes: 2 });
    let ms = Instant::from_millis;
    let header = |route: u8, number: u32, route_number: u16, sent_ms: u32| Header {
        route,
        number,
        route_number,
        sent: sent_ms * 1_000,
        kept: true,
        ..Header::default()
    };
    let mut released = Vec::new();
    let arrived = |packet: u32, tunnel: Header| Arrived {
        packet: PacketId(packet),
        size: 1_500,
        connection: ConnectionId(0),
        tunnel,
        tcp: None,
    };
    // Number 1 was sent on route 0, which dies; 2 takes route 1.
    restore.arrive(ms(10), arrived(0, header(0, 0, 0, 0)), &mut released);
    restore.arrive(ms(300), arrived(1, header(1, 2, 0, 290)), &mut released);
    assert_eq!(released, [PacketId(0)]);
    let notice = Header {
        content: Content::GivenUp,
        flow: 0,
        ..header(1, 0, 1, 310)
    };
    restore.pass_over(ms(320), &notice, &mut released);
    assert_eq!(released, [PacketId(0), PacketId(1)]);
    assert_eq!(restore.gaps_given_up(), 1);
    // A route that does not exist, as in a damaged notice.
    let nowhere = Header { flow: 9, ..notice };
    restore.pass_over(ms(330), &nowhere, &mut released);
    assert_eq!(released.len(), 2);
}

/// Late packets are overtaken by one other: the first two packets after a gap are released at once,
/// the third waits. None passes if the other end retransmits losses, or if many packets overtake a
/// late one.
#[test]
fn two_tcp_packets_pass_a_gap_if_few_overtake() {
    let passing = |overtaking: u32, kept: bool| {
        let mut restore = adaptive(100).build(&Init { routes: 1 });
        let mut released = Vec::new();
        let mut clock = 0;
        let mut arrive = |number: u32, released: &mut Vec<PacketId>| {
            clock += 1;
            let tunnel = Header {
                number,
                // Its route does not keep its order.
                route_number: u16::try_from(number).expect("few"),
                sent: number * 1_000,
                kept,
                ..Header::default()
            };
            let tcp = TcpPlace {
                seq: number * 100,
                len: 100,
                opens: false,
                ends: false,
            };
            let packet = Arrived {
                packet: PacketId(number),
                size: 140,
                connection: ConnectionId(0),
                tunnel,
                tcp: Some(tcp),
            };
            restore.arrive(Instant::from_millis(clock), packet, released);
        };
        let mut next = 0;
        for _ in 0..20 {
            for number in (next + 1..=next + overtaking).chain([next]) {
                arrive(number, &mut released);
            }
            next += overtaking + 1;
        }
        released.clear();
        for number in next + 1..next + 4 {
            arrive(number, &mut released);
        }
        let passed: Vec<u32> = released.iter().map(|id| id.0 - next).collect();
        passed
    };
    assert_eq!(passing(1, false), [1, 2]);
    assert_eq!(passing(1, true), [0_u32; 0]);
    assert_eq!(passing(9, false), [0_u32; 0]);
}
