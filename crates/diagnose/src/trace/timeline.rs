//! The limit of each interval of a direction, in order of time.

use super::Span;
use crate::{
    limit::Limit,
    time::{Nanos, seconds},
};

/// Maximum number of intervals. Beyond it, neighbours are joined under the longer one's limit.
const MOST: usize = 20_000;

#[derive(Debug, Clone, Copy)]
struct Interval {
    start: Nanos,
    end: Nanos,
    limit: Limit,
}

/// The intervals so far. Later events change the limit of some.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    intervals: Vec<Interval>,
    /// Index of the first interval at the current amount in flight.
    level: usize,
}

impl Timeline {
    pub(crate) fn add(&mut self, start: Nanos, end: Nanos, limit: Limit) {
        let is_in_level = self.intervals.len() > self.level;
        match self.intervals.last_mut() {
            // Recoveries remain separate: each may prove spurious.
            Some(last)
                if last.limit == limit
                    && last.end == start
                    && limit != Limit::FastRecovery
                    && is_in_level =>
            {
                last.end = end;
            }
            _ => self.intervals.push(Interval { start, end, limit }),
        }
        if self.intervals.len() > MOST {
            self.halve();
        }
    }

    fn halve(&mut self) {
        let joined = self.intervals.chunks(2).map(|pair| match pair {
            [one, other] => Interval {
                start: one.start,
                end: other.end,
                limit: if one.end - one.start >= other.end - other.start {
                    one.limit
                } else {
                    other.limit
                },
            },
            [one, ..] => *one,
            [] => Interval {
                start: 0,
                end: 0,
                limit: Limit::Undecidable,
            },
        });
        self.intervals = joined.collect();
        self.level /= 2;
    }

    /// Another amount in flight begins.
    pub(crate) fn start_level(&mut self) {
        self.level = self.intervals.len();
    }

    /// The amount in flight proves constant: the send buffer limited it.
    pub(crate) fn settle_level(&mut self) {
        for interval in self.intervals.iter_mut().skip(self.level) {
            if matches!(interval.limit, Limit::CongestionWindow | Limit::Bottleneck) {
                interval.limit = Limit::SendBuffer;
            }
        }
        self.level = self.intervals.len();
    }

    /// A wait proves to have been for the send buffer.
    pub(crate) fn settle_refill(&mut self, start: Nanos, end: Nanos) {
        let recent = self.intervals.iter_mut().rev();
        for interval in recent.take_while(|interval| interval.end > start) {
            if interval.start >= start && interval.end <= end {
                interval.limit = Limit::SendBuffer;
            }
        }
    }

    /// A recovery proves to have begun at `start`.
    pub(crate) fn settle_missed(&mut self, start: Nanos) {
        let recent = self.intervals.iter_mut().rev();
        for interval in recent.take_while(|interval| interval.start >= start) {
            if matches!(interval.limit, Limit::CongestionWindow | Limit::Bottleneck) {
                interval.limit = Limit::FastRecovery;
            }
        }
        self.start_level();
    }

    /// A recovery proves spurious: its time is attributed to reordering.
    pub(crate) fn settle_recovery(&mut self, start: Nanos, end: Nanos) {
        let recent = self.intervals.iter_mut().rev();
        for interval in recent.take_while(|interval| interval.end >= start) {
            if interval.limit == Limit::FastRecovery && interval.end <= end {
                interval.limit = Limit::Reordering;
            }
        }
    }

    /// Makes limits that are no longer known undecidable, because the capture lacks one end's
    /// packets.
    pub(crate) fn undecide(&mut self, is_known: impl Fn(Limit) -> bool) {
        for interval in &mut self.intervals {
            if !is_known(interval.limit) {
                interval.limit = Limit::Undecidable;
            }
        }
    }

    /// The intervals in seconds. Neighbours with the same limit are joined.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        for interval in &self.intervals {
            let (start, end) = (seconds(interval.start), seconds(interval.end));
            match spans.last_mut() {
                Some(last) if last.2 == interval.limit => last.1 = end,
                _ => spans.push((start, end, interval.limit)),
            }
        }
        spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_amount_shown_late_is_attributed_to_the_send_buffer() {
        let mut line = Timeline::default();
        line.add(0, 10, Limit::CongestionWindow);
        line.start_level();
        line.add(10, 20, Limit::CongestionWindow);
        line.add(20, 30, Limit::Application);
        line.settle_level();
        let limits: Vec<_> = line.spans().into_iter().map(|span| span.2).collect();
        let expected = [
            Limit::CongestionWindow,
            Limit::SendBuffer,
            Limit::Application,
        ];
        assert_eq!(limits, expected);
    }

    #[test]
    fn many_intervals_are_joined_without_gaps() {
        let mut line = Timeline::default();
        for step in 0..100_000 {
            let limit = [Limit::Application, Limit::Pacing][usize::from(step % 2 == 0)];
            line.add(step, step + 1, limit);
        }
        assert!(line.intervals.len() <= MOST);
        assert_eq!(line.intervals[0].start, 0);
        assert!(
            line.intervals
                .windows(2)
                .all(|pair| pair[0].end == pair[1].start)
        );
        assert_eq!(line.intervals.last().map(|last| last.end), Some(100_000));
    }
}
