//! Numbers that do not belong to the data: SACK blocks, SYN-ACKs, identifications.

use anabranch_diagnose::report::{Handshake, LossSide, Trigger};

use crate::make::{ACK, MSS, RST, SYN, Script};

/// Ten segments, the first of them lost. SACK blocks, shifted by `shift`, report the other nine. A
/// timer retransmits the first.
fn lost(shift: u32, window: u16) -> Script {
    let mut script = Script::opened();
    script.last().window = window;
    for k in 0..40 {
        script.data(30 + u64::from(k), k * MSS, MSS);
        script.ack(40 + u64::from(k), (k + 1) * MSS, &[]);
    }
    script.packets.sort_by_key(|packet| packet.micros);
    for k in 40..50 {
        script.data(100, k * MSS, MSS);
    }
    for k in 41..50 {
        let block = (
            shift.wrapping_add(41 * MSS),
            shift.wrapping_add((k + 1) * MSS),
        );
        script.ack(110, 40 * MSS, &[block]);
    }
    script.data(400, 40 * MSS, MSS).ack(410, 50 * MSS, &[]);
    for k in 50..60 {
        script.data(430, k * MSS, MSS);
    }
    script.ack(440, 60 * MSS, &[]);
    script
}

#[test]
fn sack_blocks_of_other_numbers_are_ignored() {
    for shift in [
        1 << 16,
        54_881_138,
        1 << 31,
        u32::MAX - 500_000,
        u32::MAX - 60_000,
    ] {
        let script = lost(shift, 60_000);
        let connection = script.connection();
        let sent = &connection.directions.a_to_b;
        let found: Vec<_> = sent
            .retransmissions
            .iter()
            .map(|one| (one.trigger, one.needed))
            .collect();
        assert_eq!(found, [(Trigger::Rto, Some(true))], "{shift}");
        assert_eq!(
            (sent.reordered_packets, sent.reordered_after_packets),
            (0, 0)
        );
        assert_eq!(
            (sent.sack_blocks, sent.ignored_sack_blocks),
            (0, 9),
            "{shift}"
        );
        let finding = connection
            .findings
            .iter()
            .find(|one| one.cause.meta().name == "sequence-randomiser");
        let text = finding.map_or("", |one| one.text.as_str());
        assert!(
            text.contains("9 SACK blocks of 198.51.100.2:80"),
            "{shift}: {text}"
        );
    }
}

#[test]
fn sack_blocks_within_the_window_are_wrong_if_later_data_is_acknowledged_without_them() {
    for shift in [70_000, 400_000] {
        let mut script = lost(shift, 60_000);
        // Scaled by 2^7.
        for syn in &mut script.packets[..2] {
            syn.options.extend([1, 3, 3, 7]);
        }
        let connection = script.connection();
        let sent = &connection.directions.a_to_b;
        assert_eq!((sent.ignored_sack_blocks, sent.wrong_sack_blocks), (9, 9));
        let mut causes = connection.findings.iter().map(|one| one.cause.meta().name);
        assert!(
            causes.any(|cause| cause == "sequence-randomiser"),
            "{shift}"
        );
    }
}

#[test]
fn sack_blocks_of_the_data_are_used() {
    let sent = lost(0, 60_000).sent();
    assert_eq!(
        (
            sent.sack_blocks,
            sent.ignored_sack_blocks,
            sent.wrong_sack_blocks
        ),
        (9, 0, 0)
    );
}

#[test]
fn sack_blocks_just_beyond_the_data_are_wrong_if_it_is_sent_later() {
    let mut script = Script::opened();
    for turn in 0..4_u32 {
        let (ms, first) = (30 + 500 * u64::from(turn), 10 * turn);
        for k in first..first + 10 {
            script.data(ms, k * MSS, MSS);
        }
        script.ack(
            ms + 10,
            first * MSS,
            &[((first + 10) * MSS, (first + 15) * MSS)],
        );
        script.data(ms + 300, first * MSS, MSS);
        script.ack(ms + 310, (first + 10) * MSS, &[]);
    }
    let connection = script.connection();
    let sent = &connection.directions.a_to_b;
    assert_eq!((sent.ignored_sack_blocks, sent.wrong_sack_blocks), (4, 3));
    assert!(
        connection
            .findings
            .iter()
            .any(|one| one.cause.meta().name == "sequence-randomiser")
    );
}

#[test]
fn sack_blocks_of_data_lost_by_the_capture_show_no_device() {
    let mut script = Script::opened();
    for turn in 0..6_u32 {
        let (ms, first) = (30 + 50 * u64::from(turn), 10 * turn);
        for k in first..first + 10 {
            script.data(ms, k * MSS, MSS);
            if k > first + 5 {
                script.forget();
            }
        }
        // Four segments were not captured. The receiver has received the last two.
        script.ack(ms + 10, (first + 8) * MSS, &[]).forget();
        script.ack(
            ms + 10,
            (first + 5) * MSS,
            &[((first + 7) * MSS, (first + 10) * MSS)],
        );
        script.data(ms + 20, (first + 5) * MSS, MSS);
        script.data(ms + 21, (first + 6) * MSS, MSS);
        script.ack(ms + 30, (first + 10) * MSS, &[]);
    }
    let connection = script.connection();
    let sent = &connection.directions.a_to_b;
    assert_eq!((sent.ignored_sack_blocks, sent.wrong_sack_blocks), (6, 0));
    assert!(sent.capture_gap_bytes > 0);
    assert!(
        !connection
            .findings
            .iter()
            .any(|one| one.cause.meta().name == "sequence-randomiser")
    );
}

/// B answers with two SYN-ACKs and sends 4 kB after the one that `chosen` selects.
fn two_answers(chosen: usize, other: u32) -> Script {
    let mut script = Script::opened();
    let mut second = script.packets[1].clone();
    second.micros += 5_000;
    second.seq = second.seq.wrapping_add(other);
    let shift = if chosen == 1 { other } else { 0 };
    script.packets.insert(2, second);
    let first = script.packets[1].seq.wrapping_add(1 + shift);
    for packet in &mut script.packets[3..] {
        packet.ack = first;
    }
    for k in 0..4 {
        script.ack(30 + k, 0, &[]);
        let packet = script.last();
        packet.seq = first.wrapping_add(1000 * u32::try_from(k).expect("few"));
        packet.payload = 1000;
    }
    script.data(50, 0, 0);
    script.last().ack = first.wrapping_add(4000);
    script
}

#[test]
fn the_acknowledged_syn_ack_of_two_counts() {
    for other in [99_310_615, 1 << 31, 3_000_000_000, 70_000] {
        for chosen in [0, 1] {
            let connection = two_answers(chosen, other).connection();
            let answers = &connection.directions.b_to_a;
            assert_eq!(
                (answers.bytes, answers.captured_bytes),
                (4000, 4000),
                "{chosen} {other}"
            );
            assert_eq!(answers.retransmissions, []);
            assert_eq!(
                (connection.syn_retransmissions, connection.handshake),
                (0, Handshake::Seen)
            );
        }
    }
}

#[test]
fn a_later_syn_ack_changes_nothing() {
    let mut script = two_answers(0, 99_310_615);
    let mut late = script.packets.remove(2);
    late.micros = 1_000_036_000;
    script.packets.insert(7, late);
    assert_eq!(script.connection().directions.b_to_a.bytes, 4000);
}

#[test]
fn an_older_connections_answer_does_not_answer_the_syn() {
    let mut script = Script::opened();
    script.data(30, 0, MSS).ack(40, MSS, &[]);
    let mut again = script.packets[0].clone();
    for packet in &mut script.packets {
        packet.micros += 3_000_000;
    }
    // A host with an older connection acknowledges that one (RFC 9293 §3.10.7.4), and the SYN is
    // retransmitted.
    let mut stale = script.packets[1].clone();
    (stale.micros, stale.flags) = (again.micros + 10_000, ACK);
    (stale.seq, stale.ack) = (
        stale.seq.wrapping_add(900_000_000),
        stale.ack.wrapping_add(800_000_000),
    );
    let mut reset = again.clone();
    (reset.micros, reset.flags, reset.seq) = (again.micros + 20_000, RST, stale.ack);
    again.flags = SYN;
    script.packets.splice(0..0, [again, stale, reset]);
    let connection = script.connection();
    let [sent, answers] = [&connection.directions.a_to_b, &connection.directions.b_to_a];
    assert_eq!((sent.bytes, answers.bytes), (1000, 0));
    assert_eq!(
        (connection.handshake, connection.reset.is_none()),
        (Handshake::Seen, true)
    );
}

#[test]
fn octets_that_were_only_acknowledged_count_separately() {
    let mut script = Script::opened();
    for k in 0..10 {
        script.data(30 + u64::from(k), k * MSS, MSS);
        if k > 5 {
            script.forget();
        }
    }
    script.ack(60, 10 * MSS, &[]);
    let sent = script.sent();
    assert_eq!(
        (sent.bytes, sent.captured_bytes, sent.uncaptured_bytes),
        (10_000, 6_000, 4_000)
    );
    // 6 kB in 5 ms.
    assert!(
        sent.goodput_mbit_s
            .is_some_and(|rate| (rate - 9.6).abs() < 1e-6)
    );
}

#[test]
fn a_single_distant_number_is_not_data() {
    let mut script = Script::opened();
    for k in 0..10 {
        let ms = 30 + 20 * u64::from(k);
        script
            .data(ms, k * MSS, MSS)
            .ack(ms + 10, (k + 1) * MSS, &[]);
        if k == 4 {
            script.last().ack = script.last().ack.wrapping_add(500_000_000);
        }
        if k == 6 {
            let damaged = script.packets.len() - 2;
            script.packets[damaged].seq ^= 1 << 28;
        }
    }
    let sent = script.sent();
    assert_eq!((sent.bytes, sent.captured_bytes), (10_000, 9_000));
    assert_eq!(sent.retransmissions, []);
    assert_eq!(sent.implausible_packets, 2);
}

/// `count` bursts of two segments, half a second apart. From burst `from` on, the counter also
/// counts `others` packets in each pause.
fn bursts(count: u32, others: u16, from: u32) -> Script {
    let mut script = Script::opened();
    let mut skipped = 0;
    for turn in 0..count {
        let ms = 30 + 500 * u64::from(turn);
        skipped += if turn >= from { others } else { 0 };
        for k in [2 * turn, 2 * turn + 1] {
            script.data(ms, k * MSS, MSS);
            script.last().id += skipped;
        }
        script.ack(ms + 10, (2 * turn + 2) * MSS, &[]);
    }
    script
}

#[test]
fn a_counter_shared_with_other_connections_shows_no_loss() {
    for (others, from) in [(1, 1), (1, 3), (20, 2), (63, 5), (200, 4)] {
        let sent = bursts(30, others, from).sent();
        assert_eq!(sent.retransmissions, [], "{others} {from}");
    }
}

#[test]
fn a_windows_host_shares_its_counter() {
    let mut script = bursts(30, 1, 25);
    for packet in &mut script.packets {
        packet.hops = 128;
    }
    assert_eq!(script.sent().retransmissions, []);
}

#[test]
fn a_gap_in_a_connections_counter_shows_a_lost_tail() {
    let mut script = bursts(30, 0, 30);
    // The last segment of a burst is lost before the capture point, and a timer retransmits it.
    script
        .data(15_100, 60 * MSS, MSS)
        .data(15_100, 61 * MSS, MSS)
        .forget();
    script.ack(15_110, 61 * MSS, &[]);
    script
        .data(15_500, 61 * MSS, MSS)
        .ack(15_510, 62 * MSS, &[]);
    let found = script.retransmission();
    assert_eq!((found.seq, found.lost), (61_000, LossSide::Before));
}

#[test]
fn data_after_a_window_opens_is_new() {
    let mut script = bursts(30, 0, 30);
    script
        .data(15_100, 60 * MSS, MSS)
        .ack(15_110, 61 * MSS, &[]);
    script.last().window = 0;
    script.ack(15_600, 61 * MSS, &[]);
    // A packet to another host takes the number in between.
    script.data(15_610, 61 * MSS, MSS).forget();
    script
        .data(15_610, 61 * MSS, MSS)
        .ack(15_620, 62 * MSS, &[]);
    assert_eq!(script.sent().retransmissions, []);
}

#[test]
fn another_connection_shows_a_shared_counter() {
    // Packets to port 81 take the numbers in between. Some of them pass before the pauses with a
    // missing number.
    let mut script = bursts(60, 0, 60);
    let mut others = Vec::new();
    let mut taken = 0;
    for packet in &mut script.packets {
        let since = packet.micros - 1_000_000_000;
        packet.id += taken;
        if packet.from == 0 && since > 10_000_000 && since % 500_000 < 31_000 {
            let mut other = packet.clone();
            (other.ports, other.micros) = ((6000, 81), packet.micros - 100);
            others.push(other);
            packet.id += 1;
            taken += 1;
        }
    }
    script.packets.extend(others);
    script.packets.sort_by_key(|packet| packet.micros);
    let report = script.report();
    let found = report
        .connections
        .iter()
        .find(|one| one.b.ends_with(":80"))
        .map(|one| one.directions.a_to_b.retransmission_counts.all);
    assert!(found.is_some_and(|count| count <= 1), "{found:?}");
}
