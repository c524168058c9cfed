//! IP packets inside IP packets: IP in IP (RFC 2003, RFC 4213, RFC 2473), GRE (RFC 2784, RFC 2890),
//! PPTP's GRE (RFC 2637), ERSPAN (draft-foschiano-erspan) and MPLS in IP (RFC 4023).

use super::{
    link::{Layer, ip_in},
    u16_at,
};
use crate::packet::{Fragment, Ip};

const IPV4: u8 = 4;
const IPV6: u8 = 41;
const GRE: u8 = 47;
const MPLS: u8 = 137;

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
