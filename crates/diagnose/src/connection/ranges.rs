//! Sets of octets as ranges of sequence numbers.

use std::collections::VecDeque;

/// Maximum number of ranges, more than a connection has at a time. Beyond it the lowest is
/// discarded.
const MOST: usize = 4096;

/// Disjoint ranges in order, not touching each other.
#[derive(Debug, Default, Clone)]
pub(crate) struct Ranges {
    ranges: VecDeque<(i64, i64)>,
    octets: i64,
}

impl Ranges {
    pub(crate) fn octets(&self) -> i64 {
        self.octets
    }

    /// One past the highest octet.
    pub(crate) fn end(&self) -> Option<i64> {
        self.ranges.back().map(|range| range.1)
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.ranges.iter().copied()
    }

    /// The first range that ends after `at`.
    fn behind(&self, at: i64) -> usize {
        self.ranges.partition_point(|range| range.1 <= at)
    }

    /// Whether a range up to `end` would be stored: below the lowest range of a full set it would
    /// be discarded.
    pub(crate) fn has_room(&self, end: i64) -> bool {
        let lowest = self.ranges.front().map(|range| range.0);
        self.ranges.len() < MOST || lowest.is_none_or(|lowest| end >= lowest)
    }

    /// Adds a range.
    pub(crate) fn add(&mut self, start: i64, end: i64) {
        if end <= start {
            return;
        }
        // Includes ranges that only touch.
        let first = self.ranges.partition_point(|range| range.1 < start);
        let (mut start, mut end) = (start, end);
        let mut last = first;
        while let Some(range) = self.ranges.get(last)
            && range.0 <= end
        {
            start = start.min(range.0);
            end = end.max(range.1);
            self.octets -= range.1 - range.0;
            last += 1;
        }
        self.octets += end - start;
        if last == first {
            self.ranges.insert(first, (start, end));
        } else {
            self.ranges[first] = (start, end);
            self.ranges.drain(first + 1..last);
        }
        if self.ranges.len() > MOST
            && let Some((start, end)) = self.ranges.pop_front()
        {
            self.octets -= end - start;
        }
    }

    /// Removes a range. Returns the number of its octets that were in the set.
    pub(crate) fn remove(&mut self, start: i64, end: i64) -> i64 {
        if end <= start {
            return 0;
        }
        let before = self.octets;
        let mut at = self.behind(start);
        while let Some(&(from, to)) = self.ranges.get(at)
            && from < end
        {
            let (left, right) = ((from, start.min(to)), (end.max(from), to));
            self.octets -= to - from;
            self.ranges.remove(at);
            for (from, to) in [right, left] {
                if from < to {
                    self.octets += to - from;
                    self.ranges.insert(at, (from, to));
                }
            }
            at += usize::from(left.0 < left.1);
            if right.0 < right.1 {
                break;
            }
        }
        before - self.octets
    }

    /// The number of octets of a range that are in the set.
    pub(crate) fn overlap(&self, start: i64, end: i64) -> i64 {
        let mut sum = 0;
        for &(from, to) in self.ranges.range(self.behind(start)..) {
            if from >= end {
                break;
            }
            sum += to.min(end) - from.max(start);
        }
        sum
    }

    /// One past the last octet of the range that contains `at`; `at` if none does.
    pub(crate) fn end_from(&self, at: i64) -> i64 {
        let range = self.ranges.get(self.behind(at));
        range.map_or(at, |&(from, to)| if from <= at { to } else { at })
    }

    /// The parts of a range that are not in the set.
    pub(crate) fn missing(&self, start: i64, end: i64) -> Vec<(i64, i64)> {
        let mut missing = Vec::new();
        let mut at = start;
        for &(from, to) in self.ranges.range(self.behind(start)..) {
            if from >= end {
                break;
            }
            if at < from {
                missing.push((at, from));
            }
            at = at.max(to);
        }
        if at < end {
            missing.push((at, end));
        }
        missing
    }

    /// The number of octets above `at`, summed over the side with fewer ranges.
    pub(crate) fn octets_above(&self, at: i64) -> i64 {
        if 2 * self.behind(at) > self.ranges.len() {
            self.overlap(at, i64::MAX)
        } else {
            self.octets - self.overlap(i64::MIN, at)
        }
    }
}

/// Octets of one direction.
#[derive(Debug, Default)]
pub(crate) struct Octets {
    captured: i64,
    /// Octets below the highest that have not been captured yet.
    missing: Ranges,
    /// The first octet that was captured, and one past the last.
    bounds: Option<(i64, i64)>,
}

impl Octets {
    pub(crate) fn captured(&self) -> i64 {
        self.captured
    }

    /// Octets from the first captured one to the last.
    pub(crate) fn span(&self) -> i64 {
        self.bounds.map_or(0, |(first, last)| last - first)
    }

    /// Records data that passed when all data below `next` had been sent.
    pub(crate) fn send(&mut self, start: i64, end: i64, next: i64) {
        // A capture from mid-flow may have late segments before the first counted octet.
        let (start, next) = (start.max(0), next.max(0));
        if end <= start {
            return;
        }
        self.skip(next, start);
        self.captured += (end - start.max(next)).max(0) + self.missing.remove(start, end.min(next));
        let (first, last) = self.bounds.unwrap_or((start, end));
        self.bounds = Some((first.min(start), last.max(end)));
    }

    /// Records that a range was sent but not captured.
    pub(crate) fn skip(&mut self, start: i64, end: i64) {
        self.missing.add(start.max(0), end);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranges_are_the_set_of_their_octets(steps in prop::collection::vec((any::<bool>(), 0_i64..60, 0_i64..12), 0..40), probe in (0_i64..60, 0_i64..20)) {
            let mut ranges = Ranges::default();
            let mut set = BTreeSet::new();
            for (add, start, length) in steps {
                if add {
                    ranges.add(start, start + length);
                    set.extend(start..start + length);
                } else {
                    let there = (start..start + length).filter(|octet| set.remove(octet)).count();
                    prop_assert_eq!(usize::try_from(ranges.remove(start, start + length)), Ok(there));
                }
            }
            let all: Vec<i64> = ranges.iter().flat_map(|(from, to)| from..to).collect();
            prop_assert_eq!(usize::try_from(ranges.octets()), Ok(all.len()));
            prop_assert!(ranges.iter().zip(ranges.iter().skip(1)).all(|(one, next)| one.1 < next.0));
            prop_assert_eq!(all, set.iter().copied().collect::<Vec<_>>());
            let (start, end) = (probe.0, probe.0 + probe.1);
            let there = set.range(start..end).count();
            prop_assert_eq!(usize::try_from(ranges.overlap(start, end)), Ok(there));
            let missing: i64 = ranges.missing(start, end).iter().map(|(from, to)| to - from).sum();
            prop_assert_eq!(usize::try_from(probe.1 - missing), Ok(there));
            prop_assert_eq!(usize::try_from(ranges.octets_above(start)), Ok(set.range(start..).count()));
        }
    }

    proptest! {
        #[test]
        fn captured_octets_are_the_set_of_octets_that_passed(segments in prop::collection::vec((-20_i64..200, 1_i64..30), 0..40)) {
            let mut octets = Octets::default();
            let mut set = BTreeSet::new();
            let mut next = 0;
            for (start, length) in segments {
                octets.send(start, start + length, next);
                set.extend(start.max(0)..start + length);
                next = next.max(start + length);
            }
            prop_assert_eq!(usize::try_from(octets.captured()), Ok(set.len()));
            let span = set.last().map_or(0, |last| last + 1 - set.first().expect("not empty"));
            prop_assert_eq!(octets.span(), span);
        }
    }
}
