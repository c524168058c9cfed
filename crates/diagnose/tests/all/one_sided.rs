//! Captures without the packets of one end.

use anabranch_diagnose::{
    Bounds,
    limit::Limit,
    report::{Connection, EndName, Handshake},
};

use crate::make::{ACK, FIN, MSS, Made, SYN, Script, pcap, read, report};

/// A transfer from A with a loss that a timeout repairs.
fn transfer() -> Script {
    let mut script = Script::opened();
    for k in 0..20 {
        let (ms, seq) = (30 + u64::from(k) * 20, 2 * k * MSS);
        script.data(ms, seq, MSS).data(ms, seq + MSS, MSS);
        script.ack(ms + 10, seq + 2 * MSS, &[]);
    }
    script.data(500, 40 * MSS, MSS).data(1_000, 40 * MSS, MSS);
    script.ack(1_010, 41 * MSS, &[]);
    script
}

/// The same with only the packets of one end.
fn one_sided(script: &Script, from: usize) -> Connection {
    let kept: Vec<Made> = script
        .packets
        .iter()
        .filter(|packet| packet.from == from)
        .cloned()
        .collect();
    let mut report = report(&kept);
    assert_eq!(report.connections.len(), 1);
    report.connections.remove(0)
}

fn says_nothing(connection: &Connection) {
    for way in [&connection.directions.a_to_b, &connection.directions.b_to_a] {
        for (limit, time) in &way.limits_s {
            let is_known = matches!(
                limit,
                Limit::Handshake | Limit::Undecidable | Limit::ZeroWindow
            );
            assert!(is_known || *time == 0.0, "{limit:?}: {time}");
        }
        assert!(way.receiver_application_s == 0.0 && way.closing_s == 0.0 && way.turns == 0);
        assert!(
            way.stalls
                .iter()
                .all(|one| one.cause.meta().name == "undecidable")
        );
    }
    let blamed: Vec<_> = connection
        .findings
        .iter()
        .map(|one| one.cause.meta().name)
        .collect();
    assert_eq!(blamed[0], "one-sided-capture");
    for cause in [
        "unanswered",
        "application",
        "slow-client",
        "silent-peer",
        "tail-loss",
    ] {
        assert!(!blamed.contains(&cause), "{blamed:?}");
    }
}

#[test]
fn acknowledgments_alone_prove_an_answer_and_no_limit() {
    let connection = one_sided(&transfer(), 1);
    assert_eq!(connection.not_captured, Some(EndName::A));
    assert_eq!(connection.handshake, Handshake::Partial);
    says_nothing(&connection);
}

#[test]
fn data_alone_shows_no_limit() {
    let connection = one_sided(&transfer(), 0);
    assert_eq!(connection.not_captured, Some(EndName::B));
    assert_eq!(connection.handshake, Handshake::Partial);
    says_nothing(&connection);
}

#[test]
fn one_direction_from_mid_flow_shows_no_limit() {
    for from in [0, 1] {
        let mut script = transfer();
        script.packets.drain(..3);
        says_nothing(&one_sided(&script, from));
    }
}

#[test]
fn a_syn_alone_is_unanswered_and_an_acknowledgment_is_not() {
    let mut script = Script::opened();
    script.packets.retain(|packet| packet.from == 0);
    assert_eq!(script.connection().handshake, Handshake::Partial);
    script.packets.truncate(1);
    let connection = script.connection();
    assert_eq!(connection.handshake, Handshake::Unanswered);
    assert_eq!(connection.not_captured, None);
}

#[test]
fn a_syn_ack_alone_shows_that_the_other_end_is_not_captured() {
    let mut script = Script::opened();
    script.packets.retain(|packet| packet.flags == SYN | ACK);
    let connection = script.connection();
    assert_eq!(connection.not_captured, Some(EndName::A));
    assert_ne!(connection.handshake, Handshake::Unanswered);
}

#[test]
fn data_beyond_the_window_shows_that_acknowledgments_are_not_captured() {
    let mut script = transfer();
    for k in 0..400 {
        script.data(1_100 + u64::from(k), (41 + k) * MSS, MSS);
    }
    // The SYN-ACK takes a path past the capture point, which acknowledgments do not.
    script
        .packets
        .retain(|packet| packet.from == 0 || packet.flags & SYN != 0);
    let connection = script.connection();
    assert_eq!(connection.not_captured, Some(EndName::B));
    says_nothing(&connection);
}

#[test]
fn a_dead_host_is_not_a_capture_of_one_direction() {
    let mut script = transfer();
    for k in 0..10 {
        script.data(1_030, (41 + k) * MSS, MSS);
    }
    for ms in [1_330, 1_930, 3_130, 5_530] {
        script.data(ms, 41 * MSS, MSS);
    }
    let connection = script.connection();
    assert_eq!(connection.not_captured, None);
    let causes: Vec<_> = connection
        .findings
        .iter()
        .map(|one| one.cause.meta().name)
        .collect();
    assert!(causes.contains(&"silent-peer"), "{causes:?}");
}

#[test]
fn time_after_the_last_data_has_no_limit() {
    let mut script = transfer();
    // Keepalives with an old octet are answered. Then the connection is closed.
    for k in 1..=10 {
        let ms = 1_010 + k * 10_000;
        script.data(ms, 41 * MSS - 1, 1).ack(ms + 10, 41 * MSS, &[]);
    }
    script.data(101_500, 41 * MSS, 0);
    script.last().flags = FIN | ACK;
    let connection = script.connection();
    assert!(connection.quiet_s > 100.0, "{connection:?}");
    let causes: Vec<_> = connection
        .findings
        .iter()
        .map(|one| one.cause.meta().name)
        .collect();
    assert_eq!(causes[0], "retransmission-timeout", "{causes:?}");
    assert!(
        !causes.contains(&"application") && !causes.contains(&"slow-client"),
        "{causes:?}"
    );
}

/// A capture that ends before the SYN's options shows neither the scale nor that it is missing.
#[test]
fn a_window_whose_scale_was_cut_off_is_unknown() {
    let mut script = Script::opened();
    for syn in &mut script.packets[..2] {
        syn.options.extend([1, 3, 3, 7]);
    }
    for k in 0..40 {
        let (ms, seq) = (30 + u64::from(k) * 20, 4 * k * MSS);
        for segment in 0..4 {
            script.data(ms, seq + segment * MSS, MSS);
        }
        script.ack(ms + 10, seq + 4 * MSS, &[]);
        // 64,000 octets.
        script.last().window = 500;
    }
    for snaplen in [40, 44, 96] {
        let report = read(&pcap(&script.packets, snaplen), Bounds::default());
        let connection = &report.connections[0];
        assert_eq!(connection.not_captured, None, "{snaplen}");
        assert_eq!(connection.unscaled_by, None, "{snaplen}");
        let mut causes = connection.findings.iter().map(|one| one.cause.meta().name);
        assert!(
            causes.all(|name| !name.contains("window") || name == "congestion-window"),
            "{snaplen}: {:?}",
            connection.findings
        );
    }
}
