//! The time from an isolated acknowledgment to the next data, which is the host's response time if
//! the capture point is near it.

use super::{path_delays::Delays, sender_view::TOGETHER};
use crate::time::Nanos;

/// The times of acknowledgments of new data.
#[derive(Debug)]
pub(crate) struct Acks {
    last: Nanos,
    /// The first acknowledgment of the latest group, and the last one before the group.
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
    /// Records an acknowledgment of new data.
    pub(crate) fn see(&mut self, time: Nanos) {
        if time - self.first > TOGETHER {
            (self.first, self.before) = (time, self.last);
        }
        self.last = time;
    }

    /// The time from the last acknowledgment to a segment, if no other one can have released it.
    /// `sent` is when the previous segment was sent.
    pub(crate) fn reaction(
        &self,
        time: Nanos,
        sent: Option<Nanos>,
        delays: Delays,
        round_trip: Option<Nanos>,
    ) -> Option<Nanos> {
        let is_first = sent.is_some_and(|sent| sent < self.last);
        // No response takes longer than the shortest known one.
        let is_alone = time - self.before > delays.back() + delays.tolerance();
        (is_first && is_alone && delays.is_near(round_trip)).then_some(time - self.last)
    }
}
