//! Captures whose packets are not in order of time, or whose times are far apart.

use std::io::{self, Cursor, Read, Seek, SeekFrom};

use anabranch_diagnose::{Bounds, Report, diagnose, report::Order};

use crate::make::{MSS, Made, Script, pcap, report};

const SECOND: u64 = 1_000_000;

/// A connection that sends a segment every 10 ms, each acknowledged after 5 ms.
fn transfer(port: u16, start_s: u64, segments: u32) -> Vec<Made> {
    let mut script = Script::opened();
    for k in 0..segments {
        let time = 30 + 10 * u64::from(k);
        script
            .data(time, k * MSS, MSS)
            .ack(time + 5, (k + 1) * MSS, &[]);
    }
    let mut packets = script.packets;
    for packet in &mut packets {
        packet.ports.0 = port;
        packet.micros += start_s * SECOND;
    }
    packets
}

/// Figures of the connections by port, without frame numbers.
fn figures(report: &Report) -> Vec<String> {
    let mut found: Vec<_> = report
        .connections
        .iter()
        .map(|one| {
            let sent = &one.directions.a_to_b;
            let times = (one.start_s, one.duration_s, &sent.limits_s);
            let counts = (
                sent.bytes,
                sent.reordered_packets,
                &sent.retransmission_counts,
            );
            format!(
                "{} {} {times:?} {counts:?} {:?}",
                one.a, one.packets, sent.rtt_ms
            )
        })
        .collect();
    found.sort();
    found
}

#[test]
fn joined_files_are_sorted_by_time() {
    let one = transfer(5000, 0, 900);
    let other = transfer(5001, 2, 900);
    let mut packets = [one.clone(), other.clone()].concat();
    packets.sort_by_key(|packet| packet.micros);
    let right = report(&packets);
    assert_eq!(right.order, Order::File);
    for joined in [[one.clone(), other.clone()], [other, one]] {
        let found = report(&joined.concat());
        assert_eq!(found.order, Order::Sorted);
        assert_eq!((found.not_put_in_order, found.clock_set_back), (0, 0));
        assert!(found.time_went_back > 0);
        assert_eq!(figures(&found), figures(&right));
    }
}

#[test]
fn parts_of_one_connection_in_another_order_are_sorted_by_time() {
    let packets = transfer(5000, 0, 2000);
    let right = report(&packets);
    let mut turned = packets;
    let half = turned.len() / 2;
    turned.rotate_left(half);
    let found = report(&turned);
    assert_eq!(found.order, Order::Sorted);
    assert_eq!(figures(&found), figures(&right));
}

#[test]
fn queues_written_in_turn_are_sorted_by_time() {
    let mut queues = [transfer(5000, 0, 3000), transfer(5001, 0, 3000)];
    let mut packets = queues.concat();
    packets.sort_by_key(|packet| packet.micros);
    let right = report(&packets);
    packets.clear();
    while !queues[0].is_empty() {
        for queue in &mut queues {
            packets.extend(queue.drain(..queue.len().min(1500)));
        }
    }
    assert_eq!(figures(&report(&packets)), figures(&right));
}

#[test]
fn a_clock_set_back_keeps_the_order_of_the_file() {
    for back_s in [1, 3600, 900_000_000] {
        let mut packets = transfer(5000, 1_000_000_000, 2000);
        for packet in packets.iter_mut().skip(2000) {
            packet.micros -= back_s * SECOND;
        }
        let found = report(&packets);
        assert_eq!(
            (found.order, found.clock_set_back),
            (Order::ClockSetBack, 1)
        );
        let connection = &found.connections[0];
        let sent = &connection.directions.a_to_b;
        assert!(
            (connection.duration_s - 20.0).abs() < 0.1,
            "{}",
            connection.duration_s
        );
        assert_eq!((sent.bytes, sent.retransmission_counts.all), (2_000_000, 0));
        assert_eq!(sent.reordered_packets, 0);
    }
}

#[test]
fn a_damaged_time_moves_no_other_packet() {
    let mut packets = transfer(5000, 0, 2000);
    packets[1500].micros = 0;
    let past = report(&packets);
    packets[1500].micros = 4_000_000_000 * SECOND;
    for found in [past, report(&packets)] {
        let connection = &found.connections[0];
        assert!(
            (connection.duration_s - 20.0).abs() < 0.1,
            "{}",
            connection.duration_s
        );
        assert_eq!((found.connections.len(), found.not_put_in_order), (1, 1));
        assert_eq!(found.clock_set_back, 0);
    }
}

/// A stream that cannot be read again.
struct Stream<R>(R);

impl<R: Read> Read for Stream<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl<R> Seek for Stream<R> {
    fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
        Err(io::ErrorKind::NotSeekable.into())
    }
}

#[test]
fn a_stream_reports_the_packets_that_it_could_not_put_in_order() {
    let joined = [transfer(5001, 2, 900), transfer(5000, 0, 900)].concat();
    let stream = Stream(Cursor::new(pcap(&joined, 96)));
    let found = diagnose(stream, "stream", Bounds::default(), || false).expect("a capture");
    assert_eq!(found.order, Order::Nearby);
    assert!(found.not_put_in_order > 1000);
}

#[test]
fn connections_far_apart_keep_their_durations() {
    for apart_s in [5 * 31_536_000, 50 * 31_536_000, 4_294_967_000] {
        // Starts at the earliest time of a pcap file.
        let first = transfer(5000, 0, 300);
        let mut packets = first.clone();
        for packet in &mut packets {
            packet.micros -= 1_000 * SECOND;
        }
        packets.extend(first.into_iter().map(|mut packet| {
            packet.ports.0 = 5001;
            packet.micros += (apart_s - 1_010) * SECOND;
            packet
        }));
        let found = report(&packets);
        assert_eq!(found.order, Order::File);
        let times: Vec<_> = found
            .connections
            .iter()
            .map(|one| (one.start_s, one.duration_s))
            .collect();
        let [(start, one), (later, other)] = times[..] else {
            panic!("{times:?}");
        };
        assert!(
            (one - 3.025).abs() < 1e-6 && (other - 3.025).abs() < 1e-6,
            "{times:?}"
        );
        assert!(
            start.abs() < 1e-6 && (later + 10.0 - apart_s as f64).abs() < 1e-6,
            "{times:?}"
        );
    }
}

#[test]
fn a_silence_of_decades_ends_a_connection() {
    let mut packets = transfer(5000, 0, 20);
    for packet in packets.iter_mut().skip(20) {
        packet.micros += 2_000_000_000 * SECOND;
    }
    let found = report(&packets);
    assert_eq!(found.connections.len(), 2);
    for connection in &found.connections {
        assert!(connection.duration_s < 1.0);
        let sum: f64 = connection.directions.a_to_b.limits_s.values().sum();
        assert!((sum - connection.duration_s).abs() < 1e-6);
    }
}
