//! The limit of each interval, and the causes of pauses.

use crate::make::{ACK, FIN, MSS, PSH, RST, Script};
use anabranch_diagnose::{
    limit::Limit,
    report::{CapturePoint, EndName, Handshake},
};

fn limit(script: &Script, limit: Limit) -> f64 {
    script.sent().limits_s[&limit]
}

/// Checks that the time from 40 ms to 1,040 ms is attributed to a limit.
fn has_the_second(script: &Script, expected: Limit) {
    let time = limit(script, expected);
    assert!(
        (0.98..1.031).contains(&time),
        "{expected:?} has {time} s: {:?}",
        script.sent().limits_s
    );
}

#[test]
fn an_idle_sender_waits_for_its_application() {
    let mut script = Script::opened();
    script.data(30, 0, MSS).ack(40, MSS, &[]);
    script.data(1_040, MSS, MSS).ack(1_050, 2 * MSS, &[]);
    has_the_second(&script, Limit::Application);
    let stalls = script.sent().stalls;
    assert_eq!(stalls.len(), 1);
    assert_eq!(
        (stalls[0].cause.meta().name, &stalls[0].packets[..]),
        ("application", &[4, 6][..])
    );
}

#[test]
fn a_closed_window_is_the_receivers() {
    let mut script = Script::opened();
    script.data(30, 0, MSS).ack(40, MSS, &[]);
    script.last().window = 0;
    script
        .ack(1_030, MSS, &[])
        .data(1_040, MSS, MSS)
        .ack(1_050, 2 * MSS, &[]);
    has_the_second(&script, Limit::ZeroWindow);
    assert_eq!(script.sent().zero_windows, 1);
}

#[test]
fn a_full_window_is_the_receivers() {
    let mut script = Script::opened();
    script.ack(21, 0, &[]);
    script.last().window = 2000;
    for k in 0..100 {
        let ms = 32 + u64::from(k) * 20;
        script
            .data(ms, 2 * k * MSS, MSS)
            .data(ms, (2 * k + 1) * MSS, MSS);
        script.ack(ms + 10, 2 * (k + 1) * MSS, &[]);
        script.last().window = 2000;
    }
    assert!(
        limit(&script, Limit::ReceiveWindow) > 1.9,
        "{:?}",
        script.sent().limits_s
    );
}

/// Linux sets PSH on each packet that the network card cuts apart, wherever a write ends.
#[test]
fn pushed_packets_of_several_segments_end_no_write() {
    let mut script = Script::opened();
    let mut acked = 0;
    for k in 0..600 {
        let ms = 30 + 5 * u64::from(k);
        script.data(ms, 2 * k * MSS, 2 * MSS);
        script.last().flags |= PSH;
        // One acknowledgment for three to five packets.
        if k % 7 == 3 || k % 7 == 6 {
            acked = 2 * (k - 2) * MSS;
            script.ack(ms + 1, acked, &[]);
        }
    }
    script.ack(3_050, 1_200 * MSS, &[]);
    assert!(acked > 0);
    let limits = script.sent().limits_s;
    assert!(limits[&Limit::Application] < 0.05, "{limits:?}");
}

/// A network card that cuts what it gets into other sizes than the MSS leaves a smaller last
/// segment, wherever a write ends.
#[test]
fn the_last_segment_that_a_card_cuts_ends_no_write() {
    for (sizes, is_whole) in [([1_016, 1_016, 968], true), ([1_000, 1_000, 900], false)] {
        let mut script = Script::opened();
        let mut seq = 0;
        for k in 0..100 {
            let ms = 30 + 20 * k;
            for size in sizes {
                script.data(ms, seq, size);
                seq += size;
            }
            // The rest is acknowledged with the next ones.
            script.ack(ms + 10, seq - 500, &[]);
        }
        let limits = script.sent().limits_s;
        let application = limits[&Limit::Application];
        assert_eq!(application < 0.1, is_whole, "{sizes:?}: {limits:?}");
    }
}

#[test]
fn the_wait_for_the_timer_is_the_timers() {
    let mut script = Script::opened();
    script
        .data(40, 0, MSS)
        .data(1_040, 0, MSS)
        .ack(1_050, MSS, &[]);
    has_the_second(&script, Limit::RetransmissionTimeout);
}

#[test]
fn the_handshake_has_its_time() {
    let script = Script::opened();
    let connection = script.connection();
    assert_eq!(connection.handshake, Handshake::Seen);
    for direction in [connection.directions.a_to_b, connection.directions.b_to_a] {
        assert!((direction.limits_s[&Limit::Handshake] - 0.02).abs() < 1e-9);
    }
}

#[test]
fn a_small_segment_waits_for_a_delayed_acknowledgment() {
    let mut script = Script::opened();
    let mut seq = 0;
    let mut ms = 30;
    for _ in 0..10 {
        script.data(ms, seq, MSS).ack(ms + 10, seq + MSS, &[]);
        script
            .data(ms + 20, seq + MSS, 100)
            .ack(ms + 70, seq + MSS + 100, &[]);
        script
            .data(ms + 80, seq + MSS + 100, 100)
            .ack(ms + 90, seq + MSS + 200, &[]);
        seq += MSS + 200;
        ms += 100;
    }
    let time = limit(&script, Limit::DelayedAckNagle);
    assert!((0.55..0.65).contains(&time), "{:?}", script.sent().limits_s);
}

#[test]
fn a_refused_connection_is_named() {
    let mut script = Script::opened();
    script.packets.truncate(2);
    script.last().flags = RST | ACK;
    let connection = script.connection();
    assert_eq!(connection.handshake, Handshake::Refused);
    let reset = connection.reset.expect("a RST");
    assert_eq!((reset.by, reset.packet), (EndName::B, 2));
}

#[test]
fn an_unanswered_connection_is_named() {
    let mut script = Script::opened();
    script.packets.truncate(1);
    assert_eq!(script.connection().handshake, Handshake::Unanswered);
}

#[test]
fn another_syn_begins_another_connection() {
    let mut script = Script::opened();
    script.data(30, 0, MSS).ack(40, MSS, &[]).data(50, MSS, 0);
    script.last().flags = FIN | ACK;
    let mut later = Script::opened();
    for packet in &mut later.packets {
        packet.micros += 60_000_000;
        packet.seq = packet.seq.wrapping_add(1 << 20);
        packet.ack = packet.ack.wrapping_add(1 << 20);
    }
    script.packets.extend(later.packets);
    let ids: Vec<_> = script
        .report()
        .connections
        .iter()
        .map(|one| one.id)
        .collect();
    assert_eq!(ids, [1, 2]);
}

#[test]
fn fast_responses_show_the_capture_point() {
    let mut script = Script::opened();
    assert_eq!(script.connection().capture_point, CapturePoint::Middle);
    script.packets[1].micros -= 9_900;
    script.packets[2].micros -= 1_000;
    assert_eq!(script.connection().capture_point, CapturePoint::NearB);
}

/// Bursts of 20 segments. Each begins `late` ms after an acknowledgment that leaves five in flight.
/// The pauses last 100 ms.
fn refilled(late: impl Fn(u32) -> u64) -> Script {
    let mut script = Script::opened();
    let mut seq = 0;
    for turn in 0..30 {
        let ms = 30 + u64::from(turn) * 100 + late(turn);
        for k in 0..20 {
            script.data(ms, seq + k * MSS, MSS);
        }
        // The round trip is 60 ms: 15 of 20 segments are acknowledged one after the other before
        // the next burst.
        let from = if turn == 0 { 0 } else { 5 };
        for k in 0..15 + from {
            let at = 30 + u64::from(turn) * 100 + 60 + u64::from(k) * 40 / u64::from(15 + from);
            script.ack(at.max(ms + 1), seq - from * MSS + (k + 1) * MSS, &[]);
        }
        seq += 20 * MSS;
    }
    script
}

#[test]
fn bursts_after_one_acknowledgment_refill_a_send_buffer() {
    let script = refilled(|_| 0);
    let time = limit(&script, Limit::SendBuffer);
    assert!(time > 2.0, "{:?}", script.sent().limits_s);
}

#[test]
fn bursts_at_independent_times_are_the_applications() {
    let script = refilled(|turn| u64::from(turn * 13 % 37));
    let shares = script.sent().limits_s;
    assert!(shares[&Limit::SendBuffer] < 0.1, "{shares:?}");
}

/// Writes of eight segments and `rest` more octets, one per round trip, when an acknowledgment
/// leaves the last `left` segments of the previous write in flight.
fn written(rest: u32, left: u32) -> Script {
    let mut script = Script::opened();
    let size = 8 * MSS + rest;
    for turn in 0..60 {
        let (ms, seq) = (30 + u64::from(turn) * 31, turn * size);
        for k in 0..8 {
            script.data(ms, seq + k * MSS, MSS);
        }
        if rest > 0 {
            script.data(ms, seq + 8 * MSS, rest);
        }
        script.ack(ms + 5, seq, &[]);
        // The acknowledgments reach the sender 10 ms later.
        for (after, segments) in [(19, 3), (20, 7 - left), (21, 8 - left)] {
            script.ack(ms + after, seq + segments * MSS, &[]);
        }
    }
    script
}

#[test]
fn writes_that_fit_into_any_window_are_the_applications() {
    // With the rest of the previous write, the second is larger than an initial window.
    for left in [1, 3] {
        let shares = written(300, left).sent().limits_s;
        assert!(shares[&Limit::SendBuffer] < 0.2, "{left} left: {shares:?}");
        assert!(shares[&Limit::Application] > 1.0, "{left} left: {shares:?}");
    }
}

#[test]
fn full_segments_after_most_acknowledgments_refill_a_small_buffer() {
    let shares = written(0, 1).sent().limits_s;
    assert!(shares[&Limit::SendBuffer] > 1.0, "{shares:?}");
}

#[test]
fn a_full_window_is_the_receivers_until_it_opens() {
    let mut script = Script::opened();
    script.ack(21, 0, &[]);
    script.last().window = 2000;
    for k in 0..20 {
        let ms = 40 + u64::from(k) * 100;
        script
            .data(ms, 2 * k * MSS, MSS)
            .data(ms, (2 * k + 1) * MSS, MSS);
        // The host is late by 10 ms in each turn of 100 ms.
        script.ack(ms + 80, 2 * (k + 1) * MSS, &[]);
        script.last().window = 2000;
    }
    let shares = script.sent().limits_s;
    assert!(shares[&Limit::ReceiveWindow] > 1.6, "{shares:?}");
    assert!(shares[&Limit::Application] < 0.3, "{shares:?}");
}

/// The window opens in steps of eight segments, each after the next to last acknowledgment. Detects
/// the refills of a send buffer in the segments that a full window held.
#[test]
fn steps_of_a_full_window_refill_no_buffer() {
    let mut script = Script::opened();
    script.ack(21, 0, &[]);
    script.last().window = 4_400;
    for k in 0..4 {
        script.data(30, k * MSS, MSS);
    }
    for cycle in 0..40 {
        let (ms, sent) = (60 + 60 * u64::from(cycle), (4 + 8 * cycle) * MSS);
        script.ack(ms, sent - 3 * MSS, &[]);
        script.last().window = 11_400;
        for k in 0..8 {
            script.data(ms + 10, sent + k * MSS, MSS);
        }
        // Less than a segment of room is left.
        script.ack(ms + 30, sent + 4 * MSS, &[]);
        script.last().window = 4_400;
    }
    let shares = script.sent().limits_s;
    assert!(shares[&Limit::ReceiveWindow] > 2.2, "{shares:?}");
    assert!(shares[&Limit::SendBuffer] < 0.1, "{shares:?}");
}

#[test]
fn new_data_after_two_round_trips_is_a_probe() {
    let mut script = Script::opened();
    for k in 0..10 {
        script.data(30, k * MSS, MSS);
    }
    script.data(30 + 45, 10 * MSS, MSS);
    script.data(1_040, 0, MSS);
    let shares = script.sent().limits_s;
    // The first write comes 10 ms after the handshake.
    assert!(shares[&Limit::Application] < 0.02, "{shares:?}");
    assert!(shares[&Limit::RetransmissionTimeout] > 1.0, "{shares:?}");
}

#[test]
fn the_end_of_a_capture_is_undecidable_while_data_is_outstanding() {
    let mut script = Script::opened();
    for k in 0..4 {
        script.data(30, k * MSS, MSS);
    }
    script.ack(40, MSS, &[]).ack(1_000, MSS, &[]);
    let shares = script.sent().limits_s;
    assert!(shares[&Limit::Application] < 0.05, "{shares:?}");
    assert!(shares[&Limit::Undecidable] > 0.9, "{shares:?}");
}
