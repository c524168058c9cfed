//! Encoding and decoding of the packets that a tunnel carries.

use anabranch_core::{
    body::Body,
    packet::{ConnectionId, Direction},
};
use anabranch_path::middlebox::{Held, connection_of};
use anabranch_wire::{
    self as wire, Carried, Flags, IpHeader, IpPacket, Options, Ports, Prefix, Protocol, Transport,
    Version,
};

use super::label::Label;
use crate::octets;

/// The additional length of IPv6 headers over IPv4 headers.
const V6_MORE: u32 = 20;
/// "Use for experimentation and testing" (RFC 3692 §2.1).
const EXPERIMENTAL: u8 = 253;
const IPV4_HEADER: u32 = 20;

/// The ports of a packet.
pub(super) fn ports<B: Body>(packet: &Held<B>, label: &Label) -> Ports {
    octets::ports(connection_of(packet), packet.direction, label.port)
}

/// Encodes a packet, with `number` in the header so that the receiver can find the packet again. A
/// packet that headers of TCP and UDP cannot express is encoded as an experimental protocol with
/// the same number of octets.
pub(super) fn encode<B: Body>(packet: &Held<B>, number: u16, label: &Label) -> Vec<u8> {
    let mut octets = Vec::with_capacity(packet.size as usize);
    for is_v6 in [false, true] {
        octets.clear();
        let ip = header(packet, number, label, is_v6);
        let ports = ports(packet, label);
        let to = Prefix::whole(&mut octets);
        let length = octets::encode(&ip, ports, &packet.payload, to);
        // The families differ in the length of their headers.
        match length {
            Ok(length) if !is_v6 && length + V6_MORE == packet.size => {}
            Ok(_) => return octets,
            Err(_) => break,
        }
    }
    octets.clear();
    let ip = header(packet, number, label, false);
    let length = packet.size.clamp(IPV4_HEADER, u32::from(u16::MAX)) - IPV4_HEADER;
    let content = Carried::Zeros(length as usize);
    let protocol = Protocol::Other(EXPERIMENTAL);
    if wire::encode_ip(&ip, protocol, content.len(), &mut octets).is_ok() {
        octets.resize(octets.len() + content.len(), 0);
    }
    octets
}

/// The addresses distinguish the directions, so that a flow's two directions are two flows to the
/// tunnel.
fn header<B: Body>(packet: &Held<B>, number: u16, label: &Label, is_v6: bool) -> IpHeader {
    let [from, to] = &label.hosts;
    let (source, destination) = match packet.direction {
        Direction::Forward => (from, to),
        Direction::Reverse => (to, from),
    };
    let version = if is_v6 {
        Version::V6 {
            source: source.v6,
            destination: destination.v6,
            flow_label: u32::from(number),
        }
    } else {
        Version::V4 {
            source: source.v4,
            destination: destination.v4,
            identification: number,
            dont_fragment: true,
        }
    };
    IpHeader {
        version,
        dscp: packet.dscp,
        ecn: packet.ecn,
        hop_limit: 64,
    }
}

/// The number written by [`encode`].
pub(super) fn number(octets: &[u8]) -> Option<u16> {
    match IpHeader::of(&IpPacket::read(octets).ok()?).version {
        Version::V4 { identification, .. } => Some(identification),
        Version::V6 { flow_label, .. } => u16::try_from(flow_label).ok(),
    }
}

/// Whether these octets are of a packet with these ports. They are of another packet if its number
/// was reused too soon.
pub(super) fn is_of<B: Body>(octets: &[u8], packet: &Held<B>, ports: Ports) -> bool {
    let Ok((ip, protocol, content)) = wire::decode_ip(octets) else {
        return false;
    };
    if protocol == Protocol::Other(EXPERIMENTAL) {
        return true;
    }
    let expected = [ports.source, ports.destination].map(u16::to_be_bytes);
    ip.ecn == packet.ecn && content.get(..4) == Some(expected.concat().as_slice())
}

/// Copies the maximum segment size that the tunnel wrote into a SYN.
pub(super) fn clamp<B: Body>(packet: &mut Held<B>, octets: &[u8]) {
    let Transport::Tcp(segment) = &mut packet.payload else {
        return;
    };
    if !segment.flags.has(Flags::SYN) {
        return;
    }
    let Options::Syn { mss, .. } = &mut segment.options else {
        return;
    };
    if let Ok(decoded) = wire::decode(octets)
        && let Options::Syn { mss: clamped, .. } = decoded.segment.options
    {
        *mss = clamped;
    }
}

/// Whether a packet is a datagram of the tunnel itself.
pub(super) fn is_datagram<B: Body>(packet: &Held<B>) -> bool {
    packet.connection == ConnectionId::NONE
}
