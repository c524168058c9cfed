//! pcap and pcapng in all variants, whole and broken.

use anabranch_capture::{Error, Reader, Skip};

use crate::make::{
    MICROS, MODIFIED, NANOS, Order, block, enhanced, ethernet, frames, interface, lengths, pcap,
    plain, read, section, v4,
};

const MS: i128 = 1_000_000_000;

fn refusal(file: &[u8]) -> Error {
    let mut reader = match Reader::open(file) {
        Ok(reader) => reader,
        Err(error) => return error,
    };
    loop {
        match reader.next_packet() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it must be refused"),
            Err(error) => return error,
        }
    }
}

#[test]
fn pcap_in_every_variant() {
    let all = frames(&[v4(100), v4(60)]);
    for order in [Order::Little, Order::Big] {
        for (magic, per_ms) in [(MICROS, 1_000), (NANOS, 1_000_000), (MODIFIED, 1_000)] {
            let (packets, counts) = read(&pcap(order, magic, 101, &all));
            let time = |k: i128| k * 1_000_000 * MS / per_ms;
            assert_eq!(
                packets,
                [(time(1), 100), (time(2), 60)],
                "{order:?} {magic:x}"
            );
            assert!(!counts.is_cut_off);
        }
    }
}

/// Before version 2.3 the captured length followed the length on the wire.
#[test]
fn old_pcap_has_its_lengths_swapped() {
    let mut file = plain(101, &[v4(100)]);
    file[6] = 2;
    file[32..36].copy_from_slice(&1_514_u32.to_le_bytes());
    assert_eq!(lengths(&file), [100]);
}

#[test]
fn pcapng_with_several_interfaces_and_resolutions() {
    for order in [Order::Little, Order::Big] {
        let offset = match order {
            Order::Little => 5_i64.to_le_bytes(),
            Order::Big => 5_i64.to_be_bytes(),
        };
        let file = [
            section(order),
            interface(order, 1, &[(2, b"eth0".to_vec())]),
            interface(order, 101, &[(9, vec![9]), (14, offset.to_vec())]),
            // 1024 units per second.
            interface(order, 101, &[(9, vec![0x8a])]),
            // Names, statistics and others are passed over.
            block(order, 4, &[0; 32]),
            block(order, 0x8000_0001, &[0; 7]),
            enhanced(order, 0, 7_000, &ethernet(0x0800, &v4(100))),
            enhanced(order, 1, 9_000_000, &v4(60)),
            enhanced(order, 2, 512, &v4(40)),
        ]
        .concat();
        let expected = [(7 * MS, 100), (5_009 * MS, 60), (500 * MS, 40)];
        assert_eq!(read(&file).0, expected, "{order:?}");
    }
}

/// Two concatenated files: sections, each with its byte order and interfaces.
#[test]
fn pcapng_in_sections() {
    let part = |order: Order, length: u16| {
        [
            section(order),
            interface(order, 101, &[]),
            enhanced(order, 0, 3_000, &v4(length)),
        ]
        .concat()
    };
    let file = [part(Order::Little, 100), part(Order::Big, 60)].concat();
    assert_eq!(read(&file).0, [(3 * MS, 100), (3 * MS, 60)]);
}

/// A simple packet block has no time; the packet block of old files has one.
#[test]
fn other_packet_blocks() {
    let order = Order::Little;
    let packet = v4(100);
    let simple = block(order, 3, &[&order.u32(100)[..], &packet].concat());
    let old = [
        &order.u16(0)[..],
        &order.u16(0),
        &[
            order.u32(0),
            order.u32(3_000),
            order.u32(100),
            order.u32(100),
        ]
        .concat(),
        &packet,
    ];
    let file = [
        section(order),
        interface(order, 101, &[]),
        simple,
        block(order, 2, &old.concat()),
    ];
    let (packets, counts) = read(&file.concat());
    assert_eq!(packets, [(3 * MS, 100)]);
    assert_eq!(counts.skipped.get(&Skip::NoTime), Some(&1));
}

/// A capture truncated anywhere after its header gives its whole packets and is reported as cut
/// off.
#[test]
fn a_capture_that_is_cut_off_ends_with_its_last_whole_packet() {
    let order = Order::Little;
    let records = [v4(100), v4(60), v4(40)];
    let mut blocks = vec![section(order), interface(order, 101, &[])];
    blocks.extend(
        (0..3).map(|k| enhanced(order, 0, k, &records[usize::try_from(k).expect("small")])),
    );
    let ng = blocks.concat();
    for (file, header, overhead) in [(plain(101, &records), 24, 16), (ng, 28 + 20, 32)] {
        let mut ends = vec![header];
        for record in &records {
            ends.push(ends.last().expect("one") + overhead + record.len());
        }
        assert_eq!(*ends.last().expect("one"), file.len());
        for cut in header..=file.len() {
            let (packets, counts) = read(&file[..cut]);
            let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
            assert_eq!(packets.len(), whole, "cut at {cut}");
            assert_eq!(counts.is_cut_off, !ends.contains(&cut), "cut at {cut}");
        }
    }
}

#[test]
fn times_that_go_back_are_counted() {
    let mut all = frames(&[v4(100), v4(99), v4(98), v4(97)]);
    for (frame, time) in all.iter_mut().zip([5, 3, 4, 6]) {
        frame.time = time;
    }
    let (packets, counts) = read(&pcap(Order::Little, MICROS, 101, &all));
    assert_eq!(counts.went_back, 2);
    // The order of the file.
    assert_eq!(
        packets.iter().map(|packet| packet.1).collect::<Vec<_>>(),
        [100, 99, 98, 97]
    );
}

#[test]
fn a_file_that_is_not_a_capture_is_refused() {
    for bytes in [
        &b""[..],
        b"x",
        b"duration = \"10 s\"",
        b"\x0a\x0d\x0d\x0b1234567890",
    ] {
        assert_eq!(refusal(bytes), Error::NotACapture);
    }
    assert_eq!(refusal(&plain(101, &[])[..20]), Error::NoHeader);
    // A block that says it is shorter than its own head and tail.
    for order in [Order::Little, Order::Big] {
        let short = [&order.u32(0x8000_0001)[..], &order.u32(10), &[0; 24]].concat();
        let file = [section(order), short].concat();
        assert!(matches!(refusal(&file), Error::Broken { after: 0, .. }));
        let undescribed = [section(order), enhanced(order, 0, 1, &v4(40))].concat();
        assert!(matches!(
            refusal(&undescribed),
            Error::Broken { after: 0, .. }
        ));
    }
    let mut long = plain(101, &[v4(100), v4(60)]);
    long[24 + 16 + 100 + 8..][..4].copy_from_slice(&[0xff; 4]);
    assert!(matches!(refusal(&long), Error::Broken { after: 1, .. }));
}

/// Of a record longer than the buffer, the beginning is read; the next packet follows.
#[test]
fn a_record_longer_than_the_buffer_is_passed() {
    let mut jumbo = v4(60_000);
    jumbo.resize(700_000, 0);
    let records = [jumbo.clone(), v4(60)];
    assert_eq!(lengths(&plain(101, &records)), [60_000, 60]);
    let order = Order::Little;
    let file = [
        section(order),
        interface(order, 101, &[]),
        enhanced(order, 0, 1, &jumbo),
        enhanced(order, 0, 2, &v4(60)),
    ];
    assert_eq!(lengths(&file.concat()), [60_000, 60]);
}

/// A plain Ethernet frame followed by PPPoE session frames, which were once missing from the
/// result.
#[test]
fn a_mixed_capture_of_pppoe() {
    let (packets, counts) = read(include_bytes!("../data/pppoe-mixed.pcap"));
    assert_eq!(counts.frames, packets.len() as u64);
    assert!(counts.skipped.is_empty());
    assert!(packets[0].1 == 128 && packets[1..].iter().all(|packet| packet.1 == 1_028));
}

#[test]
fn reading_stops_when_it_is_to() {
    let file = plain(101, &vec![v4(1_500); 1_000]);
    let asked = std::cell::Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 3
    };
    let mut reader = Reader::open_until(&file[..], stop).expect("a capture");
    let mut seen = 0;
    let stopped = loop {
        match reader.next_packet() {
            Ok(Some(_)) => seen += 1,
            Ok(None) => panic!("it must stop"),
            Err(error) => break error,
        }
    };
    assert_eq!(stopped, Error::Interrupted);
    assert!(seen < 1_000);
}

/// Two packets of a second each, in units of 2^-63 s and 10^-19 s.
#[test]
fn fine_resolutions_of_time_are_read() {
    let order = Order::Little;
    let file = [
        section(order),
        interface(order, 101, &[(9, vec![0xbf])]),
        interface(order, 101, &[(9, vec![19])]),
        interface(order, 101, &[(9, vec![38])]),
        interface(order, 101, &[(9, vec![0xfe])]),
        enhanced(order, 0, 1 << 63, &v4(100)),
        enhanced(order, 1, 10_000_000_000_000_000_000, &v4(60)),
        enhanced(order, 2, u64::MAX, &v4(40)),
        enhanced(order, 3, u64::MAX, &v4(40)),
    ]
    .concat();
    let expected = [(1_000 * MS, 100), (1_000 * MS, 60), (0, 40), (0, 40)];
    assert_eq!(read(&file).0, expected);
    for resolution in [39, 0xff] {
        let file = [
            section(order),
            interface(order, 101, &[(9, vec![resolution])]),
        ];
        let error = refusal(&file.concat()).to_string();
        assert!(error.contains("the resolution of an interface's time"));
    }
}

#[test]
fn zeros_after_the_last_block_are_counted() {
    let order = Order::Big;
    let file = [
        section(order),
        interface(order, 101, &[]),
        enhanced(order, 0, 1, &v4(100)),
    ]
    .concat();
    for count in [1, 4, 11, 12, 16, 1_000_000] {
        let (packets, counts) = read(&[&file[..], &vec![0; count]].concat());
        assert_eq!(packets.len(), 1, "{count}");
        assert_eq!(counts.trailing, count as u64);
        assert!(!counts.is_cut_off);
    }
    let damaged = [&file[..], &[0; 4_000], &file].concat();
    assert!(
        refusal(&damaged)
            .to_string()
            .contains("the length of a block")
    );
}
