//! The clocks of 4.4BSD-Lite: delayed acknowledgments are sent on ticks of 200 ms, retransmission
//! timers expire on ticks of 500 ms, and round-trip times are counted in ticks.

use crate::support;

use anabranch_core::{
    body::Length,
    units::{Duration, Instant, text::Limit},
};
use anabranch_tcp::{DelayedAck, Profile, Settings};
use support::{Link, Net, plain::ms};

fn bsd() -> Settings {
    Settings {
        mss: 536,
        ..Profile::named("bsd44-lite").expect("it exists").settings
    }
}

/// A connection opened at `start`, 10 ms each way. `lose`: data segments to drop, from 0.
fn net(s: &Settings, start: Instant, lose: &[u32]) -> Net<Length> {
    let mut net = closed(s, start, lose);
    net.open();
    net
}

fn closed(s: &Settings, start: Instant, lose: &[u32]) -> Net<Length> {
    let link = Link {
        lose: lose.to_vec(),
        ..Link::default()
    };
    let mut net = Net::new(s, s, link, [100, 200]);
    net.now = start;
    net.logging = true;
    net
}

/// Returns the time of the acknowledgment of a lone segment that arrived `arrives_ms` after the
/// start.
fn acknowledged(s: &Settings, arrives_ms: u64) -> Instant {
    let mut net = net(s, ms(0), &[]);
    net.run_until(ms(arrives_ms - 10));
    net.ends[0].write_all(Length(100));
    net.flush();
    net.run_until(ms(arrives_ms + 1_000));
    let acks: Vec<Instant> = net
        .log
        .iter()
        .filter(|(at, from, ..)| *from == 1 && *at >= ms(arrives_ms))
        .map(|(at, ..)| *at)
        .collect();
    assert_eq!(acks.len(), 1, "{:?}", net.log);
    acks[0]
}

/// One timer serves all connections. Detects a fixed timeout of 200 ms from each arrival.
#[test]
fn acknowledgments_wait_for_the_next_tick_of_200_ms() {
    let s = bsd();
    for (arrives, leaves) in [
        (110, 200),
        (199, 200),
        (200, 400),
        (201, 400),
        (390, 400),
        (1_050, 1_200),
    ] {
        assert_eq!(
            acknowledged(&s, arrives),
            ms(leaves),
            "arrived at {arrives} ms"
        );
    }
    let DelayedAck::On(mut table) = s.delayed_ack else {
        panic!("it delays")
    };
    table.ticking = false;
    let own = Settings {
        delayed_ack: DelayedAck::On(table),
        ..s
    };
    assert_eq!(acknowledged(&own, 110), ms(310));
}

/// Every second segment is acknowledged at once, independently of the clock.
#[test]
fn every_second_segment_is_acknowledged_at_once() {
    let mut net = net(&bsd(), ms(0), &[]);
    net.run_until(ms(100));
    net.ends[0].write_all(Length(536 * 12));
    net.flush();
    net.run_until(ms(5_000));
    let acks: Vec<u32> = net
        .log
        .iter()
        .filter(|(at, from, ..)| *from == 1 && *at >= ms(100))
        .map(|(.., ack, _)| (ack - 101) / 536)
        .collect();
    // The first segment alone, because the initial window is one; then pairs.
    assert_eq!(acks[0], 1);
    assert_eq!(net.ends[1].stats().delivered_bytes, 536 * 12);
    assert!(
        acks.windows(2).all(|pair| pair[1] - pair[0] <= 2),
        "{acks:?}"
    );
}

/// A lost SYN is retransmitted on the twelfth tick, from any point within a tick.
#[test]
fn a_syn_is_sent_again_with_the_twelfth_tick() {
    for (start, again) in [
        (0, 6_000),
        (1, 6_000),
        (499, 6_000),
        (500, 6_500),
        (730, 6_500),
    ] {
        let mut net = closed(&bsd(), ms(start), &[]);
        net.link.loss = 1.0;
        net.open();
        net.run_until(ms(5_999));
        net.link.loss = 0.0;
        net.run_until(ms(10_000));
        let syns: Vec<Instant> = net
            .log
            .iter()
            .filter(|(_, from, ..)| *from == 0)
            .map(|(at, ..)| *at)
            .take(2)
            .collect();
        assert_eq!(syns, [ms(start), ms(again)]);
    }
}

/// Timeouts of data end up to one tick early, and double each time.
#[test]
fn timeouts_end_with_ticks_and_double() {
    let lose: Vec<u32> = (0..5).collect();
    let mut net = net(&bsd(), ms(0), &lose);
    net.run_until(ms(700));
    net.ends[0].write_all(Length(100));
    net.flush();
    net.run_until(ms(200_000));
    let sent: Vec<Instant> = net
        .log
        .iter()
        .filter(|(.., len)| *len > 0)
        .map(|(at, ..)| *at)
        .collect();
    assert_eq!(net.ends[1].stats().delivered_bytes, 100);
    assert!(
        sent[1..]
            .iter()
            .all(|at| at.as_picos() % ms(500).as_picos() == 0),
        "{sent:?}"
    );
    // The handshake crossed no tick: SRTT is one tick, RTTVAR half of one, the timeout three.
    let gaps: Vec<Duration> = sent.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let seconds = Duration::from_millis(1_500);
    assert!(
        gaps[0] > seconds - Duration::from_millis(500) && gaps[0] <= seconds,
        "{gaps:?}"
    );
    for (n, gap) in gaps.iter().enumerate().skip(1) {
        assert_eq!(*gap, seconds * (1 << n), "{gaps:?}");
    }
}

/// A coarse clock hides round-trip times: the timeout falls to three ticks and no further, because
/// whole quarters of a tick stop falling below one tick.
#[test]
fn short_round_trips_leave_three_ticks() {
    let mut s = bsd();
    s.receive_window = Limit::Unlimited;
    s.send_buffer = Limit::Unlimited;
    let mut net = net(&s, ms(0), &[]);
    net.run_until(ms(100));
    net.ends[0].write_all(Length(536 * 2_000));
    net.flush();
    net.run_until(ms(60_000));
    assert_eq!(net.ends[1].stats().delivered_bytes, 536 * 2_000);
    let before = net.log.len();
    net.link.loss = 1.0;
    net.ends[0].write_all(Length(100));
    net.flush();
    net.run_until(ms(71_000));
    let sent: Vec<Instant> = net.log[before..].iter().map(|(at, ..)| *at).collect();
    // Sent with a tick at 60 s; the timeouts are 3, 6 and 12 ticks.
    assert_eq!(sent, [60_000, 61_500, 64_500, 70_500].map(ms));
    let tick = Duration::from_millis(500);
    assert!(net.ends[0].srtt() < tick, "{}", net.ends[0].srtt());
}

/// Reno repairs one loss of a window by itself and waits for the timer with two.
#[test]
fn two_losses_of_one_window_wait_for_the_timer() {
    let timeouts = |lose: &[u32]| {
        let mut s = bsd();
        s.initial_cwnd = 12;
        let mut net = net(&s, ms(0), lose);
        net.run_until(ms(100));
        net.ends[0].write_all(Length(536 * 12));
        net.flush();
        net.run_until(ms(30_000));
        assert_eq!(net.ends[1].stats().delivered_bytes, 536 * 12);
        let stats = net.ends[0].stats();
        (stats.fast_recoveries, stats.timeouts)
    };
    assert_eq!(timeouts(&[2]), (1, 0));
    let (recoveries, timeouts) = timeouts(&[2, 4, 6]);
    assert!(recoveries >= 1 && timeouts >= 1, "{recoveries} {timeouts}");
}
