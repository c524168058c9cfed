//! pcap (draft-ietf-opsawg-pcap): a header, then a record for each frame.

use super::{Frame, Link, MAX_RECORD, Next, Order, PICOS, Wrong, beginning};
use crate::bytes::Bytes;

/// Format variant given by the magic number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Variant {
    order: Order,
    /// Picoseconds of a unit of the fractions of seconds.
    picos: i64,
    /// Bytes of each record's header; one variant adds eight (Kuznetzov's patch, magic 0xa1b2cd34).
    header: usize,
}

impl Variant {
    pub(crate) fn of(magic: [u8; 4]) -> Option<Self> {
        [
            (Order::Little, u32::from_le_bytes(magic)),
            (Order::Big, u32::from_be_bytes(magic)),
        ]
        .into_iter()
        .find_map(|(order, magic)| {
            let (picos, header) = match magic {
                0xa1b2_c3d4 => (1_000_000, 16),
                0xa1b2_3c4d => (1_000, 16),
                0xa1b2_cd34 => (1_000_000, 24),
                _ => return None,
            };
            Some(Self {
                order,
                picos,
                header,
            })
        })
    }
}

/// Distance from the end of the 32-bit range (7 February 2106), before and after it, within which
/// the field counts as wrapped: 12 days in seconds.
const NEAR_WRAP: u32 = 1 << 20;

/// Seconds of records, whose field has 32 bits.
#[derive(Debug, Default)]
struct Seconds {
    last: u32,
    /// Number of wraps of the field.
    wraps: i64,
}

impl Seconds {
    fn unwrap(&mut self, field: u32) -> i64 {
        let is_late = |seconds: u32| seconds > u32::MAX - NEAR_WRAP;
        let is_early = |seconds: u32| seconds < NEAR_WRAP;
        if is_late(self.last) && is_early(field) {
            self.wraps += 1;
        } else if is_early(self.last) && is_late(field) && self.wraps > 0 {
            // Two neighbouring records are out of order.
            self.wraps -= 1;
        }
        self.last = field;
        (self.wraps << 32) + i64::from(field)
    }
}

/// Reader state after the header of a pcap file.
pub(crate) struct Pcap {
    variant: Variant,
    seconds: Seconds,
    link: Link,
    /// The file is older than version 2.3: the wire length precedes the captured length.
    lengths_swapped: bool,
    /// Unread bytes of a record that is longer than the buffer.
    left: u64,
}

impl Pcap {
    const HEADER: usize = 24;

    /// Reads the header; `None` if the file ends within it.
    pub(crate) fn open(bytes: &mut Bytes<'_>) -> Result<Option<Self>, Wrong> {
        let Some(header) = bytes.take(Self::HEADER)? else {
            return Ok(None);
        };
        let header = bytes.at(header);
        let variant = header.first_chunk().and_then(|magic| Variant::of(*magic));
        let variant = variant.ok_or(Wrong::Broken("the magic number"))?;
        let version = (variant.order.u16(header, 4), variant.order.u16(header, 6));
        Ok(Some(Self {
            variant,
            seconds: Seconds::default(),
            link: link(variant.order.u32(header, 20)),
            lengths_swapped: version < (2, 3),
            left: 0,
        }))
    }

    pub(crate) fn next(&mut self, bytes: &mut Bytes<'_>) -> Result<Next, Wrong> {
        if !bytes.skip(std::mem::take(&mut self.left))? {
            return Ok(Next::CutOff);
        }
        let Some(header) = bytes.take(self.variant.header)? else {
            return Ok(if bytes.peek(1)?.is_empty() && !bytes.is_cut_off {
                Next::End
            } else {
                Next::CutOff
            });
        };
        let header = bytes.at(header);
        let field = |at| self.variant.order.u32(header, at);
        let (seconds, fraction) = (field(0), field(4));
        let (mut captured, mut length) = (field(8), field(12));
        if self.lengths_swapped {
            std::mem::swap(&mut captured, &mut length);
        }
        if captured > MAX_RECORD {
            return Err(Wrong::Broken("a record of more than 128 MiB"));
        }
        let seconds = self.seconds.unwrap(seconds);
        let time =
            i128::from(seconds) * PICOS + i128::from(i64::from(fraction) * self.variant.picos);
        let Some((octets, left)) = beginning(bytes, captured.into())? else {
            return Ok(Next::CutOff);
        };
        self.left = left;
        Ok(Next::Frame(Frame {
            link: self.link,
            time: Some(time),
            // Some writers set the wire length to 0.
            length: length.max(captured),
            octets,
        }))
    }
}

/// Decodes the last field of the header: the link type in 16 bits; in the upper bits, whether
/// frames end with a check sequence, and its length in 16-bit words.
fn link(field: u32) -> Link {
    const FCS_IS_THERE: u32 = 1 << 26;
    let fcs = if field & FCS_IS_THERE == 0 {
        0
    } else {
        (field >> 28) * 2
    };
    let link_type = u16::try_from(field & 0xffff).unwrap_or_default();
    Link { link_type, fcs }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_go_on_where_their_field_wraps() {
        let mut seconds = Seconds::default();
        let fields = [u32::MAX - 1, u32::MAX, 0, u32::MAX, 1, 5];
        let found: Vec<i64> = fields.map(|field| seconds.unwrap(field)).to_vec();
        let end = 1_i64 << 32;
        assert_eq!(found, [end - 2, end - 1, end, end - 1, end + 1, end + 5]);
        // A time of 0 in a capture of today, and a damaged one, wrap nothing.
        let mut seconds = Seconds::default();
        let today = 1_700_000_000;
        for field in [today, 0, today, u32::MAX, today, 0] {
            assert_eq!(seconds.unwrap(field), i64::from(field));
        }
    }
}
