//! A piece: data that was always sent together, with its copies and the first evidence of its arrival;
//! and the recognition of originals that passed late.

use super::need::is_before;
use crate::time::{MILLISECOND, Nanos};

/// Maximum number of stored retransmissions of a piece. Hosts abort sooner (Linux after 15).
const MOST_COPIES: usize = 64;

/// One transmission of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Copy {
    pub(crate) time: Nanos,
    pub(crate) number: u64,
    /// `TSval`.
    pub(crate) stamp: Option<u32>,
    pub(crate) id: Option<u16>,
    /// Its acknowledgment of the other direction's data.
    pub(crate) ack: Option<u32>,
    /// The retransmission of which it is a part.
    pub(crate) retransmission: Option<u64>,
}

/// The first evidence that a piece has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cover {
    pub(crate) time: Nanos,
    /// `TSecr` of a cumulative acknowledgment, if it shows which copy arrived.
    pub(crate) echo: Option<u32>,
    /// The acknowledgment also covers data after the piece that was unacknowledged until then,
    /// although it was sent before the last copy.
    pub(crate) reaches_beyond: bool,
    /// Without SACK, one acknowledgment covers the piece, the gap before it, and more segments than
    /// a receiver delays an acknowledgment for: they had arrived above the gap.
    pub(crate) is_at_once: bool,
}

/// Octets that were always sent together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Piece {
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// The original, if it was captured.
    pub(crate) first: Option<Copy>,
    /// Retransmissions, and an original that passed after one of them.
    pub(crate) again: Vec<Copy>,
    /// The gap that the retransmission filled, if the original had not been captured.
    pub(crate) gap: Option<Box<Gap>>,
    /// The original passed after a retransmission: it was not lost.
    pub(crate) is_original_late: bool,
    pub(crate) cover: Option<Cover>,
    /// The number of D-SACK blocks that covered it.
    pub(crate) duplicates: u32,
    /// Data sent after the original had arrived when the piece was first retransmitted.
    pub(crate) overtaken: bool,
    /// Whether a SACK option would have included the piece if it had arrived.
    pub(crate) room: Room,
}

/// Room in the SACK options that cover later data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Room {
    #[default]
    Enough,
    /// An option was full.
    Full,
    /// An option was full of blocks that no earlier option contained.
    Exceeded,
}

impl Piece {
    /// The latest copy.
    pub(crate) fn latest(&self) -> Option<&Copy> {
        self.again.last().or(self.first.as_ref())
    }

    /// The latest copy, excluding an original that passed late.
    pub(crate) fn latest_sent(&self) -> Option<&Copy> {
        let again = self.again.iter().rev();
        let mut sent = again.filter(|copy| copy.retransmission.is_some());
        sent.next().or(self.first.as_ref())
    }

    /// Whether a copy is the missing original: it was sent before the packet after the gap.
    pub(crate) fn is_original(&self, filler: &Filler) -> bool {
        let is_missing = self.first.is_none() && !self.is_original_late && !self.again.is_empty();
        let gap = self.gap.as_ref().filter(|_| is_missing);
        gap.is_some_and(|gap| sent_before(filler, gap) == Some(true))
    }

    /// Adds a retransmission, unless there are too many.
    pub(crate) fn add(&mut self, copy: Copy) -> bool {
        let has_room = self.again.len() < MOST_COPIES;
        if has_room {
            self.again.push(copy);
        }
        has_room
    }

    /// Adds the original, which passed after a retransmission.
    pub(crate) fn add_late_original(&mut self, copy: Copy) {
        self.again.push(copy);
        self.is_original_late = true;
    }

    /// Splits the piece at `at`. Returns the second part.
    pub(crate) fn split(&mut self, at: i64) -> Self {
        let behind = Self {
            start: at,
            ..self.clone()
        };
        self.end = at;
        behind
    }
}

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

/// A segment that fills a gap, with its context: a retransmission whose original was not captured, or a
/// segment that was reordered before the capture point.
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
