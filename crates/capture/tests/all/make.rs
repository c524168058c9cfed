//! Makes packets, frames and captures, after RFC 791, RFC 8200, draft-ietf-opsawg-pcap and
//! draft-ietf-opsawg-pcapng.

use anabranch_capture::{Counts, Reader};

/// An IPv4 packet of this length with TCP or UDP, from 192.0.2.1 to 198.51.100.2.
pub fn v4(length: u16) -> Vec<u8> {
    v4_of(6, [192, 0, 2, 1], [198, 51, 100, 2], &payload(length - 20))
}

/// Ports 5000 and 80, and zeros.
fn payload(length: u16) -> Vec<u8> {
    let mut payload = vec![0x13, 0x88, 0, 80];
    payload.resize(length.into(), 0);
    payload
}

pub fn v4_of(protocol: u8, source: [u8; 4], target: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(20 + payload.len()).expect("short");
    let mut packet = vec![0x45, 0, 0, 0, 0, 7, 0, 0, 64, protocol, 0, 0];
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet.extend(source);
    packet.extend(target);
    packet.extend(payload);
    packet
}

/// An IPv6 packet from 2001:db8::1 to 2001:db8::2. `next` is the type of `payload`'s first header.
pub fn v6_of(next: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).expect("short");
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, next, 64];
    packet[4..6].copy_from_slice(&length.to_be_bytes());
    for last in [1, 2] {
        packet.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    packet.extend(payload);
    packet
}

/// UDP of this length over IPv6.
pub fn v6(length: u16) -> Vec<u8> {
    v6_of(17, &payload(length - 40))
}

pub fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    [
        &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..],
        &kind.to_be_bytes(),
        payload,
    ]
    .concat()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Little,
    Big,
}

impl Order {
    pub fn u16(self, number: u16) -> [u8; 2] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }
    pub fn u32(self, number: u32) -> [u8; 4] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }
}

/// A pcap frame: its time in the file's units, its bytes, and its length on the wire.
pub struct Frame {
    pub time: u64,
    pub octets: Vec<u8>,
    pub length: u32,
}

/// Complete frames at 1 s, 2 s, ….
pub fn frames(all: &[Vec<u8>]) -> Vec<Frame> {
    let times = (1..).map(|k| k * 1_000_000);
    let all = times.zip(all).map(|(time, octets)| Frame {
        time,
        octets: octets.clone(),
        length: u32::try_from(octets.len()).expect("short"),
    });
    all.collect()
}

pub const MICROS: u32 = 0xa1b2_c3d4;
pub const NANOS: u32 = 0xa1b2_3c4d;
/// With longer record headers.
pub const MODIFIED: u32 = 0xa1b2_cd34;

pub fn pcap(order: Order, magic: u32, link_type: u32, frames: &[Frame]) -> Vec<u8> {
    let per_s = if magic == NANOS {
        1_000_000_000
    } else {
        1_000_000
    };
    let mut file = order.u32(magic).to_vec();
    file.extend([order.u16(2), order.u16(4)].concat());
    for field in [0, 0, 65_535, link_type] {
        file.extend(order.u32(field));
    }
    for frame in frames {
        let part = |value: u64| u32::try_from(value).expect("32 bits");
        let fields = [
            part(frame.time / per_s),
            part(frame.time % per_s),
            part(frame.octets.len() as u64),
            frame.length,
        ];
        for field in fields {
            file.extend(order.u32(field));
        }
        if magic == MODIFIED {
            file.extend([9; 8]);
        }
        file.extend(&frame.octets);
    }
    file
}

/// A pcap of one link type and whole frames, in microseconds.
pub fn plain(link_type: u32, all: &[Vec<u8>]) -> Vec<u8> {
    pcap(Order::Little, MICROS, link_type, &frames(all))
}

/// A block of pcapng.
pub fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let length = order.u32(u32::try_from(body.len().next_multiple_of(4) + 12).expect("short"));
    let mut block = [&order.u32(kind)[..], &length, body].concat();
    block.resize(block.len().next_multiple_of(4), 0);
    block.extend(length);
    block
}

pub fn section(order: Order) -> Vec<u8> {
    let body = [
        &order.u32(0x1a2b_3c4d)[..],
        &order.u16(1),
        &order.u16(0),
        &[0xff; 8],
    ];
    block(order, 0x0a0d_0d0a, &body.concat())
}

/// An interface with options, each a code and a value.
pub fn interface(order: Order, link_type: u16, options: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut body = [&order.u16(link_type)[..], &[0, 0], &order.u32(0)].concat();
    for (code, value) in options {
        body.extend(order.u16(*code));
        body.extend(order.u16(u16::try_from(value.len()).expect("short")));
        body.extend(value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    block(order, 1, &body)
}

/// An enhanced packet block.
pub fn enhanced(order: Order, interface: u32, ticks: u64, octets: &[u8]) -> Vec<u8> {
    let half = |bits: u64| order.u32(u32::try_from(bits).expect("half"));
    let length = half(octets.len() as u64);
    let head = [
        order.u32(interface),
        half(ticks >> 32),
        half(ticks & 0xffff_ffff),
        length,
        length,
    ];
    block(order, 6, &[&head.concat()[..], octets].concat())
}

/// Returns times in picoseconds and lengths of all packets, and the counts.
pub fn read(file: &[u8]) -> (Vec<(i128, u32)>, Counts) {
    let mut reader = Reader::open(file).unwrap_or_else(|error| panic!("{error}"));
    let mut packets = Vec::new();
    while let Some(packet) = reader
        .next_packet()
        .unwrap_or_else(|error| panic!("{error}"))
    {
        packets.push((packet.time, packet.ip.length));
    }
    let counts = reader.counts().clone();
    assert_eq!(counts.packets, packets.len() as u64);
    let skipped: u64 = counts.skipped.values().sum();
    assert_eq!(counts.frames, counts.packets + skipped);
    (packets, counts)
}

/// Lengths of all packets.
pub fn lengths(file: &[u8]) -> Vec<u32> {
    read(file).0.into_iter().map(|(_, length)| length).collect()
}
