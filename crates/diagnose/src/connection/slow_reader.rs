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

    /// Time of 100 windows, one in `every` of which had shrunk.
    fn time(every: usize) -> Nanos {
        let mut unread = Unread::default();
        for turn in 0..100 {
            let now = i64::try_from(turn).unwrap_or(0) * 10 * MILLISECOND;
            unread.see_window(if turn % every == every - 1 {
                4_000
            } else {
                10_000
            });
            unread.wait(now, now);
        }
        unread.time()
    }

    #[test]
    fn windows_that_shrink_repeatedly_show_a_slow_reader() {
        assert!(time(5) > 500 * MILLISECOND);
    }

    #[test]
    fn a_moment_shows_no_slow_reader() {
        assert_eq!(time(60), 0);
    }
}
