//! Cubic+: CUBIC that restarts when the timer rule finds losses.

#![expect(clippy::float_cmp, reason = "small whole numbers and copies are exact")]

use crate::support;

use anabranch_congestion::{Config, cubic, cubic_plus, params::Packets};
use anabranch_core::units::Duration;
use support::{Path, assert_near};

const RTT: Duration = Duration::from_millis(100);

#[test]
fn cubic_plus_is_cubic_until_the_timer_fires() {
    let mut cubic = Path::new(&Config::Cubic(cubic::Params::default()), 10, RTT);
    let mut plus = Path::new(&Config::CubicPlus(cubic_plus::Params::default()), 10, RTT);
    for round in 0..60 {
        for path in [&mut cubic, &mut plus] {
            path.round_trip();
            if round % 7 == 6 {
                path.lose();
                path.recovered();
            }
        }
        assert_eq!(cubic.cwnd(), plus.cwnd());
        assert_eq!(cubic.ssthresh(), plus.ssthresh());
    }
    let rule = Config::CubicPlus(cubic_plus::Params::default()).timer_rule();
    let rule = rule.expect("Cubic+ brings a rule along");
    assert_eq!(rule.initial_reo_wnd, Duration::from_millis(1));
    assert_eq!(rule.reo_wnd_min_rtt_share, 0.25);
    assert_eq!(Config::Cubic(cubic::Params::default()).timer_rule(), None);
}

#[test]
fn cubic_plus_restarts_once_per_recovery() {
    let mut path = Path::new(&Config::CubicPlus(cubic_plus::Params::default()), 100, RTT);
    path.lose();
    path.timer_loss();
    assert_eq!(path.cwnd(), 1.0);
    assert_near(path.ssthresh(), 49.0, 1e-6);
    // The window grows although the recovery is not over,
    path.ack_as(|ack| ack.in_recovery = true);
    assert_eq!(path.cwnd(), 2.0);
    // and further losses by the timer belong to the same restart.
    path.timer_loss();
    assert_eq!(path.cwnd(), 2.0);
    path.recovered();
    path.lose();
    path.ack_as(|ack| ack.in_recovery = true);
    assert_eq!(path.cwnd(), 2.0);
    path.timer_loss();
    assert_eq!(path.cwnd(), 1.0);
}

#[test]
fn choices_that_the_report_leaves_open_are_parameters() {
    let config = Config::CubicPlus(cubic_plus::Params {
        restart_cwnd: Packets::new(10),
        restart_ssthresh: cubic_plus::RestartSsthresh::Keep,
        restart_keeps_w_max: true,
        ..Default::default()
    });
    let mut path = Path::new(&config, 100, RTT);
    path.lose();
    path.timer_loss();
    assert_eq!(path.cwnd(), 10.0);
    assert_near(path.ssthresh(), 70.0, 1e-6);
    assert_near(path.state("w_max").expect("kept"), 100.0, 1e-6);
}
