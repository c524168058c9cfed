//! `cubic-plus` beyond CUBIC: a restart if losses are found late in a recovery.

use anabranch_bpf::{Source, native};
use anabranch_congestion::{Ack, Congestion, CongestionControl, Init, Recovered, Sent, Signal};
use anabranch_core::{
    interrupt::Interrupt,
    units::{Bytes, Duration, Instant},
};

const SMSS: u64 = 1000;
const RTT_MS: u64 = 40;

/// A window of a hundred segments, 0.1 s after the start, all of it in flight.
fn at_a_hundred() -> Box<dyn CongestionControl> {
    let source = Source::shipped("cubic-plus").expect("it ships");
    let make = native::factory(&source, &Interrupt::default()).expect("it compiles");
    let mut control = make(&Init::new(Bytes::new(SMSS), Bytes::new(100 * SMSS)));
    for _ in 0..100 {
        control.on_sent(&Sent {
            now: Instant::from_millis(60),
            bytes: Bytes::new(SMSS),
            in_flight: Bytes::new(100 * SMSS),
            retransmission: false,
            srtt: Duration::from_millis(RTT_MS),
        });
    }
    control
}

fn ack(ms: u64, lost: u64, in_recovery: bool) -> Ack {
    Ack {
        now: Instant::from_millis(ms),
        acked: Bytes::new(SMSS),
        sacked: Bytes::ZERO,
        delivered: Bytes::new(SMSS),
        lost: Bytes::new(lost * SMSS),
        ce_marked: Bytes::ZERO,
        prior_in_flight: Bytes::new(100 * SMSS),
        in_flight: Bytes::new(99 * SMSS),
        rtt: Some(Duration::from_millis(RTT_MS)),
        rtt_by_timestamp: None,
        srtt: Duration::from_millis(RTT_MS),
        min_rtt: Duration::from_millis(RTT_MS),
        rate: None,
        round: 1,
        cwnd_limited: true,
        app_limited: false,
        in_recovery,
    }
}

/// The window after a recovery that begins at 100 ms and finds a loss at `ms`.
fn window_after(ms: u64) -> u64 {
    recovered_after(ms).cwnd().get() / SMSS
}

/// A control after a recovery that begins at 100 ms and finds a loss at `ms`.
fn recovered_after(ms: u64) -> Box<dyn CongestionControl> {
    let mut control = at_a_hundred();
    control.on_ack(&ack(99, 0, false));
    control.on_congestion(&Congestion {
        now: Instant::from_millis(100),
        signal: Signal::Loss,
        in_flight: Bytes::new(100 * SMSS),
    });
    control.on_ack(&ack(100, 1, true));
    control.on_ack(&ack(ms, 1, true));
    control.on_recovered(&Recovered {
        now: Instant::from_millis(250),
        in_flight: Bytes::ZERO,
        cwnd_limit: None,
    });
    control.on_ack(&ack(250, 0, true));
    control
}

#[test]
fn losses_within_the_lost_window_are_one_loss() {
    // Slow start has added the segment acknowledged before.
    assert_eq!(window_after(100 + RTT_MS), 101 * 7 / 10);
}

#[test]
fn a_loss_later_than_a_round_trip_and_a_quarter_restarts() {
    assert_eq!(window_after(100 + RTT_MS * 5 / 4 + 1), 1);
}

/// RFC 9937 sends ssthresh ÷ window segments for each delivered one: a quotient of 2 floods the
/// queue, because the whole flight of the recovery before is still to be delivered.
#[test]
fn a_loss_after_a_restart_reduces_to_no_more_than_the_window() {
    let mut control = recovered_after(100 + RTT_MS * 5 / 4 + 1);
    let window = control.cwnd();
    control.on_congestion(&Congestion {
        now: Instant::from_millis(260),
        signal: Signal::Loss,
        in_flight: Bytes::new(100 * SMSS),
    });
    assert!(control.ssthresh().expect("it was reduced") <= window);
}
