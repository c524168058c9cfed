//! Disjoint intervals of sequence numbers, sorted.

use std::collections::VecDeque;

use anabranch_wire::seq::Seq;

/// A set of sequence numbers. A deque is cheap, because numbers are added near the top and removed
/// at the bottom.
#[derive(Debug, Default)]
pub(super) struct Intervals(VecDeque<(Seq, Seq)>);

impl Intervals {
    /// Adds `left..right`. Calls `added` for each new part, with the interval that now holds it.
    /// Returns `true` if no part was new.
    pub(super) fn insert(
        &mut self,
        left: Seq,
        right: Seq,
        mut added: impl FnMut(Seq, Seq, (Seq, Seq)),
    ) -> bool {
        match self.0.back_mut() {
            // Most blocks are new ones above all others, or the highest one.
            Some(&mut (start, ref mut end)) if start <= left && left <= *end => {
                if right <= *end {
                    return true;
                }
                let from = std::mem::replace(end, right);
                added(from, right, (start, right));
                return false;
            }
            Some(&mut (_, end)) if left <= end => {}
            _ => {
                self.0.push_back((left, right));
                added(left, right, (left, right));
                return false;
            }
        }
        let first = self.first_from(left);
        let mut last = first;
        let mut whole = (left, right);
        while let Some(&(start, end)) = self.0.get(last)
            && start <= right
        {
            if start <= left && right <= end {
                return true;
            }
            whole = (whole.0.min(start), whole.1.max(end));
            last += 1;
        }
        let mut at = left;
        for &(start, end) in self.0.range(first..last) {
            if at < start {
                added(at, start, whole);
            }
            at = at.max(end);
        }
        if at < right {
            added(at, right, whole);
        }
        if first == last {
            self.0.insert(first, whole);
        } else {
            self.0[first] = whole;
            if last > first + 1 {
                self.0.drain(first + 1..last);
            }
        }
        false
    }

    /// Index of the first interval that ends at or after `left`. Blocks are reported again while
    /// they are among the last ones, so the search begins with these.
    fn first_from(&self, left: Seq) -> usize {
        let len = self.0.len();
        let near = len.saturating_sub(4);
        let below = |index: usize| self.0.get(index).is_some_and(|i| i.1 < left);
        if !below(near) {
            return self.0.partition_point(|i| i.1 < left);
        }
        let mut first = len - 1;
        while !below(first - 1) {
            first -= 1;
        }
        first
    }

    /// Removes everything below `una`.
    pub(super) fn release(&mut self, una: Seq) {
        while let Some(front) = self.0.front_mut() {
            if front.1 > una {
                front.0 = front.0.max(una);
                break;
            }
            self.0.pop_front();
        }
    }

    /// One past the highest number.
    pub(super) fn highest(&self) -> Option<Seq> {
        self.0.back().map(|i| i.1)
    }

    /// The start of the highest interval such that it and those above are `dupthresh` intervals or
    /// more than `(dupthresh - 1) * smss` octets (IsLost, RFC 6675 §4).
    pub(super) fn lost_below(&self, dupthresh: u32, smss: u32) -> Option<Seq> {
        let enough = u64::from(dupthresh - 1) * u64::from(smss);
        let mut octets = 0;
        for (n, &(start, end)) in self.0.iter().rev().enumerate() {
            octets += end.since(start);
            if n + 1 >= dupthresh as usize || octets > enough {
                return Some(start);
            }
        }
        None
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
