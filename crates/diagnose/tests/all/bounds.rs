//! Bad input, and bounds on the stored data.

use std::io::Cursor;

use anabranch_diagnose::{Bounds, diagnose};

use crate::make::{MSS, Script, pcap, read};

/// `count` connections of three packets each, one of them with more.
fn many(count: u16) -> Vec<u8> {
    let mut packets = Vec::new();
    for port in 0..count {
        let mut script = Script::opened();
        if port == 7 {
            script.data(30, 0, MSS).data(300, 0, MSS).ack(310, MSS, &[]);
        }
        for mut packet in script.packets {
            packet.ports.0 = 1000 + port;
            packet.micros += u64::from(port) * 1_000;
            packets.push(packet);
        }
    }
    pcap(&packets, 96)
}

#[test]
fn connections_beyond_the_bounds_are_counted() {
    let bounds = Bounds {
        open_connections: 1_000,
        connections: 5,
        retransmissions: 0,
        ..Bounds::default()
    };
    let report = read(&many(100), bounds);
    assert_eq!(report.connections.len(), 5);
    let listed: u64 = report.connections.iter().map(|one| one.packets).sum();
    assert_eq!(listed + report.omitted.packets, 303);
    assert_eq!(report.packets, 303);
    // The connection with the most packets is listed.
    let longest = report.connections.iter().find(|one| one.packets == 6);
    let counts = &longest.expect("it is listed").directions.a_to_b;
    assert_eq!(counts.retransmission_counts.all, 1);
    assert_eq!(counts.retransmission_counts.not_listed, 1);
}

#[test]
fn too_many_open_connections_end_early() {
    let bounds = Bounds {
        open_connections: 10,
        ..Bounds::default()
    };
    let report = read(&many(100), bounds);
    assert!(report.ended_early > 0);
    let listed: u64 = report.connections.iter().map(|one| one.packets).sum();
    assert_eq!(listed, 303);
}

#[test]
fn headers_are_enough() {
    let mut script = Script::with_stamps();
    for k in 0..10 {
        script.data(30, k * MSS, MSS);
    }
    script.data(400, 0, MSS).echo(410, 10 * MSS, 400);
    let whole = read(&pcap(&script.packets, 65_535), Bounds::default());
    let short = read(&pcap(&script.packets, 96), Bounds::default());
    assert_eq!(whole, short);
}

#[test]
fn swapped_neighbours_are_put_in_order() {
    let mut script = Script::opened();
    for k in 0..50 {
        script.data(30 + u64::from(k), k * MSS, MSS);
    }
    script.ack(90, 50 * MSS, &[]);
    let mut mixed = script.clone();
    for pair in mixed.packets.chunks_exact_mut(2) {
        pair.swap(0, 1);
    }
    let report = mixed.report();
    assert!(report.time_went_back > 0);
    let sent = &report.connections[0].directions.a_to_b;
    assert_eq!((sent.reordered_packets, sent.retransmissions.len()), (0, 0));
}

#[test]
fn a_file_that_is_not_a_capture_is_refused() {
    let error = diagnose(Cursor::new(b"title = 1"), "x", Bounds::default(), || false);
    assert!(error.is_err_and(|error| error.to_string().contains("expected pcap")));
}

#[test]
fn damage_ends_the_reading_and_is_reported() {
    let mut file = many(3);
    let end = file.len();
    file.extend([0xff; 100]);
    let report = read(&file, Bounds::default());
    assert!(report.damaged.is_some());
    assert_eq!(report.connections.len(), 3);
    let cut = read(&file[..end - 4], Bounds::default());
    assert!(cut.cut_off);
}

#[test]
fn reading_stops_when_asked() {
    let file = many(3);
    assert!(diagnose(Cursor::new(&file), "x", Bounds::default(), || true).is_err());
}

#[test]
fn retransmissions_of_an_octet_beyond_the_bound_are_undecided() {
    let mut script = Script::opened();
    for k in 0..200 {
        script.data(30 + 400 * k, 0, 1);
    }
    let sent = script.sent();
    let counts = sent.retransmission_counts;
    assert_eq!((counts.all, counts.needed, counts.spurious), (199, 0, 0));
    assert_eq!(counts.undecided, 199);
}
