//! How long a host takes to answer what passes the capture point, the way there and back included.

use crate::{retransmission::need::is_before, time::Nanos};

/// Answers of which the least counts as the time that an answer takes now.
const RECENT: usize = 16;

/// Times from a packet to the host to the host's answer.
#[derive(Debug, Default, Clone)]
pub(crate) struct Turnaround {
    min: Option<Nanos>,
    /// The last ones.
    recent: [Nanos; RECENT],
    sampled: usize,
    /// How far answers usually lie above the least one: those that were prompt.
    jitter: Nanos,
    /// The oldest `TSval` sent to it that nothing has echoed, and when it passed first.
    asked: Option<(u32, Nanos)>,
    /// The newest one.
    newest: Option<(u32, Nanos)>,
}

impl Turnaround {
    pub(crate) fn min(&self) -> Option<Nanos> {
        self.min
    }

    /// The least of the last answers that did not wait for the application: a route changes, and a queue comes and goes.
    pub(crate) fn recent(&self) -> Option<Nanos> {
        let known = &self.recent[..self.sampled.min(RECENT)];
        known.iter().min().copied().or(self.min)
    }

    /// An answer while more was to be sent.
    pub(crate) fn busy(&mut self, time: Nanos) {
        self.recent[self.sampled % RECENT] = time.max(0);
        self.sampled += 1;
    }

    pub(crate) fn jitter(&self) -> Nanos {
        self.jitter
    }

    pub(crate) fn sample(&mut self, time: Nanos) {
        let min = self.min.map_or(time, |min| min.min(time)).max(0);
        self.min = Some(min);
        // What takes longer waited for something else.
        if time <= min + min / 2 {
            self.jitter += (time - min - self.jitter) / 16;
        }
    }

    /// A packet to the host with this `TSval`, which was not sent before.
    pub(crate) fn ask(&mut self, stamp: u32, time: Nanos) {
        self.asked.get_or_insert((stamp, time));
        self.newest = Some((stamp, time));
    }

    /// A packet from the host with this `TSecr`: it left after the host received the stamp. How long that took.
    pub(crate) fn answer(&mut self, echo: u32, time: Nanos) -> Option<Nanos> {
        let matching = [self.asked, self.newest].into_iter().flatten();
        let took = matching
            .filter(|(stamp, _)| *stamp == echo)
            .map(|(_, asked)| time - asked)
            .next();
        if self.asked.is_some_and(|(stamp, _)| !is_before(echo, stamp)) {
            self.asked = self.newest.take_if(|(stamp, _)| is_before(echo, *stamp));
            self.newest = self.asked;
        }
        if let Some(took) = took {
            self.sample(took);
        }
        took
    }
}
