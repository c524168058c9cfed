//! BIC in the form of Linux, by the windows of Linux 6.12 (`validation/data/linux-controls.csv`).

use crate::support;

use anabranch_congestion::{
    Config, CongestionControl, Init,
    bic::Params,
    params::{Form, OrStack},
};
use anabranch_core::units::Duration;
use support::{Path, SMSS, assert_near, segments};

const RTT: Duration = Duration::from_millis(100);

/// A path with Linux's count and its unlimited slow start, after a first loss, which leaves
/// `0.8 · window`.
fn lost_at(window: u64) -> Path {
    let config = Config::Bic(Params {
        form: OrStack::Own(Form::Linux),
        ..Params::default()
    });
    let init = Init::new(SMSS, segments(window));
    let mut path = Path::from_init(&config, &init, RTT);
    path.lose();
    path.recovered();
    path
}

/// Growth over a round trip in which each acknowledgment is for `each` segments, once the mean has
/// adapted.
fn growth(path: &mut Path, each: u64) -> f64 {
    let before = path.cwnd();
    let window = path.control.cwnd().get() / SMSS.get();
    for _ in 0..window / each {
        path.ack_as(|ack| ack.acked = segments(each));
    }
    path.cwnd() - before
}

/// Acknowledges `each` segments at a time until the window is `window`.
fn grown_to(path: &mut Path, window: f64, each: u64) {
    while path.cwnd() < window {
        path.ack_as(|ack| ack.acked = segments(each));
    }
}

#[test]
fn a_loss_leaves_819_of_1024_in_whole_segments() {
    for (window, left) in [
        (484, 387.0),
        (442, 353.0),
        (100, 79.0),
        (14, 7.0),
        (15, 11.0),
    ] {
        assert_near(lost_at(window).cwnd(), left, 0.0);
    }
}

/// After a loss at 484 segments, a loss at 442: the maximum is the middle between 442 and the
/// reduced window of 353.
#[test]
fn an_early_loss_lowers_the_maximum() {
    let mut path = lost_at(484);
    grown_to(&mut path, 442.0, 2);
    path.lose();
    assert_near(path.cwnd(), 353.0, 0.0);
    assert_near(path.state("max_win").expect("a maximum"), 397.0, 0.0);
}

/// The mean number of segments per acknowledgment starts at two and hardly falls: all steps are
/// twice the documented ones.
#[test]
fn a_round_trip_adds_half_of_the_distance() {
    for each in [1, 2] {
        let mut path = lost_at(1_000);
        // At most 2 · 16 segments per round trip: the distance is 100.
        grown_to(&mut path, 900.0, each);
        assert_near(growth(&mut path, each), 32.0, 0.1);
        grown_to(&mut path, 968.0, each);
        // Half of 32, less the growth of the window on the way.
        assert_near(growth(&mut path, each), 13.0, 0.2);
    }
}

/// Linux 6.12, 60 ms: the window grows from 3 segments at 1.29 s to 14 at 2.15 s.
#[test]
fn up_to_low_window_a_round_trip_adds_one_segment() {
    for each in [1, 2] {
        let mut path = lost_at(12);
        assert_near(path.cwnd(), 6.0, 0.0);
        let mut acked = 0;
        while path.cwnd() < 14.0 {
            path.ack_as(|ack| ack.acked = segments(each));
            acked += each;
        }
        let one_a_round_trip: u64 = (6..14).sum();
        assert!(acked.abs_diff(one_a_round_trip) <= 2, "{acked}");
    }
}

/// Within four segments of the maximum a segment takes five round trips by the parameters, and half
/// of that in effect.
#[test]
fn the_window_is_flat_around_the_maximum() {
    for each in [1, 2] {
        let mut path = lost_at(400);
        grown_to(&mut path, 397.0, each);
        let mut acked = 0;
        while path.cwnd() < 402.0 {
            path.ack_as(|ack| ack.acked = segments(each));
            acked += each;
        }
        assert_near(acked as f64 / 400.0, 5.0 * 2.5, 0.05);
    }
}

#[test]
fn beyond_the_maximum_a_round_trip_adds_two_thirds_of_the_distance() {
    let mut path = lost_at(400);
    grown_to(&mut path, 415.0, 2);
    // Two thirds of 15 to 28, as the window grows meanwhile.
    assert_near(growth(&mut path, 2), 14.0, 0.15);
    grown_to(&mut path, 460.0, 2);
    assert_near(growth(&mut path, 2), 32.0, 0.1);
}

#[test]
fn a_timeout_discards_the_maximum() {
    let mut path = lost_at(484);
    path.rto(1);
    assert!(path.state("max_win").is_none());
    let ssthresh = path.ssthresh();
    grown_to(&mut path, ssthresh, 1);
    // Two twentieths of the window.
    let window = path.cwnd();
    assert_near(growth(&mut path, 1), window / 10.0, 0.1);
}
