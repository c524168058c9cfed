//! PIE on scripted arrivals, compared with an independent computation of RFC 8033's equations.

use crate::queue::aqm;

use anabranch_core::{
    packet::Ecn,
    units::{Duration, Fraction, Instant, text::Limit},
};
use anabranch_path::queue::{
    Config, Init, QueueDiscipline,
    bounded::BurstTime,
    pie::{Delay, Params, Pie},
};
use aqm::{Arrival, Event, Fate, Link, a_packet_per_ms, build, ms, packet, us};

fn pie(params: &Params, seed: u64) -> Link<Pie> {
    let init = Init {
        rate: Some(a_packet_per_ms()),
        flows: &[],
        hosts: &[],
    };
    Link::new(Pie::new(params, &init), a_packet_per_ms(), seed)
}

fn roomy() -> Params {
    Params {
        limit: Limit::Unlimited,
        ..Params::default()
    }
}

/// Arrivals at a constant interval, off the grid of updates and departures.
fn steady(from: Instant, to: Instant, every: Duration) -> impl Iterator<Item = Arrival> + Clone {
    let first = from + Duration::from_nanos(70_300);
    (0_u64..)
        .map(move |n| packet(first + every.saturating_mul(n)))
        .take_while(move |arrival| arrival.at < to)
}

/// Light load, twice the capacity, half the capacity, light load again, and a pause.
fn load() -> impl Iterator<Item = Arrival> {
    steady(ms(0), ms(300), Duration::from_micros(1_300))
        .chain(steady(ms(300), ms(1_500), Duration::from_micros(480)))
        .chain(steady(ms(1_500), ms(2_500), Duration::from_micros(1_900)))
        .chain(steady(ms(4_000), ms(5_000), Duration::from_micros(800)))
}

/// State observed after each call of the queue.
#[derive(Debug, Clone, Copy)]
struct Seen {
    at: Instant,
    drop_prob: f64,
    bytes: u64,
}

fn watch(params: &Params, seed: u64) -> (Link<Pie>, Vec<Seen>) {
    let mut link = pie(params, seed);
    let mut log = Vec::new();
    link.run_watched(load(), ms(5_500), |at, queue| {
        log.push(Seen {
            at,
            drop_prob: queue.drop_prob(),
            bytes: queue.bytes(),
        });
    });
    (link, log)
}

/// Deviations from the RFC.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Wrong {
    Nothing,
    NoTuning,
    NoDecay,
    NoCap,
    NoDerivative,
    TwiceTheInterval,
}

/// RFC 8033 §4.2 with the queue's delay at each update, and the default values printed in the RFC.
fn reckon(delay_at: impl Fn(Instant) -> f64, until: Instant, wrong: Wrong) -> Vec<(Instant, f64)> {
    let (mut prob, mut old, mut out) = (0.0_f64, 0.0, Vec::new());
    let step = if wrong == Wrong::TwiceTheInterval {
        30
    } else {
        15
    };
    for k in 1_u64.. {
        let at = ms(k * step);
        if at > until {
            return out;
        }
        let delay = delay_at(at);
        let mut p = 0.125 * (delay - 0.015);
        if wrong != Wrong::NoDerivative {
            p += 1.25 * (delay - old);
        }
        let scale = match prob {
            _ if wrong == Wrong::NoTuning => 1.0,
            x if x < 1e-6 => 2048.0,
            x if x < 1e-5 => 512.0,
            x if x < 1e-4 => 128.0,
            x if x < 1e-3 => 32.0,
            x if x < 1e-2 => 8.0,
            x if x < 1e-1 => 2.0,
            _ => 1.0,
        };
        p /= scale;
        if prob >= 0.1 && p > 0.02 && wrong != Wrong::NoCap {
            p = 0.02;
        }
        prob += p;
        if delay < 0.0075 && old < 0.0075 && wrong != Wrong::NoDecay {
            prob *= 0.98;
        }
        prob = prob.clamp(0.0, 1.0);
        old = delay;
        out.push((at, prob));
    }
    unreachable!("it returns")
}

/// Largest difference between the queue's probability after each update and the computed one.
fn difference(seen: &[Seen], reckoned: &[(Instant, f64)]) -> (f64, usize) {
    let (mut largest, mut points, mut k) = (0.0_f64, 0, None::<usize>);
    for now in seen {
        let due = reckoned.partition_point(|(at, _)| *at <= now.at);
        if due > 0 && k != Some(due) {
            largest = largest.max((reckoned[due - 1].1 - now.drop_prob).abs());
            points += usize::from(now.drop_prob > 0.0);
            k = Some(due);
        }
    }
    (largest, points)
}

/// The last of `seen` before `at`.
fn before(seen: &[Seen], at: Instant) -> Option<&Seen> {
    seen[..seen.partition_point(|seen| seen.at < at)].last()
}

fn check_trajectory(seen: &[Seen], delay_at: &dyn Fn(Instant) -> f64, sensitive: &[Wrong]) {
    let reckon = |wrong| reckon(delay_at, ms(5_500), wrong);
    let (largest, points) = difference(seen, &reckon(Wrong::Nothing));
    assert!(largest < 1e-9, "{largest}");
    assert!(points >= 100, "{points}");
    for &wrong in sensitive {
        let (off, _) = difference(seen, &reckon(wrong));
        assert!(off > 1e-3, "{wrong:?} is not told from the RFC: {off}");
    }
}

#[test]
fn the_probability_follows_the_equations_with_timestamps() {
    let (link, seen) = watch(&roomy(), 1);
    let sent: Vec<Event> = link.with(Fate::Sent).copied().collect();
    let delay_at = |at: Instant| {
        if before(&seen, at).is_none_or(|seen| seen.bytes == 0) {
            return 0.0;
        }
        let last = sent.partition_point(|event| event.at < at);
        sent[last - 1].sojourn.as_secs_f64()
    };
    check_trajectory(
        &seen,
        &delay_at,
        &[
            Wrong::NoTuning,
            Wrong::NoDecay,
            Wrong::NoCap,
            Wrong::NoDerivative,
            Wrong::TwiceTheInterval,
        ],
    );
}

/// At a constant rate 16 KiB, eleven packets, take 11 ms; the delay is the delay of the backlog.
#[test]
fn the_probability_follows_the_equations_with_the_departure_rate() {
    let params = Params {
        delay: Delay::Rate,
        ..roomy()
    };
    let (_, seen) = watch(&params, 1);
    // The first measurement ends with the eleventh departure after 16 KiB wait.
    let long = seen
        .iter()
        .position(|seen| seen.bytes >= 16_384)
        .expect("it grows");
    let departures = seen.windows(2).enumerate().skip(long);
    let ends = departures
        .filter(|(_, pair)| pair[1].bytes < pair[0].bytes)
        .nth(11)
        .map(|(n, _)| seen[n + 1].at)
        .expect("it goes on");
    let delay_at = |at: Instant| {
        let bytes = before(&seen, at).map_or(0, |seen| seen.bytes);
        if at < ends {
            0.0
        } else {
            bytes as f64 * 0.011 / 16_384.0
        }
    };
    check_trajectory(
        &seen,
        &delay_at,
        &[Wrong::NoTuning, Wrong::NoDecay, Wrong::NoDerivative],
    );
}

/// The number of drops matches the sum of the arrivals' probabilities within four standard
/// deviations.
#[test]
fn drops_match_the_probability() {
    let params = Params {
        max_burst: BurstTime::from_millis(0),
        ..roomy()
    };
    let mut total = [0.0; 3];
    for seed in 0..20 {
        let mut link = pie(&params, seed);
        let script = steady(ms(0), ms(4_000), Duration::from_micros(700));
        let mut arrivals = script.clone().map(|arrival| arrival.at).peekable();
        let (mut bytes, mut expected, mut variance) = (0, 0.0, 0.0);
        link.run_watched(script, ms(4_000), |at, queue| {
            if arrivals.next_if_eq(&at).is_some() && bytes > 3_000 && at > ms(200) {
                let p = queue.drop_prob();
                expected += p;
                variance += p * (1.0 - p);
            }
            bytes = queue.bytes();
        });
        let drops = link.with(Fate::Dropped).filter(|e| e.at > ms(200)).count();
        total = [
            total[0] + drops as f64,
            total[1] + expected,
            total[2] + variance,
        ];
    }
    let [drops, expected, variance] = total;
    assert!(expected > 1_000.0, "{expected}");
    assert!(
        (drops - expected).abs() < 4.0 * variance.sqrt(),
        "{drops} against {expected}"
    );
}

/// Ten times the capacity from the first packet on: nothing is dropped for 150 ms (RFC 8033 §4.4),
/// although the probability exceeds 0.2 long before.
#[test]
fn a_burst_gets_through() {
    let script = || steady(ms(0), ms(400), Duration::from_micros(100));
    let first_drop = |params: &Params| {
        let mut link = pie(params, 1);
        link.run(script(), ms(400));
        link.times(Fate::Dropped).first().copied()
    };
    let with = first_drop(&roomy()).expect("the burst is too long");
    assert!(with >= ms(150), "{with:?}");
    let none = Params {
        max_burst: BurstTime::from_millis(0),
        ..roomy()
    };
    let without = first_drop(&none).expect("the burst is too long");
    assert!(without < ms(150) && without < with, "{without:?}");
    // Longer allowances let longer bursts through.
    let long = Params {
        max_burst: BurstTime::from_millis(300),
        ..roomy()
    };
    assert!(first_drop(&long).is_some_and(|at| at >= ms(300)));
}

/// No packet is dropped while at most two wait, whatever the probability (RFC 8033 §4.1). Each
/// packet takes 12 ms here, and two wait.
#[test]
fn a_short_queue_has_no_random_drops() {
    let params = Params {
        max_burst: BurstTime::from_millis(0),
        target: anabranch_path::queue::bounded::ControlTime::from_millis(1),
        ..roomy()
    };
    let init = Init {
        rate: None,
        flows: &[],
        hosts: &[],
    };
    let slow = anabranch_core::units::Rate::from_mbit_per_s(1);
    let mut link = Link::new(Pie::new(&params, &init), slow, 1);
    // Three at once, then one for each departure: two wait, and briefly three at most.
    let script = std::iter::repeat_n(packet(us(100)), 3)
        .chain((1_u64..).map(|n| packet(us(12_000 * n + 200))))
        .take_while(|arrival| arrival.at < ms(20_000));
    link.run(script, ms(20_000));
    assert!(link.queue.drop_prob() > 0.5, "{}", link.queue.drop_prob());
    assert_eq!(link.times(Fate::Dropped), []);
}

/// With ECN, packets are marked while the probability is at most 0.1, and dropped above (RFC 8033
/// §5.1).
#[test]
fn ecn_marks_up_to_a_probability() {
    let run = |mark_ecnth: f64, ecn: bool| {
        let params = Params {
            ecn,
            mark_ecnth: Fraction::new(mark_ecnth),
            ..roomy()
        };
        let mut link = pie(&params, 1);
        let mut probability = Vec::new();
        let script = load().map(|arrival| Arrival {
            ecn: Ecn::Ect0,
            ..arrival
        });
        link.run_watched(script, ms(5_500), |at, queue| {
            probability.push((at, queue.drop_prob()));
        });
        (link, probability)
    };
    let (link, probability) = run(0.1, true);
    let at = |event: &Event| {
        let after = probability.partition_point(|(at, _)| *at < event.at);
        probability[after].1
    };
    assert!(link.with(Fate::Marked).count() > 10);
    assert!(link.with(Fate::Dropped).count() > 10);
    assert!(link.with(Fate::Marked).all(|event| at(event) <= 0.1));
    assert!(link.with(Fate::Dropped).all(|event| at(event) > 0.1));
    let (link, _) = run(1.0, true);
    assert_eq!(link.with(Fate::Dropped).count(), 0);
    let (link, _) = run(1.0, false);
    assert_eq!(link.with(Fate::Marked).count(), 0);
    assert!(link.with(Fate::Dropped).count() > 10);
}

/// Between two drops the probabilities add up to at least 0.85 and to little more than 8.5
/// (RFC 8033 §5.4).
#[test]
fn derandomized_drops_keep_their_distance() {
    let gaps = |derandomize: bool| {
        let params = Params {
            derandomize,
            max_burst: BurstTime::from_millis(0),
            ..roomy()
        };
        let mut gaps = Vec::new();
        for seed in 0..10 {
            let mut link = pie(&params, seed);
            let script = steady(ms(0), ms(4_000), Duration::from_micros(700));
            let mut arrivals = script.clone().map(|arrival| arrival.at).peekable();
            let (mut bytes, mut sum, mut sums) = (0, 0.0, Vec::new());
            link.run_watched(script, ms(4_000), |at, queue| {
                if arrivals.next_if_eq(&at).is_some() {
                    if bytes > 3_000 {
                        sum += queue.drop_prob();
                    }
                    sums.push((at, sum));
                }
                bytes = queue.bytes();
            });
            let mut last = 0.0;
            for drop in link.times(Fate::Dropped) {
                let now = sums[sums.partition_point(|(at, _)| *at < drop)].1;
                gaps.push(now - last);
                last = now;
            }
        }
        gaps
    };
    let spaced = gaps(true);
    assert!(spaced.len() > 100, "{}", spaced.len());
    assert!(spaced.iter().all(|&gap| gap >= 0.85 - 1e-9));
    assert!(spaced.iter().all(|&gap| gap < 8.5 + 1.0));
    assert!(gaps(false).iter().any(|&gap| gap < 0.5));
}

/// Updates that became due in a long pause are made up for, at the cost of only the first few.
#[test]
fn a_long_pause_is_caught_up_quickly() {
    let mut link = pie(&roomy(), 1);
    let congested = steady(ms(0), ms(1_000), Duration::from_micros(480));
    link.run(congested, ms(3_000));
    assert!(link.queue.drop_prob() > 0.0);
    // A hundred days: 576 million updates.
    let later = ms(0) + Duration::from_secs(100 * 86_400);
    link.run([packet(later)], later);
    assert!(link.queue.drop_prob() < f64::MIN_POSITIVE);
    // Updates continue from there.
    let script = steady(
        later,
        later + Duration::from_secs(1),
        Duration::from_micros(480),
    );
    link.run(script, later + Duration::from_secs(1));
    assert!(link.queue.drop_prob() > 0.0);
}

#[test]
fn the_limit_holds() {
    let params = Params {
        limit: Limit::Packets(10),
        ..Params::default()
    };
    let mut link = Link::new(build(&Config::Pie(params)), a_packet_per_ms(), 1);
    link.run(std::iter::repeat_n(packet(us(1)), 15), us(1));
    let dropped: Vec<_> = link.with(Fate::Dropped).map(|e| e.packet).collect();
    assert_eq!(dropped, [11, 12, 13, 14]);
}
