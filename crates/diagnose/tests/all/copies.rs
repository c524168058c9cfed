//! Copies of packets made by a mirror port.

use anabranch_diagnose::report::{Connection, Trigger};

use crate::make::{ACK, MSS, Made, Script};

/// A transfer of 40 segments, one of them lost, over a round trip of 20 ms. No identification
/// distinguishes packets, as in IPv6.
fn transfer() -> Script {
    let mut script = Script::opened();
    let (lost, mut acked) = (23, 0);
    for turn in 0..10 {
        let ms = 30 + 20 * turn;
        let first = 4 * u32::try_from(turn).expect("few");
        for k in first..first + 4 {
            script.data(ms, k * MSS, MSS);
        }
        for k in first..first + 4 {
            acked = if k < lost { k + 1 } else { lost };
            script.ack(ms + 10, acked * MSS, &[]);
        }
    }
    assert_eq!(acked, lost);
    script.data(500, lost * MSS, MSS).ack(510, 40 * MSS, &[]);
    for (k, packet) in (0_u64..).zip(&mut script.packets) {
        packet.id = 0;
        packet.micros += k;
    }
    script
}

/// Adds copies of the packets that `is_copied` selects, each `delay` µs after its original.
fn mirrored(script: &Script, delay: u64, is_copied: impl Fn(usize, &Made) -> bool) -> Script {
    let mut all = script.clone();
    for (k, packet) in script.packets.iter().enumerate() {
        if is_copied(k, packet) {
            let mut copy = packet.clone();
            copy.micros += delay;
            copy.hops -= 1;
            all.packets.push(copy);
        }
    }
    all.packets.sort_by_key(|packet| packet.micros);
    all
}

fn triggers(connection: &Connection) -> Vec<Trigger> {
    let found = connection.directions.a_to_b.retransmissions.iter();
    found.map(|one| one.trigger).collect()
}

#[test]
fn copies_are_not_retransmissions() {
    let script = transfer();
    let all = script.packets.len() as u64;
    let before = script.connection();
    assert_eq!(triggers(&before).len(), 1);
    for delay in [1, 80, 1_000] {
        let connection = mirrored(&script, delay, |_, _| true).connection();
        let [sent, answers] = [&connection.directions.a_to_b, &connection.directions.b_to_a];
        assert_eq!(triggers(&connection), triggers(&before), "{delay} µs");
        assert_eq!(sent.data_packets, 41);
        assert_eq!(sent.duplicated_packets + answers.duplicated_packets, all);
        assert_eq!(connection.syn_retransmissions, 0);
        assert_eq!(sent.rtt_ms.min, before.directions.a_to_b.rtt_ms.min);
        // The connection lasts until the last copy.
        for (limit, time) in &before.directions.a_to_b.limits_s {
            assert!(
                (sent.limits_s[limit] - time).abs() < 2e-3,
                "{delay} µs: {limit:?}"
            );
        }
        let causes: Vec<_> = connection
            .findings
            .iter()
            .map(|one| one.cause.meta().name)
            .collect();
        assert!(causes.contains(&"copied-packets"), "{causes:?}");
        assert!(!causes.contains(&"syn-loss"), "{causes:?}");
    }
}

#[test]
fn a_third_copy_counts_as_well() {
    let once = mirrored(&transfer(), 300, |_, _| true);
    let sent = mirrored(&once, 40, |k, _| k % 2 == 0).sent();
    assert_eq!((sent.retransmissions.len(), sent.data_packets), (1, 41));
}

#[test]
fn copies_of_one_direction_do_not_affect_the_other() {
    for copied in [0, 1] {
        let sent = mirrored(&transfer(), 60, |_, packet| packet.from == copied).sent();
        assert_eq!((sent.retransmissions.len(), sent.data_packets), (1, 41));
    }
}

#[test]
fn acknowledgments_that_come_twice_from_mid_flow_are_copies() {
    let mut script = mirrored(&transfer(), 60, |_, packet| packet.from == 1);
    script
        .packets
        .retain(|packet| packet.micros > 1_000_025_000);
    let answers = script.connection().directions.b_to_a;
    let count = script.packets.iter().filter(|one| one.from == 1).count() as u64 / 2;
    // Copies are recognized after a few pairs.
    let found = answers.duplicated_packets;
    assert!(found + 5 >= count, "{found} of {count}");
}

#[test]
fn an_equal_segment_after_a_round_trip_is_a_retransmission() {
    let mut script = Script::opened();
    script.data(30, 0, MSS).data(50, 0, MSS).ack(60, MSS, &[]);
    for packet in &mut script.packets {
        packet.id = 0;
    }
    assert_eq!(script.sent().retransmissions.len(), 1);
}

#[test]
fn a_retransmission_on_a_short_mirrored_path_is_no_copy() {
    let mut script = Script::opened();
    for turn in 0..10 {
        let ms = 30 + 20 * u64::from(turn);
        for k in 0..4 {
            script.data(ms, (4 * turn + k) * MSS, MSS);
        }
        if turn == 4 {
            // The first of the four is lost.
            let (first, end) = (4 * turn * MSS, 4 * (turn + 1) * MSS);
            for k in 2..=4 {
                script.ack(ms + 10, first, &[(first + MSS, first + k * MSS)]);
            }
            script.data(ms + 14, first, MSS).ack(ms + 18, end, &[]);
        } else {
            script.ack(ms + 10, 4 * (turn + 1) * MSS, &[]);
        }
    }
    // The round trip takes 0.8 ms, and the retransmission follows after 0.56 ms.
    for (k, packet) in (0_u64..).zip(&mut script.packets) {
        packet.id = 0;
        packet.micros = 1_000_000_000 + (packet.micros - 1_000_000_000) / 25 + k;
    }
    for delay in [3, 60, 300] {
        let sent = mirrored(&script, delay, |_, _| true).sent();
        let found = (sent.retransmissions.len(), sent.data_packets);
        assert_eq!(found, (1, 41), "{delay} µs");
    }
}

/// Flights of eight segments. One interface has them as they are, and the other in segments of
/// `cut`, which begin `shift` segments later.
fn offloaded(cut: u32, shift: u32, is_large_first: bool) -> Script {
    let mut script = Script::opened();
    let mut copies = mirrored(&script, 20, |_, _| true).packets;
    script.packets.clear();
    for turn in 0..12_u32 {
        let ms = 30 + 21 * u64::from(turn);
        let first = 8 * turn;
        for k in first..first + 8 {
            script.data(ms, k * MSS, MSS);
        }
        let mut at = first;
        while at < first + 8 {
            let until = (at + if at == first && shift > 0 { shift } else { cut }).min(first + 8);
            script.data(ms, at * MSS, (until - at) * MSS);
            script.last().micros += if is_large_first { 0 } else { 90 };
            copies.push(script.last().clone());
            script.forget();
            at = until;
        }
        script.ack(ms + 10, (first + 8) * MSS, &[]);
    }
    for (k, packet) in (0_u64..).zip(&mut script.packets) {
        packet.micros += if is_large_first { 40 } else { 0 } + k % 9;
    }
    script.packets.extend(copies);
    script.packets.sort_by_key(|packet| packet.micros);
    for packet in &mut script.packets {
        packet.id = 0;
    }
    script
}

#[test]
fn copies_cut_into_other_segments_are_not_retransmissions() {
    for is_large_first in [false, true] {
        for (cut, shift) in [(8, 0), (4, 0), (3, 0), (4, 2), (3, 1)] {
            let connection = offloaded(cut, shift, is_large_first).connection();
            let sent = &connection.directions.a_to_b;
            let case = (cut, shift, is_large_first);
            assert_eq!(sent.retransmissions, [], "{case:?}");
            assert_eq!(sent.bytes, 96_000, "{case:?}");
            let mut causes = connection.findings.iter().map(|one| one.cause.meta().name);
            assert!(causes.any(|cause| cause == "copied-packets"), "{case:?}");
        }
    }
}

#[test]
fn equal_acknowledgments_of_a_receiver_without_sack_are_duplicates() {
    let mut script = Script::opened();
    for k in 0..10 {
        script.data(30, k * MSS, MSS);
    }
    for micros in 0..9 {
        script.ack(40, 0, &[]);
        script.last().micros += micros;
    }
    script.data(50, 0, MSS).ack(60, 10 * MSS, &[]);
    for packet in &mut script.packets {
        packet.id = 0;
    }
    let connection = script.connection();
    assert_eq!(triggers(&connection), [Trigger::FastRetransmit]);
    assert_eq!(connection.directions.b_to_a.duplicated_packets, 0);
    assert_eq!(script.last().flags, ACK);
}

#[test]
fn a_copy_with_the_identification_of_its_original_may_come_later() {
    let mut script = Script::opened();
    for k in 0..4 {
        let ms = 30 + 100 * u64::from(k);
        script.data(ms, k * MSS, MSS);
        let mut copy = script.last().clone();
        copy.micros += 60_000;
        script.ack(ms + 10, (k + 1) * MSS, &[]);
        script.packets.push(copy);
    }
    let sent = script.sent();
    assert_eq!(
        (sent.retransmissions.len(), sent.duplicated_packets),
        (0, 4)
    );
}
