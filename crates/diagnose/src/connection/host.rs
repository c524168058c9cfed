//! How long a host takes to answer what passes the capture point, the way there and back included.

use crate::{retransmission::need::is_before, time::Nanos};

/// Times from a packet to the host to the host's answer.
#[derive(Debug, Default, Clone)]
pub(crate) struct Turnaround {
    min: Option<Nanos>,
    /// How far answers usually lie above the least one: those that were prompt.
    jitter: Nanos,
    /// A `TSval` sent to it that nothing has echoed, and when it passed first.
    asked: Option<(u32, Nanos)>,
}

impl Turnaround {
    pub(crate) fn min(&self) -> Option<Nanos> {
        self.min
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
    }

    /// A packet from the host with this `TSecr`: it left after the host received the stamp.
    pub(crate) fn answer(&mut self, echo: u32, time: Nanos) {
        let Some((stamp, asked)) = self.asked else {
            return;
        };
        if stamp == echo {
            self.sample(time - asked);
        }
        if !is_before(echo, stamp) {
            self.asked = None;
        }
    }
}
