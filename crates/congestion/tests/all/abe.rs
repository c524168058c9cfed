//! Alternative Backoff with ECN (RFC 8511) in Reno and CUBIC.

use crate::support;

use anabranch_congestion::{
    Config, CongestionControl, Init, Signal, cubic,
    params::{EcnFactor, EcnFactorOrLoss, ReductionBase, WindowCount},
    reno,
};
use anabranch_core::units::{Bytes, Duration};
use serde_json::json;
use support::{Path, assert_near, segments};

const RTT: Duration = Duration::from_millis(100);

fn reno(beta_ecn: EcnFactorOrLoss) -> Config {
    Config::Reno(reno::Params {
        beta_ecn,
        ..Default::default()
    })
}

fn cubic(beta_ecn: EcnFactorOrLoss) -> Config {
    Config::Cubic(cubic::Params {
        beta_ecn,
        ..Default::default()
    })
}

fn factor(beta_ecn: f64) -> EcnFactorOrLoss {
    EcnFactor::new(beta_ecn).into()
}

/// A path in congestion avoidance at `window` segments.
fn avoiding(config: &Config, window: u64) -> Path {
    let mut path = Path::new(config, 4 * window, RTT);
    path.congestion(Signal::Loss, segments(2 * window));
    path.recovered();
    path
}

/// RFC 8511 §3: ssthresh = max(FlightSize · beta_ecn, 2 · SMSS), and cwnd is at most ssthresh.
/// §3.1: 0.8 for Reno, 0.85 for CUBIC.
#[test]
fn a_mark_leaves_beta_ecn_of_flight_size() {
    for (config, beta) in [(reno(factor(0.8)), 0.8), (cubic(factor(0.85)), 0.85)] {
        for flight in [2_u64, 3, 10, 100, 1_000] {
            let mut path = avoiding(&config, 2_000);
            path.congestion(Signal::EcnCe, segments(flight));
            let expected = (flight as f64 * beta).max(2.0);
            assert_near(path.ssthresh(), expected, 1e-6);
            assert!(path.cwnd() <= path.ssthresh());
        }
    }
}

#[test]
fn abe_does_not_change_the_reduction_by_a_loss() {
    for (config, beta) in [(reno(factor(0.8)), 0.5), (cubic(factor(0.85)), 0.7)] {
        let mut path = avoiding(&config, 100);
        path.congestion(Signal::Loss, segments(100));
        assert_near(path.ssthresh(), 100.0 * beta, 1e-6);
    }
}

#[test]
fn a_mark_in_slow_start_counts_as_a_loss() {
    for (config, beta) in [(reno(factor(0.8)), 0.5), (cubic(factor(0.85)), 0.7)] {
        let mut path = Path::new(&config, 100, RTT);
        path.mark();
        assert_near(path.ssthresh(), 100.0 * beta, 1e-6);
    }
}

#[test]
fn without_beta_ecn_a_mark_counts_as_a_loss() {
    for (config, beta) in [
        (reno(EcnFactorOrLoss::default()), 0.5),
        (cubic(EcnFactorOrLoss::default()), 0.7),
    ] {
        let mut path = avoiding(&config, 100);
        path.congestion(Signal::EcnCe, segments(100));
        assert_near(path.ssthresh(), 100.0 * beta, 1e-6);
    }
}

/// 0.8 × 10 segments of 1,448 bytes are eight whole segments.
#[test]
fn whole_segments_are_not_rounded_below_the_equation() {
    let smss = Bytes::new(1_448);
    let mut init = Init::new(smss, smss * 40);
    init.stack.window_count = WindowCount::Segments;
    init.stack.reduce_from = ReductionBase::Cwnd;
    let mut path = Path::from_init(&reno(factor(0.8)), &init, RTT);
    path.lose();
    path.lose();
    assert_eq!(path.control.cwnd(), smss * 10);
    path.mark();
    assert_eq!(path.control.cwnd(), smss * 8);
}

#[test]
fn a_factor_out_of_range_or_another_word_is_rejected() {
    for (value, expected) in [
        (json!(0.4), "expected 0.5 to 0.99"),
        (json!(1.0), "expected 0.5 to 0.99"),
        (json!("off"), "expected \"loss\" or a number"),
    ] {
        for control in ["reno", "cubic"] {
            let file = json!({ control: { "beta_ecn": value } });
            let message = serde_json::from_value::<Config>(file)
                .expect_err("wrong")
                .to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
