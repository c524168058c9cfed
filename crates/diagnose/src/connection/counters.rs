//! Counts of a direction: packets and octets, and the segments that arrived by size and window.

use std::collections::VecDeque;

use crate::{
    entries::{Ecn, UnscaledWindow},
    time::Nanos,
};

/// Counts of packets and octets.
#[derive(Debug, Default, Clone)]
pub(crate) struct Counts {
    pub(crate) packets: u64,
    pub(crate) data_packets: u64,
    /// Octets of payload, retransmissions included.
    pub(crate) sent: u64,
    pub(crate) reordered: u64,
    /// Originals that arrived after later segments, reordered downstream of the capture point.
    pub(crate) late: u64,
    /// Copies of a packet made by the network or the capture.
    pub(crate) duplicated: u64,
    /// Gaps of the capture: data that was acknowledged but not captured.
    pub(crate) capture_gaps: u64,
    pub(crate) unseen_octets: u64,
    /// Octets of payload beyond the last captured window: acknowledgments are missing.
    pub(crate) beyond_window: u64,
    pub(crate) zero_windows: u64,
    pub(crate) implausible: u64,
    pub(crate) ecn: Ecn,
    pub(crate) first_data: Option<Nanos>,
    pub(crate) last_data: Option<Nanos>,
}

impl Counts {
    /// Counts a copy of a packet.
    pub(crate) fn see_copy(&mut self) {
        self.packets += 1;
        self.duplicated += 1;
    }

    /// Counts a packet of another connection.
    pub(crate) fn see_foreign(&mut self) {
        self.packets += 1;
        self.implausible += 1;
    }

    /// Counts data of the application; a keepalive has none.
    pub(crate) fn see_data(&mut self, time: Nanos) {
        self.first_data.get_or_insert(time);
        self.last_data = Some(time);
    }
}

/// Maximum number of segments that wait for an acknowledgment. Beyond it, the oldest are skipped.
const MOST: usize = 4096;
/// Maximum number of segments of one range that are examined: a retransmission or a SACK block
/// covers few.
const MOST_TOUCHED: usize = 64;

/// The end of a segment relative to the receiver's window without its scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// The first copy ended within the window.
    Within,
    /// The first copy ended beyond the window, and a later one within.
    FirstBeyond,
    /// All copies ended beyond the window.
    Beyond,
}

/// A segment of new data.
#[derive(Debug, Clone, Copy)]
struct Sent {
    start: i64,
    end: i64,
    /// Octets of its smallest copy.
    least: i64,
    position: Position,
    is_repeated: bool,
    /// A SACK block covers it.
    has_arrived: bool,
}

/// The segments of a direction and their acknowledgments.
#[derive(Debug, Default)]
pub(crate) struct Delivered {
    waiting: VecDeque<Sent>,
    /// The right edge of the window without its scale.
    edge: Option<i64>,
    /// Octets of the largest segment that was acknowledged.
    pub(crate) largest: i64,
    /// Segments by their end in the window without its scale.
    pub(crate) counts: UnscaledWindow,
}

impl Delivered {
    /// Records a segment with data.
    pub(crate) fn send(&mut self, start: i64, end: i64) {
        let top = self.waiting.back().map_or(i64::MIN, |last| last.end);
        if start < top {
            let first = self.behind(start);
            for one in self.waiting.range_mut(first..).take(MOST_TOUCHED) {
                if one.start >= end {
                    break;
                }
                one.is_repeated = true;
                if one.position == Position::Beyond && self.edge.is_none_or(|edge| one.end <= edge)
                {
                    one.position = Position::FirstBeyond;
                }
                if start > one.start || end < one.end {
                    one.least = one.least.min(end - start);
                }
            }
        }
        let start = start.max(top);
        if start >= end {
            return;
        }
        if self.waiting.len() >= MOST {
            self.waiting.pop_front();
        }
        let is_beyond = self.edge.is_some_and(|edge| end > edge);
        let position = if is_beyond {
            Position::Beyond
        } else {
            Position::Within
        };
        self.waiting.push_back(Sent {
            start,
            end,
            least: end - start,
            position,
            is_repeated: false,
            has_arrived: false,
        });
    }

    /// Records a window from the receiver, as in the header.
    pub(crate) fn announce(&mut self, una: i64, raw: u16) {
        self.edge = Some(una + i64::from(raw));
    }

    /// Processes a cumulative acknowledgment.
    pub(crate) fn acknowledge(&mut self, una: i64) {
        while let Some(one) = self.waiting.front().copied()
            && one.end <= una
        {
            self.waiting.pop_front();
            if !one.has_arrived {
                self.arrive(one);
            }
        }
    }

    /// Processes a SACK block.
    pub(crate) fn select(&mut self, start: i64, end: i64) {
        let first = self.waiting.partition_point(|one| one.start < start);
        for at in first..self.waiting.len().min(first + MOST_TOUCHED) {
            let Some(one) = self.waiting.get_mut(at) else {
                return;
            };
            if one.end > end {
                return;
            }
            if !std::mem::replace(&mut one.has_arrived, true) {
                let one = *one;
                self.arrive(one);
            }
        }
    }

    fn arrive(&mut self, one: Sent) {
        self.largest = self.largest.max(one.least);
        let count = match one.position {
            Position::Beyond => &mut self.counts.arrived_beyond,
            Position::FirstBeyond => &mut self.counts.lost_beyond,
            Position::Within if one.is_repeated => &mut self.counts.lost_within,
            Position::Within => &mut self.counts.arrived_within,
        };
        *count += 1;
    }

    /// Ends the connection. Unacknowledged segments count as lost if the sender retransmitted any.
    pub(crate) fn finish(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        if !waiting.iter().any(|one| one.is_repeated) {
            return;
        }
        for one in waiting.iter().filter(|one| !one.has_arrived) {
            let count = match one.position {
                Position::Within => &mut self.counts.lost_within,
                Position::FirstBeyond | Position::Beyond => &mut self.counts.lost_beyond,
            };
            *count += 1;
        }
    }

    /// The first segment that ends after `at`.
    fn behind(&self, at: i64) -> usize {
        self.waiting.partition_point(|one| one.end <= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments that arrived within the window and beyond it, and that were lost there.
    fn counts(delivered: &Delivered) -> [[u64; 2]; 2] {
        let counts = delivered.counts;
        let arrived = [counts.arrived_within, counts.arrived_beyond];
        [arrived, [counts.lost_within, counts.lost_beyond]]
    }

    #[test]
    fn a_segment_that_arrived_in_parts_counts_as_large_as_its_parts() {
        let mut delivered = Delivered::default();
        for (start, end) in [(0, 1448), (0, 500), (500, 1448)] {
            delivered.send(start, end);
        }
        delivered.acknowledge(1448);
        assert_eq!(delivered.largest, 500);
        delivered.send(1448, 2448);
        delivered.acknowledge(2448);
        assert_eq!(delivered.largest, 1000);
    }

    #[test]
    fn a_retransmission_beyond_the_window_that_arrives_clears_the_path() {
        let mut delivered = Delivered::default();
        for (una, windows, expected) in [(0, [64, 64], [1, 0]), (1000, [500, 1000], [1, 1])] {
            for window in windows {
                delivered.announce(una, window);
                delivered.send(una, una + 1000);
            }
            delivered.acknowledge(una + 1000);
            assert_eq!(counts(&delivered).map(|[_, beyond]| beyond), expected);
        }
    }

    #[test]
    fn segments_count_by_the_window_at_their_time() {
        let mut delivered = Delivered::default();
        delivered.announce(0, 65_535);
        delivered.send(0, 1000);
        delivered.send(1000, 2000);
        delivered.acknowledge(2000);
        delivered.announce(2000, 64);
        for start in [2000, 3000, 4000] {
            delivered.send(start, start + 1000);
        }
        delivered.select(3000, 4000);
        delivered.send(2000, 3000);
        delivered.finish();
        assert_eq!(counts(&delivered), [[2, 1], [0, 2]]);
    }
}
