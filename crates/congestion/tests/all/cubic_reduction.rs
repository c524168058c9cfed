//! CUBIC's reductions at losses, marks, timeouts and pauses, and their undo (RFC 9438 §4.6 to §4.9,
//! §5.8).

use crate::support;

use anabranch_congestion::{
    Config, Init, Signal, StackHabits, cubic,
    params::{OrStack, ReductionBase},
};
use anabranch_core::units::Duration;
use support::{
    Path, SMSS, assert_near,
    cubic::{C, cubed, cubic_only, reduced_at},
    segments,
};

const RTT: Duration = Duration::from_millis(100);

#[test]
fn fast_convergence_lowers_w_max_only_below_the_last_plateau() {
    for (fast_convergence, expected) in [(true, 70.0 * 1.7 / 2.0), (false, 70.0)] {
        let config = Config::Cubic(cubic::Params {
            fast_convergence,
            ..Default::default()
        });
        let mut path = reduced_at(&config, 100, RTT);
        assert_near(path.state("w_max").expect("after a loss"), 100.0, 1e-9);
        path.lose();
        assert_near(path.state("w_max").expect("after a loss"), expected, 1e-9);
        assert_near(path.cwnd(), 49.0, 1e-6);
        // K follows from the reduced plateau.
        path.ack();
        let k = path.state("k").expect("an epoch has begun");
        assert_near(C * cubed(k), expected - 49.0, 1e-6);
    }
}

#[test]
fn after_a_timeout_the_plateau_is_the_window_after_slow_start() {
    let mut path = reduced_at(&Config::Cubic(cubic::Params::default()), 100, RTT);
    path.rto(1);
    assert_near(path.cwnd(), 1.0, 1e-9);
    assert_near(path.ssthresh(), 49.0, 1e-6);
    path.rto(2);
    assert_near(path.ssthresh(), 49.0, 1e-6);
    while path.cwnd() < path.ssthresh() {
        path.round_trip();
    }
    path.ack();
    assert_eq!(path.state("k"), Some(0.0));
    assert_near(path.state("w_max").expect("an epoch has begun"), 49.0, 1e-6);
}

#[test]
fn a_spurious_reduction_is_undone_unless_outgrown() {
    let config = Config::Cubic(cubic::Params::default());
    for timeout in [false, true] {
        let mut path = reduced_at(&config, 100, RTT);
        path.round_trip();
        let before = (
            path.cwnd(),
            path.ssthresh(),
            path.state("w_max"),
            path.state("k"),
        );
        if timeout {
            path.rto(1);
        } else {
            path.lose();
        }
        assert!(path.cwnd() < before.0);
        path.round_trip();
        path.spurious(timeout);
        let after = (
            path.cwnd(),
            path.ssthresh(),
            path.state("w_max"),
            path.state("k"),
        );
        assert_eq!(after, before);
        // Only once.
        path.spurious(timeout);
        assert_eq!((path.cwnd(), path.ssthresh()), (before.0, before.1));
    }

    let mut path = reduced_at(&config, 100, RTT);
    for _ in 0..200 {
        path.round_trip();
    }
    let outgrown = (path.cwnd(), path.ssthresh());
    assert!(outgrown.0 > 100.0);
    path.spurious(false);
    assert_eq!((path.cwnd(), path.ssthresh()), outgrown);
}

#[test]
fn time_in_which_the_window_is_not_used_does_not_count() {
    let mut straight = reduced_at(&cubic_only(), 1_000, RTT);
    let mut limited = reduced_at(&cubic_only(), 1_000, RTT);
    let mut idle = reduced_at(&cubic_only(), 1_000, RTT);
    for path in [&mut straight, &mut limited, &mut idle] {
        path.ack();
    }
    limited.ack_as(|ack| ack.cwnd_limited = false);
    limited.pause(Duration::from_secs(30));
    limited.ack_as(|ack| ack.cwnd_limited = false);
    idle.idle(Duration::from_millis(900));
    for path in [&mut straight, &mut limited, &mut idle] {
        path.ack();
    }
    assert_near(limited.cwnd(), straight.cwnd(), 1e-9);
    assert_near(idle.cwnd(), straight.cwnd(), 1e-9);
}

#[test]
fn a_long_idle_time_leaves_the_initial_window() {
    let mut path = Path::new(&Config::Cubic(cubic::Params::default()), 10, RTT);
    for _ in 0..4 {
        path.round_trip();
    }
    assert!(path.cwnd() > 100.0);
    path.idle(Duration::from_secs(2));
    assert_near(path.cwnd(), 10.0, 1e-9);
}

#[test]
fn a_mark_may_leave_one_segment_and_a_loss_two() {
    let config = Config::Cubic(cubic::Params::default());
    let mut path = Path::new(&config, 1, RTT);
    path.mark();
    assert_eq!((path.cwnd(), path.ssthresh()), (1.0, 2.0));
    path.lose();
    assert_eq!((path.cwnd(), path.ssthresh()), (2.0, 2.0));
}

#[test]
fn a_reduction_starts_from_flight_size_or_from_the_window() {
    for (reduce_from, expected) in [
        (ReductionBase::FlightSize, 28.0),
        (ReductionBase::Cwnd, 70.0),
    ] {
        let config = Config::Cubic(cubic::Params {
            reduce_from: OrStack::Own(reduce_from),
            ..Default::default()
        });
        let mut path = Path::new(&config, 100, RTT);
        path.congestion(Signal::Loss, segments(40));
        assert_near(path.cwnd(), expected, 1e-6);
    }
    // Limited transmit does not count (RFC 5681 §3.2).
    let mut path = Path::new(&Config::Cubic(cubic::Params::default()), 100, RTT);
    path.congestion(Signal::Loss, segments(102));
    assert_near(path.cwnd(), 70.0, 1e-6);
}

/// §4.9, and Linux's variant: the reduction still counts as the first one, with its plateau.
#[test]
fn a_spurious_reduction_may_keep_its_plateau() {
    for restores in [true, false] {
        let stack = StackHabits {
            undo_restores_w_max: restores,
            ..StackHabits::default()
        };
        let init = Init {
            stack,
            ..Init::new(SMSS, segments(40))
        };
        let mut path = Path::from_init(&cubic_only(), &init, RTT);
        path.lose();
        assert_near(path.cwnd(), 28.0, 1e-6);
        path.spurious(false);
        assert_near(path.cwnd(), 40.0, 1e-6);
        assert!(path.ssthresh().is_infinite(), "slow start goes on");
        let w_max = path.state("w_max");
        assert_eq!(w_max, if restores { None } else { Some(40.0) });
    }
}
