//! DualPI2 on scripted arrivals, against the equations of RFC 9332.

use anabranch_core::{
    packet::Ecn,
    units::{Duration, Instant, Rate, text::Limit},
};
use anabranch_path::queue::{
    Config, Discipline, QueueParams,
    bounded::BurstTime,
    dualpi2::{Params, Scheduler},
};

use crate::queue::support::{Bench, Fate, Op};

/// A packet of 1,500 bytes takes 1.2 ms.
const RATE: Rate = Rate::from_mbit_per_s(10);

fn roomy() -> Params {
    Params {
        limit: Limit::Unlimited,
        ..Params::default()
    }
}

fn bench(params: Params) -> Bench {
    Bench::of(&Config::Dualpi2(params), Some(RATE))
}

fn packet(gap: Duration, connection: u32, ecn: Ecn) -> Op {
    Op::Arrive {
        gap,
        size: 1500,
        connection,
        ecn,
    }
}

fn base(bench: &Bench) -> f64 {
    let Discipline::Dualpi2(queue) = &bench.queue else {
        panic!("another queue")
    };
    queue.base_probability()
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

#[test]
fn l4s_packets_overtake_classic_packets() {
    for (ecn, first) in [
        (Ecn::Ect1, true),
        (Ecn::Ce, true),
        (Ecn::Ect0, false),
        (Ecn::NotEct, false),
    ] {
        let mut script: Vec<Op> = (0..5)
            .map(|_| packet(Duration::ZERO, 0, Ecn::NotEct))
            .collect();
        script.push(packet(Duration::ZERO, 1, ecn));
        let fates = bench(roomy()).run(&script).expect("the laws hold");
        // The first is in transmission when the last arrives.
        let behind = fates[..5].iter().filter(|other| other.sent > fates[5].sent);
        assert_eq!(behind.count(), if first { 4 } else { 0 }, "{ecn:?}");
    }
}

/// RFC 9332 appendix A.1 with the constants as printed there, for the arrivals of a queue without
/// departures.
#[test]
fn the_base_probability_follows_the_pi_controller() {
    let mut bench = Bench::of(&Config::Dualpi2(roomy()), Rate::new(1));
    // The first is in transmission for ever; the second is the head.
    bench
        .step(packet(Duration::ZERO, 0, Ecn::NotEct))
        .expect("a law");
    bench.step(packet(ms(4), 0, Ecn::NotEct)).expect("a law");
    let (mut expected, mut prevq) = (0.0_f64, 0.0);
    for k in 1..=12_u32 {
        let curq = f64::from(15 * k - 4) / 1000.0;
        expected = (expected + 0.15 * (curq - 0.015) + 3.0 * (curq - prevq)).clamp(0.0, 1.0);
        prevq = curq;
        let gap = if k == 1 { ms(11) } else { ms(15) };
        bench.step(packet(gap, 0, Ecn::NotEct)).expect("a law");
        assert!((base(&bench) - expected).abs() < 1e-9, "{k}: {expected}");
    }
    assert!(expected > 0.4, "{expected}");
}

/// A steady load of both kinds, to measure the shares marked or dropped.
fn steady(params: Params, seconds: u64) -> (Vec<Fate>, Vec<(Instant, f64)>) {
    let mut bench = bench(params);
    let mut log = Vec::new();
    let mut at = Instant::START;
    // 5 % above the capacity, half of each kind.
    for k in 0.. {
        let gap = us(1_143);
        at = at + gap;
        if at > Instant::from_millis(1000 * seconds) {
            break;
        }
        let ecn = if k % 2 == 0 { Ecn::NotEct } else { Ecn::Ect1 };
        bench.step(packet(gap, k % 2, ecn)).expect("a law");
        log.push((at, base(&bench)));
    }
    (bench.fates.clone(), log)
}

/// RFC 9332 §2.1: p_C = p'² and p_CL = k p', over windows in which p' moves little.
#[test]
fn classic_drops_follow_the_square_of_the_base_probability() {
    for derandomize in [true, false] {
        let params = Params {
            derandomize,
            // Disables the ramp.
            l4s_threshold: anabranch_path::queue::bounded::ControlTime::from_millis(10_000),
            ..roomy()
        };
        let (fates, log) = steady(params, 20);
        let mean = |of: &dyn Fn(f64) -> f64, connection: u32| -> (f64, f64, f64) {
            let (mut marked, mut expected, mut count) = (0.0, 0.0, 0.0);
            for fate in &fates {
                let Some(sent) = fate.sent.or(fate.dropped) else {
                    continue;
                };
                let at = log.partition_point(|(at, _)| *at <= sent);
                let base = log[at.saturating_sub(1)].1;
                if fate.connection == connection && 2.0 * base < 0.9 {
                    marked += f64::from(u8::from(fate.marked || fate.dropped.is_some()));
                    expected += of(base);
                    count += 1.0;
                }
            }
            (marked, expected, count)
        };
        let (marked, expected, _) = mean(&|base| base * base, 0);
        assert!(expected > 20.0, "{expected}");
        let spread = if derandomize {
            2.0
        } else {
            5.0 * expected.sqrt()
        };
        assert!(
            (marked - expected).abs() <= spread,
            "C: {marked} of {expected}"
        );
        let (marked, expected, _) = mean(&|base| 2.0 * base, 1);
        assert!(expected > 100.0, "{expected}");
        let spread = if derandomize {
            4.0
        } else {
            5.0 * expected.sqrt()
        };
        assert!(
            (marked - expected).abs() <= spread,
            "L: {marked} of {expected}"
        );
    }
}

/// The ramp of RFC 9332 appendix A.1: no mark below 800 µs, all packets above 1.2 ms, half in the
/// middle; with a range of zero it is a step.
#[test]
fn the_l_queue_marks_by_its_own_delay() {
    // Three at once: the first passes; the second leaves after one packet time, with another still
    // waiting.
    let marked = |packet_us: u64, range: BurstTime| -> bool {
        let size = u32::try_from(packet_us * 10 / 8).expect("small");
        let arrival = Op::Arrive {
            gap: Duration::ZERO,
            size,
            connection: 0,
            ecn: Ecn::Ect1,
        };
        let params = Params {
            l4s_range: range,
            ..roomy()
        };
        let script = vec![arrival; 3];
        let fates = bench(params).run(&script).expect("the laws hold");
        // The last packet has none after it, so it is not marked, whatever its delay.
        assert!(!fates[2].marked);
        fates[1].marked
    };
    let ramp = Params::default().l4s_range;
    assert!(!marked(800, ramp));
    assert!(marked(1_240, ramp));
    assert!(!marked(800, BurstTime::from_micros(0)));
    assert!(marked(808, BurstTime::from_micros(0)));
}

/// If p_CL has reached 1, ECN-capable packets of both queues are dropped (RFC 9332 appendix A.2).
#[test]
fn overload_drops_ecn_capable_packets() {
    let mut bench = bench(roomy());
    for k in 0..6_000_u32 {
        // Unresponsive, twice the rate.
        let ecn = if k % 2 == 0 { Ecn::Ect0 } else { Ecn::Ect1 };
        bench.step(packet(us(600), k % 2, ecn)).expect("a law");
    }
    assert!(base(&bench) > 0.5, "{}", base(&bench));
    for connection in [0, 1] {
        let of = |fate: &&Fate| fate.connection == connection;
        let dropped = bench
            .fates
            .iter()
            .filter(of)
            .filter(|f| f.dropped.is_some());
        assert!(dropped.count() > 500, "{connection}");
    }
}

/// Share of the bytes sent by the C queue while both queues are backlogged.
fn classic_share_of(scheduler: Scheduler, share: f64) -> f64 {
    let mut bench = bench(Params {
        scheduler,
        classic_share: anabranch_core::units::Fraction::new(share),
        // No drops: the controller has no gain.
        alpha: anabranch_path::queue::bounded::Hertz::new(0.0),
        beta: anabranch_path::queue::bounded::Hertz::new(0.0),
        ..roomy()
    });
    for k in 0..4_000_u32 {
        let ecn = if k % 2 == 0 { Ecn::NotEct } else { Ecn::Ect1 };
        bench.step(packet(us(100), k % 2, ecn)).expect("a law");
    }
    let sent = |connection: u32| {
        let all = bench.fates.iter().filter(|f| f.connection == connection);
        let at_work = Instant::from_millis(400);
        all.filter(|f| f.sent.is_some_and(|at| at < at_work))
            .count() as f64
    };
    sent(0) / (sent(0) + sent(1))
}

#[test]
fn the_weighted_scheduler_keeps_a_share_for_classic() {
    for share in [0.0, 0.1, 0.25, 0.5] {
        let measured = classic_share_of(Scheduler::Weighted, share);
        assert!((measured - share).abs() < 0.02, "{share}: {measured}");
    }
}

/// Each kind arrives every 200 µs. In 400 ms 333 packets leave: the packets of the L queue that
/// arrived up to a time `a`, and the packets of the C queue that arrived up to 30 ms earlier. So 2
/// `a` is 333 · 200 µs + 30 ms.
#[test]
fn the_time_shifted_scheduler_favours_by_a_delay() {
    let measured = classic_share_of(Scheduler::TimeShifted, 0.1);
    let both = 333.0 * 0.2;
    let expected = f64::midpoint(both, -30.0) / both;
    assert!((measured - expected).abs() < 0.01, "{measured}: {expected}");
}

#[test]
fn a_long_pause_resets_the_base_probability() {
    let mut bench = bench(roomy());
    for _ in 0..600 {
        bench.step(packet(us(600), 0, Ecn::NotEct)).expect("a law");
    }
    assert!(base(&bench) > 0.01);
    bench
        .step(packet(Duration::from_secs(1_000_000), 0, Ecn::NotEct))
        .expect("a law");
    assert!(base(&bench).abs() < 1e-12, "{}", base(&bench));
    assert!(!Params::default().is_fifo());
}
