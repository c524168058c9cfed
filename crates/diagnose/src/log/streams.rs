//! The data of one end: streams mapped to one sequence of octets, in the order of first
//! transmission.

use std::collections::BTreeMap;

/// Maximum number of streams that are remembered; beyond it the one with the lowest number is
/// dropped.
const MOST_STREAMS: usize = 1 << 14;
/// Maximum number of pieces of a stream; beyond it the oldest is dropped.
const MOST_PIECES: usize = 1 << 14;
/// A longer gap is damaged: no window is as large.
const LONGEST: u64 = 1 << 30;
/// Octets of a datagram (RFC 9000 §18.2): a longer frame is damaged.
const LONGEST_FRAME: u64 = 65_527;
/// The largest offset (RFC 9000 §4.5).
const LAST_OFFSET: u64 = (1 << 62) - 1;
/// Maximum number of ranges of a packet: senders do not join as many lost pieces.
const MOST_RANGES: usize = 256;
/// A stream is active if it sent within this many packets with data.
const RECENT: u64 = 32;

/// Octets of a stream that were placed together.
#[derive(Debug, Clone, Copy)]
struct Piece {
    offset: u64,
    length: u64,
    /// Its first octet in the sequence.
    at: i64,
}

#[derive(Debug, Default)]
struct Stream {
    /// In the order of offsets.
    pieces: Vec<Piece>,
    /// One past the highest octet.
    highest: u64,
    is_finished: bool,
    /// The packet that last carried its data.
    used: u64,
    /// The limit of flow control.
    limit: Option<u64>,
}

/// The streams of one end, and the limits that the other end sets.
#[derive(Debug, Default)]
pub(super) struct Streams {
    by_id: BTreeMap<u64, Stream>,
    /// One past the last octet of the sequence.
    pub(super) next: i64,
    /// Octets that count against the limit on all streams.
    consumed: u64,
    /// The beginning of the connection was logged.
    pub(super) is_from_start: bool,
    /// The limit on all streams.
    max_data: Option<u64>,
    /// Initial limits: of streams that the other end opened, that this end opened, and that are
    /// unidirectional.
    initial: [Option<u64>; 3],
    /// Packets with data.
    packets: u64,
}

impl Streams {
    /// Begins a packet with data.
    pub(super) fn begin(&mut self) {
        self.packets += 1;
    }

    /// Places the data of a frame. Appends its ranges in the sequence to `ranges`.
    pub(super) fn place(
        &mut self,
        id: u64,
        (offset, length): (u64, u64),
        is_last: bool,
        ranges: &mut Vec<(i64, i64)>,
    ) {
        if length > LONGEST_FRAME || offset > LAST_OFFSET {
            return;
        }
        if !self.by_id.contains_key(&id) && self.by_id.len() >= MOST_STREAMS {
            self.by_id.pop_first();
        }
        let is_from_start = self.is_from_start;
        let stream = self.by_id.entry(id).or_insert_with(|| Stream {
            highest: if is_from_start { 0 } else { offset },
            ..Stream::default()
        });
        stream.used = self.packets;
        stream.is_finished |= is_last;
        let end = offset + length;
        if offset < stream.highest {
            stream.find(offset, end.min(stream.highest), ranges);
        }
        if end <= stream.highest {
            return;
        }
        // Data that was not logged comes before it in the sequence.
        let missing = offset.saturating_sub(stream.highest);
        let missing = if missing > LONGEST { 0 } else { missing };
        let from = offset.max(stream.highest);
        for (offset, length, is_present) in
            [(from - missing, missing, false), (from, end - from, true)]
        {
            if length == 0 {
                continue;
            }
            let step = i64::try_from(length).unwrap_or(0);
            stream.add(Piece {
                offset,
                length,
                at: self.next,
            });
            if is_present {
                push(ranges, self.next, self.next + step);
            }
            self.next += step;
        }
        self.consumed = self.consumed.saturating_add(end - stream.highest);
        stream.highest = end;
    }

    /// Ends a stream.
    pub(super) fn finish(&mut self, id: u64) {
        if let Some(stream) = self.by_id.get_mut(&id) {
            stream.is_finished = true;
        }
    }

    /// Raises the limit on all streams.
    pub(super) fn permit(&mut self, maximum: u64) {
        self.max_data = Some(self.max_data.unwrap_or(0).max(maximum));
    }

    /// Raises the limit of a stream.
    pub(super) fn permit_stream(&mut self, id: u64, maximum: u64) {
        if let Some(stream) = self.by_id.get_mut(&id) {
            stream.limit = Some(stream.limit.unwrap_or(0).max(maximum));
        }
    }

    /// Sets initial limits: of streams that the other end opened, that this end opened, and that
    /// are unidirectional.
    pub(super) fn permit_initially(&mut self, limits: [Option<u64>; 3]) {
        for (limit, known) in limits.into_iter().zip(&mut self.initial) {
            *known = limit.or(*known);
        }
    }

    /// The last octet that flow control permits, if it is known. `opener` is the lowest bit of the
    /// streams that this end opens.
    pub(super) fn edge(&self, opener: u64) -> Option<i64> {
        let all = self.max_data.filter(|_| self.is_from_start);
        let all = all.map(|limit| limit.saturating_sub(self.consumed));
        let active = self
            .by_id
            .iter()
            .filter(|(_, stream)| !stream.is_finished && stream.used + RECENT > self.packets);
        // A stream without a known limit is limited by that on all streams alone.
        let mut streams = Some(0_u64);
        let mut has_active = false;
        for (id, stream) in active {
            let kind = match (id & 2, id & 1 == opener) {
                (2, _) => 2,
                (_, true) => 1,
                (_, false) => 0,
            };
            has_active = true;
            let limit = stream.limit.max(self.initial[kind]);
            let room = limit.map(|limit| limit.saturating_sub(stream.highest));
            streams = streams
                .zip(room)
                .map(|(sum, room)| sum.saturating_add(room));
        }
        let streams = streams.filter(|_| has_active);
        let room = match (all, streams) {
            (Some(all), Some(streams)) => all.min(streams),
            (one, other) => one.or(other)?,
        };
        Some(
            self.next
                + i64::try_from(room)
                    .unwrap_or(i64::MAX / 4)
                    .min(i64::MAX / 4),
        )
    }
}

impl Stream {
    fn add(&mut self, piece: Piece) {
        if let Some(last) = self.pieces.last_mut()
            && last.offset + last.length == piece.offset
            && i64::try_from(last.length).is_ok_and(|length| last.at + length == piece.at)
        {
            last.length += piece.length;
            return;
        }
        if self.pieces.len() >= MOST_PIECES {
            self.pieces.drain(..MOST_PIECES / 2);
        }
        self.pieces.push(piece);
    }

    /// Appends the ranges of octets that were placed before.
    fn find(&self, offset: u64, end: u64, ranges: &mut Vec<(i64, i64)>) {
        let first = self
            .pieces
            .partition_point(|piece| piece.offset + piece.length <= offset);
        for piece in &self.pieces[first..] {
            if piece.offset >= end || ranges.len() >= MOST_RANGES {
                break;
            }
            let from = offset.max(piece.offset);
            let to = end.min(piece.offset + piece.length);
            let start = piece.at + i64::try_from(from - piece.offset).unwrap_or(0);
            let length = i64::try_from(to - from).unwrap_or(0);
            push(ranges, start, start + length);
        }
    }
}

/// Appends a range, or extends the last one.
fn push(ranges: &mut Vec<(i64, i64)>, start: i64, end: i64) {
    match ranges.last_mut() {
        Some(last) if last.1 == start => last.1 = end,
        _ if end > start => ranges.push((start, end)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_start() -> Streams {
        Streams {
            is_from_start: true,
            ..Streams::default()
        }
    }

    fn placed(streams: &mut Streams, id: u64, offset: u64, length: u64) -> Vec<(i64, i64)> {
        let mut ranges = Vec::new();
        streams.begin();
        streams.place(id, (offset, length), false, &mut ranges);
        ranges
    }

    #[test]
    fn streams_share_a_sequence_and_retransmissions_keep_their_place() {
        let mut streams = from_start();
        assert_eq!(placed(&mut streams, 0, 0, 100), [(0, 100)]);
        assert_eq!(placed(&mut streams, 4, 0, 50), [(100, 150)]);
        assert_eq!(placed(&mut streams, 0, 100, 100), [(150, 250)]);
        // One frame repeats parts of two frames, and continues.
        assert_eq!(placed(&mut streams, 0, 50, 200), [(50, 100), (150, 300)]);
        // Missing data keeps its place.
        assert_eq!(placed(&mut streams, 8, 100, 100), [(400, 500)]);
        assert_eq!(placed(&mut streams, 8, 0, 100), [(300, 400)]);
    }

    #[test]
    fn a_packet_that_repeats_many_pieces_has_few_ranges() {
        let mut streams = from_start();
        // The data of two streams in turns, so that no two pieces are adjacent in the sequence.
        for number in 0..2_000 {
            placed(&mut streams, 0, number * 10, 10);
            placed(&mut streams, 4, number * 10, 10);
        }
        assert_eq!(placed(&mut streams, 0, 0, 20_000).len(), MOST_RANGES);
        for (offset, length) in [(0, 70_000), (1 << 62, 10)] {
            assert_eq!(placed(&mut streams, 8, offset, length), []);
        }
    }

    #[test]
    fn the_edge_is_the_least_of_both_limits() {
        let mut streams = from_start();
        assert_eq!(streams.edge(0), None);
        streams.permit(1000);
        assert_eq!(streams.edge(0), Some(1000));
        streams.permit_initially([None, Some(300), None]);
        placed(&mut streams, 0, 0, 100);
        assert_eq!(streams.edge(0), Some(300));
        streams.permit_stream(0, 2000);
        assert_eq!(streams.edge(0), Some(1000));
    }
}
