//! An IP packet as the network carries it: octets, of which elements may look at the transport header.

use anabranch_core::packet::Ecn;
use anabranch_elements::{
    body::Body,
    tcp::{Flags, Segment},
    transport::Transport,
};

/// A whole IP packet. As a [`Body`] it is its payload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frame {
    octets: Vec<u8>,
    /// How many of the last octets are the transport's payload.
    payload: u32,
}

impl Body for Frame {
    fn len(&self) -> u32 {
        self.payload
    }
    fn slice(&self, start: u32, len: u32) -> Self {
        let payload = self.octets().unwrap_or_default();
        Self::content(payload[start as usize..][..len as usize].to_vec())
    }
    fn filler(len: u32) -> Self {
        Self::content((0..=250).cycle().take(len as usize).collect())
    }
    fn from_octets(octets: &[u8], _len: u32) -> Self {
        Self::content(octets.to_vec())
    }
    fn append(&mut self, next: &Self) {
        self.octets.extend_from_slice(next.octets().unwrap_or_default());
        self.payload += next.payload;
    }
    fn octets(&self) -> Option<&[u8]> {
        Some(&self.octets[self.octets.len() - self.payload as usize..])
    }
}

impl Frame {
    fn content(octets: Vec<u8>) -> Self {
        let payload = u32::try_from(octets.len()).expect("a body is far below 4 GiB");
        Self { octets, payload }
    }
    /// The packet from its first octet on.
    pub fn packet(&self) -> &[u8] {
        &self.octets
    }
}

/// Who sent a packet, who is to get it, and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    pub source: Address,
    pub destination: Address,
    /// Source and destination, over TCP and UDP.
    pub ports: Option<[u16; 2]>,
    pub ecn: Ecn,
    pub dscp: u8,
}

/// The last octets of an address of either version: hosts here differ in these alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address(pub u16);

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Reads a packet; `None` if it is not one that a host here sends to another.
pub fn read(octets: &[u8]) -> Option<(Label, Transport<Frame>)> {
    let (header, protocol, class, addresses) = match octets.first()? >> 4 {
        4 => {
            let header = usize::from(octets[0] & 15) * 4;
            let fixed: &[u8; 20] = octets.first_chunk()?;
            // A fragment has no ports, except the first; none is sent where all links carry as much.
            let addresses = [&fixed[12..16], &fixed[16..20]];
            if !addresses.iter().all(|a| crate::directory::is_v4(a)) {
                return None;
            }
            (header, fixed[9], fixed[1], addresses)
        }
        6 => {
            let fixed: &[u8; 40] = octets.first_chunk()?;
            let class = (fixed[0] << 4) | (fixed[1] >> 4);
            let addresses = [&fixed[8..24], &fixed[24..40]];
            if !addresses.iter().all(|a| crate::directory::is_v6(a)) {
                return None;
            }
            (40, fixed[6], class, addresses)
        }
        _ => return None,
    };
    let last = |address: &[u8]| {
        let [.., a, b] = *address else { return 0 };
        u16::from_be_bytes([a, b])
    };
    let transport = octets.get(header..)?;
    let be16 = |at: usize| {
        let octets = transport.get(at..at + 2)?;
        Some(u16::from_be_bytes([octets[0], octets[1]]))
    };
    let label = Label {
        source: Address(last(addresses[0])),
        destination: Address(last(addresses[1])),
        ports: if matches!(protocol, TCP | UDP) {
            Some([be16(0)?, be16(2)?])
        } else {
            None
        },
        ecn: Ecn::from_bits(class),
        dscp: class >> 2,
    };
    let frame = |offset: usize| {
        let payload = transport.len().saturating_sub(offset);
        Frame {
            octets: octets.to_vec(),
            payload: u32::try_from(payload).unwrap_or(0),
        }
    };
    let transport = match protocol {
        TCP => {
            let fixed: &[u8; 20] = transport.first_chunk()?;
            let be32 = |at: usize| {
                u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]])
            };
            Transport::Tcp(Segment {
                seq: be32(4),
                ack: be32(8),
                window: be16(14)?,
                flags: Flags(be16(12)? & 0x1ff),
                body: frame(usize::from(fixed[12] >> 4) * 4),
                ..Segment::default()
            })
        }
        UDP => Transport::Datagram(frame(8)),
        _ => Transport::Datagram(frame(0)),
    };
    Some((label, transport))
}

/// The packet inside, as it is to leave: with `ecn` in its header.
pub fn write(transport: &Transport<Frame>, ecn: Ecn) -> std::borrow::Cow<'_, [u8]> {
    let packet = match transport {
        Transport::Tcp(segment) => segment.body.packet(),
        Transport::Datagram(frame) => frame.packet(),
        Transport::Redundant(redundant) => redundant.body.packet(),
    };
    if !packet.is_empty() && traffic_class(packet) & 3 != ecn as u8 {
        let mut marked = packet.to_vec();
        mark(&mut marked, ecn);
        return marked.into();
    }
    packet.into()
}

fn traffic_class(packet: &[u8]) -> u8 {
    match packet[0] >> 4 {
        4 => packet[1],
        _ => (packet[0] << 4) | (packet[1] >> 4),
    }
}

/// Writes the ECN field, and into IPv4's checksum what that makes of it (RFC 1624, equation 3).
fn mark(packet: &mut [u8], ecn: Ecn) {
    if packet[0] >> 4 == 4 {
        let word = |packet: &[u8], at: usize| u32::from(u16::from_be_bytes([packet[at], packet[at + 1]]));
        let before = word(packet, 0);
        packet[1] = (packet[1] & !3) | ecn as u8;
        let after = word(packet, 0);
        let mut sum = (!word(packet, 10) & 0xffff) + (!before & 0xffff) + after;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        #[expect(clippy::cast_possible_truncation, reason = "folded into 16 bits")]
        let sum = !(sum as u16);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    } else {
        packet[1] = (packet[1] & !0x30) | ((ecn as u8) << 4);
    }
}
