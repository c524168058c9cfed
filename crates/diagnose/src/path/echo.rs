//! From an acknowledgment to the data that echoes its timestamp (RFC 7323 §3).

use std::collections::VecDeque;

use crate::{retransmission::need::is_before, time::Nanos};

/// Timestamps that wait for their echo, at most.
const MOST: usize = 64;

/// Timestamps that were sent to a host, and when each passed first.
#[derive(Debug, Default)]
pub(super) struct Echo {
    asked: VecDeque<(u32, Nanos)>,
    /// The latest, kept or not: only its first packet can be told.
    latest: Option<u32>,
    /// The least time between two that are kept, so that those of a round trip fit.
    apart: Nanos,
}

impl Echo {
    /// A packet to the host has this `TSval`.
    pub(super) fn ask(&mut self, stamp: u32, time: Nanos) {
        if self.latest.is_some_and(|latest| !is_before(latest, stamp)) {
            return;
        }
        self.latest = Some(stamp);
        let last = self.asked.back();
        if last.is_some_and(|(_, at)| time - at < self.apart) {
            return;
        }
        if self.asked.len() >= MOST {
            self.asked.pop_front();
        }
        self.asked.push_back((stamp, time));
    }

    /// A packet from the host has this `TSecr`: the time since that one passed, if it is the first.
    pub(super) fn answer(&mut self, echo: u32, time: Nanos) -> Option<Nanos> {
        let mut found = None;
        while let Some((stamp, at)) = self.asked.front() {
            if is_before(echo, *stamp) {
                break;
            }
            found = (*stamp == echo).then_some(time - at);
            self.asked.pop_front();
        }
        if let Some(found) = found {
            self.apart = found / 32;
        }
        found
    }
}
