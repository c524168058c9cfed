//! Vegas against Brakmo and Peterson, IEEE JSAC 13-8 (1995), §III-B and §III-C.

use crate::support;

use anabranch_congestion::{
    Config, CongestionControl,
    params::{OrStack, Packets},
    vegas::{META, Params, RttEstimate},
};
use anabranch_core::units::{Duration, Rate};
use serde_json::json;
use support::{
    Path, assert_near,
    bottleneck::{Bottleneck, PACKET},
};

const RTT: Duration = Duration::from_millis(100);

fn vegas(alpha: u32, beta: u32) -> Config {
    Config::Vegas(Params {
        alpha: OrStack::Own(Packets::new(alpha)),
        beta: OrStack::Own(Packets::new(beta)),
        ..Params::default()
    })
}

/// A path in congestion avoidance with this window, at the end of a round trip that counts.
fn avoiding(config: &Config, window: u64) -> Path {
    let mut path = Path::new(config, 2 * window, RTT);
    path.lose();
    path.recovered();
    path.round = 1;
    path.ack();
    assert_near(path.cwnd(), window as f64, 1e-9);
    path
}

#[test]
fn the_window_follows_the_packets_queued() {
    let mut points = 0;
    for window in [8_u64, 20, 100, 1_000] {
        for (alpha, beta) in [(1, 3), (2, 4), (5, 5)] {
            for queued_us in [0, 100, 1_000, 2_500, 5_000, 20_000, 100_000] {
                let mut path = avoiding(&vegas(alpha, beta), window);
                path.queued = Duration::from_micros(queued_us);
                path.round = 2;
                path.ack();
                let (base, rtt) = (0.1, 0.1 + queued_us as f64 / 1e6);
                let expected_rate = window as f64 / base;
                let actual = window as f64 / rtt;
                let diff = (expected_rate - actual) * base;
                let change = if diff < f64::from(alpha) {
                    1.0
                } else if diff > f64::from(beta) {
                    -1.0
                } else {
                    0.0
                };
                assert_near(path.cwnd(), window as f64 + change, 1e-9);
                assert!((path.state("queued").expect("a state") - diff).abs() < 1e-6);
                points += 1;
            }
        }
    }
    assert!(points >= 20);
}

#[test]
fn slow_start_doubles_every_other_round_trip() {
    let mut path = Path::new(&vegas(1, 3), 4, RTT);
    let windows: Vec<f64> = (0..8)
        .map(|_| {
            path.round_trip();
            path.cwnd()
        })
        .collect();
    let doubling = windows
        .iter()
        .zip(&windows[2..])
        .all(|(a, b)| (b / a - 2.0).abs() < 0.1);
    assert!(doubling, "{windows:?}");
    assert!(
        windows.windows(2).any(|w| (w[0] - w[1]).abs() < 1e-9),
        "{windows:?}"
    );
}

#[test]
fn slow_start_ends_with_more_than_gamma_packets_queued() {
    for (gamma, queued_ms, ends) in [
        (1, 1, false),
        (1, 20, true),
        (30, 20, false),
        (30, 60, true),
    ] {
        let config = Config::Vegas(Params {
            gamma: Packets::new(gamma),
            ..Params::default()
        });
        let mut path = Path::new(&config, 50, RTT);
        path.round_trip();
        path.queued = Duration::from_millis(queued_ms);
        for _ in 0..3 {
            path.round_trip();
        }
        assert_eq!(
            path.control.ssthresh().is_some(),
            ends,
            "{gamma} {queued_ms}"
        );
    }
}

/// A SYN takes less time to serialize than a full segment. With a large window, Vegas would
/// interpret the difference as a queue.
#[test]
fn the_handshake_does_not_set_the_base_rtt() {
    let mut path = avoiding(&vegas(1, 3), 1_000);
    path.round = 2;
    path.ack_as(|ack| ack.min_rtt = RTT - Duration::from_micros(500));
    assert_near(path.cwnd(), 1_001.0, 1e-9);
    assert_near(path.state("queued").expect("a state"), 0.0, 1e-9);
}

#[test]
fn the_rtt_of_a_round_trip_is_the_mean_or_the_last_sample() {
    for (rtt, queued) in [
        (RttEstimate::Mean, 1_000.0 * 5.0 / 105.0),
        (RttEstimate::Segment, 0.0),
    ] {
        let config = Config::Vegas(Params {
            rtt: OrStack::Own(rtt),
            ..Params::default()
        });
        let mut path = avoiding(&config, 1_000);
        path.queued = Duration::from_millis(10);
        path.ack();
        path.queued = Duration::ZERO;
        path.round = 2;
        path.ack();
        assert_near(path.state("queued").expect("a state"), queued, 1e-6);
    }
}

#[test]
fn a_single_flow_keeps_between_alpha_and_beta_packets_queued() {
    for (mbit_s, delay_ms, (alpha, beta)) in [
        (10, 20, (1, 3)),
        (10, 100, (1, 3)),
        (100, 20, (2, 4)),
        (50, 60, (10, 20)),
    ] {
        let (rate, delay) = (
            Rate::from_mbit_per_s(mbit_s),
            Duration::from_millis(delay_ms),
        );
        let mut path = Bottleneck::new(&vegas(alpha, beta), rate, delay);
        path.run(Duration::from_secs(60));
        let time = Duration::from_secs(10);
        path.run(time);
        assert!(
            path.share(time) > 0.99,
            "{mbit_s} {delay_ms}: {}",
            path.share(time)
        );
        let pipe = (rate * (delay + PACKET / rate)).get() as f64 / PACKET.get() as f64;
        let queued = path.control.cwnd().segments(PACKET) - pipe;
        assert!(
            queued > f64::from(alpha) - 1.0 && queued < f64::from(beta) + 2.0,
            "{mbit_s} {delay_ms}: {queued}"
        );
    }
}

#[test]
fn a_shrinking_window_does_not_restart_slow_start() {
    let mut path = avoiding(&vegas(1, 3), 100);
    path.queued = Duration::from_millis(50);
    for _ in 0..10 {
        path.round_trip();
    }
    let low = path.cwnd();
    assert!(low < 95.0);
    path.queued = Duration::ZERO;
    path.round_trip();
    path.round_trip();
    assert!(path.cwnd() <= low + 2.0);
}

#[test]
fn parameters_out_of_range_are_rejected() {
    for (name, value, expected) in [
        ("alpha", json!("0 packets"), "from 1 to 1000000"),
        (
            "alpha",
            json!("4 packets"),
            "`alpha` (4 packets) is above `beta` (3 packets)",
        ),
        (
            "beta",
            json!(3),
            "\"stack\" or a value of the control's own",
        ),
        ("gamma", json!("1 byte"), "a number of packets"),
        ("beta_loss", json!(0.2), "0.5 to 0.99"),
    ] {
        let file = json!({ META.name: { name: value } });
        let message = serde_json::from_value::<Config>(file)
            .expect_err("wrong")
            .to_string();
        assert!(message.contains(expected), "{name}: {message}");
    }
}
