//! The binary record of a segment in the temporary file of a sort.

use std::net::{IpAddr, Ipv6Addr};

use anabranch_wire::Flags;

use crate::segment::{End, MOST_BLOCKS, Segment};

/// Octets of a record.
pub(super) const LENGTH: usize = 117;

/// Flags: one bit for each optional field.
const V6: [u8; 2] = [1, 2];
const ACK: u8 = 4;
const ID: u8 = 8;
const STAMPS: u8 = 16;
const MSS: u8 = 32;
const SCALE: u8 = 64;
const SACK: u8 = 128;
const WHOLE: u8 = 1;
/// The position of the ECN field in the last octet.
const ECN_SHIFT: u8 = 1;

/// Appends a record.
pub(super) fn write(segment: &Segment, out: &mut Vec<u8>) {
    let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
    let bits = bit(segment.source.0.is_ipv6(), V6[0])
        | bit(segment.target.0.is_ipv6(), V6[1])
        | bit(segment.ack.is_some(), ACK)
        | bit(segment.id.is_some(), ID)
        | bit(segment.stamps.is_some(), STAMPS)
        | bit(segment.mss.is_some(), MSS)
        | bit(segment.scale.is_some(), SCALE)
        | bit(segment.sack_permitted, SACK);
    let stamps = segment.stamps.unwrap_or_default();
    out.extend(segment.number.to_le_bytes());
    out.extend(segment.time.to_le_bytes());
    for (address, port) in [segment.source, segment.target] {
        out.extend(wide(address).octets());
        out.extend(port.to_le_bytes());
    }
    let words = [
        segment.seq,
        segment.ack.unwrap_or_default(),
        segment.payload,
        stamps.0,
        stamps.1,
    ];
    out.extend(words.into_iter().flat_map(u32::to_le_bytes));
    for (start, end) in segment.blocks {
        out.extend(start.to_le_bytes());
        out.extend(end.to_le_bytes());
    }
    let halves = [
        segment.flags.0,
        segment.window,
        segment.id.unwrap_or_default(),
        segment.mss.unwrap_or_default(),
    ];
    out.extend(halves.into_iter().flat_map(u16::to_le_bytes));
    out.extend([
        segment.hop_limit,
        segment.scale.unwrap_or_default(),
        segment.block_count,
        bits,
        bit(segment.has_all_options, WHOLE) | segment.ecn << ECN_SHIFT,
    ]);
}

fn wide(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// Reads fields in order.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (first, rest) = self.0.split_first_chunk().unwrap_or((&[0; N], &[]));
        self.0 = rest;
        *first
    }
    fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.take())
    }
    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }
    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }
    fn end(&mut self) -> (Ipv6Addr, u16) {
        (Ipv6Addr::from(self.take::<16>()), self.u16())
    }
}

/// Decodes a record.
pub(super) fn read(record: &[u8]) -> Segment {
    let mut fields = Fields(record);
    let number = u64::from_le_bytes(fields.take());
    let time = i64::from_le_bytes(fields.take());
    let (source, target) = (fields.end(), fields.end());
    let [seq, ack, payload, stamp, echo] = std::array::from_fn(|_| fields.u32());
    let blocks: [_; MOST_BLOCKS] = std::array::from_fn(|_| (fields.u32(), fields.u32()));
    let [flags, window, id, mss] = std::array::from_fn(|_| fields.u16());
    let [hop_limit, scale, block_count, bits, whole] = std::array::from_fn(|_| fields.u8());
    let has = |bit: u8| bits & bit != 0;
    let end = |(address, port): (Ipv6Addr, u16), v6: u8| -> End {
        let narrow = address.to_ipv4_mapped().filter(|_| !has(v6));
        (narrow.map_or(IpAddr::V6(address), IpAddr::V4), port)
    };
    Segment {
        number,
        time,
        source: end(source, V6[0]),
        target: end(target, V6[1]),
        seq,
        ack: has(ACK).then_some(ack),
        flags: Flags(flags),
        window,
        payload,
        hop_limit,
        ecn: whole >> ECN_SHIFT,
        id: has(ID).then_some(id),
        stamps: has(STAMPS).then_some((stamp, echo)),
        mss: has(MSS).then_some(mss),
        scale: has(SCALE).then_some(scale),
        sack_permitted: has(SACK),
        has_all_options: whole & WHOLE != 0,
        blocks,
        block_count,
        quic: None,
    }
}
