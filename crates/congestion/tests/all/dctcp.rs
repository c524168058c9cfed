//! DCTCP's equations (RFC 8257 §3.3) and their consequences.

use crate::support;

use anabranch_congestion::{
    Config, CongestionControl, Init,
    dctcp::Params,
    params::{DctcpGain, Form, OrStack, Share, WindowCount},
};
use anabranch_core::units::{Bytes, Duration};
use support::{Path, assert_near, segments};

fn path(window: u64, params: Params) -> Path {
    let mut path = Path::new(&Config::Dctcp(params), window, Duration::from_millis(1));
    // Out of slow start, and with a known window.
    path.congestion(anabranch_congestion::Signal::Loss, segments(2 * window));
    path
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a window of a few segments"
)]
/// A round trip in which every `n`-th segment is marked; 0 for none.
fn round_trip(path: &mut Path, n: u64) {
    path.round += 1;
    let window = path.control.cwnd().segments(support::SMSS).round() as u64;
    for i in 0..window {
        path.ack_as(|ack| {
            if n > 0 && i % n == 0 {
                ack.ce_marked = ack.acked;
            }
        });
    }
}

fn alpha(path: &Path) -> f64 {
    path.state("alpha").expect("it is DCTCP")
}

#[test]
fn alpha_moves_by_g_towards_the_share_of_marked_bytes() {
    let mut path = path(100, Params::default());
    assert_near(alpha(&path), 1.0, 0.0);
    // RFC 8257 §3.3 step 6, with g = 1/16: the marks of a window count when the next begins.
    let mut expected = 1.0;
    round_trip(&mut path, 4);
    for _ in 0..30 {
        let before = alpha(&path);
        round_trip(&mut path, 4);
        // The first ACK of a round ends the last one.
        let share = ((alpha(&path) - before * 15.0 / 16.0) * 16.0).clamp(0.0, 1.0);
        assert!((share - 0.25).abs() < 0.03 || path.round < 3, "{share}");
        expected = expected * 15.0 / 16.0 + 0.25 / 16.0;
    }
    assert_near(alpha(&path), expected, 0.05);
}

#[test]
fn a_window_with_marks_is_reduced_by_half_of_alpha() {
    for (initial, left) in [(1.0, 0.5), (0.5, 0.75), (0.1, 0.95), (0.0, 1.0)] {
        let mut path = Path::new(
            &Config::Dctcp(Params {
                initial_alpha: Share::new(initial),
                ..Params::default()
            }),
            100,
            Duration::from_millis(1),
        );
        path.mark();
        assert_near(path.cwnd(), left * 100.0, 1e-6);
    }
}

#[test]
fn a_loss_halves_the_window_at_any_alpha() {
    let mut path = Path::new(
        &Config::Dctcp(Params {
            initial_alpha: Share::new(0.1),
            ..Params::default()
        }),
        100,
        Duration::from_millis(1),
    );
    path.lose();
    assert_near(path.cwnd(), 50.0, 1e-6);
}

#[test]
fn without_marks_alpha_decays() {
    let mut path = path(50, Params::default());
    for _ in 0..200 {
        round_trip(&mut path, 0);
    }
    assert!(alpha(&path) < 1e-4);
}

#[test]
fn all_marked_with_g_of_one_is_reno() {
    let mut path = path(
        64,
        Params {
            g: DctcpGain::new(1.0),
            ..Params::default()
        },
    );
    round_trip(&mut path, 1);
    round_trip(&mut path, 1);
    assert_near(alpha(&path), 1.0, 1e-9);
    let before = path.cwnd();
    path.mark();
    assert_near(path.cwnd(), before / 2.0, 0.02);
}

#[test]
fn marks_never_leave_less_than_two_segments() {
    let mut path = Path::new(
        &Config::Dctcp(Params::default()),
        2,
        Duration::from_millis(1),
    );
    path.mark();
    assert_eq!(path.control.cwnd(), segments(2));
    assert!(path.control.cwnd() > Bytes::ZERO);
}

/// Measured with Linux 6.12: 63 segments become 38 after three windows without marks. Rounding the
/// remaining window would give 37.
#[test]
fn a_window_of_whole_segments_is_reduced_by_whole_segments() {
    let mut init = Init::new(support::SMSS, segments(63));
    init.stack.window_count = WindowCount::Segments;
    for (alpha, left) in [(0.823_974_609_375, 38), (0.8, 38), (0.04, 62), (0.03, 63)] {
        let params = Params {
            initial_alpha: Share::new(alpha),
            ..Params::default()
        };
        let mut path = Path::from_init(&Config::Dctcp(params), &init, Duration::from_millis(1));
        path.mark();
        assert_eq!(path.control.cwnd(), segments(left), "{alpha}");
    }
}

/// Measured with Linux 6.12: below 16/1024 a window removes all of `alpha`, so that consecutive
/// windows with a fifth of them marked leave 12 or 13 of 1024, and a window without marks leaves 0.
/// Detects an `alpha` in real numbers, which approaches 205/1024.
#[test]
fn in_the_form_of_linux_a_small_alpha_does_not_accumulate() {
    let mut path = path(
        100,
        Params {
            form: OrStack::Own(Form::Linux),
            initial_alpha: Share::new(0.0),
            ..Params::default()
        },
    );
    let mut units = Vec::new();
    for n in [0, 5, 5, 5, 0, 0, 5, 0] {
        round_trip(&mut path, n);
        units.push((alpha(&path) * 1024.0).round().to_string());
    }
    // The marks of a window count when the next begins; the first segment of that one, which is
    // marked, counts with them.
    assert_eq!(units, ["0", "1", "13", "13", "12", "0", "1", "12"]);
}
