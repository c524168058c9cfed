//! BIC against Xu, Harfoush and Rhee, INFOCOM 2004, §III.

use crate::support;

use anabranch_congestion::{
    Config, CongestionControl,
    bic::{META, Params},
    params::{DecreaseFactor, OrStack, Packets, SearchStep},
};
use anabranch_core::{math, units::Duration};
use serde_json::json;
use support::{Path, assert_near, segments};

const RTT: Duration = Duration::from_millis(100);

fn bic() -> Config {
    Config::Bic(Params::default())
}

#[test]
fn the_binary_search_is_an_exponential_towards_the_maximum() {
    // If the distance to the maximum is below 2 S_max, the step of a round trip is half of it.
    // Spread over the ACKs, dw/dt = (W_max - w) / 2 per round trip.
    let mut points = 0;
    for window in [100_u64, 200, 400] {
        let mut path = Path::new(&bic(), window, RTT);
        path.lose();
        path.recovered();
        let (max, low) = (window as f64, 0.875 * window as f64);
        assert!(max - low < 64.0);
        let mut acked = 0.0;
        for _ in 0..8 {
            for _ in 0..window {
                let cwnd = path.cwnd();
                path.ack();
                acked += 1.0 / cwnd;
            }
            let expected = max - (max - low) * math::exp(-acked / 2.0);
            assert_near(path.cwnd(), expected, 2e-3);
            points += 1;
        }
    }
    assert!(points >= 20);
}

#[test]
fn far_from_the_maximum_a_round_trip_adds_s_max() {
    let mut points = 0;
    for s_max in [4, 8, 16, 32] {
        let config = Config::Bic(Params {
            s_max: OrStack::Own(Packets::new(s_max)),
            ..Params::default()
        });
        let mut path = Path::new(&config, 4_000, RTT);
        path.lose();
        path.recovered();
        for _ in 0..5 {
            let before = path.cwnd();
            path.round_trip();
            assert_near(path.cwnd() - before, f64::from(s_max), 0.01);
            points += 1;
        }
    }
    assert!(points >= 20);
}

#[test]
fn near_the_maximum_a_round_trip_adds_s_min() {
    let mut points = 0;
    for window in [50_u64, 100, 200, 400, 1_000] {
        for s_min in [0.01, 0.02, 0.05, 0.1, 0.5] {
            let config = Config::Bic(Params {
                s_min: SearchStep::new(s_min).into(),
                ..Params::default()
            });
            let mut path = Path::new(&config, window, RTT);
            path.lose();
            path.recovered();
            // Half of the remaining distance is less than three quarters of S_min.
            let left = |path: &Path| window as f64 - path.cwnd();
            while left(&path) > 1.5 * s_min {
                path.ack();
            }
            let (before, acks) = (path.cwnd(), window / 5);
            for _ in 0..acks {
                path.ack();
            }
            let added = path.cwnd() - before;
            assert!(left(&path) > 0.0, "the maximum is not reached");
            assert_near(added, s_min * acks as f64 / before, 0.01);
            points += 1;
        }
    }
    assert!(points >= 20);
}

#[test]
fn beyond_the_maximum_steps_double_up_to_s_max() {
    let mut path = Path::new(&bic(), 100, RTT);
    path.lose();
    path.recovered();
    let mut steps = Vec::new();
    for _ in 0..60 {
        path.round_trip();
        steps.extend(path.state("probing"));
    }
    steps.dedup();
    assert_eq!(steps, [1.0, 2.0, 4.0, 8.0, 16.0]);
    let before = path.cwnd();
    path.round_trip();
    assert_near(path.cwnd() - before, 32.0, 0.02);
}

/// §III: the maximum is the window at the loss, and the minimum is the reduced window. A loss below
/// the old maximum makes the middle between the two the new one: `(2 - b) / 2` of the window, where
/// `b` is the paper's, the share removed.
#[test]
fn a_loss_sets_the_maximum_and_fast_convergence_lowers_it() {
    // A first loss; an early one without and with fast convergence; one beyond the old maximum with
    // it.
    let mut points = [0_usize; 4];
    for window in [50_u64, 100, 250, 400, 1_000] {
        for taken in [0.1, 0.125, 0.25, 0.4] {
            for fast_convergence in [false, true] {
                let config = Config::Bic(Params {
                    fast_convergence,
                    beta: DecreaseFactor::new(1.0 - taken).into(),
                    ..Params::default()
                });
                let mut path = Path::new(&config, window, RTT);
                let maximum = |path: &Path| path.state("max_win").expect("a loss");
                let lose = |path: &mut Path| {
                    let before = path.cwnd();
                    path.lose();
                    assert_near(path.cwnd(), (1.0 - taken) * before, 1e-6);
                    path.recovered();
                    before
                };
                let first = lose(&mut path);
                assert_near(maximum(&path), first, 1e-6);
                // Half of the distance back to the old window.
                while path.cwnd() < (1.0 - taken / 2.0) * first {
                    path.ack();
                }
                let early = lose(&mut path);
                assert!(early < first);
                let factor = if fast_convergence {
                    (2.0 - taken) / 2.0
                } else {
                    1.0
                };
                assert_near(maximum(&path), factor * early, 1e-6);
                while path.cwnd() < early + 1.0 {
                    path.ack();
                }
                let late = lose(&mut path);
                assert_near(maximum(&path), late, 1e-6);
                points[0] += 1;
                points[1 + usize::from(fast_convergence)] += 1;
                points[3] += usize::from(fast_convergence);
            }
        }
    }
    assert!(points.iter().all(|&n| n >= 20), "{points:?}");
}

#[test]
fn below_low_window_it_is_reno() {
    let mut path = Path::new(&bic(), 12, RTT);
    path.lose();
    assert_near(path.cwnd(), 6.0, 1e-9);
    path.recovered();
    for _ in 0..5 {
        let before = path.cwnd();
        path.round_trip();
        // Slightly less than one, because the window grows meanwhile; the search would add three.
        assert_near(path.cwnd() - before, 1.0, 0.2);
    }
}

#[test]
fn no_ack_adds_more_than_it_acknowledges() {
    // A maximum far above a window that just exceeds `low_window`.
    let mut path = Path::new(&bic(), 4_000, RTT);
    path.lose();
    path.rto(1);
    path.congestion(anabranch_congestion::Signal::Loss, segments(14));
    path.recovered();
    while path.cwnd() < 40.0 {
        let before = path.control.cwnd();
        path.ack();
        assert!(path.control.cwnd() <= before + segments(1));
    }
}

#[test]
fn parameters_out_of_range_are_rejected() {
    for (name, value, expected) in [
        ("s_max", json!("0 packets"), "from 1 to 1000000"),
        ("s_min", json!(0), "0.001 to 1"),
        ("s_min", json!(2), "segments per round trip"),
        (
            "beta",
            json!(0.125),
            "where a paper takes 0.2 away, write 0.8",
        ),
        ("low_window", json!(14), "a number of packets"),
    ] {
        let file = json!({ META.name: { name: value } });
        let message = serde_json::from_value::<Config>(file)
            .expect_err("wrong")
            .to_string();
        assert!(message.contains(expected), "{name}: {message}");
    }
}
