//! H-TCP: the growth function, adaptive backoff and RTT scaling of draft-leith-tcp-htcp-06, and the
//! form of Linux by the measured behaviour of Linux 6.12 (`validation/data/linux-controls.csv`).

use crate::support;

use anabranch_congestion::{
    Config, Init,
    htcp::Params,
    params::{Form, OrStack, VirtualRtt},
    reno,
};
use anabranch_core::units::{Bytes, Duration};
use support::{Path, SMSS, assert_near, segments};

const RTT: Duration = Duration::from_millis(100);

/// Growth as in the draft, with half of the window left at every congestion event.
fn growth_alone() -> Params {
    Params {
        adaptive_backoff: false,
        rtt_scaling: false,
        ..Params::default()
    }
}

fn path(params: Params, rtt: Duration) -> Path {
    let mut init = Init::new(SMSS, segments(2_000));
    init.stack.clock_tick = Duration::from_millis(10);
    Path::from_init(&Config::Htcp(params), &init, rtt)
}

/// A path after a loss, in congestion avoidance at 1,000 segments; `Δ` is zero.
fn avoiding(params: Params, rtt: Duration) -> Path {
    let mut path = path(params, rtt);
    path.ack();
    path.lose();
    path.recovered();
    path.ack();
    path
}

/// Growth of a round trip whose acknowledgments all arrive at one time, `delta` after the last
/// loss, in segments.
fn growth_at(path: &mut Path, delta: Duration) -> f64 {
    path.pause(delta);
    let before = path.cwnd();
    // Few acknowledgments, so that the window hardly grows meanwhile.
    for _ in 0..10 {
        path.ack();
    }
    (path.cwnd() - before) * before / 10.0
}

#[test]
fn growth_follows_the_drafts_function_of_time() {
    for (delta_ms, alpha) in [
        (0, 1.0),
        (500, 1.0),
        (1_000, 1.0),
        (1_100, 1.0 + 1.0 + 0.0025),
        (2_000, 1.0 + 10.0 + 0.25),
        (5_000, 1.0 + 40.0 + 4.0),
        (11_000, 1.0 + 100.0 + 25.0),
    ] {
        let mut path = avoiding(growth_alone(), RTT);
        let found = growth_at(&mut path, Duration::from_millis(delta_ms));
        assert_near(found, alpha, 0.002);
    }
}

/// A growth function that is linear beyond `delta_l` would give 101 segments after eleven seconds.
#[test]
fn detects_growth_without_the_quadratic_term() {
    let mut path = avoiding(growth_alone(), RTT);
    let found = growth_at(&mut path, Duration::from_secs(11));
    assert!((found - 101.0).abs() > 20.0, "{found}");
}

#[test]
fn for_a_second_after_a_loss_the_window_is_renos() {
    let reno = Config::Reno(reno::Params::default());
    let init = Init::new(SMSS, segments(20));
    let mut paths = [Config::Htcp(growth_alone()), reno].map(|config| {
        let mut path = Path::from_init(&config, &init, RTT);
        path.lose();
        path.recovered();
        path
    });
    for round in 0..15 {
        let [htcp, reno] = &mut paths;
        htcp.round_trip();
        reno.round_trip();
        let ahead = htcp.cwnd() - reno.cwnd();
        if round < 9 {
            // Reno grows when a window of octets is acknowledged, H-TCP with every acknowledgment.
            assert!(ahead.abs() < 1.0, "round {round}: {ahead}");
        }
    }
    let [htcp, reno] = paths;
    assert!(htcp.cwnd() > reno.cwnd() + 4.0, "{}", htcp.cwnd());
}

#[test]
fn delta_l_moves_the_beginning_of_fast_growth() {
    let params = Params {
        delta_l: Duration::from_secs(3),
        ..growth_alone()
    };
    let mut path = avoiding(params, RTT);
    assert_near(
        growth_at(&mut path, Duration::from_millis(2_900)),
        1.0,
        0.002,
    );
    assert_near(
        growth_at(&mut path, Duration::from_millis(1_100)),
        11.25,
        0.01,
    );
}

/// Runs round trips with `queued` on top of the base, each followed by a loss, and returns the
/// shares of the window that remain.
fn beta_after(params: &Params, queued: &[u64]) -> Vec<f64> {
    let mut path = path(params.clone(), RTT);
    let mut betas = Vec::new();
    for &queued in queued {
        // The same throughput at each congestion event: the same data is acknowledged in 100 ms.
        for _ in 0..3 {
            path.round += 1;
            for _ in 0..10 {
                path.pause(Duration::from_millis(10));
                path.ack_as(|ack| ack.rtt = Some(RTT));
            }
        }
        path.ack_as(|ack| ack.rtt = Some(RTT + Duration::from_millis(queued)));
        let before = path.cwnd();
        path.lose();
        betas.push(path.cwnd() / before);
        path.recovered();
    }
    betas
}

#[test]
fn a_loss_leaves_the_rtt_ratio_from_a_half_to_four_fifths() {
    let found = beta_after(&Params::default(), &[0, 60, 25, 300, 5]);
    let expected = [0.5, 100.0 / 160.0, 0.8, 0.5, 0.8];
    for (found, expected) in found.into_iter().zip(expected) {
        assert_near(found, expected, 1e-6);
    }
    let fixed = beta_after(&growth_alone(), &[0, 60, 25, 300, 5]);
    assert!(fixed.into_iter().all(|beta| (beta - 0.5).abs() < 1e-6));
}

#[test]
fn growth_is_scaled_with_the_reduction_by_a_loss() {
    for (queued, beta) in [(25, 0.8), (60, 0.625), (100, 0.5)] {
        let params = Params {
            rtt_scaling: false,
            ..Params::default()
        };
        let mut path = path(params, RTT);
        for _ in 0..2 {
            for _ in 0..4 {
                path.round += 1;
                path.pause(RTT);
                path.ack_as(|ack| ack.rtt = Some(RTT + Duration::from_millis(queued)));
            }
            path.lose();
            path.recovered();
            path.ack();
        }
        assert_near(path.state("beta").expect("a state"), beta, 1e-6);
        let found = growth_at(&mut path, Duration::from_secs(2));
        assert_near(found, 2.0 * (1.0 - beta) * 11.25, 0.01);
    }
}

/// Runs two epochs with `delivered` segments per round trip, and returns the share that remains
/// after the second loss.
fn beta_with_throughputs(params: Params, delivered: [u64; 2]) -> f64 {
    let mut path = path(params, RTT);
    let mut left = 1.0;
    for delivered in delivered {
        for _ in 0..4 {
            path.round += 1;
            path.pause(RTT);
            path.ack_as(|ack| {
                ack.delivered = segments(delivered);
                ack.acked = Bytes::ZERO;
            });
        }
        let before = path.cwnd();
        path.lose();
        left = path.cwnd() / before;
        path.recovered();
    }
    left
}

#[test]
fn a_change_of_throughput_by_more_than_delta_b_leaves_half() {
    for (throughputs, left) in [
        ([100, 100], 0.8),
        ([100, 119], 0.8),
        ([100, 121], 0.5),
        ([100, 81], 0.8),
        ([100, 79], 0.5),
    ] {
        assert_near(
            beta_with_throughputs(Params::default(), throughputs),
            left,
            1e-6,
        );
    }
}

#[test]
fn rtt_scaling_equalizes_growth_per_second_and_leaves_a_segment() {
    let params = Params {
        adaptive_backoff: false,
        ..Params::default()
    };
    for (rtt_ms, alpha) in [(100, 11.25), (50, 5.625), (200, 22.5), (2, 1.0)] {
        let mut path = avoiding(params.clone(), Duration::from_millis(rtt_ms));
        assert_near(growth_at(&mut path, Duration::from_secs(2)), alpha, 0.01);
    }
    let mut path = avoiding(
        Params {
            rtt_ref: VirtualRtt::from_millis(25),
            ..params
        },
        RTT,
    );
    assert_near(growth_at(&mut path, Duration::from_secs(2)), 45.0, 0.03);
}

#[test]
fn a_spurious_reduction_does_not_restart_the_time() {
    let mut path = avoiding(growth_alone(), RTT);
    path.pause(Duration::from_secs(2));
    path.ack();
    path.lose();
    path.ack();
    assert_near(path.state("alpha").expect("a state"), 1.0, 1e-9);
    path.spurious(false);
    path.ack();
    assert_near(path.state("alpha").expect("a state"), 11.25, 1e-6);
}

// The form of Linux.

fn linux() -> Params {
    Params {
        form: OrStack::Own(Form::Linux),
        ..Params::default()
    }
}

/// Measured at round-trip times of 10.01, 50.025, 100.025 and 200.025 ms with a clock of 100 Hz.
#[test]
fn growth_of_linux_is_whole_segments_by_ticks() {
    let params = Params {
        adaptive_backoff: false,
        ..linux()
    };
    for (rtt_us, delta_ms, alpha) in [
        (100_000, 2_100, 12.0),
        (100_025, 1_000, 1.0),
        (100_025, 2_100, 13.0),
        (100_025, 2_600, 19.0),
        (200_025, 2_600, 34.0),
        (50_025, 2_100, 7.0),
        (10_010, 2_100, 2.0),
        (10_010, 1_600, 1.0),
    ] {
        let mut path = avoiding(params.clone(), Duration::from_micros(rtt_us));
        path.pause(Duration::from_millis(delta_ms));
        path.ack();
        assert_near(path.state("alpha").expect("a state"), alpha, 1e-9);
    }
}

#[test]
fn the_acknowledgment_that_raises_the_window_of_linux_is_not_counted() {
    let params = Params {
        adaptive_backoff: false,
        rtt_scaling: false,
        ..linux()
    };
    let mut path = avoiding(params, RTT);
    path.pause(Duration::from_secs(2));
    let acks_for = |path: &mut Path, segments_more: f64| {
        let before = path.cwnd();
        let mut acks = 0;
        while path.cwnd() < before + segments_more {
            path.ack_as(|ack| ack.acked = segments(2));
            acks += 1;
        }
        f64::from(acks)
    };
    // α is still the value of the last growth, 1, and becomes 11.
    assert_near(acks_for(&mut path, 1.0), 501.0, 0.001);
    // 1,000 segments need 91 counts, and each acknowledgment adds two.
    assert_near(acks_for(&mut path, 4.0), 4.0 * 47.0, 0.001);
}

#[test]
fn the_time_of_linux_counts_from_the_end_of_a_recovery() {
    let linux = Params {
        adaptive_backoff: false,
        ..linux()
    };
    for (params, alpha) in [(linux, 1.0), (growth_alone(), 2.0)] {
        let mut path = avoiding(params, RTT);
        path.lose();
        path.ack_as(|ack| ack.in_recovery = true);
        path.pause(Duration::from_millis(1_100));
        path.ack_as(|ack| ack.in_recovery = true);
        path.recovered();
        path.ack();
        assert_near(path.state("alpha").expect("a state").floor(), alpha, 1e-9);
    }
}

#[test]
fn linux_halves_at_a_change_of_throughput_and_at_the_next_loss() {
    let mut path = path(linux(), Duration::from_micros(100_025));
    let mut left = Vec::new();
    for delivered in [100, 200, 200, 200, 200] {
        for _ in 0..6 {
            path.round += 1;
            path.pause(RTT);
            path.ack_as(|ack| {
                ack.delivered = segments(delivered);
                ack.acked = Bytes::ZERO;
                ack.rtt = Some(Duration::from_millis(199));
            });
        }
        let before = path.cwnd();
        path.lose();
        left.push(path.cwnd() / before);
        path.recovered();
    }
    // 11 of 20 ticks, in 128ths.
    for (found, expected) in left.into_iter().zip([0.5, 0.5, 0.5, 70.0 / 128.0]) {
        // Windows are whole segments.
        assert_near(found, expected, 0.01);
    }
}
