//! Waits that may have been for the send buffer: they are its once the sender goes on so.

use crate::{limit::Limit, time::Nanos};

/// Waits that are kept, at most.
const MOST: usize = 16;

/// A wait, and what its time was given to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refill {
    pub(crate) limit: Limit,
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
}

/// The waits in order of time.
#[derive(Debug, Default)]
pub(crate) struct Refills {
    waits: Vec<Refill>,
    /// The segments that leave now follow the last one.
    goes_on: bool,
}

impl Refills {
    /// A wait ends; `may_be` tells whether it may have been for the send buffer.
    pub(crate) fn see(&mut self, wait: Refill, may_be: bool) {
        self.goes_on = may_be && self.waits.len() < MOST;
        if self.goes_on {
            self.waits.push(wait);
        }
    }

    /// A segment leaves with the one before, and its time is given to `limit` as well.
    pub(crate) fn follow(&mut self, until: Nanos, limit: Limit) {
        if let Some(wait) = self.waits.last_mut().filter(|_| self.goes_on)
            && wait.limit == limit
        {
            wait.end = wait.end.max(until);
        }
    }

    /// The time of these limits has been settled otherwise.
    pub(crate) fn forget(&mut self, limits: &[Limit]) {
        self.waits.retain(|wait| !limits.contains(&wait.limit));
    }

    /// They were for the send buffer.
    pub(crate) fn take(&mut self) -> Vec<Refill> {
        self.goes_on = false;
        std::mem::take(&mut self.waits)
    }
}
