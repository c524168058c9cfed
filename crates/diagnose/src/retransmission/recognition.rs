//! Distinguishes a retransmission whose original was not captured from a segment that was reordered
//! before the capture point.

use super::{need::is_before, piece::Copy};
use crate::time::{MILLISECOND, Nanos};

/// A gap in the sequence numbers, and the packet after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// The packet after the gap.
    pub(crate) packet: Copy,
    /// The packet has no data: it shows the receiver no gap.
    pub(crate) is_bare: bool,
}

/// A segment that fills a gap, with its context.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filler {
    pub(crate) copy: Copy,
    /// The sender increments its IP identification with each packet.
    pub(crate) ids_grow: bool,
    /// The minimum round-trip time. A retransmission follows the data after the gap by at least
    /// one.
    pub(crate) round_trip: Option<Nanos>,
    /// Duplicate acknowledgments, or octets SACKed, since the gap.
    pub(crate) is_missed: bool,
}

/// Maximum displacement of a packet, in packets of its sender.
const MOST_DISPLACED: i16 = 256;
/// Maximum displacement if the round-trip time is unknown; larger ones are rare (measurements of
/// RFC 5236).
pub(crate) const SOON: Nanos = 3 * MILLISECOND;

/// Whether the sender sent a segment before the packet after a gap, by its timestamps (RFC 7323
/// §3), by its acknowledgments, which never go back (RFC 9293 §3.4), or by its IP identifications.
pub(crate) fn sent_before(filler: &Filler, gap: &Gap) -> Option<bool> {
    let (copy, next) = (&filler.copy, &gap.packet);
    if let (Some(stamp), Some(behind)) = (copy.stamp, next.stamp)
        && stamp != behind
    {
        return Some(is_before(stamp, behind));
    }
    if let (Some(ack), Some(behind)) = (copy.ack, next.ack)
        && ack != behind
    {
        return Some(is_before(ack, behind));
    }
    let (id, behind) = copy.id.zip(next.id).filter(|_| filler.ids_grow)?;
    #[expect(clippy::cast_possible_wrap, reason = "a difference modulo 2^16")]
    let step = id.wrapping_sub(behind) as i16;
    (step != 0 && step.abs() <= MOST_DISPLACED).then_some(step < 0)
}

/// Whether a segment that fills a gap was sent in order and arrived late.
pub(crate) fn is_reordered(filler: &Filler, gap: &Gap) -> bool {
    sent_before(filler, gap).unwrap_or_else(|| {
        let since = filler.copy.time - gap.packet.time;
        match filler.round_trip.filter(|_| !gap.is_bare) {
            Some(round_trip) => since < round_trip - round_trip / 10,
            None => since < SOON && !filler.is_missed,
        }
    })
}
