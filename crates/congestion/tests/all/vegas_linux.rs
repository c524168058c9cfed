//! Vegas in the form of Linux, by the measured behaviour of Linux 6.12
//! (`validation/data/linux-controls.csv`).

use crate::support;

use anabranch_congestion::{
    Config, CongestionControl, Init,
    params::{Form, OrStack},
    vegas::{Params, RttEstimate},
};
use anabranch_core::units::Duration;
use support::{Path, SMSS, assert_near, segments};

const RTT: Duration = Duration::from_millis(100);

fn linux() -> Params {
    Params {
        form: OrStack::Own(Form::Linux),
        ..Params::default()
    }
}

/// A path with Linux's slow start, which has no limit per acknowledgment.
fn path(params: Params, initial: u64) -> Path {
    let mut init = Init::new(SMSS, segments(initial));
    init.stack.slow_start_limit = f64::INFINITY;
    Path::from_init(&Config::Vegas(params), &init, RTT)
}

/// Acknowledges `each` segments, with `outstanding` segments left, at an RTT that is longer by
/// `queued`.
fn ack(path: &mut Path, each: u64, outstanding: u64, queued: Duration) {
    path.ack_as(|ack| {
        ack.acked = segments(each);
        ack.in_flight = segments(outstanding);
        ack.rtt = Some(RTT + queued);
    });
}

/// A round trip with one acknowledgment for each of `queued`; the last one ends it.
fn round_trip(path: &mut Path, queued: &[Duration]) {
    for &queue in queued {
        ack(path, 1, queued.len() as u64 - 1, queue);
    }
}

/// A path after a recovery, in congestion avoidance at `window`, with `BaseRTT` measured and a
/// round trip of `acks` begun.
fn avoiding(params: Params, window: u64, acks: u64) -> Path {
    let mut path = path(params, 2 * window);
    path.lose();
    path.ack_as(|ack| ack.in_recovery = true);
    path.recovered();
    ack(&mut path, 1, acks - 1, Duration::ZERO);
    round_trip(
        &mut path,
        &vec![Duration::ZERO; usize::try_from(acks).expect("few")],
    );
    assert_near(path.cwnd(), window as f64 + 1.0, 0.0);
    path
}

#[test]
fn the_queue_is_computed_from_the_smallest_rtt_of_a_round_trip() {
    let mut bursts = [Duration::from_millis(20); 100];
    bursts[40] = Duration::ZERO;
    for (rtt, change) in [(RttEstimate::Least, 1.0), (RttEstimate::Mean, -1.0)] {
        let params = Params {
            rtt: OrStack::Own(rtt),
            ..linux()
        };
        let mut path = avoiding(params, 99, 100);
        round_trip(&mut path, &bursts);
        assert_near(path.cwnd(), 100.0 + change, 0.0);
    }
}

#[test]
fn the_window_grows_below_two_packets_queued_and_shrinks_above_four() {
    for (window, queued_us, packets, change) in [
        (10, 19_900, 1.0, 1.0),
        (10, 20_000, 2.0, 0.0),
        (10, 49_900, 4.0, 0.0),
        (10, 50_000, 5.0, -1.0),
        (1_000, 199, 1.0, 1.0),
        (1_000, 200, 2.0, 0.0),
        (1_000, 499, 4.0, 0.0),
        (1_000, 500, 5.0, -1.0),
        // By the paper's formula, (1 - BaseRTT / RTT) · cwnd, 4 packets are queued.
        (10, 66_700, 6.0, -1.0),
    ] {
        let mut path = avoiding(linux(), window - 1, 10);
        round_trip(&mut path, &[Duration::from_micros(queued_us); 10]);
        assert_near(path.cwnd(), window as f64 + change, 0.0);
        assert_near(path.state("queued").expect("a state"), packets, 0.0);
    }
}

#[test]
fn slow_start_doubles_in_every_round_trip() {
    let mut path = path(linux(), 9);
    ack(&mut path, 1, 9, Duration::ZERO);
    for window in [10_u64, 20, 40, 80] {
        assert_near(path.cwnd(), window as f64, 0.0);
        for _ in 1..window {
            ack(&mut path, 1, 0, Duration::ZERO);
        }
        ack(&mut path, 1, 2 * window - 1, Duration::ZERO);
    }
    assert!(path.control.ssthresh().is_none());
}

#[test]
fn slow_start_ends_one_segment_above_the_empty_path() {
    let mut path = path(linux(), 83);
    ack(&mut path, 1, 3, Duration::ZERO);
    round_trip(&mut path, &[Duration::ZERO; 4]);
    assert_near(path.cwnd(), 88.0, 0.0);
    round_trip(&mut path, &[Duration::from_millis(5); 4]);
    // The last acknowledgment finds 91 segments, and the path holds 86 without a queue.
    assert_near(path.cwnd(), 87.0, 0.0);
    assert_near(path.ssthresh(), 87.0, 0.0);
}

#[test]
fn a_round_trip_with_two_samples_counts_as_reno() {
    for (samples, grown) in [(2, 1.0), (3, 0.0)] {
        let mut path = avoiding(linux(), 3, samples);
        // A queue with which Vegas would shrink the window; four of these acknowledgments are for
        // two segments each.
        for _ in 0..2 {
            for n in 1..=samples {
                let outstanding = 2 * (samples - 1);
                ack(
                    &mut path,
                    2,
                    if n == samples { outstanding } else { 0 },
                    RTT * 2,
                );
            }
        }
        assert!(
            (path.cwnd() > 4.0) == (grown > 0.0),
            "{samples}: {}",
            path.cwnd()
        );
    }
}

#[test]
fn a_pause_discards_the_base() {
    let longer = Duration::from_millis(50);
    let after = |pause: bool| {
        let mut path = avoiding(linux(), 99, 10);
        if pause {
            path.idle(Duration::from_millis(200));
        }
        ack(&mut path, 1, 9, longer);
        for _ in 0..3 {
            round_trip(&mut path, &[longer; 10]);
        }
        path.cwnd()
    };
    assert!(after(true) > 100.0 && after(false) < 100.0);
}

#[test]
fn a_window_that_is_not_used_grows() {
    let mut path = avoiding(linux(), 99, 10);
    for n in 0..10 {
        path.ack_as(|ack| {
            ack.in_flight = segments(if n == 9 { 9 } else { 0 });
            ack.cwnd_limited = false;
        });
    }
    assert_near(path.cwnd(), 101.0, 0.0);
}

#[test]
fn ssthresh_is_three_quarters_of_the_window_at_least() {
    let mut path = avoiding(linux(), 99, 10);
    for _ in 0..60 {
        round_trip(&mut path, &[Duration::ZERO; 10]);
    }
    // 160 / 2 + 160 / 4.
    assert_near(path.cwnd(), 160.0, 0.0);
    assert_near(path.ssthresh(), 120.0, 0.0);
}

#[test]
fn vegas_is_inactive_until_data_from_before_a_timeout_is_acknowledged() {
    let mut path = avoiding(linux(), 99, 10);
    path.rto(1);
    assert_near(path.ssthresh(), 50.0, 0.0);
    // Slow start, independent of the queue: 100 segments are outstanding.
    for n in 0..40 {
        ack(&mut path, 1, 99 - n, RTT);
    }
    assert_near(path.cwnd(), 41.0, 0.0);
}
