//! One side of the capture point: the time to and fro, and the rate at which packets come from it.

use super::{
    batches::Batches,
    least::Least,
    waits::{Bins, Recent},
};
use crate::time::Nanos;

/// Where the stream of packets from this side stood.
#[derive(Debug, Clone, Copy)]
struct Mark {
    time: Nanos,
    /// The highest octet, and how many octets have come: both grow alike while nothing is missing or late.
    top: i64,
    octets: i64,
}

/// What is seen of one side.
#[derive(Debug, Default)]
pub(super) struct Side {
    /// All samples, the handshake's among them, and those of full segments.
    pub(super) least: Least,
    pub(super) full: Least,
    pub(super) recent: Recent,
    pub(super) bins: Bins,
    pub(super) longest: Nanos,
    pub(super) busy: Batches,
    mark: Option<Mark>,
}

impl Side {
    /// A segment that passed at `sent` took `sample` to come back.
    pub(super) fn sample(&mut self, sent: Nanos, sample: Nanos, is_full: bool, segments: u32) {
        self.least.see(sample);
        if is_full {
            self.full.see(sample);
        }
        self.longest = self.longest.max(sample);
        self.recent.see(sent, sample);
        self.bins.see(sample, segments);
    }

    /// Packets came back up to `top`; the newest of them took `sample`.
    ///
    /// The server of a first-in first-out queue is busy from when a packet arrives there until it leaves. The packet spent
    /// what exceeds the least time in queue and server, so that the server was busy since the last mark if that is as
    /// long.
    pub(super) fn advance(
        &mut self,
        time: Nanos,
        top: i64,
        octets: i64,
        sample: Option<Nanos>,
        wire: impl Fn(i64) -> i64,
    ) {
        if let (Some(mark), Some(sample), Some(least)) = (self.mark, sample, self.least.min()) {
            let (apart, new) = (time - mark.time, octets - mark.octets);
            if new > 0 && top - mark.top == new && apart > 0 && sample - least >= apart {
                self.busy.add(mark.time, apart, wire(new));
            }
        }
        self.mark = Some(Mark { time, top, octets });
    }

    /// The longest wait beyond the least time.
    pub(super) fn swing(&self) -> Nanos {
        self.least.min().map_or(0, |least| self.longest - least)
    }
}
