//! What each interval belongs to, and the causes of pauses.

use crate::make::{ACK, FIN, MSS, RST, Script};

fn limit(script: &Script, name: &str) -> f64 {
    script.sent().limits_s[name]
}

/// The limit that has the time from 40 ms to 1,040 ms.
fn has_the_second(script: &Script, name: &str) {
    let time = limit(script, name);
    assert!(
        (0.98..1.031).contains(&time),
        "{name} has {time} s: {:?}",
        script.sent().limits_s
    );
}

#[test]
fn an_idle_sender_waits_for_its_application() {
    let mut script = Script::opened();
    script.data(30, 0, MSS).ack(40, MSS, &[]);
    script.data(1_040, MSS, MSS).ack(1_050, 2 * MSS, &[]);
    has_the_second(&script, "application");
    let stalls = script.sent().stalls;
    assert_eq!(stalls.len(), 1);
    assert_eq!(
        (stalls[0].cause, &stalls[0].packets[..]),
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
    has_the_second(&script, "zero-window");
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
        limit(&script, "receive-window") > 1.9,
        "{:?}",
        script.sent().limits_s
    );
}

#[test]
fn the_wait_for_the_timer_is_the_timers() {
    let mut script = Script::opened();
    script
        .data(40, 0, MSS)
        .data(1_040, 0, MSS)
        .ack(1_050, MSS, &[]);
    has_the_second(&script, "retransmission-timeout");
}

#[test]
fn the_handshake_has_its_time() {
    let script = Script::opened();
    let connection = script.connection();
    assert_eq!(connection.handshake, "seen");
    for direction in [connection.directions.a_to_b, connection.directions.b_to_a] {
        assert!((direction.limits_s["handshake"] - 0.02).abs() < 1e-9);
    }
}

#[test]
fn a_small_segment_behind_a_delayed_acknowledgment_waits_for_it() {
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
    let time = limit(&script, "delayed-ack-nagle");
    assert!((0.55..0.65).contains(&time), "{:?}", script.sent().limits_s);
}

#[test]
fn a_refused_connection_is_named() {
    let mut script = Script::opened();
    script.packets.truncate(2);
    script.last().flags = RST | ACK;
    let connection = script.connection();
    assert_eq!(connection.handshake, "refused");
    let reset = connection.reset.expect("a RST");
    assert_eq!((reset.by, reset.packet), ("b", 2));
}

#[test]
fn a_connection_that_nobody_answers_is_named() {
    let mut script = Script::opened();
    script.packets.truncate(1);
    assert_eq!(script.connection().handshake, "unanswered");
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
fn the_capture_point_shows_in_who_answers_soon() {
    let mut script = Script::opened();
    assert_eq!(script.connection().capture_point, "middle");
    script.packets[1].micros -= 9_900;
    script.packets[2].micros -= 1_000;
    assert_eq!(script.connection().capture_point, "near-b");
}
