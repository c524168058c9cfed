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

/// A repair packet of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repair {
    /// The block, which is not 0.
    pub block: u16,
    /// Which of the block's repair packets, from 0.
    pub key: u8,
    /// How many of them there are.
    pub of: u8,
    /// How many packets the block has.
    pub count: u8,
    /// The code's symbol of the packets' places.
    pub place: [u8; 4],
}

/// What a data message carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An IP packet.
    Packet(Place),
    /// An IP packet of a block.
    Protected {
        /// Its place.
        place: Place,
        /// The block, which is not 0.
        block: u16,
        /// Its index in the block.
        index: u8,
    },
    /// A repair packet.
    Repair(Repair),
    /// A [`Control`](super::Control) message. Its arrival is not reported.
    Control,
    /// Zeros, sent to learn whether the path delivers. The report of its arrival is the answer.
    Probe,
    /// Zeros, sent to learn whether the path delivers a datagram of that size (RFC 8899 §3).
    MtuProbe,
}

impl Kind {
    /// The block that it belongs to, or 0. It stands outside the sealed header.
    #[must_use]
    pub const fn block(self) -> u16 {
        match self {
            Self::Protected { block, .. } => block,
            Self::Repair(repair) => repair.block,
            _ => 0,
        }
    }
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
            Kind::Protected { place, index, .. } => {
                octets[..2].copy_from_slice(&[4, index]);
                octets[2..4].copy_from_slice(&place.flow.to_be_bytes());
                octets[4..8].copy_from_slice(&place.number.to_be_bytes());
            }
            Kind::Repair(repair) => {
                octets[..4].copy_from_slice(&[5, repair.key, repair.of, repair.count]);
                octets[4..8].copy_from_slice(&repair.place);
            }
            Kind::Control => octets[0] = 1,
            Kind::Probe => octets[0] = 2,
            Kind::MtuProbe => octets[0] = 3,
        }
        octets
    }

    /// Reads it, with the block of the header before it, and gives what follows.
    ///
    /// # Errors
    /// [`WireError`] where the octets are too few, or the kind is unknown.
    pub fn decode(octets: &[u8], block: u16) -> Result<(Self, &[u8]), WireError> {
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
            (0, 0, _) if block == 0 => Kind::Packet(place),
            (1, 0, true) if block == 0 => Kind::Control,
            (2, 0, true) if block == 0 => Kind::Probe,
            (3, 0, true) if block == 0 => Kind::MtuProbe,
            (4, index, _) if block != 0 => Kind::Protected {
                place,
                block,
                index,
            },
            (5, key, _) if block != 0 && key < head[2] && head[3] != 0 => Kind::Repair(Repair {
                block,
                key,
                of: head[2],
                count: head[3],
                place: [head[4], head[5], head[6], head[7]],
            }),
            _ => return Err(WireError::Reserved),
        };
        Ok((Self { kind }, rest))
    }
}
