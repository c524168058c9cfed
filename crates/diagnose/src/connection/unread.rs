//! Tells a receiver whose application reads slowly from one with a small buffer: its window shrinks while data waits.

use crate::time::{Nanos, SECOND};

/// How long a full window waits for a sign.
const PATIENCE: Nanos = 4 * SECOND;

/// Time in which the window was full.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    largest: i64,
    /// Time of a full window that has been seen.
    sum: Nanos,
    /// Time since the window shrank last, and when that began.
    pending: Nanos,
    since: Nanos,
    /// Of which the window shrank to less than half.
    pub(crate) time: Nanos,
}

impl Unread {
    /// The sender learns of a window.
    pub(crate) fn see_window(&mut self, window: i64) {
        self.largest = self.largest.max(window);
        if 2 * window < self.largest {
            self.time += std::mem::take(&mut self.pending);
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
