//! BIC against Xu, Harfoush and Rhee, INFOCOM 2004, §III.

mod cc_support;

use anabranch_core::{math, units::Duration};
use anabranch_elements::cc::{
    Config, CongestionControl,
    bic::{META, Params},
    params::Packets,
};
use cc_support::{Path, assert_near, segments};
use serde_json::json;

const RTT: Duration = Duration::from_millis(100);

fn bic() -> Config {
    Config::Bic(Params::default())
}

#[test]
fn the_binary_search_is_an_exponential_towards_the_maximum() {
    // Where the way to the maximum is below 2 S_max, the step of a round trip is half of it; spread
    // over the ACKs, dw/dt = (W_max - w) / 2 per round trip.
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
    for s_max in [8, 16, 32] {
        let config = Config::Bic(Params {
            s_max: Packets::new(s_max),
            ..Params::default()
        });
        let mut path = Path::new(&config, 4_000, RTT);
        path.lose();
        path.recovered();
        for _ in 0..5 {
            let before = path.cwnd();
            path.round_trip();
            assert_near(path.cwnd() - before, f64::from(s_max), 0.01);
        }
    }
}

#[test]
fn near_the_maximum_a_round_trip_adds_s_min() {
    let mut path = Path::new(&bic(), 100, RTT);
    path.lose();
    path.recovered();
    for _ in 0..14 {
        path.round_trip();
    }
    let before = path.cwnd();
    assert!(before > 99.97 && before < 100.0, "{before}");
    path.round_trip();
    assert_near(path.cwnd() - before, 0.01, 0.2);
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

#[test]
fn fast_convergence_lowers_the_maximum() {
    for (fast_convergence, expected) in [(true, f64::midpoint(90.0, 0.875 * 90.0)), (false, 90.0)] {
        let config = Config::Bic(Params {
            fast_convergence,
            ..Params::default()
        });
        let mut path = Path::new(&config, 100, RTT);
        path.lose();
        assert_near(path.state("max_win").expect("a loss"), 100.0, 1e-9);
        path.recovered();
        while path.cwnd() < 90.0 {
            path.ack();
        }
        let before = path.cwnd();
        path.lose();
        let found = path.state("max_win").expect("a loss");
        assert_near(found, expected * before / 90.0, 1e-6);
    }
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
        // Somewhat less than one, for the window grows meanwhile; the search would add three.
        assert_near(path.cwnd() - before, 1.0, 0.2);
    }
}

#[test]
fn no_ack_adds_more_than_it_acknowledges() {
    // A maximum far above a window just over `low_window`.
    let mut path = Path::new(&bic(), 4_000, RTT);
    path.lose();
    path.rto(1);
    path.congestion(anabranch_elements::cc::Signal::Loss, segments(14));
    path.recovered();
    while path.cwnd() < 40.0 {
        let before = path.control.cwnd();
        path.ack();
        assert!(path.control.cwnd() <= before + segments(1));
    }
}

#[test]
fn parameters_out_of_range_are_refused() {
    for (name, value, expected) in [
        ("s_max", json!("0 packets"), "from 1 to 1000000"),
        ("s_min", json!(0), "0.001..1"),
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
