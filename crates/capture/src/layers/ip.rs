//! IP headers: addresses, lengths, extension headers, fragments and ports.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{DEEPEST, Skip, tunnel, u16_at};
use crate::packet::{Fragment, Ip};

const TCP: u8 = 6;
const UDP: u8 = 17;
const DCCP: u8 = 33;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

/// The innermost IP packet in the one at `at`, and where it begins. `in_frame` is how long the frame was, less what
/// stands before `at` and behind the packet: the length of a packet whose header has none.
pub(crate) fn innermost(
    octets: &[u8],
    mut at: usize,
    frame_length: u32,
) -> Result<(usize, Ip), Skip> {
    let mut ip = header(octets, at, frame_length)?;
    for _ in 0..DEEPEST {
        // What cannot be read as a tunnel is a packet of its own.
        let inner = tunnel::inner(octets, at, &ip).and_then(|inner| {
            let ip = header(octets, inner, frame_length).ok()?;
            Some((inner, ip))
        });
        let Some(inner) = inner else { break };
        (at, ip) = inner;
    }
    Ok((at, ip))
}

/// The header at `at`.
fn header(octets: &[u8], at: usize, frame_length: u32) -> Result<Ip, Skip> {
    let packet = octets.get(at..).unwrap_or_default();
    let begins = u32::try_from(at).unwrap_or(u32::MAX);
    let in_frame = frame_length.saturating_sub(begins);
    match packet.first().map(|first| first >> 4) {
        Some(4) => v4(packet, in_frame),
        Some(6) => v6(packet, in_frame),
        Some(_) => Err(Skip::MalformedIp),
        None => Err(Skip::CutShort),
    }
}

/// RFC 791 §3.1.
fn v4(packet: &[u8], in_frame: u32) -> Result<Ip, Skip> {
    let fixed: &[u8; 20] = packet.first_chunk().ok_or(Skip::CutShort)?;
    let header = u32::from(fixed[0] & 0xf) * 4;
    let length = match u16::from_be_bytes([fixed[2], fixed[3]]) {
        // Segmentation offload leaves it to the network card.
        0 => in_frame,
        length => u32::from(length),
    };
    if header < 20 || length < header {
        return Err(Skip::MalformedIp);
    }
    let fragment = u16::from_be_bytes([fixed[6], fixed[7]]);
    let fragment = match (fragment & 0x1fff, fragment & 0x2000 != 0) {
        (0, false) => Fragment::Whole,
        (0, true) => Fragment::First,
        _ => Fragment::Later,
    };
    let address = |at: usize| {
        let [a, b, c, d] = [fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]];
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    let mut ip = Ip {
        source: address(12),
        target: address(16),
        protocol: fixed[9],
        hop_limit: fixed[8],
        length,
        header,
        fragment,
        identification: u32::from(u16::from_be_bytes([fixed[4], fixed[5]])),
        ports: None,
    };
    ip.ports = ports(packet, &ip);
    Ok(ip)
}

/// RFC 8200 §3 and §4.
fn v6(packet: &[u8], in_frame: u32) -> Result<Ip, Skip> {
    let fixed: &[u8; 40] = packet.first_chunk().ok_or(Skip::CutShort)?;
    let length = match u16::from_be_bytes([fixed[4], fixed[5]]) {
        // A jumbogram (RFC 2675), or segmentation offload.
        0 if fixed[6] != 59 => in_frame.max(40),
        length => 40 + u32::from(length),
    };
    let address = |at: usize| {
        let mut sixteen = [0; 16];
        sixteen.copy_from_slice(&fixed[at..at + 16]);
        IpAddr::V6(Ipv6Addr::from(sixteen))
    };
    let mut ip = Ip {
        source: address(8),
        target: address(24),
        protocol: fixed[6],
        hop_limit: fixed[7],
        length,
        header: 40,
        fragment: Fragment::Whole,
        identification: 0,
        ports: None,
    };
    extension_headers(packet, &mut ip);
    ip.ports = ports(packet, &ip);
    Ok(ip)
}

/// Passes over extension headers, as far as they were captured.
fn extension_headers(packet: &[u8], ip: &mut Ip) {
    for _ in 0..2 * DEEPEST {
        let at = ip.header as usize;
        let Some([next, size]) = packet.get(at..).and_then(<[u8]>::first_chunk) else {
            return;
        };
        let size = match ip.protocol {
            // Hop-by-hop, routing, destination, mobility, HIP, shim6.
            0 | 43 | 60 | 135 | 139 | 140 => (u32::from(*size) + 1) * 8,
            AUTHENTICATION => (u32::from(*size) + 2) * 4,
            FRAGMENT => {
                let Some(field) = packet.get(at..).and_then(<[u8]>::first_chunk::<8>) else {
                    return;
                };
                let offset = u16::from_be_bytes([field[2], field[3]]);
                ip.identification = u32::from_be_bytes([field[4], field[5], field[6], field[7]]);
                ip.fragment = match (offset >> 3, offset & 1 != 0) {
                    (0, false) => Fragment::Whole,
                    (0, true) => Fragment::First,
                    _ => Fragment::Later,
                };
                8
            }
            _ => return,
        };
        ip.protocol = *next;
        ip.header += size;
        if ip.fragment == Fragment::Later {
            return;
        }
    }
}

/// Source and destination port, where the packet has them and they were captured.
fn ports(packet: &[u8], ip: &Ip) -> Option<(u16, u16)> {
    let has_ports = matches!(ip.protocol, TCP | UDP | DCCP | SCTP | UDP_LITE);
    if !has_ports || ip.fragment == Fragment::Later {
        return None;
    }
    let at = ip.header as usize;
    Some((u16_at(packet, at)?, u16_at(packet, at + 2)?))
}
