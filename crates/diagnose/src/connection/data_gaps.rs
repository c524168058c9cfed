//! Gaps in the data at the capture point, which a late segment may still fill.

use std::collections::VecDeque;

use crate::retransmission::{piece::Copy, recognition::Gap};

/// Maximum number of stored gaps.
const MOST: usize = 256;

/// The gaps in order of their data.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    open: VecDeque<Gap>,
}

impl Gaps {
    /// Records a packet that starts at `end`, beyond `start`; `is_bare` if it has no data.
    pub(crate) fn note(&mut self, start: i64, end: i64, copy: &Copy, is_bare: bool) {
        if self.open.len() >= MOST {
            self.open.pop_front();
        }
        self.open.push_back(Gap {
            start,
            end,
            packet: *copy,
            is_bare,
        });
    }

    pub(crate) fn at(&self, at: i64) -> Option<&Gap> {
        let mut gaps = self.open.iter().rev();
        gaps.find(|gap| gap.start <= at && at < gap.end)
    }

    /// Discards the gaps below a cumulative acknowledgment.
    pub(crate) fn acknowledge(&mut self, una: i64) {
        while self.open.front().is_some_and(|gap| gap.end <= una) {
            self.open.pop_front();
        }
    }
}
