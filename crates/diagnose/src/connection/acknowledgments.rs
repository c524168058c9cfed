//! The acknowledgments that have passed the capture point. They reach the sender later.

use super::{
    outstanding::{MOST_TOUCHED, Pieces, Settling},
    plausibility::{Block, SackCheck, are_randomised},
    ranges::Ranges,
    sender_view::UNKNOWN,
};
use crate::{
    retransmission::piece::{Cover, Piece, Room},
    segment::{MOST_BLOCKS, Segment, Sequence},
    time::Nanos,
};

/// The cumulative and selective acknowledgments.
#[derive(Debug)]
pub(crate) struct Acknowledged {
    /// [`UNKNOWN`] until an acknowledgment has passed.
    pub(crate) una: i64,
    /// When it advanced, and its value before.
    pub(crate) advanced: Option<(Nanos, i64)>,
    /// Duplicate acknowledgments since then, and the time of the last one ever.
    pub(crate) duplicates: u32,
    last_duplicate: Option<Nanos>,
    pub(crate) sacked: Ranges,
    pub(crate) has_sack: bool,
    /// One past the highest octet SACKed; and its value before the current acknowledgment.
    sacked_top: i64,
    sacked_before: i64,
    /// Below this, data may have arrived that no SACK option names, because acknowledgments were
    /// lost or omitted.
    exceeded: i64,
    /// Below this, an option had no room for more blocks.
    full: i64,
    /// The time of the last acknowledgment.
    pub(crate) last: Option<Nanos>,
    pub(crate) sack_check: SackCheck,
}

impl Default for Acknowledged {
    fn default() -> Self {
        Self {
            una: UNKNOWN,
            advanced: None,
            duplicates: 0,
            last_duplicate: None,
            sacked: Ranges::default(),
            has_sack: false,
            sacked_top: UNKNOWN,
            sacked_before: UNKNOWN,
            exceeded: UNKNOWN,
            full: UNKNOWN,
            last: None,
            sack_check: SackCheck::default(),
        }
    }
}

/// An acknowledgment, and the state before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ack<'a> {
    pub(crate) segment: &'a Segment,
    pub(crate) una: i64,
    /// One past the highest octet sent.
    pub(crate) next: i64,
    /// One past the highest octet SACKed before.
    pub(crate) highest: i64,
    /// The window that it announces, if its scale is known.
    pub(crate) window: Option<i64>,
    pub(crate) mss: i64,
    /// The capture has data of this direction.
    pub(crate) has_data: bool,
    /// The time since which later data has arrived above a hole.
    pub(crate) hole: Option<Nanos>,
    pub(crate) round_trip: Nanos,
}

/// Information derived from an acknowledgment.
#[derive(Debug, Default)]
pub(crate) struct AckSummary {
    pub(crate) advances: bool,
    pub(crate) is_duplicate: bool,
    pub(crate) is_sack_new: bool,
    /// A round-trip time, if the newest segment that it covers was sent once.
    pub(crate) sample: Option<Nanos>,
    /// Octets that arrived after later ones, not revealed by a retransmission, and their segments.
    pub(crate) late: Vec<Late>,
    pub(crate) late_packets: u64,
    /// Data missing from the capture.
    pub(crate) holes: u64,
    pub(crate) unseen_octets: i64,
}

/// Original data that passed, or arrived, after later data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Late {
    pub(crate) octets: i64,
    /// Octets of later data that overtook it.
    pub(crate) beyond: i64,
    /// Its lateness.
    pub(crate) by: Option<Nanos>,
}

impl Acknowledged {
    /// Begins the processing of a segment of the receiver.
    pub(crate) fn begin(&mut self, time: Nanos) {
        self.last = Some(time);
        self.sacked_before = self.sacked_top;
    }

    /// Ends the processing of a cumulative acknowledgment: `una` is valid from now on.
    pub(crate) fn move_to(&mut self, una: i64, time: Nanos) {
        self.advanced = Some((time, self.una));
        self.una = una;
        self.duplicates = 0;
        self.sacked.remove(UNKNOWN, una);
    }

    pub(crate) fn repeat(&mut self, time: Nanos) {
        self.duplicates += 1;
        self.last_duplicate = Some(time);
    }

    /// Whether SACK options had room to name data at `start`. Without blocks, or with blocks of other sequence
    /// numbers, only the first octet that is not acknowledged is known to be missing.
    pub(crate) fn room(&self, start: i64) -> Room {
        let check = &self.sack_check;
        let names_none = check.used == 0 || are_randomised(check.wrong, check.used);
        if start < self.exceeded || (names_none && start > self.una) {
            Room::Exceeded
        } else if start < self.full {
            Room::Full
        } else {
            Room::Enough
        }
    }

    /// Processes SACK blocks.
    #[inline(never)]
    pub(crate) fn selective(
        &mut self,
        ack: &Ack<'_>,
        sequence: Sequence,
        pieces: &mut Pieces,
        settling: &mut Settling,
        summary: &mut AckSummary,
    ) {
        let blocks = ack.segment.blocks();
        let unwrapped = |block: &(u32, u32)| {
            let start = sequence.unwrap(block.0, ack.una);
            (start, start + i64::from(block.1.wrapping_sub(block.0)))
        };
        let second = blocks.get(1).map(unwrapped);
        // The first block may report a duplicate.
        let (mut is_repeated, mut fresh) = (false, 0);
        for (k, block) in blocks.iter().enumerate() {
            let (start, end) = unwrapped(block);
            // RFC 2883 §4.
            let is_within = second.is_some_and(|(from, to)| from <= start && end <= to);
            let is_duplicate = k == 0 && (end <= ack.una || is_within);
            if !self.sack_check.is_possible(&Block {
                start,
                end,
                una: ack.una,
                next: ack.next,
                is_duplicate,
                has_data: ack.has_data,
            }) {
                continue;
            }
            self.has_sack = true;
            if is_duplicate {
                settling.duplicate(start, end);
                is_repeated = true;
                // A D-SACK block names one segment.
                for piece in pieces.touching(start, end).take(MOST_TOUCHED) {
                    piece.duplicates += 1;
                }
                continue;
            }
            // Data of this direction may be missing from the capture.
            let end = end.min(ack.next);
            if end <= start
                || self.sacked.overlap(start, end) == end - start
                || !self.sacked.has_room(end)
            {
                continue;
            }
            for (from, to) in self.sacked.missing(start, end) {
                for piece in pieces.touching(from, to) {
                    if piece.cover.is_some() || piece.start < start || piece.end > end {
                        continue;
                    }
                    if piece.again.is_empty() {
                        summary.sample = piece.first.map(|first| ack.segment.time - first.time);
                        // Only the first block is certainly new: others may have been reported
                        // late.
                        if k == 0 && piece.end < ack.highest {
                            summary.late.push(Late {
                                octets: piece.end - piece.start,
                                beyond: ack.highest - piece.end,
                                by: ack.hole.map(|hole| ack.segment.time - hole),
                            });
                        }
                    }
                    piece.cover = Some(Cover {
                        time: ack.segment.time,
                        // QUIC acknowledges packets, not octets.
                        echo: ack
                            .segment
                            .quic
                            .and(ack.segment.stamps)
                            .map(|stamps| stamps.1),
                        reaches_beyond: false,
                        is_at_once: false,
                    });
                }
            }
            fresh += 1;
            self.sacked.add(start, end);
            self.sacked_top = self.sacked_top.max(end);
            summary.is_sack_new = true;
        }
        // Blocks are in the order of the last arrivals (RFC 2018 §4): if all are new, older ones
        // may have found no room.
        let room = MOST_BLOCKS - usize::from(ack.segment.stamps.is_some());
        if blocks.len() >= room {
            self.full = self.sacked_top;
            if fresh + usize::from(is_repeated) == blocks.len() {
                self.exceeded = self.sacked_top;
            }
        }
    }

    /// Processes the advance of the cumulative acknowledgment. Returns the covered pieces that had been
    /// retransmitted.
    pub(crate) fn advance(
        &self,
        ack: &Ack<'_>,
        pieces: &mut Pieces,
        summary: &mut AckSummary,
    ) -> Vec<Piece> {
        let time = ack.segment.time;
        let echo = ack.segment.stamps.map(|stamps| stamps.1);
        // Before the first acknowledgment, the gaps of the capture are unknown.
        let is_first = self.una == UNKNOWN;
        let mut at = self.una;
        let is_at_once = !self.has_sack && ack.una - self.una > 3 * ack.mss;
        let mut late = Late {
            octets: 0,
            beyond: 0,
            by: ack.hole.map(|hole| time - hole),
        };
        // When the gap at the front was filled.
        let mut filled: Option<Nanos> = None;
        let mut newest = None;
        let mut again = Vec::new();
        // The newest data that was not SACKed, and its time.
        let mut beyond: Option<(i64, Nanos)> = None;
        while let Some(mut piece) = pieces.take_below(ack.una) {
            if at < piece.start && !is_first {
                summary.holes += 1;
                summary.unseen_octets += piece.start - at;
            }
            let is_front = piece.start <= self.una;
            at = piece.end;
            if piece.again.is_empty() {
                // Later data had arrived before it.
                let is_reported = self.room(piece.start) == Room::Enough;
                let is_late =
                    is_reported && piece.cover.is_none() && piece.end <= self.sacked_before;
                summary.late_packets += u64::from(is_late);
                if piece.cover.is_none() {
                    if is_reported && piece.end < ack.highest {
                        late.octets += piece.end - piece.start;
                        late.beyond = late.beyond.max(ack.highest - piece.end);
                    }
                    newest = piece.first.map(|first| time - first.time);
                    beyond = piece.first.map(|first| (piece.start, first.time));
                }
                pieces.reuse(piece);
                continue;
            }
            piece.cover.get_or_insert(Cover {
                time,
                echo: echo.filter(|_| is_front || ack.segment.quic.is_some()),
                reaches_beyond: false,
                is_at_once: is_at_once
                    && !is_front
                    && filled
                        .is_some_and(|filled| piece.again.iter().all(|copy| copy.time >= filled)),
            });
            if is_front {
                filled = piece.again.last().map(|copy| copy.time);
            }
            again.push(*piece);
        }
        // If a retransmission filled the gap, it reveals arrivals that the receiver had not
        // reported.
        let is_once = again.is_empty();
        let is_late = late.octets > 0 && is_once;
        summary.late.extend(is_late.then_some(late));
        // The FIN's number is not data, and the FIN may be missing from the capture.
        let is_fin = ack.una == at + 1 && at >= ack.next;
        if at < ack.una && !is_fin && !is_first && ack.has_data {
            summary.holes += 1;
            summary.unseen_octets += ack.una - at;
        }
        let is_clean = is_once && summary.holes == 0;
        summary.sample = newest.filter(|_| is_clean).or(summary.sample);
        for piece in &mut again {
            self.see_beyond(piece, time, beyond);
        }
        again
    }

    /// Marks whether data `beyond` the piece arrived after the piece, as no earlier acknowledgment
    /// covered it.
    #[cold]
    fn see_beyond(&self, piece: &mut Piece, time: Nanos, beyond: Option<(i64, Nanos)>) {
        let last = piece.latest().map_or(time, |copy| copy.time);
        // Without duplicate acknowledgments, no data had arrived above the gap.
        let is_quiet = self
            .last_duplicate
            .is_none_or(|duplicate| piece.first.is_some_and(|first| duplicate < first.time));
        if let (Some((start, sent)), Some(cover)) = (beyond, piece.cover.as_mut()) {
            cover.reaches_beyond =
                cover.time == time && start >= piece.end && sent < last && is_quiet;
        }
    }
}
