//! Segments that are never acknowledged: too large for the path, beyond an unscaled window, or sent
//! to a silent host.

use crate::make::{ACK, FIN, MSS, Made, Script, pcap, read};
use anabranch_diagnose::Bounds;

const FAILURES: [&str; 3] = [
    "large-segments-lost",
    "silent-peer",
    "window-scaling-ignored",
];

fn causes(script: &Script) -> Vec<&'static str> {
    let findings = script.connection().findings.into_iter();
    let causes = findings.map(|finding| finding.cause.meta().name);
    causes.filter(|cause| FAILURES.contains(cause)).collect()
}

/// Sends the segment at `seq` at `ms` and retransmits it after timeouts.
fn give_up(script: &mut Script, ms: u64, seq: u32, payload: u32) {
    for time in [0, 200, 600, 1400, 3000, 6200] {
        script.data(ms + time, seq, payload);
    }
}

/// Small segments are acknowledged, larger ones are not.
fn black_hole(payload: u32) -> Script {
    let mut script = Script::opened();
    script.data(30, 0, 100).ack(45, 100, &[]);
    give_up(&mut script, 60, 100, payload);
    script
}

#[test]
fn a_path_that_carries_only_small_segments_is_a_black_hole() {
    assert_eq!(causes(&black_hole(MSS)), ["large-segments-lost"]);
    // No data is acknowledged, only the handshake.
    let mut script = Script::opened();
    give_up(&mut script, 60, 0, MSS);
    assert_eq!(causes(&script), ["large-segments-lost"]);
}

#[test]
fn data_that_arrives_only_in_smaller_segments_shows_a_black_hole() {
    for (small, expected) in [(500, true), (MSS, false)] {
        let mut script = black_hole(MSS);
        // The sender probes a smaller MTU.
        for (k, start) in (100..100 + MSS).step_by(small as usize).enumerate() {
            let (ms, end) = (12_000 + 100 * k as u64, (start + small).min(100 + MSS));
            script.data(ms, start, end - start).ack(ms + 15, end, &[]);
        }
        let found = causes(&script);
        assert_eq!(
            found == ["large-segments-lost"],
            expected,
            "{small}: {found:?}"
        );
    }
}

#[test]
fn a_host_silent_after_full_segments_is_not_a_black_hole() {
    let mut script = Script::opened();
    for k in 0..6 {
        script.data(30, k * MSS, MSS);
    }
    script.ack(45, 6 * MSS, &[]);
    give_up(&mut script, 60, 6 * MSS, MSS);
    assert_eq!(causes(&script), ["silent-peer"]);
}

#[test]
fn a_fin_without_an_answer_shows_a_silent_host() {
    let mut script = Script::opened();
    script.data(30, 0, MSS).ack(45, MSS, &[]);
    for time in [50, 250, 650, 1450, 3050, 6250] {
        script.data(time, MSS, 0);
        script.last().flags = FIN | ACK;
    }
    let connection = script.connection();
    let found = connection.findings.iter();
    let text = found
        .filter(|one| one.cause.meta().name == "silent-peer")
        .map(|one| one.text.clone())
        .collect::<String>();
    assert!(
        text.contains("retransmitted its FIN in 5 timeouts"),
        "{text}"
    );
    let next = connection.next.unwrap_or_default();
    assert!(
        next.contains("left 6 copies of a segment unanswered"),
        "{next}"
    );
}

#[test]
fn a_sacked_segment_counts_as_arrived() {
    let mut script = Script::opened();
    script
        .data(30, 0, MSS)
        .data(30, MSS, MSS)
        .ack(45, 0, &[(MSS, 2 * MSS)]);
    give_up(&mut script, 60, 0, MSS);
    assert!(!causes(&script).contains(&"large-segments-lost"));
}

#[test]
fn no_mtu_explains_the_loss_of_a_small_segment() {
    for (payload, expected) in [
        (500, "silent-peer"),
        (536, "silent-peer"),
        (537, "large-segments-lost"),
    ] {
        assert_eq!(causes(&black_hole(payload)), [expected], "{payload}");
    }
}

#[test]
fn a_capture_from_the_middle_shows_no_black_hole() {
    let mut script = black_hole(MSS);
    script.packets.drain(..3);
    assert_eq!(causes(&script), [""; 0]);
}

#[test]
fn a_full_segment_of_another_connection_counts_as_arrived() {
    let mut other = Script::opened();
    other.data(30, 0, MSS).ack(45, MSS, &[]);
    let other = other.packets.into_iter().map(|packet| Made {
        ports: (6000, 80),
        ..packet
    });
    let mut packets = black_hole(MSS).packets;
    packets.extend(other);
    let report = read(&pcap(&packets, 96), Bounds::default());
    let findings = report.connections.iter().flat_map(|one| &one.findings);
    let found: Vec<_> = findings.map(|one| one.cause.meta().name).collect();
    assert!(
        found.contains(&"silent-peer") && !found.contains(&"large-segments-lost"),
        "{found:?}"
    );
}

/// B's window is scaled by 2^7, and one flight is acknowledged. Of the next flights, a device
/// passes only the segments within the unscaled window.
fn scaled(raw: u16, second_arrives: bool) -> Script {
    let mut script = Script::opened();
    for syn in &mut script.packets[..2] {
        syn.options.extend([1, 3, 3, 7]);
    }
    for k in 0..6 {
        script.data(30, k * MSS, MSS);
    }
    script.ack(45, 6 * MSS, &[]);
    script.last().window = raw;
    let mut una = 6;
    if second_arrives {
        script
            .data(60, una * MSS, MSS)
            .data(60, (una + 1) * MSS, MSS);
        una += 2;
        script.ack(75, una * MSS, &[]);
        script.last().window = raw;
    }
    for k in 0..8 {
        script.data(90, (una + k) * MSS, MSS);
    }
    give_up(&mut script, 400, una * MSS, MSS);
    script
}

#[test]
fn a_device_that_ignores_the_scale_is_named() {
    let script = scaled(469, false);
    let found = causes(&script);
    assert!(found.contains(&"window-scaling-ignored"), "{found:?}");
    assert!(!found.contains(&"large-segments-lost"), "{found:?}");
    let window = script.sent().unscaled_window.expect("a scaled window");
    assert_eq!((window.arrived_within, window.arrived_beyond), (6, 0));
    assert_eq!((window.lost_within, window.lost_beyond), (0, 8));
}

#[test]
fn arrivals_beyond_the_unscaled_window_clear_the_path() {
    assert_eq!(causes(&scaled(469, true)), ["silent-peer"]);
    // Segments within the window were lost as well.
    assert_eq!(causes(&scaled(60_000, false)), ["silent-peer"]);
}

/// A request of A at 20 ms that B's TCP acknowledges.
fn asked() -> Script {
    let mut script = Script::opened();
    script.data(20, 0, 200).ack(40, 200, &[]);
    script
}

/// A closes the connection.
fn close(script: &mut Script, ms: u64, seq: u32) {
    script.data(ms, seq, 0);
    script.last().flags = FIN | ACK;
    script.ack(ms + 20, seq + 1, &[]);
}

fn response(script: &Script) -> Option<String> {
    let mut found = script.connection().findings.into_iter();
    let found = found.find(|one| one.cause.meta().name == "no-response");
    found.map(|one| one.text)
}

#[test]
fn an_acknowledged_request_without_an_answer_blames_the_program() {
    let mut script = asked();
    close(&mut script, 5_020, 200);
    let connection = script.connection();
    let text = response(&script).expect("a finding");
    assert!(
        text.contains("its TCP acknowledged the request")
            && text.contains("5.0 s, until the connection was closed"),
        "{text}"
    );
    assert_eq!(connection.findings.len(), 1, "{:?}", connection.findings);
    assert!(connection.quiet_s < 0.1 && connection.failure.is_some());
    let waited = connection.directions.a_to_b.receiver_application_s;
    assert!((waited - 5.0).abs() < 0.05, "{waited}");
    let next = connection.next.unwrap_or_default();
    assert!(
        next.contains("why the program at 198.51.100.2:80 does not answer"),
        "{next}"
    );
}

#[test]
fn a_request_that_nothing_acknowledges_blames_the_path() {
    // Another connection shows that the capture went on.
    let mut other = asked();
    close(&mut other, 9_000, 200);
    let other = other.packets.into_iter().map(|packet| Made {
        ports: (6000, 81),
        ..packet
    });
    for copies in [1, 2] {
        let mut script = Script::opened();
        for k in 0..copies {
            script.data(20 + 300 * k, 0, 200);
        }
        let packets: Vec<_> = script.packets.into_iter().chain(other.clone()).collect();
        let report = read(&pcap(&packets, 96), Bounds::default());
        let one = &report.connections[0];
        let found: Vec<_> = one.findings.iter().map(|one| one.text.as_str()).collect();
        let text = found
            .iter()
            .find(|text| text.contains("until the capture ended"));
        assert!(
            text.is_some_and(|text| text.contains("acknowledged nothing of the last request")),
            "{found:?}"
        );
        let next = one.next.clone().unwrap_or_default();
        assert!(next.contains("find where the request to"), "{next}");
    }
}

#[test]
fn a_late_answer_and_a_closing_client_miss_no_response() {
    let mut script = asked();
    script.answer(9_000, 0, 500).data(9_020, 200, 0);
    assert_eq!(response(&script), None);
    // The client closes with its message.
    let mut script = asked();
    close(&mut script, 45, 200);
    script.answer(30_000, 0, 0);
    assert_eq!(response(&script), None);
    // Messages that need no answer.
    let mut script = Script::opened();
    for k in 0..5 {
        let (ms, seq) = (u64::from(k) * 2_000 + 30, k * 200);
        script.data(ms, seq, 200).ack(ms + 20, seq + 200, &[]);
    }
    close(&mut script, 20_000, 1_000);
    assert_eq!(response(&script), None);
}
