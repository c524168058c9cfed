//! Distinguishes a receiver whose application reads slowly from one with a small buffer: its window
//! shrinks while data waits.

use crate::time::{Nanos, SECOND};

/// Longest time from a full window to a shrunk one.
const PATIENCE: Nanos = 4 * SECOND;

/// At least one in this number of windows must have shrunk.
const RARE: u32 = 32;

/// Time in which the window was full.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    largest: i64,
    /// The number of windows, and of windows that had shrunk to less than half.
    seen: u32,
    shrunk: u32,
    /// Total time of a full window.
    sum: Nanos,
    /// Time with a full window since the window last shrank, and its start.
    pending: Nanos,
    since: Nanos,
    /// The part after which the window shrank to less than half.
    time: Nanos,
}

impl Unread {
    /// Records a window that reaches the sender.
    pub(crate) fn see_window(&mut self, window: i64) {
        self.largest = self.largest.max(window);
        self.seen = self.seen.saturating_add(1);
        if 2 * window < self.largest {
            self.shrunk = self.shrunk.saturating_add(1);
            self.time += std::mem::take(&mut self.pending);
        }
    }

    /// Time in which the application had not read. If few windows shrank, the host was busy for a
    /// moment.
    pub(crate) fn time(&self) -> Nanos {
        if self.seen > RARE.saturating_mul(self.shrunk) {
            0
        } else {
            self.time
        }
    }

    /// Records the total time for which the window was full.
    pub(crate) fn wait(&mut self, now: Nanos, sum: Nanos) {
        let time = sum - std::mem::replace(&mut self.sum, sum);
        if self.pending == 0 || now - self.since > PATIENCE {
            self.pending = 0;
            self.since = now;
        }
        self.pending += time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MILLISECOND;

    #[test]
    fn windows_that_shrink_repeatedly_show_a_slow_reader() {
        // One window in five had shrunk; of one in sixty, the host was busy for a moment.
        for (every, is_slow) in [(5, true), (60, false)] {
            let mut unread = Unread::default();
            for turn in 0..100 {
                let now = turn * 10 * MILLISECOND;
                let is_small = turn % every == every - 1;
                unread.see_window(if is_small { 4_000 } else { 10_000 });
                unread.wait(now, now);
            }
            assert_eq!(unread.time() > 500 * MILLISECOND, is_slow);
        }
    }
}
