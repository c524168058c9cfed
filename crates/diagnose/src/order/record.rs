//! The binary record of a segment in the temporary file of a sort.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::segment::Segment;

/// Octets of a record.
pub(super) const LENGTH: usize = 125;

/// Writes or reads the octets of a field.
type Code<'a> = dyn FnMut(&mut [u8]) + 'a;

/// A part of a record, of the same length whatever its value.
trait Field {
    /// Passes its octets to `code`, and stores the result.
    fn pass(&mut self, code: &mut Code<'_>);
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Field for $number {
            fn pass(&mut self, code: &mut Code<'_>) {
                let mut octets = self.to_le_bytes();
                code(&mut octets);
                *self = Self::from_le_bytes(octets);
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, i64, u128);

impl Field for bool {
    fn pass(&mut self, code: &mut Code<'_>) {
        let mut octet = u8::from(*self);
        octet.pass(code);
        *self = octet != 0;
    }
}

impl<T: Field + Default> Field for Option<T> {
    fn pass(&mut self, code: &mut Code<'_>) {
        let (mut is_some, mut value) = (self.is_some(), self.take().unwrap_or_default());
        is_some.pass(code);
        value.pass(code);
        *self = is_some.then_some(value);
    }
}

impl<T: Field, U: Field> Field for (T, U) {
    fn pass(&mut self, code: &mut Code<'_>) {
        self.0.pass(code);
        self.1.pass(code);
    }
}

impl Field for IpAddr {
    fn pass(&mut self, code: &mut Code<'_>) {
        let (mut is_v6, mut bits) = match *self {
            Self::V4(address) => (false, u128::from(address.to_bits())),
            Self::V6(address) => (true, address.to_bits()),
        };
        is_v6.pass(code);
        bits.pass(code);
        let low = u32::try_from(bits).map(Ipv4Addr::from_bits);
        *self = match low {
            Ok(address) if !is_v6 => Self::V4(address),
            _ => Self::V6(Ipv6Addr::from_bits(bits)),
        };
    }
}

impl Field for Segment {
    fn pass(&mut self, code: &mut Code<'_>) {
        let fields: [&mut dyn Field; _] = [
            &mut self.number,
            &mut self.time,
            &mut self.source,
            &mut self.target,
            &mut self.seq,
            &mut self.ack,
            &mut self.flags.0,
            &mut self.window,
            &mut self.payload,
            &mut self.hop_limit,
            &mut self.ecn,
            &mut self.id,
            &mut self.stamps,
            &mut self.mss,
            &mut self.scale,
            &mut self.sack_permitted,
            &mut self.has_all_options,
            &mut self.block_count,
        ];
        for field in fields {
            field.pass(code);
        }
        for block in &mut self.blocks {
            block.pass(code);
        }
    }
}

/// Appends a record.
pub(super) fn write(mut segment: Segment, out: &mut Vec<u8>) {
    segment.pass(&mut |octets| out.extend_from_slice(octets));
}

/// Decodes a record into `segment`.
pub(super) fn read(mut record: &[u8], mut segment: Segment) -> Segment {
    segment.pass(&mut |octets| {
        let (first, rest) = record.split_at_checked(octets.len()).unwrap_or_default();
        if first.len() == octets.len() {
            octets.copy_from_slice(first);
        }
        record = rest;
    });
    segment
}
