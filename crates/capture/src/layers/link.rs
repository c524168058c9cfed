//! Headers before IP in a frame.

use super::{DEEPEST, Skip, u16_at};

/// A layer, and the position of its header.
#[derive(Debug, Clone, Copy)]
pub(super) enum Layer {
    Ethernet(usize),
    /// An `EtherType`, and the position of its payload.
    EtherType(u16, usize),
    Llc(usize),
    /// PPP, with or without address and control.
    Ppp(usize),
    /// The header of a PPPoE session.
    Pppoe(usize),
    Mpls(usize),
    /// IP of either version.
    Ip(usize),
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// Returns the position of the IP packet in a frame.
pub(crate) fn network_layer(link_type: u16, octets: &[u8]) -> Result<usize, Skip> {
    ip_in(outermost(link_type, octets)?, octets)
}

/// Follows the headers from `layer` to IP.
pub(super) fn ip_in(mut layer: Layer, octets: &[u8]) -> Result<usize, Skip> {
    for _ in 0..DEEPEST {
        layer = match layer {
            Layer::Ip(at) => return Ok(at),
            Layer::Ethernet(at) => ether_type(octets, at + 12)?,
            Layer::EtherType(number, at) => payload(number, octets, at)?,
            Layer::Llc(at) => llc(octets, at)?,
            Layer::Ppp(at) => ppp(octets, at)?,
            Layer::Pppoe(at) => match octets.get(at + 1) {
                Some(0) => Layer::Ppp(at + 6),
                Some(_) => return Err(Skip::PppoeDiscovery),
                None => return Err(Skip::CutShort),
            },
            Layer::Mpls(at) => mpls(octets, at)?,
        };
    }
    Err(Skip::OtherProtocol)
}

fn outermost(link_type: u16, octets: &[u8]) -> Result<Layer, Skip> {
    match link_type {
        0 | 108 => loopback(octets),
        1 => Ok(Layer::Ethernet(0)),
        // RFC 1662 framing or Cisco's; the first byte distinguishes them.
        50 if matches!(octets.first(), Some(0x0f | 0x8f)) => cisco_hdlc(octets),
        9 | 50 => Ok(Layer::Ppp(0)),
        51 => Ok(Layer::Pppoe(0)),
        // 12 and 14 are raw IP on some systems.
        12 | 14 | 101 | 228 | 229 => Ok(Layer::Ip(0)),
        104 => cisco_hdlc(octets),
        113 => {
            let number = u16_at(octets, 14).ok_or(Skip::CutShort)?;
            Ok(match number {
                // ETH_P_802_2.
                4 => Layer::Llc(16),
                _ => Layer::EtherType(number, 16),
            })
        }
        // A direction byte, followed by the control byte or by a complete PPP header.
        166 if octets.get(1) == Some(&0x03) => Ok(Layer::Ppp(2)),
        166 | 204 => Ok(Layer::Ppp(1)),
        219 => Ok(Layer::Mpls(0)),
        276 => {
            let number = u16_at(octets, 0).ok_or(Skip::CutShort)?;
            Ok(match number {
                4 => Layer::Llc(20),
                _ => Layer::EtherType(number, 20),
            })
        }
        other => Err(Skip::LinkType(other)),
    }
}

/// Four bytes with the address family in the byte order of the capturing machine (in network byte
/// order for 108).
fn loopback(octets: &[u8]) -> Result<Layer, Skip> {
    let family = *octets.first_chunk().ok_or(Skip::CutShort)?;
    let family = u32::from_le_bytes(family).min(u32::from_be_bytes(family));
    match family {
        // AF_INET; AF_INET6 of Linux, NetBSD and OpenBSD, FreeBSD, macOS.
        2 | 10 | 24 | 28 | 30 => Ok(Layer::Ip(4)),
        _ => Err(Skip::OtherProtocol),
    }
}

fn cisco_hdlc(octets: &[u8]) -> Result<Layer, Skip> {
    let number = u16_at(octets, 2).ok_or(Skip::CutShort)?;
    match number {
        // Keepalive (SLARP) has RARP's number.
        0x8035 => Err(Skip::PppControl),
        _ => Ok(Layer::EtherType(number, 4)),
    }
}

/// Reads the type at `at`, or a length (IEEE 802.3).
fn ether_type(octets: &[u8], at: usize) -> Result<Layer, Skip> {
    let number = u16_at(octets, at).ok_or(Skip::CutShort)?;
    Ok(match number {
        0..=0x05ff => Layer::Llc(at + 2),
        _ => Layer::EtherType(number, at + 2),
    })
}

fn payload(number: u16, octets: &[u8], at: usize) -> Result<Layer, Skip> {
    match number {
        IPV4 | IPV6 => Ok(Layer::Ip(at)),
        // IEEE 802.1Q, 802.1ad, and earlier tags for stacked VLANs.
        0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300 => ether_type(octets, at + 2),
        0x8847 | 0x8848 => Ok(Layer::Mpls(at)),
        0x8864 => Ok(Layer::Pppoe(at)),
        0x880b => Ok(Layer::Ppp(at)),
        // Transparent Ethernet bridging (RFC 1701), in GRE.
        0x6558 => Ok(Layer::Ethernet(at)),
        0x0806 | 0x8035 => Err(Skip::Arp),
        0x8863 => Err(Skip::PppoeDiscovery),
        0x8809 => Err(Skip::SlowProtocol),
        0x88cc => Err(Skip::Lldp),
        _ => Err(Skip::OtherProtocol),
    }
}

fn llc(octets: &[u8], at: usize) -> Result<Layer, Skip> {
    match octets.get(at..at + 3) {
        // SNAP: an organization code and its type. Types of other organizations are not
        // `EtherType`s.
        Some([0xaa, 0xaa, 0x03]) => match octets.get(at + 3..at + 6) {
            Some([0, 0, 0 | 0xf8]) => {
                let number = u16_at(octets, at + 6).ok_or(Skip::CutShort)?;
                Ok(Layer::EtherType(number, at + 8))
            }
            Some(_) => Err(Skip::Llc),
            None => Err(Skip::CutShort),
        },
        Some([0x06, 0x06, 0x03]) => Ok(Layer::Ip(at + 3)),
        Some(_) => Err(Skip::Llc),
        None => Err(Skip::CutShort),
    }
}

/// RFC 1661 §2, RFC 1662 §3.1: address and control may be omitted, and so may the first byte of the
/// protocol if it is 0.
fn ppp(octets: &[u8], at: usize) -> Result<Layer, Skip> {
    let at = match octets.get(at..at + 2) {
        Some([0xff, 0x03]) => at + 2,
        _ => at,
    };
    let first = *octets.get(at).ok_or(Skip::CutShort)?;
    let (number, at) = if first & 1 == 1 {
        (u16::from(first), at + 1)
    } else {
        (u16_at(octets, at).ok_or(Skip::CutShort)?, at + 2)
    };
    match number {
        0x0021 | 0x0057 => Ok(Layer::Ip(at)),
        0x0281 | 0x0283 => Ok(Layer::Mpls(at)),
        0x8000.. => Err(Skip::PppControl),
        _ => Err(Skip::OtherProtocol),
    }
}

/// RFC 3032: labels up to the one with the bottom-of-stack bit; then IP by its version, or a
/// pseudowire (RFC 4385, RFC 4448).
fn mpls(octets: &[u8], mut at: usize) -> Result<Layer, Skip> {
    for _ in 0..DEEPEST {
        let bottom = octets.get(at + 2).ok_or(Skip::CutShort)? & 1 == 1;
        at += 4;
        if !bottom {
            continue;
        }
        return match octets.get(at).ok_or(Skip::CutShort)? >> 4 {
            4 | 6 => Ok(Layer::Ip(at)),
            // A pseudowire control word.
            0 if is_ethernet(octets, at + 4) => Ok(Layer::Ethernet(at + 4)),
            _ if is_ethernet(octets, at) => Ok(Layer::Ethernet(at)),
            _ => Err(Skip::MplsPayload),
        };
    }
    Err(Skip::MplsPayload)
}

/// Whether an Ethernet frame with a known type may begin here; no preceding field indicates it.
fn is_ethernet(octets: &[u8], at: usize) -> bool {
    matches!(
        u16_at(octets, at + 12),
        Some(IPV4 | IPV6 | 0x8100 | 0x88a8 | 0x0806 | 0x8847 | 0x8863 | 0x8864)
    )
}
