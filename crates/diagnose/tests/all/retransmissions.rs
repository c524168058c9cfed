//! The recognition of retransmissions, their need, their trigger, and the side on which data was
//! lost.

use anabranch_diagnose::report::{Evidence, Handshake, LossSide, Trigger};

use crate::make::{ACK, FIN, MSS, SYN, Script};

/// A sends ten segments at 30 ms.
fn window(script: &mut Script) {
    for k in 0..10 {
        script.data(30, k * MSS, MSS);
    }
}

/// B acknowledges each of ten segments from 40 ms on, except the one at `hole`.
fn acks_around(script: &mut Script, hole: u32) {
    for k in 0..hole {
        script.ack(40, (k + 1) * MSS, &[]);
    }
    for k in hole + 1..10 {
        script.ack(40, hole * MSS, &[((hole + 1) * MSS, (k + 1) * MSS)]);
    }
}

#[test]
fn a_segment_sacked_around_was_needed() {
    let mut script = Script::opened();
    window(&mut script);
    acks_around(&mut script, 3);
    script.data(50, 3 * MSS, MSS).ack(60, 10 * MSS, &[]);
    let found = script.retransmission();
    assert_eq!(found.needed, Some(true));
    assert_eq!(
        (found.trigger, found.lost),
        (Trigger::FastRetransmit, LossSide::After)
    );
    assert_eq!((found.seq, found.bytes), (3000, 1000));
    assert_eq!(found.earlier, Some(7));
}

#[test]
fn a_segment_lost_before_the_capture_point_is_found() {
    let mut script = Script::opened();
    for k in 0..10 {
        script.data(30, k * MSS, MSS);
        if k == 3 {
            script.forget();
        }
    }
    acks_around(&mut script, 3);
    script.data(50, 3 * MSS, MSS).ack(60, 10 * MSS, &[]);
    let found = script.retransmission();
    assert_eq!((found.needed, found.lost), (Some(true), LossSide::Before));
    assert_eq!(found.earlier, None);
}

#[test]
fn a_late_original_is_not_a_retransmission() {
    let mut script = Script::opened();
    for k in 0..6 {
        script.data(30, k * MSS, MSS);
    }
    let late = script.packets.remove(5);
    script.packets.insert(7, late);
    script.ack(40, 6 * MSS, &[]);
    let sent = script.sent();
    assert_eq!(sent.retransmissions, []);
    assert_eq!(sent.reordered_packets, 1);
}

#[test]
fn an_older_timestamp_identifies_a_late_original() {
    let mut script = Script::with_stamps();
    // 25 ms late, more than a round trip.
    script.data(30, 0, MSS).data(31, MSS, MSS).forget();
    script.data(32, 2 * MSS, MSS).data(31, MSS, MSS);
    script.last().micros += 25_000;
    assert_eq!(script.sent().reordered_packets, 1);
}

#[test]
fn a_duplicate_sack_shows_a_spurious_retransmission() {
    let mut script = Script::opened();
    window(&mut script);
    acks_around(&mut script, 3);
    script.data(50, 3 * MSS, MSS).ack(60, 10 * MSS, &[]);
    script.ack(61, 10 * MSS, &[(3 * MSS, 4 * MSS)]);
    let found = script.retransmission();
    assert_eq!(
        (found.needed, found.evidence, found.lost),
        (Some(false), Evidence::DuplicateSack, LossSide::Unknown)
    );
}

#[test]
fn an_early_acknowledgment_belongs_to_the_original() {
    let mut script = Script::opened();
    window(&mut script);
    acks_around(&mut script, 3);
    script.data(50, 3 * MSS, MSS).ack(53, 10 * MSS, &[]);
    let found = script.retransmission();
    assert_eq!(
        (found.needed, found.evidence),
        (Some(false), Evidence::AcknowledgedTooSoon)
    );
}

#[test]
fn the_echoed_timestamp_identifies_the_copy_that_arrived() {
    for (echo, needed) in [(30, false), (500, true)] {
        let mut script = Script::with_stamps();
        script
            .data(30, 0, MSS)
            .data(500, 0, MSS)
            .echo(700, MSS, echo);
        let found = script.retransmission();
        assert_eq!(
            (found.needed, found.evidence),
            (Some(needed), Evidence::TimestampEcho)
        );
        assert_eq!(found.trigger, Trigger::Rto);
    }
}

#[test]
fn a_retransmission_of_acknowledged_data_is_spurious() {
    let mut script = Script::opened();
    script.data(30, 0, MSS).ack(40, MSS, &[]).data(300, 0, MSS);
    let found = script.retransmission();
    assert_eq!(
        (found.needed, found.evidence),
        (Some(false), Evidence::AcknowledgedBefore)
    );
}

#[test]
fn of_two_retransmissions_one_arrives_first() {
    let mut script = Script::opened();
    window(&mut script);
    acks_around(&mut script, 3);
    // The first retransmission is lost as well.
    script.data(50, 3 * MSS, MSS).data(400, 3 * MSS, MSS);
    script.ack(410, 10 * MSS, &[]);
    let found = script.sent().retransmissions;
    let needed: Vec<_> = found.iter().map(|one| one.needed).collect();
    assert_eq!(needed, [Some(true), Some(true)]);
    let triggers: Vec<_> = found.iter().map(|one| one.trigger).collect();
    assert_eq!(triggers, [Trigger::FastRetransmit, Trigger::Rto]);
}

#[test]
fn an_unacknowledged_retransmission_is_undecided() {
    let mut script = Script::opened();
    script.data(30, 0, MSS).data(300, 0, MSS);
    let found = script.retransmission();
    assert_eq!((found.needed, found.lost), (None, LossSide::Unknown));
}

#[test]
fn a_timeout_starts_going_back() {
    let mut script = Script::opened();
    script
        .data(30, 0, MSS)
        .data(30, MSS, MSS)
        .data(30, 2 * MSS, MSS);
    script.data(300, 0, MSS).ack(310, MSS, &[]);
    script.data(320, MSS, MSS).data(320, 2 * MSS, MSS);
    script.ack(330, 3 * MSS, &[]);
    let triggers: Vec<_> = script
        .sent()
        .retransmissions
        .iter()
        .map(|one| one.trigger)
        .collect();
    assert_eq!(triggers, [Trigger::Rto, Trigger::GoBackN, Trigger::GoBackN]);
}

#[test]
fn a_tail_retransmitted_soon_is_a_probe() {
    let mut script = Script::opened();
    for k in 0..20 {
        let ms = u64::from(k) * 30;
        script
            .data(30 + ms, k * MSS, MSS)
            .ack(40 + ms, (k + 1) * MSS, &[]);
    }
    script.data(640, 20 * MSS, MSS).data(640, 21 * MSS, MSS);
    script.data(682, 21 * MSS, MSS).ack(692, 22 * MSS, &[]);
    assert_eq!(script.retransmission().trigger, Trigger::Tlp);
}

#[test]
fn an_old_octet_on_an_idle_connection_is_a_keepalive() {
    let mut script = Script::opened();
    script.data(30, 0, MSS).ack(40, MSS, &[]);
    script.data(7_240_000, MSS - 1, 1).ack(7_240_010, MSS, &[]);
    assert_eq!(script.retransmission().trigger, Trigger::Keepalive);
}

#[test]
fn an_octet_against_a_closed_window_is_a_probe() {
    let mut script = Script::opened();
    script.data(30, 0, MSS).ack(40, MSS, &[]);
    script.last().window = 0;
    for ms in [300, 700] {
        script.data(ms, MSS, 1).ack(ms + 10, MSS, &[]);
        script.last().window = 0;
    }
    assert_eq!(script.retransmission().trigger, Trigger::WindowProbe);
}

#[test]
fn syn_and_fin_are_retransmitted_by_the_timer() {
    let mut script = Script::opened();
    script.packets.insert(1, script.packets[0].clone());
    for packet in &mut script.packets[1..] {
        packet.micros += 1_000_000;
    }
    script.data(1_030, 0, MSS).ack(1_040, MSS, &[]);
    for ms in [1_050, 1_400] {
        script.data(ms, MSS, 0);
        script.last().flags = FIN | ACK;
    }
    script.ack(1_410, MSS + 1, &[]);
    let found = script.sent().retransmissions;
    let seqs: Vec<_> = found
        .iter()
        .map(|one| (one.seq, one.bytes, one.trigger))
        .collect();
    assert_eq!(seqs, [(-1, 0, Trigger::Rto), (1000, 0, Trigger::Rto)]);
    assert_eq!(script.sent().bytes, 1000);
    assert_eq!(script.packets[0].flags, SYN);
}

#[test]
fn data_shown_only_by_its_acknowledgment_is_a_capture_gap() {
    let mut script = Script::opened();
    script.data(30, 0, MSS).data(30, MSS, MSS).forget();
    script.data(30, 2 * MSS, MSS).ack(40, 3 * MSS, &[]);
    let sent = script.sent();
    assert_eq!((sent.capture_gaps, sent.capture_gap_bytes), (1, 1000));
    assert_eq!(sent.retransmissions, []);
}

#[test]
fn a_part_of_a_super_segment_is_retransmitted() {
    let mut script = Script::opened();
    script.data(30, 0, 20 * MSS);
    script.ack(40, 5 * MSS, &[(6 * MSS, 20 * MSS)]);
    script.data(50, 5 * MSS, MSS).ack(60, 20 * MSS, &[]);
    let found = script.retransmission();
    assert_eq!((found.needed, found.lost), (Some(true), LossSide::After));
}

#[test]
fn a_copy_made_by_the_network_is_not_a_retransmission() {
    let mut script = Script::opened();
    window(&mut script);
    let copy = script.last().clone();
    script.packets.push(copy);
    script.ack(40, 10 * MSS, &[]);
    let sent = script.sent();
    assert_eq!(sent.retransmissions, []);
    assert_eq!(sent.duplicated_packets, 1);
}

#[test]
fn a_capture_from_mid_flow_starts_at_its_first_packet() {
    let mut script = Script::opened();
    window(&mut script);
    acks_around(&mut script, 3);
    script.data(50, 3 * MSS, MSS).ack(60, 10 * MSS, &[]);
    script.packets.drain(..3);
    let connection = script.connection();
    assert_eq!(connection.handshake, Handshake::Missed);
    let sent = connection.directions.a_to_b;
    assert_eq!((sent.bytes, sent.capture_gaps), (10_000, 0));
    assert_eq!(sent.retransmissions[0].needed, Some(true));
}

#[test]
fn without_acknowledgments_need_is_undecided() {
    let mut script = Script::opened();
    window(&mut script);
    acks_around(&mut script, 3);
    script.data(50, 3 * MSS, MSS).ack(60, 10 * MSS, &[]);
    script.packets.retain(|packet| packet.from == 0);
    let found = script.retransmission();
    assert_eq!(found.needed, None);
}

/// The segment at 1000 is reordered: its retransmission passes at 52 ms, the segment itself at
/// `late` ms.
fn overtaken_by_its_retransmission(script: &mut Script, late: u64, acked: bool) {
    script.data(30, 0, MSS).data(31, MSS, MSS);
    let original = script.packets.pop().expect("it was sent");
    for k in 2..10 {
        script.data(32, k * MSS, MSS);
    }
    script.ack(42, MSS, &[(2 * MSS, 10 * MSS)]);
    script.data(52, MSS, MSS);
    if acked {
        script.ack(62, 10 * MSS, &[]);
    }
    script.packets.push(original);
    script.last().micros = 1_000_000_000 + late * 1_000;
    if !acked {
        script.ack(62, 10 * MSS, &[]);
    }
    script.ack(late + 10, 10 * MSS, &[(MSS, 2 * MSS)]);
}

#[test]
fn an_original_after_its_retransmission_is_not_a_retransmission() {
    for mut script in [Script::opened(), Script::with_stamps()] {
        for (late, acked) in [(55, false), (70, true)] {
            let before = script.clone();
            overtaken_by_its_retransmission(&mut script, late, acked);
            let sent = script.sent();
            assert_eq!(sent.retransmissions.len(), 1, "{late} ms");
            assert_eq!(sent.reordered_packets, 1);
            // The retransmission arrived first, and no segment was lost.
            assert_eq!(sent.retransmissions[0].needed, Some(true));
            assert_eq!(sent.retransmissions[0].lost, LossSide::Unknown);
            script = before;
        }
    }
}

#[test]
fn a_second_retransmission_is_not_a_late_original() {
    let mut script = Script::with_stamps();
    overtaken_by_its_retransmission(&mut script, 70, true);
    let original = script
        .packets
        .iter()
        .position(|one| one.micros == 1_000_070_000);
    script.packets.remove(original.expect("it is there"));
    script.data(70, MSS, MSS);
    let sent = script.sent();
    assert_eq!((sent.retransmissions.len(), sent.reordered_packets), (2, 0));
}

#[test]
fn packets_lost_by_the_capture_are_not_a_lost_tail() {
    let mut script = Script::opened();
    let turn = |script: &mut Script, k: u32, is_captured: bool| {
        script.data(30 + 20 * u64::from(k), k * MSS, MSS);
        if !is_captured {
            script.forget();
        }
        script.ack(40 + 20 * u64::from(k), (k + 1) * MSS, &[]);
        if !is_captured && k < 24 {
            script.forget();
        }
    };
    for k in 0..40 {
        turn(&mut script, k, !(15..25).contains(&k));
    }
    let sent = script.sent();
    assert_eq!(sent.retransmissions, []);
    assert_eq!(sent.capture_gap_bytes, 10_000);
}

#[test]
fn data_that_begins_with_the_octet_of_a_window_probe_is_new() {
    let mut script = Script::opened();
    script.data(30, 0, MSS).ack(40, MSS, &[]);
    script.last().window = 0;
    script.data(300, MSS, 1).ack(310, MSS, &[]);
    script.last().window = 0;
    script.ack(400, MSS, &[]);
    script.data(410, MSS, MSS).ack(420, 2 * MSS, &[]);
    assert_eq!(script.sent().retransmissions, []);
}

#[test]
fn an_acknowledgments_number_shows_data_lost_before_the_capture() {
    let mut script = Script::opened();
    script.data(30, 0, MSS).ack(40, MSS, &[]);
    // The second segment is lost; after it, A acknowledges data of B.
    script.data(100, MSS, MSS).forget();
    script.data(101, 2 * MSS, 0);
    script.data(400, MSS, MSS).ack(410, 2 * MSS, &[]);
    let found = script.retransmission();
    assert_eq!((found.seq, found.lost), (1000, LossSide::Before));
}

#[test]
fn an_acknowledgment_ahead_of_its_data_is_reordered() {
    let mut script = Script::opened();
    script.data(30, 0, MSS).ack(40, MSS, &[]);
    script.data(100, MSS, MSS).data(101, 2 * MSS, 0);
    let length = script.packets.len();
    script.packets[length - 2].micros += 150_000;
    script.packets.swap(length - 2, length - 1);
    script.ack(260, 2 * MSS, &[]);
    let sent = script.sent();
    assert_eq!((sent.retransmissions.len(), sent.reordered_packets), (0, 1));
}

/// A segment fills a gap 5 ms after the packet beyond it, with its own acknowledgment of B's data.
/// The round trip takes 20 ms.
fn filled(ack: u32) -> (usize, u64) {
    let mut script = Script::opened();
    script.data(30, 0, MSS).ack(40, MSS, &[]);
    let before = script.packets[2].ack;
    script.data(50, 2 * MSS, MSS);
    script.last().ack = before.wrapping_add(500);
    script.data(55, MSS, MSS);
    script.last().ack = before.wrapping_add(ack);
    script.ack(60, 3 * MSS, &[]);
    for packet in &mut script.packets {
        packet.id = 0;
    }
    let sent = script.sent();
    (sent.retransmissions.len(), sent.reordered_packets)
}

#[test]
fn a_later_acknowledgment_identifies_a_retransmission() {
    assert_eq!(filled(900), (1, 0));
    assert_eq!(filled(100), (0, 1));
}

#[test]
fn data_captured_just_after_its_acknowledgment_is_new() {
    let mut script = Script::opened();
    for k in 0..10 {
        let ms = 30 + 20 * u64::from(k);
        script
            .data(ms, k * MSS, MSS)
            .ack(ms + 10, (k + 1) * MSS, &[]);
        let length = script.packets.len();
        if k % 3 == 0 {
            script.packets[length - 2].micros += 10_100;
            script.packets.swap(length - 2, length - 1);
        }
    }
    let sent = script.sent();
    assert_eq!(
        (sent.retransmissions.len(), sent.captured_bytes),
        (0, 10_000)
    );
}
