//! Diagnoses of hand-made qlogs, and of QUIC packets in captures.

use std::{fmt::Write as _, io::Cursor};

use anabranch_diagnose::{
    Bounds, Report,
    limit::Limit,
    log::{diagnose_log, is_log},
    quic::Spin,
    report::{Connection, Evidence, LossSide, OneWay, Transport, Trigger},
};

/// A log of a client that sends.
struct Log(String);

const FULL: u64 = 1200;

impl Log {
    fn new(vantage: &str) -> Self {
        let mut log = Self(format!(
            r#"{{"qlog_version":"0.3","qlog_format":"JSON-SEQ","trace":{{"vantage_point":{{"type":"{vantage}"}}}}}}"#
        ));
        let (first, second) = if vantage == "client" {
            ("packet_sent", "packet_received")
        } else {
            ("packet_received", "packet_sent")
        };
        log.packet(
            0.0,
            first,
            "initial",
            0,
            r#"{"frame_type":"crypto","offset":0}"#,
        );
        log.packet(
            20.0,
            second,
            "initial",
            0,
            r#"{"frame_type":"crypto","offset":0}"#,
        );
        log
    }

    fn packet(&mut self, at: f64, name: &str, kind: &str, number: u64, frame: &str) {
        let _ = write!(
            self.0,
            "\n\u{1e}{{\"time\":{at},\"name\":\"transport:{name}\",\"data\":{{\"header\":{{\"packet_type\":\"{kind}\",\"packet_number\":{number}}},\"raw\":{{\"length\":{}}},\"frames\":[{frame}]}}}}",
            FULL + 30
        );
    }

    fn event(&mut self, at: f64, name: &str, data: &str) {
        let _ = write!(
            self.0,
            "\n\u{1e}{{\"time\":{at},\"name\":\"{name}\",\"data\":{data}}}"
        );
    }

    fn data(&mut self, at: f64, name: &str, number: u64, offset: u64) {
        let frame =
            format!(r#"{{"frame_type":"stream","stream_id":0,"offset":{offset},"length":{FULL}}}"#);
        self.packet(at, name, "1RTT", number, &frame);
    }

    fn ack(&mut self, at: f64, name: &str, number: u64, ranges: &str) {
        let frame = format!(r#"{{"frame_type":"ack","acked_ranges":{ranges}}}"#);
        self.packet(at, name, "1RTT", number, &frame);
    }

    fn report(&self) -> Report {
        let file = Cursor::new(self.0.as_bytes());
        diagnose_log(file, "made", Bounds::DEFAULT, || false).expect("a qlog")
    }

    fn connection(&self) -> Connection {
        self.report().connections.remove(0)
    }
}

fn sums(connection: &Connection) {
    for way in [&connection.directions.a_to_b, &connection.directions.b_to_a] {
        let sum: f64 = way.limits_s.values().sum();
        assert!((sum - connection.duration_s).abs() < 1e-6);
    }
}

fn share(connection: &Connection, way: &OneWay, limit: Limit) -> f64 {
    way.limits_s.get(&limit).copied().unwrap_or(0.0) / connection.duration_s
}

/// Packets 0 to 9 leave; 2 is lost, and its data is sent again as packet 10.
fn with_loss(arrives_late: bool) -> Log {
    let mut log = Log::new("client");
    for number in 0..10 {
        log.data(
            21.0 + number as f64 / 10.0,
            "packet_sent",
            number,
            number * FULL,
        );
    }
    log.ack(41.0, "packet_received", 0, "[[0,1],[3,9]]");
    let lost = r#"{"header":{"packet_type":"1RTT","packet_number":2},"trigger":"time_threshold"}"#;
    log.event(41.1, "recovery:packet_lost", lost);
    log.data(41.2, "packet_sent", 10, 2 * FULL);
    if arrives_late {
        log.ack(45.0, "packet_received", 1, "[[0,9]]");
    }
    let ranges = if arrives_late {
        "[[0,10]]"
    } else {
        "[[0,1],[3,10]]"
    };
    log.ack(61.5, "packet_received", 2, ranges);
    log
}

#[test]
fn packet_numbers_decide_whether_a_retransmission_was_needed() {
    for (arrives_late, needed) in [(false, true), (true, false)] {
        let connection = with_loss(arrives_late).connection();
        sums(&connection);
        assert_eq!(connection.transport, Transport::Quic);
        assert_eq!(
            (connection.a.as_str(), connection.b.as_str()),
            ("client", "server")
        );
        let [again] = &connection.directions.a_to_b.retransmissions[..] else {
            panic!("{connection:?}");
        };
        assert_eq!(again.needed, Some(needed));
        assert_eq!(again.trigger, Trigger::Rack);
        if needed {
            assert_eq!(again.evidence, Evidence::PacketNumber);
            assert_eq!(again.lost, LossSide::After);
        }
        assert_eq!(again.seq, 2400);
    }
}

#[test]
fn missing_packets_of_the_other_end_were_lost_before_the_log() {
    let mut log = Log::new("server");
    for number in (0..10).filter(|number| *number != 2) {
        log.data(
            40.0 + number as f64,
            "packet_received",
            number,
            number * FULL,
        );
        log.ack(
            40.1 + number as f64,
            "packet_sent",
            number,
            &format!("[[0,{number}]]"),
        );
    }
    log.data(80.0, "packet_received", 10, 2 * FULL);
    log.ack(80.1, "packet_sent", 10, "[[0,1],[3,10]]");
    let connection = log.connection();
    sums(&connection);
    let [again] = &connection.directions.a_to_b.retransmissions[..] else {
        panic!("{connection:?}");
    };
    assert_eq!((again.needed, again.lost), (Some(true), LossSide::Before));
}

#[test]
fn a_late_packet_of_the_other_end_is_reordered() {
    let mut log = Log::new("server");
    for number in [0, 1, 3, 4, 2, 5, 6] {
        log.data(
            40.0 + number as f64 / 10.0,
            "packet_received",
            number,
            number * FULL,
        );
    }
    log.ack(60.0, "packet_sent", 0, "[[0,6]]");
    let way = log.connection().directions.a_to_b;
    assert_eq!(way.retransmissions, []);
    assert_eq!(way.reordered_packets, 1);
}

#[test]
fn flow_control_is_the_receive_window() {
    let mut log = Log::new("client");
    let parameters = r#"{"owner":"remote","initial_max_data":12000,"initial_max_stream_data_bidi_remote":1000000}"#;
    log.event(20.5, "transport:parameters_set", parameters);
    let mut number = 0;
    for round in 0..20 {
        let at = 21.0 + 40.0 * f64::from(round);
        for _ in 0..10 {
            log.data(at, "packet_sent", number, number * FULL);
            number += 1;
        }
        log.ack(
            at + 20.0,
            "packet_received",
            number,
            &format!("[[0,{}]]", number - 1),
        );
        let frame = format!(
            r#"{{"frame_type":"max_data","maximum":{}}}"#,
            (number + 10) * FULL
        );
        log.packet(at + 39.9, "packet_received", "1RTT", 1000 + number, &frame);
    }
    let connection = log.connection();
    sums(&connection);
    let way = &connection.directions.a_to_b;
    let limits = [Limit::ReceiveWindow, Limit::ZeroWindow];
    let sum: f64 = limits
        .map(|limit| share(&connection, way, limit))
        .iter()
        .sum();
    assert!(sum > 0.9, "{:?}", way.limits_s);
}

#[test]
fn a_record_of_the_window_tells_the_application_from_the_path() {
    // Each round trip, ten full packets: the window has 10 or 100.
    for (window, limit) in [(10, Limit::CongestionWindow), (100, Limit::Application)] {
        let mut log = Log::new("client");
        let metrics = format!(r#"{{"congestion_window":{}}}"#, window * (FULL + 30));
        log.event(20.5, "recovery:metrics_updated", &metrics);
        let mut number = 0;
        for round in 0..20 {
            let at = 21.0 + 20.0 * f64::from(round);
            for _ in 0..10 {
                log.data(at, "packet_sent", number, number * FULL);
                number += 1;
            }
            let ranges = format!("[[0,{}]]", number - 1);
            log.ack(at + 20.0 - 1e-3, "packet_received", number, &ranges);
        }
        let connection = log.connection();
        let way = &connection.directions.a_to_b;
        assert!(
            share(&connection, way, limit) > 0.8,
            "{window}: {:?}",
            way.limits_s
        );
    }
}

#[test]
fn without_frames_the_octets_in_flight_show_acknowledgments() {
    let mut log = Log::new("client");
    for number in 0..10 {
        let data = format!(
            r#"{{"header":{{"packet_type":"1RTT","packet_number":{number}}},"raw":{{"length":1230}}}}"#
        );
        log.event(21.0 + f64::from(number), "transport:packet_sent", &data);
    }
    log.event(45.0, "recovery:metrics_updated", r#"{"bytes_in_flight":0}"#);
    let connection = log.connection();
    assert!(!connection.quic.expect("it is QUIC").frames);
    assert_eq!(connection.directions.a_to_b.bytes, 12_000);
    assert!(connection.directions.a_to_b.rtt_ms.min.is_some());
}

#[test]
fn a_log_of_far_too_many_connections_is_refused() {
    let mut log = Log::new("client");
    for number in 0..40 {
        let _ = write!(
            log.0,
            "\n\u{1e}{{\"time\":1,\"name\":\"packet_sent\",\"group_id\":\"{number}\",\"data\":{{\"header\":{{\"packet_type\":\"1RTT\"}}}}}}"
        );
    }
    for (connections, is_refused) in [(2, true), (3, false)] {
        let bounds = Bounds {
            connections,
            ..Bounds::DEFAULT
        };
        let found = diagnose_log(Cursor::new(log.0.as_bytes()), "made", bounds, || false);
        let told = found.map_or_else(|error| error.to_string(), |_| String::new());
        assert_eq!(
            told.contains("more than 32 connections"),
            is_refused,
            "{told}"
        );
    }
}

#[test]
fn a_capture_is_no_log() {
    assert!(!is_log(&mut Cursor::new(b"\xd4\xc3\xb2\xa1")).expect("it can be read"));
    let mut log = Cursor::new(with_loss(false).0.into_bytes());
    assert!(is_log(&mut log).expect("it can be read"));
    assert_eq!(log.position(), 0);
}

/// A capture of UDP datagrams: time in µs, from the client, first octets, length.
fn datagrams(packets: &[(u32, bool, Vec<u8>, u16)]) -> Report {
    let mut file = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
    file.extend([2, 0, 4, 0]);
    file.extend([0, 0, 96, 101_u32].map(u32::to_le_bytes).concat());
    for (micros, is_client, content, length) in packets {
        let total = 28 + length;
        let mut packet = vec![0x45, 0];
        packet.extend(total.to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 17, 0, 0]);
        let ends = [[10, 0, 0, 1], [10, 0, 0, 2]];
        let ports = [[200_u8, 1], [1, 187]];
        let (from, to) = if *is_client { (0, 1) } else { (1, 0) };
        packet.extend([ends[from], ends[to]].concat());
        packet.extend([ports[from], ports[to]].concat());
        packet.extend((length + 8).to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(content);
        let kept = u32::try_from(packet.len()).expect("short");
        let words = [micros / 1_000_000, micros % 1_000_000, kept, total.into()];
        file.extend(words.map(u32::to_le_bytes).concat());
        file.extend(packet);
    }
    anabranch_diagnose::diagnose(Cursor::new(file), "made", Bounds::DEFAULT, || false)
        .expect("a capture")
}

fn long(first: u8, version: u32) -> Vec<u8> {
    [&[first][..], &version.to_be_bytes(), &[8], &[7; 8], &[0]].concat()
}

/// A handshake with a Retry over a path of 40 ms, and 1-RTT packets each 10 ms whose bit is `spin`.
fn with_spin(spin: impl Fn(u32) -> bool) -> Report {
    let mut packets = vec![
        (0, true, long(0xc0, 1), 1200),
        (40_000, false, long(0xf0, 1), 100),
        (40_100, true, long(0xc0, 1), 1200),
        (80_000, false, long(0xc0, 1), 1200),
        (80_100, true, long(0xe0, 1), 1200),
    ];
    for k in 0..100 {
        let at = 90_000 + k * 10_000;
        let octet = 0x40 | if spin(k) { 0x20 } else { 0 };
        packets.push((at, true, vec![octet; 9], 50));
        packets.push((at + 100, false, vec![octet; 9], 1200));
    }
    datagrams(&packets)
}

#[test]
fn long_headers_show_the_handshake() {
    let report = with_spin(|k| k / 4 % 2 == 0);
    assert_eq!(report.connections, []);
    let [flow] = &report.quic[..] else {
        panic!("{:?}", report.quic);
    };
    assert_eq!(
        (flow.a.as_str(), flow.b.as_str()),
        ("10.0.0.1:51201", "10.0.0.2:443")
    );
    assert_eq!(flow.version, "1");
    assert!(flow.retry && !flow.version_negotiation);
    let handshake = flow.handshake;
    assert_eq!(handshake.answered_ms, Some(80.0));
    assert_eq!(handshake.returned_ms, Some(80.1));
    assert_eq!(handshake.client_ready_ms, Some(90.0));
    assert_eq!(handshake.unanswered_datagrams, 1);
    assert_eq!(flow.directions.b_to_a.datagrams, 102);
    assert_eq!(report.passed_over.get("no-tcp"), None);
}

#[test]
fn the_spin_bit_shows_round_trips_if_it_is_used() {
    let used = &with_spin(|k| k / 4 % 2 == 0).quic[0];
    assert_eq!(used.spin, Spin::Used);
    let median = used.spin_rtt_ms.median.expect("it is known");
    assert!((median - 40.0).abs() < 1.0, "{median}");
    let constant = &with_spin(|_| false).quic[0];
    assert_eq!(
        (constant.spin, constant.spin_rtt_ms.median),
        (Spin::Constant, None)
    );
    // Faster than a round trip.
    let random = &with_spin(|k| k % 2 == 0).quic[0];
    assert_eq!(
        (random.spin, random.spin_rtt_ms.median),
        (Spin::Random, None)
    );
}

/// A long header of version 1 with the connection IDs of its destination and its source.
fn between(first: u8, to: &[u8], from: &[u8]) -> Vec<u8> {
    let mut header = vec![first, 0, 0, 0, 1];
    for id in [to, from] {
        header.push(u8::try_from(id.len()).expect("a connection ID"));
        header.extend(id);
    }
    header
}

/// A connection whose client draws `drawn` for the server, which chooses `server`.
fn opening(at: u32, drawn: &[u8], client: &[u8], server: &[u8]) -> Vec<(u32, bool, Vec<u8>, u16)> {
    let short = |to: &[u8]| [&[0x40][..], to, &[9; 12]].concat();
    vec![
        (at, true, between(0xc0, drawn, client), 1200),
        (at + 20_000, false, between(0xc0, client, server), 1200),
        (at + 20_100, true, between(0xe0, server, client), 300),
        (at + 40_000, false, short(client), 1000),
        (at + 40_100, true, short(server), 100),
    ]
}

fn counts(report: &Report) -> Vec<[u64; 2]> {
    let flows = report.quic.iter();
    let both = flows.map(|flow| [&flow.directions.a_to_b, &flow.directions.b_to_a]);
    both.map(|ways| ways.map(|way| way.datagrams)).collect()
}

#[test]
fn connections_on_the_same_ports_are_kept_apart() {
    for clients in [[&[][..], &[]], [&[1, 2, 3], &[4, 5, 6]]] {
        let mut packets = opening(0, &[5; 8], clients[0], &[8; 4]);
        packets.extend(opening(1_000_000, &[6; 8], clients[1], &[9; 4]));
        let report = datagrams(&packets);
        assert_eq!(counts(&report), [[3, 2]; 2]);
        let apart = report.quic[1].start_s - report.quic[0].start_s;
        assert!((apart - 1.0).abs() < 1e-6, "{apart}");
        assert_eq!(report.quic[1].handshake.answered_ms, Some(20.0));
    }
}

#[test]
fn simultaneous_connections_on_the_same_ports_are_kept_apart() {
    let mut packets = opening(0, &[5; 8], &[1; 3], &[8; 4]);
    packets.extend(opening(50, &[6; 8], &[2; 5], &[9; 20]));
    packets.extend(opening(70, &[7; 8], &[3; 3], &[4; 4]));
    packets.sort_by_key(|packet| packet.0);
    let report = datagrams(&packets);
    assert_eq!(counts(&report), [[3, 2]; 3]);
    for flow in &report.quic {
        assert_eq!(flow.handshake.answered_ms, Some(20.0));
        assert_eq!(flow.handshake.client_ready_ms, Some(40.1));
    }
}

#[test]
fn a_retry_and_lost_initial_packets_begin_no_other_connection() {
    let packets = [
        (0, true, between(0xc0, &[5; 8], &[1; 3]), 1200),
        (10_000, true, between(0xc0, &[5; 8], &[1; 3]), 1200),
        (30_000, false, between(0xf0, &[1; 3], &[6; 8]), 100),
        (30_100, true, between(0xc0, &[6; 8], &[1; 3]), 1200),
        (60_000, false, between(0xc0, &[1; 3], &[8; 4]), 1200),
        (60_100, true, between(0xc0, &[8; 4], &[1; 3]), 1200),
    ];
    assert_eq!(counts(&datagrams(&packets)), [[4, 2]]);
    // The capture has the client's packets only, and they lack a connection ID of the client.
    let packets = [
        (0, true, between(0xc0, &[5; 8], &[]), 1200),
        (20_000, true, between(0xc0, &[8; 8], &[]), 1200),
    ];
    assert_eq!(counts(&datagrams(&packets)), [[2, 0]]);
}

#[test]
fn other_datagrams_are_no_quic() {
    let report = datagrams(&[
        (0, true, vec![0x40; 12], 1200),
        (10, true, long(0xc0, 9), 1200),
    ]);
    assert_eq!(report.quic, []);
    assert_eq!(report.passed_over.get("no-tcp"), Some(&2));
}
