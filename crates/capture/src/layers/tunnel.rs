//! IP packets inside IP packets: IP in IP (RFC 2003, RFC 4213, RFC 2473), GRE (RFC 2784, RFC 2890),
//! PPTP's GRE (RFC 2637), ERSPAN (draft-foschiano-erspan), MPLS in IP (RFC 4023), and over UDP
//! VXLAN (RFC 7348), Geneve (RFC 8926) and GTP-U (3GPP TS 29.281).

use super::{
    DEEPEST,
    link::{Layer, ip_in},
    u16_at,
};
use crate::packet::{Fragment, Ip};

const IPV4: u8 = 4;
const IPV6: u8 = 41;
const GRE: u8 = 47;
const MPLS: u8 = 137;
const UDP: u8 = 17;
const UDP_HEADER: usize = 8;

/// Destination ports. VXLAN has a second one, which Linux used before the assignment.
const VXLAN_PORTS: [u16; 2] = [4789, 8472];
const GENEVE_PORT: u16 = 6081;
const GTP_PORT: u16 = 2152;

/// Returns the position of the inner packet of the IP packet at `at`, if that is an unfragmented
/// tunnel packet.
pub(super) fn inner(octets: &[u8], at: usize, ip: &Ip) -> Option<usize> {
    if ip.fragment != Fragment::Whole {
        return None;
    }
    let payload = at + ip.header as usize;
    let layer = match ip.protocol {
        IPV4 | IPV6 => Layer::Ip(payload),
        GRE => gre(octets, payload)?,
        MPLS => Layer::Mpls(payload),
        UDP => in_udp(octets, ip.ports?.1, payload + UDP_HEADER)?,
        _ => return None,
    };
    ip_in(layer, octets).ok()
}

fn gre(octets: &[u8], at: usize) -> Option<Layer> {
    let flags = u16_at(octets, at)?;
    let number = u16_at(octets, at + 2)?;
    let word = |mask: u16| usize::from(flags & mask != 0) * 4;
    // Optional fields: a word with checksum and offset if a checksum or routing (RFC 1701) is
    // present, then the key, then the sequence number.
    let begin = at + 4 + word(0xc000) + word(0x2000) + word(0x1000);
    match flags & 7 {
        0 if flags & 0x4000 != 0 => None,
        0 => Some(match number {
            // ERSPAN type I has neither a sequence number nor a header; type II has both.
            0x88be if flags & 0x1000 == 0 => Layer::Ethernet(begin),
            0x88be => Layer::Ethernet(begin + 8),
            // Type III, with an optional subheader.
            0x22eb => {
                let subheader = octets.get(begin + 11)? & 1;
                Layer::Ethernet(begin + 12 + usize::from(subheader) * 8)
            }
            _ => Layer::EtherType(number, begin),
        }),
        // Version 1: the acknowledgment number comes last.
        1 => Some(Layer::EtherType(number, begin + word(0x0080))),
        _ => None,
    }
}

/// The tunnel to a UDP port, whose header is at `at`. Other programs may use these ports: only a
/// valid header counts.
fn in_udp(octets: &[u8], port: u16, at: usize) -> Option<Layer> {
    if VXLAN_PORTS.contains(&port) {
        vxlan(octets, at)
    } else if port == GENEVE_PORT {
        geneve(octets, at)
    } else if port == GTP_PORT {
        gtp(octets, at)
    } else {
        None
    }
}

/// RFC 7348 §5: the flag of a valid network identifier, and the last reserved octet.
fn vxlan(octets: &[u8], at: usize) -> Option<Layer> {
    let header: &[u8; 8] = octets.get(at..)?.first_chunk()?;
    (header[0] & 8 != 0 && header[7] == 0).then_some(Layer::Ethernet(at + header.len()))
}

/// RFC 8926 §3.4: version 0, options in words of four octets, and the payload's type.
fn geneve(octets: &[u8], at: usize) -> Option<Layer> {
    let header: &[u8; 8] = octets.get(at..)?.first_chunk()?;
    let options = usize::from(header[0] & 0x3f) * 4;
    let is_valid = header[0] >> 6 == 0 && header[7] == 0;
    let begin = at + header.len() + options;
    is_valid.then_some(Layer::EtherType(u16_at(octets, at + 2)?, begin))
}

/// TS 29.281 §5.1: version 1, a message with user data. Optional fields take four octets, of which the
/// last is the type of the first extension header (§5.2).
fn gtp(octets: &[u8], at: usize) -> Option<Layer> {
    let header: &[u8; 8] = octets.get(at..)?.first_chunk()?;
    if header[0] >> 4 != 3 || header[1] != 255 {
        return None;
    }
    let mut begin = at + header.len();
    let optional = header[0] & 7;
    if optional == 0 {
        return Some(Layer::Ip(begin));
    }
    begin += 4;
    let mut next = if optional & 4 == 0 {
        0
    } else {
        *octets.get(begin - 1)?
    };
    for _ in 0..DEEPEST {
        if next == 0 {
            return Some(Layer::Ip(begin));
        }
        // A length of 0 words is invalid.
        let words = usize::from(*octets.get(begin)?).max(1);
        begin += words * 4;
        next = *octets.get(begin - 1)?;
    }
    None
}
