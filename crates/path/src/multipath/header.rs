//! Wire format of the tunnel's header, version 1.
//!
//! The header has 24 octets in network order and precedes the IP packet:
//!
//! ```text
//!  0  version (high 4 bits), flags (low 4 bits)
//!  1  route
//!  2  flow (2 octets)
//!  4  number within the flow (4)
//!  8  time of departure, microseconds (4)
//! 12  number on the route (2)
//! 14  report: route (1)
//! 15  report: packets just before that one that are asked for again (1)
//! 16  report: loss, in 2^-16 (2)
//! 18  report: number on the route of the last packet (2)
//! 20  report: delay of that packet, microseconds (4)
//! ```
//!
//! Flag 1 marks a header with a report; otherwise the octets from 14 on are zero. Flag 2 means that
//! lost packets just before this one on its route are stored and may be requested again. Flag 4
//! marks a header without a packet that was sent for its report. Flag 8 marks a header without a
//! packet that was sent as a probe; the other end reports its arrival. Flags 4 and 8 together mean
//! that the route in octets 2 and 3 was abandoned: packets that were sent there and are not
//! retransmitted yet will not be. A reader refuses a header that is too short or of another
//! version. An end that requests nothing sends octet 15 as zero, and an end that stores no packets
//! ignores it. The reasons for this format: `docs/design/016-tunnel-header.md`.

use anabranch_core::tunnel::{Content, Header, Report};

/// Octets of a header.
pub const OCTETS: usize = 24;
/// Octets of a header, in the type of packet sizes.
pub const SIZE: u32 = 24;
/// Octets of the outer IPv4 and UDP headers, unless configured otherwise.
pub const CARRIER: u32 = 20 + 8;

const VERSION: u8 = 1;
/// The header has a report.
const REPORT: u8 = 1;
/// Lost packets just before this one may be requested again.
const KEPT: u8 = 2;
/// No packet follows; the header was sent for its report.
const ALONE: u8 = 4;
/// No packet follows; the header was sent as a probe.
const PROBE: u8 = 8;

/// Reason why octets are not a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// There are too few.
    #[error("a tunnel header has {OCTETS} octets, not {0}")]
    TooShort(usize),
    /// Written by another version.
    #[error("the tunnel's version is {VERSION}, not {0}")]
    Version(u8),
}

/// Writes a header.
#[must_use]
pub fn encode(header: &Header) -> [u8; OCTETS] {
    let mut octets = [0; OCTETS];
    let content = match header.content {
        Content::Packet => 0,
        Content::Report => ALONE,
        Content::Probe => PROBE,
        Content::GivenUp => ALONE | PROBE,
    };
    octets[0] = VERSION << 4 | content | if header.kept { KEPT } else { 0 };
    octets[1] = header.route;
    octets[2..4].copy_from_slice(&header.flow.to_be_bytes());
    octets[4..8].copy_from_slice(&header.number.to_be_bytes());
    octets[8..12].copy_from_slice(&header.sent.to_be_bytes());
    octets[12..14].copy_from_slice(&header.route_number.to_be_bytes());
    if let Some(report) = header.report {
        octets[0] |= REPORT;
        octets[14] = report.route;
        octets[15] = report.missing;
        octets[16..18].copy_from_slice(&report.loss.to_be_bytes());
        octets[18..20].copy_from_slice(&report.route_number.to_be_bytes());
        octets[20..24].copy_from_slice(&report.delay.to_be_bytes());
    }
    octets
}

/// Reads a header. Returns it with the octets after it, the packet.
///
/// # Errors
/// [`DecodeError`] if the octets are not a header of this version.
pub fn decode(octets: &[u8]) -> Result<(Header, &[u8]), DecodeError> {
    let Some((head, rest)) = octets.split_first_chunk::<OCTETS>() else {
        return Err(DecodeError::TooShort(octets.len()));
    };
    let (version, flags) = (head[0] >> 4, head[0] & 0xf);
    if version != VERSION {
        return Err(DecodeError::Version(version));
    }
    let content = match flags & (ALONE | PROBE) {
        0 => Content::Packet,
        ALONE => Content::Report,
        PROBE => Content::Probe,
        _ => Content::GivenUp,
    };
    let two = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let four = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let header = Header {
        route: head[1],
        flow: two(2),
        number: four(4),
        sent: four(8),
        kept: flags & KEPT != 0,
        content,
        route_number: two(12),
        report: (flags & REPORT != 0).then(|| Report {
            route: head[14],
            missing: head[15],
            loss: two(16),
            route_number: two(18),
            delay: four(20),
        }),
    };
    Ok((header, rest))
}
