//! Header fields of error correction: redundant packets, the group number in data, and the
//! receiver's count of hidden losses in acknowledgments.
//!
//! A redundant packet is a TCP segment without ACK, which a receiver without this extension drops
//! (RFC 9293 §3.10.7.4). It uses no sequence space and is neither acknowledged nor retransmitted.
//! Its sequence number is that of the first octet covered, its payload is the output of the code,
//! and an experimental option (RFC 6994) has the other fields. Data and acknowledgments use the
//! three header bits that RFC 9293 §3.1 reserves and RFC 9768 leaves unused: data for its group
//! number, acknowledgments for a count of losses that TCP is not notified of.
//!
//! All packets that a redundant packet covers have the same length, except the last, which may be
//! shorter. So the sequence number of an octet determines its packet even if packets are missing.
//!
//! # Not implemented
//! - Negotiation: both ends are configured to use it.

mod octets;

pub use octets::{decode_redundant, encode_redundant};

use super::crc32c::Crc32c;
use crate::{
    Flags,
    segment::{HEADERS, Segment},
};
use anabranch_core::body::Body;

/// Bytes of the option, RFC 6994's kind, length and identifier included.
pub const OPTION_SIZE: u32 = 16;

/// Maximum payload of a packet that a redundant packet can cover: IP's length field has 16 bits,
/// and a code may need an even number of octets.
pub const MOST_PAYLOAD: u32 = (65_535 - HEADERS - OPTION_SIZE) / 2 * 2;

/// The lowest of the reserved bits used.
const SHIFT: u32 = 9;
/// The two bits used in data.
const GROUP: u16 = 0b11 << SHIFT;
/// The three bits used in acknowledgments.
const COUNT: u16 = 0b111 << SHIFT;

/// Group number in data: 1, 2 or 3 in turn; 0 for no group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tag(u8);

impl Tag {
    /// No group: the number of retransmissions.
    pub const NONE: Self = Self(0);
    /// Number of a connection's first group.
    pub const FIRST: Self = Self(1);

    /// Number of the next group.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 % 3 + 1)
    }
    /// Whether it belongs to a group.
    #[must_use]
    pub const fn is_some(self) -> bool {
        self.0 != 0
    }
    /// Writes it into the header of a segment with payload.
    #[inline]
    pub fn write<B>(self, segment: &mut Segment<B>) {
        segment.flags = Flags(segment.flags.0 & !COUNT | u16::from(self.0) << SHIFT);
    }
    /// Reads it from the header of a segment with payload.
    #[must_use]
    #[inline]
    pub fn read<B>(segment: &Segment<B>) -> Self {
        Self(((segment.flags.0 & GROUP) >> SHIFT) as u8)
    }
}

/// Count, modulo 8, of losses that only the error-correction layer saw; carried by acknowledgments
/// without payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hidden(u8);

impl Hidden {
    /// Adds `losses`.
    pub const fn add(&mut self, losses: u32) {
        let [low, ..] = losses.to_le_bytes();
        self.0 = self.0.wrapping_add(low) & 7;
    }
    /// The increase since `earlier`, modulo 8.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u32 {
        (self.0.wrapping_sub(earlier.0) & 7) as u32
    }
    /// Writes it into the header of a segment without payload.
    pub fn write<B>(self, segment: &mut Segment<B>) {
        segment.flags = Flags(segment.flags.0 & !COUNT | u16::from(self.0) << SHIFT);
    }
    /// Reads it from the header of a segment without payload.
    #[must_use]
    pub fn read<B>(segment: &Segment<B>) -> Self {
        Self(((segment.flags.0 & COUNT) >> SHIFT) as u8)
    }
}

/// A redundant packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Redundant<B> {
    /// Sequence number of the first octet covered.
    pub first: u32,
    /// Number of packets covered.
    pub count: u16,
    /// Octets per packet, except the last.
    pub size: u16,
    /// XOR of the lengths of all packets covered; it determines the length of the last.
    pub lengths: u16,
    /// Identifies the redundant packet for the code. For a block code, the upper octet is the
    /// number of redundant packets and the lower octet the index of this one.
    pub key: u16,
    /// Checksum of the packets covered; see [`checksum`].
    pub checksum: u32,
    /// Output of the code.
    pub body: B,
}

impl<B: Body> Redundant<B> {
    /// Size of the IPv4 packet in bytes.
    #[must_use]
    pub fn ip_size(&self) -> u32 {
        HEADERS + OPTION_SIZE + self.body.len()
    }
    /// Whether the header fields equal those of `other`.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let header = |one: &Self| {
            let covers = (one.first, one.count, one.size, one.lengths);
            (covers, one.key, one.checksum)
        };
        header(self) == header(other)
    }
    /// Length of the last packet covered; `None` if the lengths are inconsistent.
    #[must_use]
    pub fn last(&self) -> Option<u16> {
        let others = if self.count.is_multiple_of(2) {
            self.size
        } else {
            0
        };
        let last = self.lengths ^ others;
        let possible = self.count > 0 && (1..=self.size).contains(&last);
        possible.then_some(last)
    }
    /// Number of octets covered; `None` if the lengths are inconsistent.
    #[must_use]
    pub fn span(&self) -> Option<u32> {
        let last = u32::from(self.last()?);
        Some(u32::from(self.count - 1) * u32::from(self.size) + last)
    }
}

/// A packet's contribution to the checksum: CRC-32C of its sequence number and content. The
/// checksum of a redundant packet is the sum of the contributions of the packets covered, modulo
/// 2³²; on the wire, a [`secret`] is added.
#[must_use]
pub fn checksum(seq: u32, content: &[u8]) -> u32 {
    let mut crc = Crc32c::default();
    crc.add(&seq.to_be_bytes());
    crc.add(content);
    crc.finish()
}

/// Secret that is added to the checksum on the wire, derived from the initial sequence numbers of
/// the sender and of the receiver. If all packets covered are missing, only the redundant packet
/// itself vouches for their content. An off-path attacker would have to guess 32 bits in addition
/// to a sequence number in the window (RFC 5961 §1.1 states the same for data).
#[must_use]
pub fn secret(sender: u32, receiver: u32) -> u32 {
    let mut crc = Crc32c::default();
    crc.add(&sender.to_be_bytes());
    crc.add(&receiver.to_be_bytes());
    crc.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_core::body::Length;

    #[test]
    fn the_last_length_follows_from_the_xor_of_all() {
        for (count, last) in [(1, 700), (2, 1_460), (3, 1), (4, 1_000), (9, 1_460)] {
            let whole: u16 = 1_460;
            let lengths = (1..count).fold(last, |xor, _| xor ^ whole);
            let packet = Redundant {
                count,
                size: if count == 1 { last } else { 1_460 },
                lengths,
                body: Length(1_460),
                ..Redundant::default()
            };
            assert_eq!(packet.last(), Some(last), "{count}");
        }
    }

    #[test]
    fn lengths_that_cannot_be_are_noticed() {
        let packet = |count, size, lengths| Redundant::<Length> {
            count,
            size,
            lengths,
            ..Redundant::default()
        };
        assert_eq!(packet(0, 100, 100).span(), None);
        assert_eq!(packet(1, 100, 101).span(), None);
        assert_eq!(packet(1, 100, 0).span(), None);
        assert_eq!(packet(2, 100, 100).span(), None, "the last would be empty");
        assert_eq!(packet(3, 100, 100).span(), Some(300));
    }

    #[test]
    fn numbers_in_headers_leave_the_other_flags_alone() {
        let mut segment = Segment::<Length> {
            flags: Flags::ACK | Flags::PSH | Flags::AE,
            ..Segment::default()
        };
        let mut tag = Tag::FIRST;
        for _ in 0..7 {
            tag.write(&mut segment);
            assert_eq!(Tag::read(&segment), tag);
            assert!(segment.flags.has(Flags::ACK | Flags::PSH | Flags::AE));
            assert_ne!(tag, tag.next());
            assert_eq!(tag, tag.next().next().next());
            tag = tag.next();
        }
        let mut hidden = Hidden::default();
        for _ in 0..9 {
            let before = hidden;
            hidden.add(5);
            hidden.write(&mut segment);
            assert_eq!(Hidden::read(&segment).since(before), 5);
        }
    }
}
