//! Headers and packets that the tests share.

use anabranch_core::packet::Ecn;
use anabranch_wire::{
    Carried, Checksum, Flags, IpHeader, Ports, Prefix, Protocol, TcpHeader, TcpPacket, Version,
    encode_tcp,
};

pub const PORTS: Ports = Ports {
    source: 49_152,
    destination: 5001,
};

pub fn v4() -> IpHeader {
    IpHeader {
        version: Version::V4 {
            source: [10, 0, 0, 1],
            destination: [10, 0, 0, 2],
            identification: 7,
            dont_fragment: true,
        },
        dscp: 0,
        ecn: Ecn::NotEct,
        hop_limit: 64,
    }
}

pub fn v6() -> IpHeader {
    IpHeader {
        version: Version::V6 {
            source: [0x20; 16],
            destination: [0xfd; 16],
            flow_label: 0xa_bcde,
        },
        ..v4()
    }
}

/// Builds a packet with these octets as options.
pub fn with_options(ip: &IpHeader, flags: Flags, options: &[u8]) -> Vec<u8> {
    let header = TcpHeader {
        ports: PORTS,
        seq: 1,
        ack: 2,
        flags,
        window: 3,
        urgent: 0,
    };
    let mut out = Vec::new();
    let packet = TcpPacket {
        ip,
        header: &header,
        options,
        payload: Carried::Octets(b"abc"),
    };
    encode_tcp(&packet, Prefix::whole(&mut out)).expect("it fits");
    out
}

/// Whether the checksum over these parts, which include a checksum, is correct.
pub fn holds(parts: &[&[u8]]) -> bool {
    let mut sum = Checksum::default();
    for part in parts {
        sum.add(part);
    }
    sum.holds()
}

/// Whether the checksums of a packet are correct: IPv4's header, and TCP or ICMP.
pub fn is_summed(packet: &[u8]) -> bool {
    let (ip, protocol, payload) = anabranch_wire::decode_ip(packet).expect("a whole packet");
    let mut sum = match (ip.version, protocol) {
        (Version::V4 { .. }, Protocol::Other(1)) => Checksum::default(),
        _ => ip.pseudo_header(protocol, payload.len()),
    };
    sum.add(payload);
    sum.holds()
}
