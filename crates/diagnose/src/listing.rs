//! The segments of a capture with the numbers of their connections, for comparison with another
//! capture of the same connections.

use crate::{segment::Segment, table::Table};

/// Octets of a record.
pub const RECORD: usize = 56;

/// The control bits and, above them, the ECN field of the IP header.
const CONTROL_BITS: u16 = 0x0fff;
const ECN_SHIFT: u32 = 14;

/// Segments as packed records of [`RECORD`] octets, little endian, in order of time.
///
/// A record holds the time (ns since 1970, 8 octets), the number of the connection, the frame, the
/// sequence number, the acknowledgment number, the octets of data, both timestamps, the first SACK
/// block (4 octets each), the flags with the ECN field in the two highest bits, the window, the MSS, IPv4's identification (2 each), the hop
/// limit, the shift of the window scale, the bits and the number of SACK blocks (1 each). The bits
/// are, from the lowest: sent by `a`, has an identification, has timestamps, permits SACK, all
/// options were captured, has an MSS, has a window scale.
#[derive(Debug, Default)]
pub struct Listing {
    /// The records.
    pub records: Vec<u8>,
    /// Segments beyond the bound, which are not listed.
    pub left_out: u64,
}

/// A table, and the segments that it has received.
pub(crate) struct Listed {
    pub(crate) table: Table,
    pub(crate) listing: Listing,
    most: usize,
}

impl Listed {
    pub(crate) fn new(table: Table, most: usize) -> Self {
        Self {
            table,
            listing: Listing::default(),
            most: most.saturating_mul(RECORD),
        }
    }

    pub(crate) fn add(&mut self, segment: &Segment) {
        let Some((connection, is_from_a)) = self.table.add(segment) else {
            return;
        };
        if self.listing.records.len() >= self.most {
            self.listing.left_out += 1;
            return;
        }
        let number = |value: u64| u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes();
        let (value, echo) = segment.stamps.unwrap_or_default();
        let (left, right) = segment.blocks().first().copied().unwrap_or_default();
        let records = &mut self.listing.records;
        records.extend(segment.time.to_le_bytes());
        records.extend(number(connection));
        records.extend(number(segment.number));
        let words = [
            segment.seq,
            segment.ack.unwrap_or_default(),
            segment.payload,
            value,
            echo,
            left,
            right,
        ];
        records.extend(words.into_iter().flat_map(u32::to_le_bytes));
        let halves = [
            segment.flags.0 & CONTROL_BITS | u16::from(segment.ecn) << ECN_SHIFT,
            segment.window,
            segment.mss.unwrap_or_default(),
            segment.id.unwrap_or_default(),
        ];
        records.extend(halves.into_iter().flat_map(u16::to_le_bytes));
        // From the highest to the lowest.
        let bits = [
            segment.scale.is_some(),
            segment.mss.is_some(),
            segment.has_all_options,
            segment.sack_permitted,
            segment.stamps.is_some(),
            segment.id.is_some(),
            is_from_a,
        ];
        let bits = bits.into_iter();
        records.extend([
            segment.hop_limit,
            segment.scale.unwrap_or_default(),
            bits.fold(0, |all, bit| all << 1 | u8::from(bit)),
            segment.block_count,
        ]);
    }
}
