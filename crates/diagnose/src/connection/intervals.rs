//! The account of a direction's time: the time of each limit and, of a connection that is traced, the
//! intervals. Later events move time from one limit to another, in both alike.

use crate::{
    limit::Limit,
    time::{Nanos, seconds},
    trace::Span,
};

/// Maximum number of intervals. Beyond it, neighbours are joined under the longer one's limit.
const MOST: usize = 20_000;

#[derive(Debug, Clone, Copy)]
struct Interval {
    start: Nanos,
    end: Nanos,
    limit: Limit,
}

/// Intervals in order of time, without gaps.
#[derive(Debug, Default)]
pub(crate) struct Intervals {
    spent: [Nanos; Limit::ALL.len()],
    kept: Option<Vec<Interval>>,
}

impl Intervals {
    /// Keeps the intervals from now on.
    pub(crate) fn trace(&mut self) {
        self.kept = Some(Vec::new());
    }

    pub(crate) fn of(&self, limit: Limit) -> Nanos {
        self.spent[limit as usize]
    }

    pub(crate) fn all(&self) -> Nanos {
        self.spent.iter().sum()
    }

    pub(crate) fn add(&mut self, start: Nanos, end: Nanos, limit: Limit) {
        self.spent[limit as usize] += end - start;
        if let Some(kept) = &mut self.kept {
            push(kept, Interval { start, end, limit });
            if kept.len() > MOST {
                let joined = kept.chunks(2).map(|pair| Interval {
                    start: pair[0].start,
                    end: pair[pair.len() - 1].end,
                    // The first one of the longest.
                    limit: pair
                        .iter()
                        .rev()
                        .max_by_key(|one| one.end - one.start)
                        .map_or(limit, |one| one.limit),
                });
                *kept = joined.collect();
            }
        }
    }

    /// Moves `time` from one limit to another, within these bounds.
    pub(crate) fn give(
        &mut self,
        from: Limit,
        to: Limit,
        time: Nanos,
        (start, end): (Nanos, Nanos),
    ) {
        let time = time.min(self.of(from));
        self.spent[from as usize] -= time;
        self.spent[to as usize] += time;
        let Some(kept) = &mut self.kept else {
            return;
        };
        let first = kept.partition_point(|one| one.end <= start);
        for one in kept.split_off(first) {
            if one.limit != from || one.start >= end {
                push(kept, one);
                continue;
            }
            let (start, end) = (start.max(one.start), end.min(one.end));
            push(kept, Interval { end: start, ..one });
            push(
                kept,
                Interval {
                    start,
                    end,
                    limit: to,
                },
            );
            push(kept, Interval { start: end, ..one });
        }
    }

    /// The intervals in seconds.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let span = |one: &Interval| (seconds(one.start), seconds(one.end), one.limit);
        self.kept.iter().flatten().map(span).collect()
    }
}

/// Appends an interval, or extends the last one.
fn push(kept: &mut Vec<Interval>, next: Interval) {
    match kept.last_mut() {
        Some(last) if last.limit == next.limit => last.end = next.end,
        _ if next.end > next.start => kept.push(next),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: [Limit; 3] = [Limit::Application, Limit::Pacing, Limit::SendBuffer];

    proptest! {
        #[test]
        fn intervals_are_the_times_of_their_moments(steps in prop::collection::vec((0_usize..3, 1_i64..9), 1..30), (start, length) in (-9_i64..200, 0_i64..99)) {
            let mut intervals = Intervals::default();
            intervals.trace();
            let mut moments = Vec::new();
            for (limit, time) in steps {
                let at = i64::try_from(moments.len()).expect("few");
                intervals.add(at, at + time, LIMITS[limit]);
                moments.extend((0..time).map(|_| LIMITS[limit]));
            }
            let (from, to) = (LIMITS[0], LIMITS[1]);
            let mut moved = 0;
            for (at, limit) in (0..).zip(&mut moments) {
                if *limit == from && (start..start + length).contains(&at) {
                    *limit = to;
                    moved += 1;
                }
            }
            intervals.give(from, to, moved, (start, start + length));
            let kept = intervals.kept.as_ref().expect("traced");
            prop_assert!(kept.windows(2).all(|pair| pair[0].end == pair[1].start && pair[0].limit != pair[1].limit));
            let found: Vec<_> = kept.iter().flat_map(|one| (one.start..one.end).map(|_| one.limit)).collect();
            prop_assert_eq!(&found, &moments);
            for limit in LIMITS {
                let time = moments.iter().filter(|one| **one == limit).count();
                prop_assert_eq!(usize::try_from(intervals.of(limit)), Ok(time));
            }
        }
    }

    #[test]
    fn many_intervals_are_joined_without_gaps() {
        let mut intervals = Intervals::default();
        intervals.trace();
        for step in 0..100_000 {
            intervals.add(step, step + 1, LIMITS[usize::from(step % 2 == 0)]);
        }
        let kept = intervals.kept.expect("traced");
        assert!(kept.len() <= MOST);
        assert!(kept.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!((kept[0].start, kept[kept.len() - 1].end), (0, 100_000));
    }
}
