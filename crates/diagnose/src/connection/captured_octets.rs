//! Captured octets of data, as opposed to octets that only acknowledgments or later data imply.

use super::ranges::Ranges;

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
