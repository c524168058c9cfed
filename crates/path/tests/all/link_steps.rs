//! Tables of rate and delay over time: deliveries and their times, compared with arithmetic step by
//! step.

use std::{fmt::Write as _, sync::Arc};

use anabranch_core::{
    rng::Stream,
    units::{Duration, Instant, Rate},
};
use anabranch_path::link::{
    Delays, Propagation,
    service::{Capacity, Fixed, Service},
    steps::Repeat,
};

fn ms(n: u64) -> Instant {
    Instant::from_millis(n)
}

fn capacity(text: &str, repeat: Repeat) -> Box<dyn Service> {
    let (capacity, _) = Capacity::parse(text, repeat).expect("a table");
    capacity.service()
}

fn delays(text: &str, repeat: Repeat) -> Propagation {
    Propagation::traced(Arc::new(Delays::parse(text, repeat).expect("a table")))
}

#[test]
fn a_packet_goes_on_at_the_next_rate() {
    // 12 Mbit/s carry 1,500 bytes in a millisecond.
    let mut link = capacity("0,12\n0.0105,6\n0.0205,0\n0.0305,12", Repeat::Always);
    assert_eq!(link.finish(ms(0), 12_000), ms(1));
    // Half of it at each rate.
    assert_eq!(
        link.finish(ms(10), 12_000),
        ms(11) + Duration::from_micros(500)
    );
    // It waits while the rate is 0.
    assert_eq!(
        link.finish(ms(20), 12_000),
        ms(31) + Duration::from_micros(250)
    );
}

#[test]
fn the_last_line_holds_as_long_as_the_one_before() {
    let mut link = capacity("0 12\n0.01 6", Repeat::Always);
    assert_eq!(link.finish(ms(19), 6_000), ms(20));
    assert_eq!(link.finish(ms(20), 12_000), ms(21));
    let bits = link.capacity(ms(0), ms(40));
    assert!((bits - 2.0 * (120_000.0 + 60_000.0)).abs() < 1e-6, "{bits}");
}

#[test]
fn nothing_is_sent_after_the_last_round() {
    for (repeat, end) in [(Repeat::Times(1), 20), (Repeat::Times(3), 60)] {
        let mut link = capacity("0,12\n0.01,12", repeat);
        assert_eq!(link.finish(ms(end - 1), 12_000), ms(end));
        assert_eq!(link.finish(ms(end - 1), 12_001), Instant::NEVER);
        assert_eq!(link.finish(ms(end), 8), Instant::NEVER);
        assert!(link.capacity(ms(end), ms(end + 100)) < 1e-9);
        // The same for opportunities.
        let mut link = capacity("10\n20", repeat);
        assert_eq!(link.finish(ms(end - 5), 12_000), ms(end));
        assert_eq!(link.finish(ms(end), 12_001), Instant::NEVER);
    }
}

#[test]
fn a_table_of_one_rate_is_that_rate() {
    for (mbit, text) in [
        (1, "0,1"),
        (7, "0,7\n0.5,7"),
        (100, "0 100\n1 100\n1.25 100"),
    ] {
        let mut table = capacity(text, Repeat::Always);
        let mut fixed = Fixed::new(Some(Rate::from_mbit_per_s(mbit)));
        for (at, bytes) in [(0, 40), (3, 1_500), (1_700, 9_000), (86_400_000, 1)] {
            let (one, other) = (
                table.finish(ms(at), bytes * 8),
                fixed.finish(ms(at), bytes * 8),
            );
            assert!(
                one.saturating_since(other).max(other.saturating_since(one))
                    < Duration::from_nanos(1)
            );
        }
    }
}

/// Reference model: end of transmission of a packet, walking through each step in picoseconds.
fn one_by_one(steps: &[(u64, u64)], now: u64, bits: u64) -> u64 {
    let round: u64 = steps.iter().map(|(length, _)| length).sum();
    let mut left = u128::from(bits) * 1_000_000_000_000;
    let mut at = now;
    loop {
        let (mut into, mut step) = (at % round, 0);
        while into >= steps[step].0 {
            into -= steps[step].0;
            step += 1;
        }
        let (length, rate) = steps[step];
        let rest = length - into;
        let most = u128::from(rest) * u128::from(rate);
        if most >= left {
            return at + u64::try_from(left.div_ceil(u128::from(rate))).expect("it fits");
        }
        left -= most;
        at += rest;
    }
}

#[test]
fn random_tables_agree_with_the_reference_model() {
    for seed in 0..400 {
        let mut d = Stream::new(seed, "steps").at(0);
        let count = 2 + d.bits() % 6;
        let mut text = String::new();
        let mut time = 0;
        let mut steps = Vec::new();
        for step in 0..count {
            // Milliseconds with one decimal, kbit/s.
            let length = 1 + u64::from(d.bits() % 300);
            let rate = if step == 0 {
                1 + d.bits() % 9_000
            } else {
                (d.bits() % 4) * 1_777
            };
            let _ = writeln!(
                text,
                "{:.4},{:.3}",
                time as f64 / 1e4,
                f64::from(rate) / 1e3
            );
            steps.push((length * 100_000_000, u64::from(rate) * 1_000));
            time += length;
        }
        let before = steps[steps.len() - 2].0;
        steps.last_mut().expect("two").0 = before;
        let mut link = capacity(&text, Repeat::Always);
        let mut now = 0;
        for _ in 0..20 {
            let bits = 8 * (1 + u64::from(d.bits() % 3_000));
            let done = link.finish(Instant::from_picos(now), bits);
            assert_eq!(
                done.as_picos(),
                one_by_one(&steps, now, bits),
                "{text} {now} {bits}"
            );
            let carried = link.capacity(Instant::from_picos(now), done);
            assert!(
                (carried - bits as f64).abs() < 1e-2,
                "{text} {carried} {bits}"
            );
            now = done.as_picos() + u64::from(d.bits() % 5_000) * 10_000_000;
        }
    }
}

#[test]
fn a_delay_applies_to_departures_from_its_time_on() {
    let mut path = delays("time_s,delay_ms\n0,30\n1.5,20.5\n2,40\n", Repeat::Always);
    let at = |path: &mut Propagation, at| path.at(ms(at)).as_millis_f64();
    for (now, expected) in [
        (0, 30.0),
        (1_499, 30.0),
        (1_500, 20.5),
        (2_000, 40.0),
        (2_499, 40.0),
        (2_500, 30.0),
        (4_000, 20.5),
        // Back in time.
        (10, 30.0),
    ] {
        assert!((at(&mut path, now) - expected).abs() < 1e-9, "{now}");
    }
    // After the end the last delay stays.
    let mut once = delays("0 30\n1.5 20.5\n2 40", Repeat::Times(1));
    assert!((at(&mut once, 2_600) - 40.0).abs() < 1e-9);
}

#[test]
fn the_mean_is_weighted_by_time() {
    let table = Delays::parse("0,10\n3,50\n4,20", Repeat::Always).expect("a table");
    assert_eq!(table.mean(), Duration::from_millis((30 + 50 + 20) / 5));
    assert_eq!(table.least(), Duration::from_millis(10));
    let (capacity, delays) = Capacity::parse(
        "time_s,delay_ms,rate_mbit_s\n0,10,8\n3,50,4",
        Repeat::Always,
    )
    .expect("both");
    assert_eq!(capacity.mean_rate(), Rate::from_mbit_per_s(6));
    assert_eq!(delays.expect("a column").mean(), Duration::from_millis(30));
}

#[test]
fn an_invalid_table_is_reported_with_its_place() {
    for (text, place, message) in [
        ("0,\n", "", "\"\" is no rate"),
        ("0,1,2,3\n", "0,1,2,3", "this line has 4 fields"),
        ("0,1\n1,2,3\n", "1,2,3", "this line has 3 fields"),
        ("0,1\n1;2\n", "1;2", "this line has 1 fields"),
        (
            "time_s,rate\n0,1",
            "rate",
            "\"rate\" is not an expected column here",
        ),
        (
            "time,rate_mbit_s\n0,1",
            "time",
            "\"time\" is not an expected column here",
        ),
        (
            "time_s,delay_ms\n0,1",
            "time_s,delay_ms",
            "there is no column `rate_mbit_s`",
        ),
        (
            "time_s,rate_mbit_s\n",
            "",
            "the trace has names but no values",
        ),
        ("0.5,1\n", "0.5", "the trace begins at 0.5 s"),
        (
            "0,1\n1,5\n1,6\n",
            "1",
            "the trace goes back in time: 1 s after 1 s",
        ),
        ("0,1\nnan,5\n", "nan", "\"nan\" is no time"),
        ("0,1\n1,-5\n", "-5", "\"-5\" is no rate"),
        ("0,1\n1,inf\n", "inf", "\"inf\" is no rate"),
        ("0,1\n1,1e9\n", "1e9", "\"1e9\" is no rate"),
        ("0,1,2\n1,1,x ms\n", "x ms", "\"x ms\" is no delay"),
        (
            "0,0\n1,0\n",
            "",
            "nothing can ever be sent: every rate is 0",
        ),
        ("0,1\n9000000,1\n", "", "the trace is too long"),
    ] {
        let wrong = Capacity::parse(text, Repeat::Always).expect_err(text);
        assert_eq!(
            (&text[wrong.at.clone()], &wrong.message[..]),
            (place, message),
            "{text}"
        );
        assert!(!wrong.expected.is_empty());
    }
    let wrong = Delays::parse("0\n1\n", Repeat::Always).expect_err("no delay");
    assert_eq!(wrong.message, "this line has 1 fields");
}
