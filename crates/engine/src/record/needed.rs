//! Classification of retransmissions: one is needed if no earlier transmission of some of its octets
//! arrived. Octets that the receiver lacked and refused count as lost.

use std::collections::BTreeMap;

use super::packet_log::PacketRow;

/// The outcome of the transmissions of some octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sent {
    /// All were dropped or lost.
    Lost,
    /// None has arrived, and one was in flight at the end of the run.
    OnItsWay,
    /// One has arrived.
    Arrived,
}

impl Sent {
    const fn of(row: &PacketRow) -> Self {
        match (row.received, row.lost) {
            (Some(_), _) => Self::Arrived,
            _ if row.rebuilt => Self::Arrived,
            (None, Some(_)) => Self::Lost,
            (None, None) => Self::OnItsWay,
        }
    }
}

/// Octets of one direction of a connection, by the first of each range: one past the last, and the
/// outcome. Ranges do not overlap.
#[derive(Debug, Default)]
struct Octets(BTreeMap<u64, (u64, Sent)>);

impl Octets {
    /// Splits the range across `at`, if any.
    fn cut(&mut self, at: u64) {
        if let Some((_, (end, sent))) = self.0.range_mut(..at).next_back()
            && *end > at
        {
            let rest = (*end, *sent);
            *end = at;
            self.0.insert(at, rest);
        }
    }

    /// Returns the minimum of the outcomes of the octets `from..to`; `None` if none of them was
    /// sent before.
    fn least(&self, from: u64, to: u64) -> Option<Sent> {
        let before = self.0.range(..from).next_back();
        let across = before.filter(|(_, (end, _))| *end > from);
        let within = self.0.range(from..to);
        across
            .into_iter()
            .chain(within)
            .map(|(_, (_, sent))| *sent)
            .min()
    }

    /// Records a further transmission of the octets `from..to`, the last `refused` of which the
    /// receiver refused.
    fn note_packet(&mut self, (from, to): (u64, u64), sent: Sent, refused: u64) {
        let kept = to.saturating_sub(refused).max(from);
        self.note(from, kept, sent);
        self.note(kept, to, Sent::Lost);
    }

    /// Records a further transmission of the octets `from..to` with this outcome.
    fn note(&mut self, from: u64, to: u64, sent: Sent) {
        self.cut(from);
        self.cut(to);
        for (_, (_, before)) in self.0.range_mut(from..to) {
            *before = sent.max(*before);
        }
    }

    /// Records the first transmission of the octets `from..to`, and discards earlier octets with
    /// these numbers.
    ///
    /// Adjacent ranges with the same outcome are merged: a transfer without loss takes no more
    /// memory than a packet.
    fn begin(&mut self, from: u64, to: u64, sent: Sent) {
        self.cut(from);
        self.cut(to);
        while let Some((&start, _)) = self.0.range(from..to).next() {
            self.0.remove(&start);
        }
        if let Some((_, (end, before))) = self.0.range_mut(..from).next_back()
            && (*end, *before) == (from, sent)
        {
            *end = to;
        } else {
            self.0.insert(from, (to, sent));
        }
    }
}

/// Decides for the packets of one end of a connection, in order of sending, whether each was
/// needed.
#[derive(Debug, Default)]
pub(super) struct Judge(Octets);

impl Judge {
    /// Returns whether the next packet was needed. `None` if it was no retransmission of data or of
    /// a SYN, or if the run ended too early to decide.
    pub(super) fn next(&mut self, row: &PacketRow) -> Option<bool> {
        match self.before(row)? {
            Sent::Lost => Some(true),
            Sent::OnItsWay => None,
            Sent::Arrived => Some(false),
        }
    }

    /// Whether some of a packet's octets were sent before.
    pub(super) fn has_left(&self, row: &PacketRow) -> bool {
        let (from, to) = (row.sequence, row.sequence + u64::from(row.payload));
        from < to && self.0.least(from, to).is_some()
    }

    /// Returns the minimum of the earlier outcomes of a retransmission's octets.
    fn before(&mut self, row: &PacketRow) -> Option<Sent> {
        // The number of a SYN precedes the first octet.
        if row.payload == 0 && row.sequence > 0 {
            return None;
        }
        let (from, to) = (row.sequence, row.sequence + u64::from(row.payload.max(1)));
        let sent = Sent::of(row);
        if !row.retransmission {
            self.0
                .begin(from, to, if row.refused > 0 { Sent::Lost } else { sent });
            if row.refused > 0 {
                self.0.note_packet((from, to), sent, row.refused.into());
            }
            return None;
        }
        let before = self.0.least(from, to);
        self.0.note_packet((from, to), sent, row.refused.into());
        before
    }
}

/// Returns for each of `rows`, all packets of one end of a connection in order of sending, whether
/// it was needed.
pub(super) fn needed(rows: &[PacketRow]) -> Vec<Option<bool>> {
    if !rows.iter().any(|row| row.retransmission) {
        return vec![None; rows.len()];
    }
    let mut judge = Judge::default();
    rows.iter().map(|row| judge.next(row)).collect()
}

#[cfg(test)]
mod tests {
    use anabranch_core::{
        packet::{ConnectionId, Direction, FlowId},
        trace::{ElementId, Fate},
        units::Instant,
    };

    use super::*;

    /// Octets `from..to`, a retransmission or not: `+` arrived, `-` was lost, `?` is in flight, `*`
    /// was lost and rebuilt, `!` arrived and was refused.
    fn row(from: u64, to: u64, again: bool, fate: char) -> PacketRow {
        PacketRow {
            flow: FlowId(0),
            connection: ConnectionId(0),
            direction: Direction::Forward,
            index: 0,
            sequence: from,
            payload: u32::try_from(to - from).unwrap(),
            size: 0,
            retransmission: again,
            cause: None,
            sent: Instant::START,
            received: matches!(fate, '+' | '!').then_some(Instant::START),
            lost: matches!(fate, '-' | '*').then_some((ElementId(0), Fate::Lost)),
            rebuilt: fate == '*',
            refused: if fate == '!' {
                u32::try_from(to - from).unwrap()
            } else {
                0
            },
            queue_delay: None,
            reordered: false,
            extent: 0,
        }
    }

    fn of(rows: &[(u64, u64, bool, char)]) -> Vec<Option<bool>> {
        let rows: Vec<PacketRow> = rows.iter().map(|r| row(r.0, r.1, r.2, r.3)).collect();
        needed(&rows)
    }

    /// Detects a judge that checks only the last transmission, or only the first.
    #[test]
    fn an_arrived_earlier_transmission_makes_a_retransmission_spurious() {
        let (again, once) = (true, false);
        assert_eq!(
            of(&[(0, 10, once, '-'), (0, 10, again, '+')])[1],
            Some(true)
        );
        assert_eq!(
            of(&[(0, 10, once, '+'), (0, 10, again, '+')])[1],
            Some(false)
        );
        let thrice = of(&[(0, 10, once, '+'), (0, 10, again, '-'), (0, 10, again, '+')]);
        assert_eq!(thrice, [None, Some(false), Some(false)]);
        let thrice = of(&[(0, 10, once, '-'), (0, 10, again, '+'), (0, 10, again, '+')]);
        assert_eq!(thrice, [None, Some(true), Some(false)]);
        let thrice = of(&[(0, 10, once, '-'), (0, 10, again, '-'), (0, 10, again, '?')]);
        assert_eq!(thrice, [None, Some(true), Some(true)]);
    }

    /// Detects a judge that checks only the first octet.
    #[test]
    fn retransmissions_may_use_other_segment_boundaries() {
        let sent = [
            (0, 10, false, '+'),
            (10, 20, false, '-'),
            (20, 30, false, '+'),
        ];
        let with = |from, to| of(&[&sent[..], &[(from, to, true, '+')]].concat())[3];
        assert_eq!(with(0, 20), Some(true));
        assert_eq!(with(5, 10), Some(false));
        assert_eq!(with(12, 14), Some(true));
        assert_eq!(with(20, 25), Some(false));
        assert_eq!(with(5, 30), Some(true));
        let twice = of(&[
            &sent[..],
            &[
                (12, 14, true, '+'),
                (10, 20, true, '+'),
                (12, 20, true, '+'),
            ],
        ]
        .concat());
        assert_eq!(&twice[3..], [Some(true), Some(true), Some(false)]);
    }

    #[test]
    fn rebuilt_octets_have_arrived() {
        let of = |fate| of(&[(0, 10, false, fate), (0, 10, true, '+')])[1];
        assert_eq!(of('*'), Some(false));
        assert_eq!(of('-'), Some(true));
    }

    /// RFC 7323 §5.3 R1: "The segment is treated as not acceptable, and is dropped".
    #[test]
    fn refused_octets_are_lost() {
        let of = |rows: &[_]| *of(rows).last().unwrap();
        let (again, once) = (true, false);
        assert_eq!(of(&[(0, 10, once, '!'), (0, 10, again, '+')]), Some(true));
        let twice = [(0, 10, once, '+'), (0, 10, again, '!'), (0, 10, again, '+')];
        assert_eq!(of(&twice), Some(false));
        let mut cut = row(0, 10, once, '+');
        cut.refused = 4;
        for (from, to, needed) in [(0, 6, false), (6, 10, true), (0, 10, true)] {
            let rows = [cut.clone(), row(from, to, again, '+')];
            assert_eq!(needed_of(&rows), Some(needed), "{from}..{to}");
        }
    }

    fn needed_of(rows: &[PacketRow]) -> Option<bool> {
        *needed(rows).last().unwrap()
    }

    #[test]
    fn octets_in_flight_are_undecided() {
        assert_eq!(of(&[(0, 10, false, '?'), (0, 10, true, '+')]), [None, None]);
        assert_eq!(
            of(&[(0, 5, false, '?'), (5, 10, false, '-'), (0, 10, true, '+')])[2],
            Some(true)
        );
        // Another transfer uses the place: its numbers begin at the start.
        let next = of(&[(0, 10, false, '+'), (0, 10, false, '-'), (0, 10, true, '+')]);
        assert_eq!(next, [None, None, Some(true)]);
    }

    /// Only losses and their retransmissions create entries.
    #[test]
    fn memory_grows_only_with_losses() {
        let mut judge = Judge::default();
        for k in 0..10_000 {
            judge.next(&row(
                k * 10,
                k * 10 + 10,
                false,
                if k == 500 { '-' } else { '+' },
            ));
        }
        assert_eq!(judge.0.0.len(), 3);
        assert_eq!(judge.next(&row(5_000, 5_010, true, '+')), Some(true));
        assert_eq!(judge.next(&row(5_000, 5_010, true, '+')), Some(false));
        assert_eq!(judge.next(&row(4_990, 5_000, true, '+')), Some(false));
    }
}
