//! Prague's equations (draft-briscoe-iccrg-prague-congestion-control §2.4) and their consequences.

use crate::support;

use anabranch_congestion::{
    Config, CongestionControl, Signal,
    params::{Share, VirtualRtt},
    prague::Params,
};
use anabranch_core::{parameters::Count, units::Duration};
use support::{Path, SMSS, assert_near, segments};

fn path(window: u64, rtt: Duration, params: Params) -> Path {
    let mut path = Path::new(&Config::Prague(params), 2 * window, rtt);
    // Ends slow start.
    path.congestion(Signal::Loss, segments(2 * window));
    path
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A round trip in which every `n`-th arriving segment is marked; 0 for none. The first mark
/// requests a reduction, as from a stack that reduces at most once per round trip.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a window of a few segments"
)]
fn round_trip(path: &mut Path, n: u64, arrived: &mut u64) {
    path.round += 1;
    let window = path.cwnd().round() as u64;
    let gap = path.rtt.mul_f64(1.0 / window as f64);
    let mut asked = false;
    for _ in 0..window {
        *arrived += 1;
        let marked = n > 0 && arrived.is_multiple_of(n);
        if marked && !asked {
            asked = true;
            path.mark();
        }
        path.ack_as(|ack| {
            if marked {
                ack.ce_marked = ack.acked;
            }
        });
        path.now = path.now + gap;
    }
}

/// Mean window in equilibrium at a marking probability of 1/n.
fn equilibrium(n: u64, rtt: Duration, params: Params) -> f64 {
    let mut path = path(2 * n, rtt, params);
    let mut arrived = 0;
    for _ in 0..4_000 {
        round_trip(&mut path, n, &mut arrived);
    }
    let mut sum = 0.0;
    for _ in 0..4_000 {
        round_trip(&mut path, n, &mut arrived);
        sum += path.cwnd();
    }
    sum / 4_000.0
}

/// RFC 9332 §2.1 and PI2 (2016) §3: a scalable window has two marks per round trip, W = 2/p.
#[test]
fn the_window_is_two_over_the_marking_probability() {
    for n in [10, 25, 50, 100] {
        let window = equilibrium(n, ms(50), Params::default());
        assert_near(window, 2.0 * n as f64, 0.1);
    }
}

/// The rate at 5 ms equals that at 25 ms: the window is a fifth.
#[test]
fn the_rate_is_constant_below_the_virtual_round_trip() {
    let params = Params {
        rtt_independent_after: Count::new(1),
        ..Params::default()
    };
    let [short, long] = [5, 25].map(|rtt| equilibrium(50, ms(rtt), params.clone()) / rtt as f64);
    assert_near(short / long, 1.0, 0.15);
    // A fifth of 2/p. A reduction is due once per virtual round trip and waits for the next of its
    // two marks: a quarter of a round trip on average.
    let short = equilibrium(50, ms(5), Params::default());
    assert_near(short, 1.25 * 20.0, 0.1);
}

#[test]
fn rtt_independence_begins_after_its_round_trips() {
    let growth = |after: u32| {
        let params = Params {
            rtt_virtual: VirtualRtt::from_millis(25),
            rtt_independent_after: Count::new(after),
            ..Params::default()
        };
        let mut path = path(100, ms(5), params);
        let before = path.cwnd();
        round_trip(&mut path, 0, &mut 0);
        path.cwnd() - before
    };
    assert_near(growth(500), 1.0, 0.02);
    assert_near(growth(1), 0.04, 0.02);
}

#[test]
fn marked_bytes_do_not_grow_the_window() {
    let mut path = path(100, ms(50), Params::default());
    let before = path.cwnd();
    for _ in 0..50 {
        path.ack_as(|ack| ack.ce_marked = ack.acked);
    }
    assert_near(path.cwnd(), before, 1e-9);
    for _ in 0..50 {
        path.ack_as(|ack| ack.ce_marked = ack.acked.mul_f64(0.5));
    }
    assert_near(path.cwnd(), before + 0.25, 1e-3);
}

#[test]
fn a_second_mark_in_a_virtual_round_trip_reduces_nothing() {
    let params = Params {
        rtt_independent_after: Count::new(1),
        ..Params::default()
    };
    let mut path = path(100, ms(5), params);
    path.round = 2;
    path.ack();
    path.mark();
    let once = path.cwnd();
    assert_near(once, 50.0, 0.02);
    path.now = path.now + ms(20);
    path.ack();
    path.mark();
    assert!(path.cwnd() >= once);
    path.now = path.now + ms(6);
    path.ack();
    path.mark();
    assert!(path.cwnd() < 0.6 * once, "{}", path.cwnd());
}

#[test]
fn alpha_is_constant_until_the_first_mark() {
    let mut path = path(50, ms(50), Params::default());
    for _ in 0..100 {
        round_trip(&mut path, 0, &mut 0);
    }
    assert_eq!(path.state("alpha"), Some(1.0));
    let mut arrived = 0;
    for _ in 0..3 {
        round_trip(&mut path, 10, &mut arrived);
    }
    assert!(path.state("alpha") < Some(0.95));
}

#[test]
fn a_loss_halves_the_window_at_any_alpha() {
    let params = Params {
        initial_alpha: Share::new(0.1),
        ..Params::default()
    };
    let mut path = Path::new(&Config::Prague(params), 100, ms(50));
    path.lose();
    assert_near(path.cwnd(), 50.0, 1e-6);
    assert_eq!(path.control.cwnd(), SMSS * 50);
}
