//! Tells a receiver whose application reads slowly from one with a small buffer: its window shrinks while data waits.

use crate::time::{Nanos, SECOND};

/// How long a full window waits for a sign.
const PATIENCE: Nanos = 4 * SECOND;

/// Of so many windows one must have shrunk, at least.
const RARE: u32 = 32;

/// Time in which the window was full.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    largest: i64,
    /// Windows that were seen, and those that had shrunk to less than half.
    seen: u32,
    shrunk: u32,
    /// Time of a full window that has been seen.
    sum: Nanos,
    /// Time since the window shrank last, and when that began.
    pending: Nanos,
    since: Nanos,
    /// Of which the window shrank to less than half.
    time: Nanos,
}

impl Unread {
    /// The sender learns of a window.
    pub(crate) fn see_window(&mut self, window: i64) {
        self.largest = self.largest.max(window);
        self.seen = self.seen.saturating_add(1);
        if 2 * window < self.largest {
            self.shrunk = self.shrunk.saturating_add(1);
            self.time += std::mem::take(&mut self.pending);
        }
    }

    /// Time in which the application had not read. Few shrunk windows show a host that was busy for a moment.
    pub(crate) fn time(&self) -> Nanos {
        if self.seen > RARE.saturating_mul(self.shrunk) {
            0
        } else {
            self.time
        }
    }

    /// The window was full for so long in sum.
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

    /// Time of 100 windows, of which every so manieth had shrunk.
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
    fn windows_that_shrink_again_and_again_show_a_slow_reader() {
        assert!(time(5) > 500 * MILLISECOND);
    }

    #[test]
    fn a_moment_shows_none() {
        assert_eq!(time(60), 0);
    }
}
