//! Findings, and the end to which they are attributed.

use std::collections::BTreeSet;

use anabranch_diagnose::{Bounds, finding::Kind, limit::Limit};

use crate::make::{MSS, Script, pcap, read};

fn found(script: &Script) -> Vec<&'static str> {
    let findings = script.connection().findings;
    findings
        .iter()
        .map(|finding| finding.cause.meta().name)
        .collect()
}

#[test]
fn every_finding_has_a_description_under_its_name() {
    let limits: Vec<_> = Limit::ALL.into_iter().map(Limit::meta).collect();
    let kinds: Vec<_> = Kind::ALL.into_iter().map(Kind::meta).collect();
    for metas in [&limits, &kinds] {
        let names: BTreeSet<_> = metas.iter().map(|meta| meta.name).collect();
        assert_eq!(names.len(), metas.len());
    }
    for meta in limits.into_iter().chain(kinds) {
        let texts = [meta.title, meta.meaning, meta.evidence];
        assert!(texts.iter().all(|text| !text.is_empty()), "{}", meta.name);
    }
}

#[test]
fn a_retransmitted_syn_is_found() {
    let mut script = Script::opened();
    let mut again = script.packets[0].clone();
    for packet in &mut script.packets {
        packet.micros += 1_000_000;
    }
    again.id -= 1;
    script.packets.insert(0, again);
    script.data(1_030, 0, MSS).ack(1_040, MSS, &[]);
    assert!(found(&script).contains(&"syn-loss"));
}

/// A segment after 6 s of idle time is retransmitted by timeouts that double.
fn silent(timeouts: u32) -> Script {
    let mut script = Script::opened();
    script.data(30, 0, MSS).ack(40, MSS, &[]);
    for turn in 0..=timeouts {
        let waited = 300 * (2_u64.pow(turn) - 1);
        script.data(6_040 + waited, MSS, 500);
    }
    script
}

#[test]
fn a_peer_silent_over_three_timeouts_is_found() {
    for (timeouts, is_finding) in [(2, false), (3, true), (6, true)] {
        let script = silent(timeouts);
        let found = found(&script);
        assert_eq!(found.contains(&"silent-peer"), is_finding, "{found:?}");
    }
}

#[test]
fn a_silent_peer_is_named_with_the_idle_time() {
    let findings = silent(5).connection().findings;
    let text = findings
        .iter()
        .find(|one| one.cause.meta().name == "silent-peer");
    let text = text.map_or("", |one| one.text.as_str());
    assert!(text.starts_with("198.51.100.2:80 fell silent"), "{text}");
    assert!(text.contains("6.0 s without data"), "{text}");
}

#[test]
fn a_window_that_shrinks_while_data_waits_shows_a_slow_reader() {
    let mut script = Script::opened();
    script.ack(21, 0, &[]);
    script.last().window = 4_000;
    let mut seq = 0;
    for turn in 0..50 {
        let ms = 32 + turn * 100;
        for _ in 0..4 {
            script.data(ms, seq, MSS);
            seq += MSS;
        }
        script.ack(ms + 10, seq, &[]);
        script.last().window = 500;
        script.ack(ms + 89, seq, &[]);
        script.last().window = 4_000;
    }
    let found = found(&script);
    assert!(
        found.contains(&"zero-window") || found.contains(&"slow-reader"),
        "{found:?}"
    );
    assert!(!found.contains(&"receive-window"), "{found:?}");
}

#[test]
fn consecutive_losses_are_a_burst() {
    let mut script = Script::opened();
    let mut ms = 30;
    let mut seq = 0;
    for _ in 0..3 {
        // Four of ten segments are lost in a row; acknowledgments SACK the data after them.
        for k in 0..10 {
            script.data(ms, seq + k * MSS, MSS);
        }
        let (start, end) = (seq + 4 * MSS, seq + 10 * MSS);
        for k in 0..6 {
            script.ack(ms + 10, seq, &[(start, start + (k + 1) * MSS)]);
        }
        for k in 0..4 {
            script.data(ms + 20, seq + k * MSS, MSS);
        }
        script.ack(ms + 30, end, &[]);
        seq = end;
        ms += 40;
    }
    let found = found(&script);
    assert!(found.contains(&"burst-loss"), "{found:?}");
    assert!(!found.contains(&"random-loss"), "{found:?}");
}

#[test]
fn the_end_of_a_burst_that_fills_a_queue_is_an_overflow() {
    let mut script = Script::opened();
    for turn in 0..6 {
        let (ms, seq) = (40 + u64::from(turn) * 200, turn * 13 * MSS);
        for k in 0..10 {
            script.data(ms, seq + k * MSS, MSS);
        }
        // The queue drains one segment at a time. It had no room for the last two.
        for k in 0..8 {
            script.ack(ms + 11 + 2 * u64::from(k), seq + (k + 1) * MSS, &[]);
        }
        // When later data reveals the loss, the queue is empty.
        let lost = seq + 8 * MSS;
        for k in 0..3 {
            script.data(ms + 50, seq + (10 + k) * MSS, MSS);
        }
        for k in 0..3 {
            let end = seq + (11 + k) * MSS;
            script.ack(ms + 62 + u64::from(k), lost, &[(seq + 10 * MSS, end)]);
        }
        script.data(ms + 75, lost, MSS);
        script.data(ms + 75, lost + MSS, MSS);
        script.ack(ms + 87, seq + 13 * MSS, &[]);
    }
    let found = found(&script);
    assert!(found.contains(&"queue-overflow"), "{found:?}");
    assert!(!found.contains(&"burst-loss"), "{found:?}");
}

#[test]
fn an_opened_connection_with_sacks_has_no_late_segment() {
    let mut script = Script::opened();
    script.data(30, 0, MSS).data(30, MSS, MSS);
    script.ack(40, 0, &[(MSS, 2 * MSS)]).ack(41, 2 * MSS, &[]);
    assert_eq!(script.sent().reordered_after_packets, 1);
    assert_eq!(
        script
            .connection()
            .directions
            .b_to_a
            .reordered_after_packets,
        0
    );
}

#[test]
fn a_sentence_about_one_item_is_in_the_singular() {
    let mut script = Script::opened();
    let mut again = script.packets[0].clone();
    for packet in &mut script.packets {
        packet.micros += 1_000_000;
    }
    again.id -= 1;
    script.packets.insert(0, again);
    let findings = script.connection().findings;
    let text = findings
        .iter()
        .find(|one| one.cause.meta().name == "syn-loss");
    assert_eq!(
        text.map(|one| one.text.as_str()),
        Some("The handshake took 1020 ms: it needed 1 retransmission of a SYN or SYN-ACK.")
    );
}

/// The receive-window finding of a connection whose ends do or do not offer window scaling.
fn unscaled_text(offers: [bool; 2]) -> String {
    let mut script = held(6);
    // The window was never larger.
    script.packets[1].window = 2000;
    for (packet, offer) in script.packets.iter_mut().zip(offers) {
        if offer {
            packet.options.extend([1, 3, 3, 0]);
        }
    }
    let findings = script.connection().findings;
    let found = findings
        .iter()
        .find(|one| one.cause.meta().name == "receive-window");
    found.map_or_else(String::new, |one| one.text.clone())
}

#[test]
fn a_window_without_scaling_names_the_end_that_lacks_it() {
    let syn_ack = unscaled_text([true, false]);
    assert!(syn_ack.contains("SYN-ACK of 198.51.100.2:80"), "{syn_ack}");
    let syn = unscaled_text([false, false]);
    assert!(syn.contains("SYN of 192.0.2.1:5000"), "{syn}");
    let both = unscaled_text([true, true]);
    assert!(!both.is_empty() && !both.contains("scaling"), "{both}");
}

/// In each turn a window of two segments is full for 80 ms. After one turn in `every` the
/// application waits for 250 ms.
fn held(every: u32) -> Script {
    let mut script = Script::opened();
    script.ack(21, 0, &[]);
    script.last().window = 2000;
    let mut ms = 40;
    for turn in 0..40 {
        let seq = 2 * turn * MSS;
        script.data(ms, seq, MSS).data(ms, seq + MSS, MSS);
        // The acknowledgment takes 10 ms to the sender.
        script.ack(ms + 70, seq + 2 * MSS, &[]);
        script.last().window = 2000;
        ms += 80 + if turn % every == every - 1 { 250 } else { 0 };
    }
    script
}

#[test]
fn a_briefly_late_application_is_not_reported_beside_a_full_window() {
    // The application has 12 % and 35 % of the time.
    for (every, is_finding) in [(20, false), (6, true)] {
        let script = held(every);
        let shares = script.sent().limits_s;
        assert!(shares[&Limit::Application] > 0.24, "{shares:?}");
        assert_eq!(
            found(&script).contains(&"application"),
            is_finding,
            "{shares:?}"
        );
    }
}

/// A route whose round trip falls from 60 to 20 ms, or a queue of B's data that ends.
fn shorter(has_peers_data: bool) -> Script {
    let mut script = Script::opened();
    // The handshake takes the first route.
    for packet in &mut script.packets[1..] {
        packet.micros += 50_000;
    }
    let (mut ms, mut sent) = (80, 0);
    for k in 0..400 {
        let round_trip = if k < 200 { 60 } else { 20 };
        let seq = 4 * k * MSS;
        for segment in 0..4 {
            script.data(ms, seq + segment * MSS, MSS);
        }
        ms += round_trip;
        script.ack(ms, seq + 4 * MSS, &[]);
        if has_peers_data && k < 200 {
            let last = script.last();
            last.payload = 1000;
            last.seq = last.seq.wrapping_add(sent);
            sent += 1000;
        }
        ms += 10;
    }
    script
}

#[test]
fn a_queue_of_the_peers_data_is_no_other_route() {
    assert!(found(&shorter(false)).contains(&"route-change"));
    let found = found(&shorter(true));
    assert!(!found.contains(&"route-change"), "{found:?}");
}

/// Losses after the capture point. The capture lacks every fifth segment.
#[test]
fn a_copy_that_the_capture_lost_is_no_loss_before_it() {
    let mut script = Script::opened();
    let mut ms = 30;
    for k in 0..60 {
        let seq = 10 * k * MSS;
        for segment in 0..10 {
            script.data(ms, seq + segment * MSS, MSS);
            if (segment + k) % 5 == 4 {
                script.forget();
            }
        }
        // The first segment was lost, and every fifth copy of one was not captured.
        script.ack(ms + 30, seq, &[(seq + MSS, seq + 10 * MSS)]);
        script.data(ms + 45, seq, MSS);
        script.ack(ms + 75, seq + 10 * MSS, &[]);
        ms += 90;
    }
    let causes = found(&script);
    assert!(causes.contains(&"capture-gap"), "{causes:?}");
    assert!(causes.contains(&"loss-after-capture"), "{causes:?}");
    assert!(!causes.contains(&"loss-before-capture"), "{causes:?}");
}

const ECE: u8 = 64;
const CWR: u8 = 128;

/// Findings about ECN: A's data has an ECN field, the SYNs and B's acknowledgments have control bits.
fn ecn(syns: [u8; 2], field: u8, echo: u8) -> Vec<&'static str> {
    let mut script = Script::opened();
    for (syn, bits) in script.packets.iter_mut().zip(syns) {
        syn.flags |= bits;
    }
    for k in 0..20 {
        let ms = 30 + 40 * u64::from(k);
        script
            .data(ms, k * MSS, MSS)
            .ack(ms + 10, (k + 1) * MSS, &[]);
        script.last().flags |= echo;
    }
    let mut file = pcap(&script.packets, 65_535);
    let mut at = 24 + 16;
    for packet in &script.packets {
        file[at + 1] |= if packet.payload > 0 { field } else { 0 };
        at += 16 + packet.octets().len();
    }
    let report = read(&file, Bounds::default());
    let findings = report.connections[0].findings.iter();
    let names = findings.map(|one| one.cause.meta().name);
    names.filter(|name| name.starts_with("ecn")).collect()
}

#[test]
fn data_that_lost_its_ecn_field_is_found() {
    assert_eq!(ecn([ECE | CWR, ECE], 0, 0), ["ecn-cleared"]);
    assert_eq!(ecn([ECE | CWR, ECE], 2, 0), [""; 0]);
    // Without ECN no data is ECN-capable.
    assert_eq!(ecn([ECE | CWR, 0], 0, 0), [""; 0]);
}

#[test]
fn marks_without_an_echo_are_found() {
    assert_eq!(ecn([ECE | CWR, ECE], 3, 0), ["ecn-not-echoed"]);
    assert_eq!(ecn([ECE | CWR, ECE], 3, ECE), [""; 0]);
    // The answer to AccECN.
    assert_eq!(ecn([ECE | CWR, ECE | CWR], 3, 0), [""; 0]);
}
