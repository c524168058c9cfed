//! Waits that may have been for the send buffer. They are attributed to it once later waits confirm
//! this.

use crate::{limit::Limit, time::Nanos};

/// Maximum number of stored waits.
const MOST: usize = 16;

/// A wait, and the limit to which its time was attributed.
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
    /// The segments sent now follow the last wait.
    goes_on: bool,
}

impl Refills {
    /// Records a wait. `may_be` says whether it may have been for the send buffer.
    pub(crate) fn see(&mut self, wait: Refill, may_be: bool) {
        self.goes_on = may_be && self.waits.len() < MOST;
        if self.goes_on {
            self.waits.push(wait);
        }
    }

    /// Records a segment that leaves with the previous one, and whose time is attributed to `limit`
    /// as well.
    pub(crate) fn follow(&mut self, until: Nanos, limit: Limit) {
        if let Some(wait) = self.waits.last_mut().filter(|_| self.goes_on)
            && wait.limit == limit
        {
            wait.end = wait.end.max(until);
        }
    }

    /// Discards waits whose limits have been settled otherwise.
    pub(crate) fn forget(&mut self, limits: &[Limit]) {
        self.waits.retain(|wait| !limits.contains(&wait.limit));
    }

    /// Returns the waits once they prove to have been for the send buffer.
    pub(crate) fn take(&mut self) -> Vec<Refill> {
        self.goes_on = false;
        std::mem::take(&mut self.waits)
    }
}
