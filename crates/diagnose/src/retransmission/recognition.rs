//! Tells a retransmission whose original the capture lacks from a segment that was reordered before the capture point.

use super::need::is_before;
use crate::time::{MILLISECOND, Nanos};

/// The packet behind a gap in the sequence numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// When the packet behind it passed.
    pub(crate) time: Nanos,
    pub(crate) stamp: Option<u32>,
    pub(crate) id: Option<u16>,
    pub(crate) ack: Option<u32>,
    /// The packet has no data: it shows no gap to the receiver.
    pub(crate) is_bare: bool,
}

/// A segment that fills a gap, and what is known around it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filler {
    pub(crate) time: Nanos,
    pub(crate) stamp: Option<u32>,
    pub(crate) id: Option<u16>,
    pub(crate) ack: Option<u32>,
    /// The sender's identifications grow by one with each packet.
    pub(crate) ids_grow: bool,
    /// The least round trip; a retransmission takes one from the data behind the gap.
    pub(crate) round_trip: Option<Nanos>,
    /// Duplicate acknowledgments, or octets SACKed, since the gap.
    pub(crate) is_missed: bool,
}

/// How far a packet may be displaced, in packets of its sender.
const MOST_DISPLACED: i16 = 256;
/// With no round trip known, packets that are displaced by more are rare (RFC 5236's measurements).
pub(crate) const SOON: Nanos = 3 * MILLISECOND;

/// Whether the sender made a segment before the packet behind a gap: by its clock (RFC 7323 §3), by its acknowledgments, which
/// never go back (RFC 9293 §3.4), or by its identifications.
pub(crate) fn sent_before(filler: &Filler, gap: &Gap) -> Option<bool> {
    if let (Some(stamp), Some(behind)) = (filler.stamp, gap.stamp)
        && stamp != behind
    {
        return Some(is_before(stamp, behind));
    }
    if let (Some(ack), Some(behind)) = (filler.ack, gap.ack)
        && ack != behind
    {
        return Some(is_before(ack, behind));
    }
    let (id, behind) = filler.id.zip(gap.id).filter(|_| filler.ids_grow)?;
    #[expect(clippy::cast_possible_wrap, reason = "a difference modulo 2^16")]
    let step = id.wrapping_sub(behind) as i16;
    (step != 0 && step.abs() <= MOST_DISPLACED).then_some(step < 0)
}

/// Whether a segment that fills a gap was sent in order and arrived late.
pub(crate) fn is_reordered(filler: &Filler, gap: &Gap) -> bool {
    sent_before(filler, gap).unwrap_or_else(|| {
        let since = filler.time - gap.time;
        match filler.round_trip.filter(|_| !gap.is_bare) {
            Some(round_trip) => since < round_trip - round_trip / 10,
            None => since < SOON && !filler.is_missed,
        }
    })
}
