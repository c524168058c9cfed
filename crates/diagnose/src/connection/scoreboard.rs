//! The scoreboard of one direction: the data that its sender sent, and its acknowledgments at the
//! capture point.

use super::{
    acknowledgments::{Ack, AckSummary, Acknowledged, Late},
    identifications::Identifications,
    outstanding::{Gaps, MOST_TOUCHED, Pieces, Settling},
    path_delays::Delays,
    plausibility::Leap,
    ranges::Octets,
    sender_view::{DUP_THRESH, FURTHEST, UNKNOWN},
    transmission::{Entry, History, Marked, Repeated, Suspect, Transmission, copy_of},
};
use crate::{
    retransmission::{
        ledger::Parts,
        piece::{Copy, Filler, Piece, SOON, is_reordered},
    },
    segment::{FIN, SYN, Segment, Sequence},
    time::Nanos,
};

/// The data sent, and its acknowledgments.
#[derive(Debug, Default)]
pub(crate) struct Scoreboard {
    sequence: Option<Sequence>,
    /// One past the highest octet sent.
    pub(crate) next: i64,
    /// One past the highest octet that passed. Acknowledgments show others that were not captured.
    passed: i64,
    /// The octet of a probe of a closed window.
    pub(crate) probe: Option<i64>,
    /// `next` is after a FIN.
    pub(crate) has_fin: bool,
    pub(crate) pieces: Pieces,
    pub(crate) acknowledged: Acknowledged,
    pub(crate) settling: Settling,
    gaps: Gaps,
    pub(crate) ids: Identifications,
    pub(crate) octets: Octets,
    /// Octets of the current segment that were captured for the first time.
    first_captured: i64,
    /// Leaps of the data, and of its acknowledgments.
    leaps: [Leap; 2],
    /// The largest window of the receiver.
    window: i64,
}

impl Scoreboard {
    /// Ends the connection.
    pub(crate) fn finish(&mut self) {
        let una = self.acknowledged.una;
        self.acknowledged.sack_check.finish(una);
    }

    /// One past the highest octet that has arrived.
    pub(crate) fn top(&self, una: i64) -> i64 {
        let sacked = self.acknowledged.sacked.end();
        sacked.map_or(una, |end| end.max(una))
    }

    /// Octets of data, from the first to the last that was sent or acknowledged.
    pub(crate) fn octets(&self) -> i64 {
        (self.next - i64::from(self.has_fin)).max(0)
    }

    /// Octets of data that were captured, each counted once.
    pub(crate) fn captured(&self) -> i64 {
        self.octets.captured().min(self.octets())
    }

    /// The number of the first octet of data, once it is known.
    pub(crate) fn first(&self) -> Option<u32> {
        self.sequence.map(Sequence::first)
    }

    /// The distance of `number` from the first octet of data that is nearest to `near`.
    pub(crate) fn unwrap(&self, number: u32, near: i64) -> Option<i64> {
        self.sequence.map(|sequence| sequence.unwrap(number, near))
    }

    /// Opens this direction with a SYN: the first octet has the next number.
    #[cold]
    pub(crate) fn open(&mut self, segment: &Segment) {
        if self.sequence.is_none() {
            self.sequence = Some(Sequence::new(segment.seq.wrapping_add(1)));
            self.next = -1;
            self.acknowledged.sack_check.begin();
        }
    }

    /// Opens this direction with a SYN-ACK other than the first. Only SYN-ACKs have passed.
    #[cold]
    pub(crate) fn open_again(&mut self, segment: &Segment) {
        *self = Self {
            ids: std::mem::take(&mut self.ids),
            window: self.window,
            ..Self::default()
        };
        self.open(segment);
        let sent = Transmission {
            segment,
            start: -1,
            end: 0,
        };
        self.insert(sent.start, sent.end, Some(sent.copy()), None);
        self.pass(&sent);
    }

    /// The range of a segment, unless it is far from all others.
    pub(crate) fn range<'a>(&mut self, segment: &'a Segment) -> Option<Transmission<'a>> {
        // A SYN comes before the first octet of data, a FIN after the last.
        let start = self.begin(segment).unwrap(segment.seq, self.next);
        let controls = i64::from(segment.has(SYN)) + i64::from(segment.has(FIN));
        let end = start + i64::from(segment.payload) + controls;
        let is_plausible =
            self.next - end <= FURTHEST && self.leaps[0].is_accepted(start, self.next, self.window);
        if is_plausible {
            let data = start + i64::from(segment.has(SYN));
            let captured = self.octets.captured();
            self.octets
                .send(data, data + i64::from(segment.payload), self.next);
            self.first_captured = self.octets.captured() - captured;
        }
        is_plausible.then_some(Transmission {
            segment,
            start,
            end,
        })
    }

    /// The origin of the sequence numbers. A capture that begins in mid-flow may start with later
    /// segments.
    fn begin(&mut self, segment: &Segment) -> Sequence {
        if let Some(sequence) = self.sequence {
            return sequence;
        }
        let sequence = Sequence::new(segment.seq);
        self.sequence = Some(sequence);
        let is_bare = segment.payload == 0;
        self.gaps.note(UNKNOWN, 0, &copy_of(segment), is_bare);
        sequence
    }

    /// The state of a segment's data.
    pub(crate) fn history(&self, sent: &Transmission<'_>) -> History {
        let piece = self.pieces.at(sent.start);
        History {
            next: self.next,
            latest: piece.and_then(Piece::latest_sent).map(|latest| latest.time),
            is_repeated: piece.is_some_and(|piece| !piece.again.is_empty()),
            sacked_above: self.acknowledged.sacked.octets_above(sent.end),
            has_sack: self.acknowledged.has_sack,
        }
    }

    /// When the original of the octet passed.
    pub(crate) fn sent_at(&self, at: i64) -> Option<Nanos> {
        let original = self.pieces.at(at).and_then(|piece| piece.first);
        original.map(|copy| copy.time)
    }

    /// When the original of the octet passed or, if it was not captured, the packet after its gap.
    pub(crate) fn left_at(&self, at: i64) -> Option<Nanos> {
        self.sent_at(at)
            .or(self.gaps.at(at).map(|gap| gap.packet.time))
    }

    /// Processes a packet without data: it has the number of the next octet (RFC 9293 §3.10.7.4),
    /// so that all data below had been sent.
    #[cold]
    pub(crate) fn see_bare(&mut self, sent: &Transmission<'_>) {
        if sent.start > self.next {
            self.gaps.note(self.next, sent.start, &sent.copy(), true);
            self.reach(sent.start);
        }
    }

    /// Records that data up to `next` was sent but not captured.
    #[cold]
    fn reach(&mut self, next: i64) {
        self.octets.skip(self.next, next);
        // If a single octet is missing, it is more likely the FIN than a segment.
        self.has_fin = next == self.next + 1 && !self.has_fin;
        self.next = next;
    }

    /// Enters a segment, unless it is a retransmission, which [`Self::mark`] enters. `timer` is the
    /// shortest timer that may have sent the segment.
    pub(crate) fn enter(
        &mut self,
        sent: &Transmission<'_>,
        timer: Option<Nanos>,
        mss: i64,
        delays: Delays,
    ) -> Entry {
        let (start, end, copy) = (sent.start, sent.end, sent.copy());
        let is_tail = timer.is_some_and(|timer| self.is_behind_lost_tail(start, mss, timer));
        if start > self.next {
            self.gaps.note(self.next, start, &copy, false);
        }
        if start >= self.next && !is_tail {
            self.acknowledged.sack_check.send(start, end);
            self.insert(start, end, Some(copy), None);
            return Entry::New;
        }
        self.enter_again(sent, is_tail, copy, delays)
    }

    /// Enters a segment that does not continue the data.
    #[cold]
    fn enter_again(
        &mut self,
        sent: &Transmission<'_>,
        is_tail: bool,
        copy: Copy,
        delays: Delays,
    ) -> Entry {
        let (start, end) = (sent.start, sent.end);
        if self.repeats_probe(start, end) {
            self.send_probed(start, copy);
            self.insert(self.next, end, Some(copy), None);
            return Entry::New;
        }
        if self.is_behind_its_acknowledgment(sent) {
            self.insert(self.next, end, Some(copy), None);
            return Entry::New;
        }
        // A tail lost before the capture point has no captured copy.
        let known = if start >= self.next { end } else { self.next };
        let old = (start.max(self.acknowledged.una), end.min(known));
        if old.0 < old.1 {
            for piece in self.pieces.join(old.0, old.1) {
                if !piece.again.is_empty() {
                    self.settling.give_up(piece);
                }
            }
        }
        let holes = self.holes(old.0, old.1);
        let is_acknowledged = start < self.acknowledged.una;
        let hole_octets: i64 = holes.iter().map(|(from, to)| to - from).sum();
        let is_filler = !is_acknowledged && hole_octets == old.1 - old.0;
        let filled = holes.first().copied().unwrap_or(old);
        let candidate = self.filler(&copy, delays);
        if holes.is_empty()
            && let Some(late) = self.take_late_original(sent, &candidate)
        {
            return Entry::Late(late);
        }
        let gap = self.gaps.at(filled.0);
        if is_filler && gap.is_some_and(|gap| is_reordered(&candidate, gap)) {
            let late = Late {
                octets: filled.1 - filled.0,
                beyond: self.next - filled.1,
                by: gap.map(|gap| (copy.time - gap.packet.time).max(0)),
            };
            for (from, to) in holes {
                self.insert(from, to, Some(copy), None);
            }
            self.insert(self.next.max(start), end, Some(copy), None);
            return Entry::Late(late);
        }
        Entry::Retransmission(Repeated {
            old,
            holes,
            known,
            is_acknowledged,
            ends_tail: is_tail && start > self.next,
        })
    }

    /// Whether data passed just after its acknowledgment, for the first time: the two directions
    /// were captured with different clocks or queues.
    fn is_behind_its_acknowledgment(&self, sent: &Transmission<'_>) -> bool {
        let is_new = self.first_captured > 0 && self.first_captured == sent.end - sent.start;
        is_new
            && self.acknowledged.advanced.is_some_and(|(time, before)| {
                sent.segment.time - time <= SOON
                    && (before..self.acknowledged.una).contains(&sent.start)
            })
    }

    /// Whether a segment of new data begins with the octet of a probe, which the receiver discarded
    /// (RFC 9293 §3.8.6.1).
    fn repeats_probe(&self, start: i64, end: i64) -> bool {
        let is_probed = self.probe == Some(start) && self.acknowledged.una <= start;
        is_probed && self.next == start + 1 && end > self.next
    }

    fn send_probed(&mut self, start: i64, copy: Copy) {
        for piece in self.pieces.within(start, start + 1) {
            if piece.again.is_empty() {
                piece.first = Some(copy);
            } else {
                piece.add(copy);
            }
        }
    }

    /// Enters a retransmission with its number.
    #[cold]
    pub(crate) fn mark(
        &mut self,
        sent: &Transmission<'_>,
        repeated: Repeated,
        number: u64,
    ) -> Marked {
        let copy = sent.copy();
        let again = Copy {
            retransmission: Some(number),
            ..copy
        };
        let Repeated { old, holes, .. } = repeated;
        let earlier = self.pieces.at(old.0).and_then(Piece::latest);
        let mut marked = Marked {
            parts: Parts {
                pieces: u32::from(repeated.is_acknowledged),
                is_beyond: false,
            },
            earlier: earlier.map(|copy| copy.number),
            suspects: Vec::new(),
        };
        let overtaken =
            self.acknowledged.sacked.octets_above(sent.end) > 0 || self.acknowledged.duplicates > 0;
        for piece in self.pieces.within(old.0, old.1) {
            if piece.again.is_empty() {
                marked.suspects.push(Suspect {
                    start: piece.start,
                    end: piece.end,
                    first: piece.first.map(|first| first.time),
                    gap: None,
                });
            }
            piece.overtaken |= piece.again.is_empty() && overtaken;
            piece.room = piece.room.max(self.acknowledged.room(piece.start));
            if piece.add(again) {
                marked.parts.pieces += 1;
            } else {
                marked.parts.is_beyond = true;
            }
        }
        for (start, end) in holes {
            marked.suspects.push(Suspect {
                start,
                end,
                first: None,
                gap: self.gaps.at(start).map(|gap| gap.packet.time),
            });
            marked.parts.pieces += 1;
            self.insert(start, end, None, Some(again));
        }
        self.insert(repeated.known.max(sent.start), sent.end, Some(copy), None);
        marked
    }

    /// Records a SYN as sent.
    pub(crate) fn pass(&mut self, sent: &Transmission<'_>) {
        self.next = self.next.max(sent.end);
        self.passed = self.passed.max(sent.end);
    }

    /// Records the segment as sent.
    pub(crate) fn move_to(&mut self, sent: &Transmission<'_>) {
        self.passed = self.passed.max(sent.end);
        if sent.end > self.next {
            self.next = sent.end;
            self.has_fin = sent.segment.has(FIN);
        }
    }

    /// Whether a segment follows without a gap in the data but with a gap in the identifications:
    /// the original was lost before the capture point.
    fn is_behind_lost_tail(&self, start: i64, mss: i64, timer: Nanos) -> bool {
        // A probe of a longer tail retransmits its last segment: the segments before it are missing
        // as well, as are packets that the capture lost.
        let unseen = (start - self.passed + mss - 1) / mss;
        start >= self.next && i64::from(self.ids.missing(timer)) > unseen
    }

    /// The parts of a range that were not captured.
    fn holes(&mut self, start: i64, end: i64) -> Vec<(i64, i64)> {
        let mut holes = Vec::new();
        let mut at = start;
        for piece in self.pieces.touching(start, end) {
            if at < piece.start {
                holes.push((at, piece.start));
            }
            at = at.max(piece.end);
        }
        if at < end {
            holes.push((at, end));
        }
        holes
    }

    fn filler(&self, copy: &Copy, delays: Delays) -> Filler {
        Filler {
            copy: *copy,
            ids_grow: self.ids.grow(),
            round_trip: delays.round_trip(),
            is_missed: self.acknowledged.duplicates >= DUP_THRESH,
        }
    }

    /// Finds the originals that pass after their retransmission, which had filled their gap.
    fn take_late_original(&mut self, sent: &Transmission<'_>, filler: &Filler) -> Option<Late> {
        let (start, end) = (sent.start, sent.end);
        let mut octets = 0;
        let mut since = None;
        let mut see = |piece: &Piece| {
            let whole = start <= piece.start && piece.end <= end && piece.is_original(filler);
            octets += if whole { piece.end - piece.start } else { 0 };
            since = since.or(piece.gap.as_ref().map(|gap| gap.packet.time));
        };
        self.settling
            .touching(start, end)
            .take(MOST_TOUCHED)
            .for_each(|piece| see(piece));
        self.pieces
            .touching(start, end)
            .for_each(|piece| see(piece));
        if octets < end - start {
            return None;
        }
        let settled = self.settling.touching(start, end).take(MOST_TOUCHED);
        for piece in settled.chain(self.pieces.touching(start, end)) {
            piece.add_late_original(sent.copy());
        }
        Some(Late {
            octets,
            beyond: (self.next - end).max(0),
            by: since.map(|gap| (sent.segment.time - gap).max(0)),
        })
    }

    fn insert(&mut self, start: i64, end: i64, first: Option<Copy>, again: Option<Copy>) {
        if end <= start {
            return;
        }
        let piece = Piece {
            start,
            end,
            first,
            again: again.into_iter().collect(),
            gap: again.and_then(|_| self.gaps.at(start).copied().map(Box::new)),
            overtaken: again.is_some(),
            ..Piece::default()
        };
        if let Some(piece) = self.pieces.insert(piece)
            && !piece.again.is_empty()
        {
            self.settling.give_up(piece);
        }
    }

    /// The distance of an acknowledgment number, unless it is far from all others.
    pub(crate) fn acknowledgment(&mut self, number: u32) -> Option<i64> {
        let sequence = *self.sequence.get_or_insert(Sequence::new(number));
        let near = if self.acknowledged.una == UNKNOWN {
            self.next
        } else {
            self.acknowledged.una
        };
        let una = sequence.unwrap(number, near);
        let is_plausible = near - una <= FURTHEST
            && self.leaps[1].is_accepted(una, near.max(self.next), self.window);
        is_plausible.then_some(una)
    }

    /// Processes a segment of the receiver that acknowledges data.
    pub(crate) fn acknowledge(&mut self, ack: &Ack<'_>) -> AckSummary {
        let Some(sequence) = self.sequence else {
            return AckSummary::default();
        };
        let (segment, una) = (ack.segment, ack.una);
        self.acknowledged.begin(segment.time);
        // Without its scale, a window is at most this large (RFC 7323 §2.3).
        let largest = i64::from(segment.window) << 14;
        let window = ack.window.unwrap_or(largest);
        self.acknowledged.sack_check.announce(una + window);
        self.window = self.window.max(ack.window.unwrap_or(0));
        let is_pure = segment.payload == 0 && !segment.has(SYN | FIN);
        let mut summary = AckSummary {
            advances: una > self.acknowledged.una,
            is_duplicate: una == self.acknowledged.una && is_pure && self.next > una,
            ..AckSummary::default()
        };
        if segment.block_count > 0 {
            let (pieces, settling) = (&mut self.pieces, &mut self.settling);
            self.acknowledged
                .selective(ack, sequence, pieces, settling, &mut summary);
        }
        if summary.advances {
            self.advance(ack, &mut summary);
        } else if summary.is_duplicate {
            self.acknowledged.repeat(segment.time);
        }
        summary
    }

    /// Advances the cumulative acknowledgment.
    fn advance(&mut self, ack: &Ack<'_>, summary: &mut AckSummary) {
        for piece in self.acknowledged.advance(ack, &mut self.pieces, summary) {
            self.settling.push(piece, ack.segment.time, ack.round_trip);
        }
        self.gaps.acknowledge(ack.una);
        self.acknowledged.move_to(ack.una, ack.segment.time);
        if ack.una > self.next {
            self.reach(ack.una);
        }
    }
}
