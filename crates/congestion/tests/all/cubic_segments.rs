//! CUBIC counted in whole segments.

#![expect(clippy::float_cmp, reason = "whole numbers are exact")]

use crate::support;

use anabranch_congestion::{
    Config, Init, cubic,
    hystart::Kind,
    params::{OrStack, Packets, RenoFriendly, Share, SlowStartLimit, WindowCount},
};
use anabranch_core::{math::cbrt, units::Duration};
use proptest::prelude::*;
use support::{Path, SMSS};

const RTT: Duration = Duration::from_millis(100);
const C: f64 = 0.4;

fn whole(params: &cubic::Params) -> Config {
    Config::Cubic(cubic::Params {
        count: OrStack::Own(WindowCount::Segments),
        ..params.clone()
    })
}

fn cubic_only() -> cubic::Params {
    cubic::Params {
        tcp_friendly: false,
        ..Default::default()
    }
}

/// Seconds from a reduction at `w_max` until the window has returned to it.
fn time_back(config: &Config, w_max: u64) -> f64 {
    let mut path = Path::new(config, w_max, RTT);
    path.lose();
    let start = path.now;
    while path.cwnd() < w_max as f64 {
        path.step();
    }
    (path.now - start).as_secs_f64()
}

/// The distance from the plateau is rounded down, so it is zero `cbrt(1 / C)` seconds early.
#[test]
fn a_small_window_returns_early_to_the_plateau() {
    for w_max in [4, 6, 10, 20] {
        let reduced = (0.7 * w_max as f64).floor();
        let k = cbrt((w_max as f64 - reduced) / C);
        let early = cbrt(1.0 / C);
        let expected = (k - early).max(0.0);
        let found = time_back(&whole(&cubic_only()), w_max);
        // One segment needs at least two ACKs, and the window of the last one a round trip.
        assert!(found <= expected + 0.25, "{w_max}: {found}, {expected}");
        assert!(found >= expected - 0.15, "{w_max}: {found}, {expected}");
        let exact = time_back(&Config::Cubic(cubic_only()), w_max);
        assert!(exact > found + 0.8, "{w_max}: {exact} against {found}");
    }
}

/// Above the window before the loss, RFC 9438 §4.3 grows as Reno does; RFC 8312 §4.2 grows by 3 (1
/// - β) ÷ (1 + β) = 0.53 segments per round trip throughout.
#[test]
fn above_the_last_window_the_older_region_grows_half_as_fast() {
    let round_trips = |reno_friendly| {
        let rtt = Duration::from_millis(10);
        let params = cubic::Params {
            reno_friendly: OrStack::Own(reno_friendly),
            ..Default::default()
        };
        let mut path = Path::new(&Config::Cubic(params), 20, rtt);
        path.lose();
        while path.cwnd() < 21.0 {
            path.step();
        }
        let start = path.now;
        while path.cwnd() < 26.0 {
            path.step();
        }
        (path.now - start).as_secs_f64() / rtt.as_secs_f64()
    };
    let (newer, older) = (
        round_trips(RenoFriendly::Rfc9438),
        round_trips(RenoFriendly::Rfc8312),
    );
    assert!((newer - 5.0).abs() <= 1.0, "{newer}");
    assert!((older - 5.0 / 0.529).abs() <= 1.0, "{older}");
}

#[test]
fn a_reduction_leaves_whole_segments() {
    for (cwnd, left) in [(10, 7.0), (15, 10.0), (90, 63.0), (100, 70.0), (3, 2.0)] {
        let mut path = Path::new(&whole(&cubic_only()), cwnd, RTT);
        path.lose();
        assert_eq!(path.cwnd(), left, "from {cwnd}");
    }
}

#[test]
fn at_the_plateau_a_hundred_windows_add_a_segment() {
    let mut path = Path::new(&whole(&cubic_only()), 50, RTT);
    path.lose();
    path.ack();
    let k = path.state("k").expect("an epoch has begun");
    path.pause(Duration::from_secs_f64(k - 0.1));
    while path.cwnd() < 50.0 {
        path.ack();
    }
    for _ in 0..(100 * 50 - 1) {
        path.ack();
    }
    assert_eq!(path.cwnd(), 50.0);
    path.ack();
    assert_eq!(path.cwnd(), 51.0);
}

#[test]
fn the_count_survives_a_reduction() {
    let grown_after = |flat: u64| {
        let mut path = Path::new(&whole(&cubic_only()), 50, RTT);
        path.lose();
        path.ack();
        let k = path.state("k").expect("an epoch has begun");
        path.pause(Duration::from_secs_f64(k - 0.1));
        while path.cwnd() < 50.0 {
            path.ack();
        }
        for _ in 0..flat {
            path.ack();
        }
        path.lose();
        let before = path.cwnd();
        path.ack();
        path.cwnd() - before
    };
    assert_eq!(grown_after(0), 0.0);
    assert_eq!(grown_after(1_000), 1.0);
}

#[test]
fn growth_is_at_most_half_the_window_in_a_round_trip() {
    let mut path = Path::new(&whole(&cubic_only()), 100, RTT);
    path.lose();
    path.ack();
    path.pause(Duration::from_secs(1_000));
    let before = path.cwnd();
    path.round_trip();
    assert!(path.cwnd() > 1.4 * before, "{before} to {}", path.cwnd());
    assert!(
        path.cwnd() <= 1.5 * before + 1.0,
        "{before} to {}",
        path.cwnd()
    );
    // Independent of the number of segments in one ACK.
    let before = path.cwnd();
    path.ack_as(|ack| ack.acked = SMSS * 10_000);
    assert!(
        path.cwnd() <= 1.5 * before + 1.0,
        "{before} to {}",
        path.cwnd()
    );
}

#[test]
fn before_the_first_loss_the_floor_counts_in_segments() {
    let config = whole(&cubic::Params {
        first_epoch_growth: Share::new(0.05).into(),
        hystart: OrStack::Own(Kind::Linux),
        ..cubic_only()
    });
    let mut path = Path::new(&config, 100, RTT);
    // A round trip of closely spaced ACKs ends slow start (see the tests of HyStart).
    for _ in 0..100 {
        path.ack();
        path.pause(Duration::from_millis(1));
    }
    assert!(path.ssthresh().is_finite());
    // The first growth starts a new count.
    let start = path.cwnd();
    while path.cwnd() == start {
        path.ack();
    }
    let before = path.cwnd();
    for _ in 0..40 {
        path.ack();
    }
    assert_eq!(path.cwnd(), before + 2.0);
}

/// The acknowledgment that ends slow start counts in congestion avoidance. In a flow of
/// `scenarios/live/reverse-load.toml`, whose kernel was traced at every acknowledgment, the 40th
/// ended slow start, and the window grew at the 59th, the 79th and the 99th. Detects a count that
/// begins with the next acknowledgment, as in stacks without such a clock.
#[test]
fn the_ack_that_ends_slow_start_counts() {
    let grown_after = |tick| {
        let config = whole(&cubic::Params {
            first_epoch_growth: Share::new(0.05).into(),
            hystart: OrStack::Own(Kind::Linux),
            ..cubic_only()
        });
        let mut init = Init::new(SMSS, SMSS * 100);
        init.stack.clock_tick = tick;
        let mut path = Path::from_init(&config, &init, RTT);
        while path.ssthresh().is_infinite() {
            path.pause(Duration::from_millis(1));
            path.ack();
        }
        let grows = |path: &mut Path| {
            let before = path.cwnd();
            path.ack();
            path.cwnd() > before
        };
        (1..61).filter(|_| grows(&mut path)).collect::<Vec<_>>()
    };
    assert_eq!(grown_after(Duration::from_millis(4)), [19, 39, 59]);
    assert_eq!(grown_after(Duration::ZERO), [20, 40, 60]);
}

/// Rounding gains a fixed time around the plateau, cbrt(1/C), and K grows with the window: larger
/// windows are closer to RFC 9438 §5.1, table 1.
#[test]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a few thousand"
)]
fn the_larger_the_windows_the_closer_to_the_rfc() {
    let mut excess = Vec::new();
    for (loss_interval, expected) in [(10_000, 187.0), (100_000, 1_054.0), (1_000_000, 5_926.0)] {
        let config = whole(&cubic::Params {
            fast_convergence: false,
            ..Default::default()
        });
        let mut path = Path::new(&config, (expected / 0.925) as u64, RTT);
        path.lose();
        let mean = path.mean_window_with_loss_every(loss_interval, 8);
        let early = cbrt(1.0 / C) / cbrt(expected / 0.925 * 0.3 / C);
        assert!(mean >= 0.995 * expected, "{mean} at {expected}");
        // The gain is less than the share of the stage that is cut short.
        assert!(mean <= (1.005 + early) * expected, "{mean} at {expected}");
        excess.push(mean / expected);
    }
    assert!(excess.is_sorted_by(|a, b| a > b), "{excess:?}");
}

/// With a clock that ticks the function is evaluated one `dMin` ahead, as in Algorithm 1 of the
/// paper: a queue that raises the smoothed round-trip time has no effect.
#[test]
fn a_kernel_evaluates_the_function_one_min_rtt_ahead() {
    let windows = |queued| {
        let mut init = Init::new(SMSS, SMSS * 1_000);
        init.stack.clock_tick = Duration::from_millis(4);
        let mut path = Path::from_init(&whole(&cubic_only()), &init, RTT);
        path.lose();
        path.queued = queued;
        let mut windows = Vec::new();
        for _ in 0..200 {
            for _ in 0..10 {
                path.ack();
            }
            path.pause(Duration::from_millis(50));
            windows.push(path.cwnd());
        }
        windows
    };
    let short = windows(Duration::ZERO);
    assert_eq!(short, windows(Duration::from_millis(200)));
    assert!(short[199] > 750.0, "{}", short[199]);
}

/// Trace of a kernel's CUBIC (6.18, 250 Hz) in a stage that began with seven segments of eleven, at
/// 1 % loss and 10 ms: the time in microseconds since one of its ticks, the segments that an
/// acknowledgment delivered, and the window after it. Recorded with
/// `anabranch run --engine live --trace acks`.
#[rustfmt::skip]
#[expect(clippy::unreadable_literal, reason = "as a trace has them")]
const KERNEL: &[(u64, u64, u32)] = &[
    (2664, 1, 7), (3597, 2, 7), (3741, 1, 7), (3974, 2, 7), (12842, 2, 8), (13883, 2, 8), (14246, 2, 8), (23018, 2, 8),
    (23135, 1, 8), (24048, 2, 8), (24167, 1, 8), (24518, 2, 8), (33307, 2, 8), (34332, 2, 8), (34570, 2, 8),
    (34799, 2, 8), (43604, 2, 8), (44614, 2, 9), (44856, 2, 9), (45081, 2, 9), (53933, 2, 9), (54900, 2, 9),
    (55138, 2, 9), (55378, 2, 9), (64109, 2, 9), (64222, 1, 9), (65208, 2, 9), (65422, 2, 9), (65652, 2, 9),
    (74403, 2, 9), (75371, 2, 9), (75491, 1, 9), (75729, 2, 9), (75958, 2, 9), (84687, 2, 10), (85656, 2, 11),
    (86014, 2, 11), (86250, 2, 12), (94865, 2, 12), (94978, 1, 12), (95819, 2, 12), (95941, 1, 12), (96298, 2, 12),
    (96539, 2, 12), (96766, 2, 12), (105153, 2, 12), (105981, 2, 12), (106099, 1, 12), (106462, 2, 12), (106579, 1, 12),
    (106818, 2, 12), (107049, 2, 12), (115442, 2, 12), (116265, 2, 12), (116747, 2, 12), (116974, 2, 12),
    (117223, 2, 12), (117461, 2, 12), (125732, 2, 13), (126548, 2, 13), (127028, 2, 13), (127268, 2, 13),
    (127508, 2, 13), (127739, 2, 14), (136023, 2, 14), (136820, 2, 14), (137310, 2, 14), (137550, 2, 14),
    (137789, 2, 14), (138030, 2, 14), (138268, 2, 14), (146309, 2, 14), (147104, 2, 14), (147590, 2, 14),
    (147833, 2, 14), (148071, 2, 14), (148310, 2, 14), (148540, 2, 14), (156591, 2, 14), (157410, 2, 14),
    (157879, 2, 14), (158118, 2, 14), (158357, 2, 14), (158598, 2, 14), (158828, 2, 14), (166890, 2, 14),
    (167696, 2, 14), (168163, 2, 15), (168404, 2, 15), (168644, 2, 15), (168884, 2, 15), (169126, 2, 15),
    (177178, 2, 15), (177976, 2, 15), (178441, 2, 15), (178681, 2, 15), (178925, 2, 15), (179165, 2, 15),
    (179409, 2, 15), (187350, 2, 15), (187462, 1, 15), (188257, 2, 15), (188744, 2, 15),
];

/// The function is evaluated once in eight ticks or once in a tick, not by elapsed time.
#[test]
fn the_window_grows_as_in_the_kernel() {
    let windows = |tick| {
        let mut init = Init::new(SMSS, SMSS * 11);
        init.stack.window_count = WindowCount::Segments;
        init.stack.reno_friendly = RenoFriendly::Rfc8312;
        init.stack.cubic_interval = Duration::from_micros(31_250);
        init.stack.clock_tick = tick;
        init.stack.cubic_count_outlives = false;
        let config = Config::Cubic(cubic::Params::default());
        let mut path = Path::from_init(&config, &init, Duration::from_millis(10));
        path.lose();
        let start = path.now;
        let mut windows = Vec::new();
        for &(at, acked, _) in KERNEL {
            path.now = start + Duration::from_micros(at);
            path.ack_as(|ack| ack.acked = SMSS * acked);
            windows.push(path.cwnd());
        }
        windows
    };
    let kernel: Vec<f64> = KERNEL.iter().map(|&(.., window)| window.into()).collect();
    assert_eq!(windows(Duration::from_millis(4)), kernel);
    assert_ne!(windows(Duration::from_millis(1)), kernel);
    assert_ne!(windows(Duration::ZERO), kernel);
}

proptest! {
    #[test]
    fn the_window_is_a_whole_number(
        initial in 1_u64..200,
        limit in 1_u32..10,
        friendly: bool,
        steps in proptest::collection::vec((0_u8..20, 1_u64..3_000_000), 1..400),
    ) {
        let config = whole(&cubic::Params {
            tcp_friendly: friendly,
            slow_start_limit: SlowStartLimit(OrStack::Own(Packets::new(limit))),
            ..Default::default()
        });
        let mut path = Path::new(&config, initial, RTT);
        for (what, bytes) in steps {
            match what {
                0 => path.lose(),
                1 => path.mark(),
                2 => path.rto(1),
                3 => path.spurious(false),
                4 => path.idle(Duration::from_secs(3)),
                _ => path.ack_as(|ack| ack.acked = anabranch_core::units::Bytes::new(bytes)),
            }
            path.pause(Duration::from_millis(10));
            prop_assert_eq!(path.cwnd().fract(), 0.0);
            prop_assert!(path.cwnd() >= 1.0);
        }
    }
}
