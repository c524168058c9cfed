//! CUBIC against the equations and tables of RFC 9438, computed here independently.

#![expect(clippy::float_cmp, reason = "small whole numbers and copies are exact")]

use crate::support;

use anabranch_congestion::{
    Config, CongestionControl, cubic,
    hystart::Kind,
    params::{DecreaseFactor, OrStack, Share},
    reno,
};
use anabranch_core::units::Duration;
use support::{
    Path, SMSS, assert_near,
    cubic::{C, cubed, cubic_only, reduced_at},
};

const RTT: Duration = Duration::from_millis(100);

#[test]
fn k_is_the_time_back_to_w_max() {
    for beta in [0.5, 0.7, 0.8] {
        let config = Config::Cubic(cubic::Params {
            beta: DecreaseFactor::new(beta),
            tcp_friendly: false,
            ..Default::default()
        });
        for w_max in [10, 20, 50, 100, 333, 1_000, 10_000, 1_000_000] {
            let mut path = reduced_at(&config, w_max, RTT);
            let cwnd_epoch = path.cwnd();
            assert_near(cwnd_epoch, beta * w_max as f64, 1e-6);
            path.ack();
            let k = path.state("k").expect("an epoch has begun");
            assert_near(C * cubed(k), w_max as f64 * (1.0 - beta), 1e-9);
        }
    }
}

#[test]
fn each_ack_moves_cwnd_towards_the_function_one_round_trip_ahead() {
    // K = cbrt(1000 × 0.3 / 0.4) = cbrt(750).
    let k = 9.085_602_964_160_698;
    let mut checked = 0;
    for tenths in 0..240 {
        let t = f64::from(tenths) / 10.0;
        let mut path = reduced_at(&cubic_only(), 1_000, RTT);
        path.ack();
        let cwnd = path.cwnd();
        path.pause(Duration::from_secs_f64(t));
        path.ack();
        let target = (C * cubed(t + 0.1 - k) + 1_000.0).clamp(cwnd, 1.5 * cwnd);
        assert_near(path.cwnd(), cwnd + (target - cwnd) / cwnd, 1e-8);
        checked += 1;
    }
    assert_eq!(checked, 240);
}

#[test]
fn the_window_follows_the_cubic_function() {
    let mut path = reduced_at(&cubic_only(), 1_000, RTT);
    path.ack();
    let start = path.now;
    let k = path.state("k").expect("an epoch has begun");
    for _ in 0..150 {
        path.round_trip();
        let t = (path.now - start).as_secs_f64();
        // One round trip's ACKs cover (1 - 1/e) of the distance to the target, so the window lags a
        // little.
        let ahead = C * cubed(t + 0.1 - k) + 1_000.0;
        let behind = C * cubed(t - 0.2 - k) + 1_000.0;
        assert!(
            (behind..=ahead).contains(&path.cwnd()),
            "t = {t}: {}",
            path.cwnd()
        );
    }
    assert!(
        path.cwnd() > 1_000.0,
        "beyond the plateau after {}",
        path.now.as_secs_f64()
    );
}

#[test]
fn growth_is_at_most_half_the_window_in_a_round_trip() {
    // The target is far away after a long stage (§4.2).
    let mut path = reduced_at(&cubic_only(), 100, RTT);
    path.ack();
    path.pause(Duration::from_secs(1_000));
    let before = path.cwnd();
    let acks = path.round_trip();
    assert!(acks > 60);
    assert!(path.cwnd() > 1.4 * before, "{before} to {}", path.cwnd());
    assert!(path.cwnd() <= 1.65 * before, "{before} to {}", path.cwnd());
}

/// The mean window of §5 at one loss in `1 / p` segments, without the Reno-friendly region:
/// `(C (3 + β) / (4 (1 - β)) × RTT³ / p³)^(1/4)`, with the root as two square roots.
fn mean_window(beta: f64, rtt: f64, loss_interval: u64) -> f64 {
    let inside = C * (3.0 + beta) / (4.0 * (1.0 - beta)) * cubed(rtt) * cubed(loss_interval as f64);
    inside.sqrt().sqrt()
}

/// The mean window in the steady state. The convergence is slow near it (third power of the
/// distance) and takes hundreds of losses, so the path starts with W_max of the closed form.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a few thousand"
)]
fn steady_mean_window(params: &cubic::Params, rtt_ms: u64, loss_interval: u64, mean: f64) -> f64 {
    let w_max = mean * 4.0 / (3.0 + params.beta.get());
    let config = Config::Cubic(cubic::Params {
        fast_convergence: false,
        ..params.clone()
    });
    let rtt = Duration::from_millis(rtt_ms);
    let mut path = reduced_at(&config, (w_max + 0.5) as u64, rtt);
    path.mean_window_with_loss_every(loss_interval, 8)
}

/// RFC 9438 §5.1, tables 1 and 2, columns C = 0.4, and Reno if CUBIC is in the Reno-friendly
/// region.
#[test]
fn mean_windows_match_the_rfc() {
    for (rtt_ms, loss_interval, expected, tolerance) in [
        (100, 10_000, 187.0, 0.005),
        (100, 100_000, 1_054.0, 0.005),
        (100, 1_000_000, 5_926.0, 0.005),
        // The table's Reno is 1.2/√p; the sum of a sawtooth is √(3/(2p)), 2 % more.
        (10, 1_000, 38.0, 0.025),
        (10, 10_000, 120.0, 0.025),
        (10, 100_000, 379.0, 0.025),
    ] {
        let params = cubic::Params::default();
        assert_near(
            steady_mean_window(&params, rtt_ms, loss_interval, expected),
            expected,
            tolerance,
        );
    }
}

#[test]
fn mean_windows_match_the_closed_form() {
    for beta in [0.7, 0.8] {
        for (rtt_ms, loss_interval) in [
            (100_u32, 1_000),
            (100, 10_000),
            (100, 100_000),
            (10, 10_000),
            (10, 100_000),
        ] {
            let params = cubic::Params {
                beta: DecreaseFactor::new(beta),
                tcp_friendly: false,
                ..Default::default()
            };
            let expected = mean_window(beta, f64::from(rtt_ms) / 1e3, loss_interval);
            let found = steady_mean_window(&params, u64::from(rtt_ms), loss_interval, expected);
            assert_near(found, expected, 0.005);
        }
    }
}

#[test]
fn beta_of_four_fifths_is_the_older_form() {
    let config = Config::Cubic(cubic::Params {
        beta: DecreaseFactor::new(0.8),
        tcp_friendly: false,
        ..Default::default()
    });
    let path = reduced_at(&config, 100, RTT);
    assert_near(path.cwnd(), 80.0, 1e-9);
    assert_eq!(path.state("w_est"), None);
}

#[test]
fn the_friendly_region_keeps_up_with_reno_on_short_paths() {
    let rtt = Duration::from_millis(10);
    let mean = |config: &Config| Path::new(config, 10, rtt).mean_window_with_loss_every(1_000, 40);
    let reno = mean(&Config::Reno(reno::Params::default()));
    assert_near(reno, 38.0, 0.06);
    assert_near(mean(&Config::Cubic(cubic::Params::default())), reno, 0.08);
    assert!(mean(&cubic_only()) < 0.3 * reno);
}

#[test]
fn w_est_grows_by_alpha_and_beyond_the_old_window_by_one() {
    let mut path = reduced_at(&Config::Cubic(cubic::Params::default()), 20, RTT);
    let alpha = 3.0 * 0.3 / 1.7;
    let mut expected = 14.0;
    for _ in 0..400 {
        let (cwnd, slope) = (path.cwnd(), if expected >= 20.0 { 1.0 } else { alpha });
        path.ack();
        expected += slope / cwnd;
        assert_near(
            path.state("w_est").expect("an epoch has begun"),
            expected,
            1e-6,
        );
    }
    assert!(expected > 20.0, "both slopes seen");
}

#[test]
fn growth_before_the_first_loss_can_have_a_floor() {
    let grown = |share: f64| {
        let config = Config::Cubic(cubic::Params {
            first_epoch_growth: Share::new(share).into(),
            hystart: OrStack::Own(Kind::Linux),
            ..Default::default()
        });
        let mut path = Path::new(&config, 100, RTT);
        // A round trip of closely spaced ACKs ends slow start (see the tests of HyStart).
        for _ in 0..100 {
            path.ack();
            path.pause(Duration::from_millis(1));
        }
        assert!(path.ssthresh().is_finite());
        let before = path.cwnd();
        path.round_trip();
        let first = path.cwnd() / before;
        path.lose();
        let before = path.cwnd();
        path.round_trip();
        (first, path.cwnd() / before)
    };
    let (first, later) = grown(0.05);
    assert_near(first, 1.05, 0.002);
    let (plain_first, plain_later) = grown(0.0);
    assert!(plain_first < 1.01);
    assert_near(later, plain_later, 0.01);
}

#[test]
fn hystart_restarts_after_a_timeout() {
    let config = Config::Cubic(cubic::Params {
        hystart: OrStack::Own(Kind::Linux),
        ..Default::default()
    });
    let train = |path: &mut Path, ms: u64| {
        for _ in 0..ms {
            path.pause(Duration::from_millis(1));
            path.ack();
        }
    };
    let mut path = Path::new(&config, 100, RTT);
    train(&mut path, 45);
    path.rto(1);
    let ssthresh = path.ssthresh();
    // All these ACKs form a train of more than half the RTT; those since the timeout do not.
    train(&mut path, 40);
    assert_eq!(path.ssthresh(), ssthresh);
    assert!(path.cwnd() > 40.0 && path.cwnd() < ssthresh);
    train(&mut path, 20);
    assert_eq!(path.ssthresh(), 52.0, "50.5 ms after the first ACK since");
}

#[test]
fn the_plateau_is_the_window_at_which_slow_start_ends_without_a_loss() {
    let config = Config::Cubic(cubic::Params {
        hystart: OrStack::Own(Kind::Linux),
        ..Default::default()
    });
    let mut path = Path::new(&config, 100, RTT);
    while path.ssthresh().is_infinite() {
        path.pause(Duration::from_millis(1));
        path.ack();
    }
    let cwnd = path.cwnd();
    path.ack();
    assert_eq!(
        (path.state("w_max"), path.state("k")),
        (Some(cwnd), Some(0.0))
    );
    // W_est has reached the prior window, so α_cubic is 1 (§4.3, §4.10).
    assert_near(
        path.state("w_est").expect("an epoch has begun"),
        cwnd + 1.0 / cwnd,
        1e-9,
    );
}

#[test]
fn windows_of_a_million_segments_stay_finite() {
    let mut path = Path::new(&Config::Cubic(cubic::Params::default()), 1_000_000, RTT);
    path.lose();
    assert_eq!(path.control.cwnd(), SMSS.mul_f64(700_000.0));
    path.ack();
    path.pause(Duration::from_secs(10_000_000));
    for _ in 0..1_000 {
        path.ack();
    }
    assert!(path.cwnd().is_finite() && path.cwnd() > 700_000.0);
}
