//! Reno against RFC 5681.

#![expect(clippy::float_cmp, reason = "small whole numbers and copies are exact")]

use crate::support;

use anabranch_congestion::{
    Config, CongestionControl, Signal,
    params::{OrStack, Packets, ReductionBase, SlowStartLimit},
    reno::{Avoidance, Params},
};
use anabranch_core::units::{Bytes, Duration};
use support::{Path, SMSS, assert_near, segments};

const RTT: Duration = Duration::from_millis(100);

fn reno(params: Params) -> Config {
    Config::Reno(params)
}

/// The window after a round trip in which every ACK acknowledges `every` segments.
fn after_round_trip(config: &Config, cwnd: u64, every: u64, avoidance: bool) -> f64 {
    let mut path = Path::new(config, cwnd * if avoidance { 2 } else { 1 }, RTT);
    if avoidance {
        path.lose();
    }
    assert_eq!(path.cwnd(), cwnd as f64);
    for _ in 0..cwnd / every {
        path.ack_as(|ack| ack.acked = segments(every));
    }
    path.cwnd()
}

#[test]
fn slow_start_grows_by_a_segment_per_ack() {
    let config = reno(Params::default());
    assert_eq!(after_round_trip(&config, 20, 1, false), 40.0);
    assert_eq!(after_round_trip(&config, 20, 2, false), 30.0);
    // RFC 3465 §2.3.
    let config = reno(Params {
        slow_start_limit: SlowStartLimit(OrStack::Own(Packets::new(2))),
        ..Params::default()
    });
    assert_eq!(after_round_trip(&config, 20, 2, false), 40.0);
    assert_eq!(after_round_trip(&config, 20, 4, false), 30.0);
}

#[test]
fn congestion_avoidance_grows_by_a_segment_per_round_trip() {
    let config = reno(Params::default());
    assert_eq!(after_round_trip(&config, 20, 1, true), 21.0);
    assert_eq!(after_round_trip(&config, 20, 2, true), 21.0);
}

#[test]
fn bytes_beyond_a_window_count_towards_the_next() {
    let mut path = Path::new(&reno(Params::default()), 8, RTT);
    path.lose();
    let mut windows = Vec::new();
    for _ in 0..5 {
        path.ack_as(|ack| ack.acked = segments(3));
        windows.push(path.cwnd());
    }
    assert_eq!(windows, [4.0, 5.0, 6.0, 6.0, 7.0]);
}

/// RFC 2525 §2.6: with 20 segments a round trip adds another 20 eighths, and more with larger
/// windows.
#[test]
fn an_extra_eighth_grows_with_the_window() {
    let config = reno(Params {
        avoidance: Avoidance::Acks,
        extra_eighth: true,
        ..Params::default()
    });
    assert_near(after_round_trip(&config, 20, 1, true), 23.42, 0.005);
    assert_near(after_round_trip(&config, 40, 1, true), 45.94, 0.005);
    assert_eq!(after_round_trip(&config, 20, 1, false), 40.0);
}

#[test]
fn counting_acks_grows_half_as_fast_with_delayed_acks() {
    let config = reno(Params {
        avoidance: Avoidance::Acks,
        ..Params::default()
    });
    assert_near(after_round_trip(&config, 20, 1, true), 21.0, 0.002);
    assert_near(after_round_trip(&config, 20, 2, true), 20.5, 0.002);
}

#[test]
fn slow_start_stops_at_ssthresh() {
    let config = reno(Params {
        slow_start_limit: SlowStartLimit(OrStack::Own(Packets::new(1_000))),
        ..Params::default()
    });
    let mut path = Path::new(&config, 20, RTT);
    path.rto(1);
    path.ack_as(|ack| ack.acked = segments(15));
    assert_eq!((path.cwnd(), path.ssthresh()), (10.0, 10.0));
}

#[test]
fn a_loss_halves_flight_size_or_the_window() {
    for (reduce_from, expected) in [
        (ReductionBase::FlightSize, 20.0),
        (ReductionBase::Cwnd, 50.0),
    ] {
        let mut path = Path::new(
            &reno(Params {
                reduce_from: OrStack::Own(reduce_from),
                ..Params::default()
            }),
            100,
            RTT,
        );
        path.congestion(Signal::Loss, segments(40));
        assert_eq!((path.cwnd(), path.ssthresh()), (expected, expected));
    }
}

#[test]
fn a_second_timeout_holds_ssthresh() {
    let mut path = Path::new(&reno(Params::default()), 100, RTT);
    path.rto(1);
    assert_eq!((path.cwnd(), path.ssthresh()), (1.0, 50.0));
    path.rto(2);
    assert_eq!((path.cwnd(), path.ssthresh()), (1.0, 50.0));
}

#[test]
fn a_spurious_timeout_is_undone() {
    let mut path = Path::new(&reno(Params::default()), 100, RTT);
    path.rto(1);
    path.ack();
    path.spurious(true);
    assert_eq!((path.cwnd(), path.ssthresh()), (100.0, f64::INFINITY));
}

#[test]
fn a_long_idle_time_leaves_the_initial_window() {
    let mut path = Path::new(&reno(Params::default()), 10, RTT);
    path.round_trip();
    path.idle(Duration::from_millis(900));
    assert_eq!(path.cwnd(), 20.0);
    path.idle(Duration::from_millis(1_100));
    assert_eq!(path.cwnd(), 10.0);
}

#[test]
fn the_window_is_at_least_a_segment_from_the_start() {
    let init = anabranch_congestion::Init::new(SMSS, Bytes::ZERO);
    assert_eq!(reno(Params::default()).build(&init).cwnd(), SMSS);
}
