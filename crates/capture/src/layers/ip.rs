//! The innermost IP packet of a frame.

use anabranch_wire::{DecodeError, IpPacket};

use super::{DEEPEST, Skip, tunnel};
use crate::packet::Ip;

/// Returns the position and header of the innermost IP packet within the packet at `at`.
/// `frame_length` is the length of the frame up to the end of the packet; it is the length of a
/// packet whose header has none.
pub(crate) fn innermost(
    octets: &[u8],
    mut at: usize,
    frame_length: u32,
) -> Result<(usize, Ip), Skip> {
    let mut ip = header(octets, at, frame_length)?;
    for _ in 0..DEEPEST {
        // A payload that cannot be read as a tunnel leaves the outer packet as the result.
        let inner = tunnel::inner(octets, at, &ip).and_then(|inner| {
            let ip = header(octets, inner, frame_length).ok()?;
            Some((inner, ip))
        });
        let Some(inner) = inner else { break };
        (at, ip) = inner;
    }
    Ok((at, ip))
}

/// Reads the IP headers at `at`.
fn header(octets: &[u8], at: usize, frame_length: u32) -> Result<Ip, Skip> {
    let packet =
        IpPacket::read(octets.get(at..).unwrap_or_default()).map_err(|error| match error {
            DecodeError::IpTruncated => Skip::CutShort,
            _ => Skip::MalformedIp,
        })?;
    let small = |octets: usize| u32::try_from(octets).unwrap_or(u32::MAX);
    let in_frame = frame_length.saturating_sub(small(at));
    let (header, length) = (small(packet.header_len()), packet.length().map(small));
    let length = if packet.is_v6() {
        length.unwrap_or(in_frame.max(40))
    } else {
        let length = length.unwrap_or(in_frame);
        (length >= header)
            .then_some(length)
            .ok_or(Skip::MalformedIp)?
    };
    Ok(Ip {
        source: packet.source(),
        target: packet.destination(),
        protocol: packet.protocol(),
        hop_limit: packet.hop_limit(),
        length,
        header,
        fragment: packet.fragment(),
        identification: packet.identification(),
        ports: packet.ports().map(|[source, target]| (source, target)),
    })
}
