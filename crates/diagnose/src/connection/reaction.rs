//! How soon a host sends data after an acknowledgment that came alone: near it, the time between the two.

use super::{delays::Delays, view::TOGETHER};
use crate::time::Nanos;

/// When acknowledgments of new data passed.
#[derive(Debug)]
pub(crate) struct Acks {
    last: Nanos,
    /// The first that came together with the last one, and the one before it.
    first: Nanos,
    before: Nanos,
}

impl Default for Acks {
    fn default() -> Self {
        let never = Nanos::MIN / 2;
        Self {
            last: never,
            first: never,
            before: never,
        }
    }
}

impl Acks {
    /// An acknowledgment of new data passed.
    pub(crate) fn see(&mut self, time: Nanos) {
        if time - self.first > TOGETHER {
            (self.first, self.before) = (time, self.last);
        }
        self.last = time;
    }

    /// How long after the last acknowledgment a segment leaves, if no other one can have released it. `sent` is when the segment
    /// before left.
    pub(crate) fn reaction(
        &self,
        time: Nanos,
        sent: Option<Nanos>,
        delays: Delays,
        round_trip: Option<Nanos>,
    ) -> Option<Nanos> {
        let is_first = sent.is_some_and(|sent| sent < self.last);
        // No answer takes longer than the shortest that is known.
        let is_alone = time - self.before > delays.back() + delays.tolerance();
        (is_first && is_alone && delays.is_near(round_trip)).then_some(time - self.last)
    }
}
