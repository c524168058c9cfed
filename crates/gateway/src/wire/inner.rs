//! The sealed header in front of what a data message carries.

use super::{INNER, WireError, four, two};

/// Where a packet stands in its flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The flow: a hash of addresses, ports and protocol.
    pub flow: u16,
    /// The number within the flow, from 0.
    pub number: u32,
}

/// What a data message carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An IP packet.
    Packet(Place),
    /// A [`Control`](super::Control) message. Its arrival is not reported.
    Control,
    /// Zeros, sent to learn whether the path delivers. The report of its arrival is the answer.
    Probe,
    /// Zeros, sent to learn whether the path delivers a datagram of that size (RFC 8899 §3).
    MtuProbe,
}

/// The sealed header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inner {
    /// What follows.
    pub kind: Kind,
}

impl Inner {
    /// Writes it.
    #[must_use]
    pub fn encode(self) -> [u8; INNER] {
        let mut octets = [0; INNER];
        match self.kind {
            Kind::Packet(place) => {
                octets[2..4].copy_from_slice(&place.flow.to_be_bytes());
                octets[4..8].copy_from_slice(&place.number.to_be_bytes());
            }
            Kind::Control => octets[0] = 1,
            Kind::Probe => octets[0] = 2,
            Kind::MtuProbe => octets[0] = 3,
        }
        octets
    }

    /// Reads it, and gives what follows.
    ///
    /// # Errors
    /// [`WireError`] where the octets are too few, or the kind is unknown.
    pub fn decode(octets: &[u8]) -> Result<(Self, &[u8]), WireError> {
        let (head, rest) = octets
            .split_first_chunk::<INNER>()
            .ok_or(WireError::Length {
                octets: octets.len(),
                expected: INNER,
            })?;
        let place = Place {
            flow: two(head, 2),
            number: four(head, 4),
        };
        let alone = head[2..] == [0; INNER - 2];
        let kind = match (head[0], head[1], alone) {
            (0, 0, _) => Kind::Packet(place),
            (1, 0, true) => Kind::Control,
            (2, 0, true) => Kind::Probe,
            (3, 0, true) => Kind::MtuProbe,
            _ => return Err(WireError::Reserved),
        };
        Ok((Self { kind }, rest))
    }
}
