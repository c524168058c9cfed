//! One side of the capture point: the time to and fro, and the rate at which packets come from it.

use super::{
    batches::Batches,
    least::Least,
    waits::{Bins, DELAY, Recent},
};
use crate::time::Nanos;

/// So many pairs without holes are enough.
const CLEAN_PAIRS: u64 = 64;

/// Whether a packet was answered at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prompt {
    Yes,
    /// Data was missing: the receiver may have waited for a millisecond, or for the next segment.
    Almost,
    /// The receiver may have waited for its timer.
    No,
}

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
    /// Busy time while nothing was missing, and while something was: receivers delay acknowledgments of data beside holes.
    clean: Batches,
    holed: Batches,
    mark: Option<Mark>,
    /// What has come since the last sample.
    pending: Pending,
}

/// Packets whose samples are not known.
#[derive(Debug, Default, Clone, Copy)]
struct Pending {
    start: Nanos,
    time: Nanos,
    octets: i64,
    has_hole: bool,
}

impl Side {
    /// A segment that passed at `sent` took `sample` to come back.
    pub(super) fn sample(
        &mut self,
        sent: Nanos,
        sample: Nanos,
        is_full: bool,
        segments: u32,
        prompt: Prompt,
    ) {
        self.see_least(sample, is_full);
        if prompt == Prompt::No {
            return;
        }
        let surely = match prompt {
            Prompt::Yes => sample,
            _ => sample - DELAY,
        };
        self.longest = self.longest.max(surely);
        self.recent.see(sent, sample, prompt == Prompt::Yes);
        self.bins.see(sample, segments);
    }

    pub(super) fn see_least(&mut self, sample: Nanos, is_full: bool) {
        self.least.see(sample);
        if is_full {
            self.full.see(sample);
        }
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
        packet: i64,
        wire: impl Fn(i64) -> i64,
    ) {
        if let (Some(mark), Some(sample)) = (self.mark, sample) {
            let (apart, new) = (time - mark.time, octets - mark.octets);
            if new > 0 && top - mark.top == new && apart > 0 && self.is_busy(sample, apart, packet)
            {
                let is_clean = top == octets && mark.top == mark.octets;
                self.add(mark.time, apart, wire(new), is_clean);
            }
        }
        self.mark = Some(Mark { time, top, octets });
    }

    /// Whether a packet of this size, of which this is a sample, waited so long or longer, its time on the server included.
    fn is_busy(&self, sample: Nanos, time: Nanos, packet: i64) -> bool {
        if let Some(full) = self.full.min()
            && sample - full >= time
        {
            return true;
        }
        let least = self.least.min().unwrap_or(Nanos::MAX);
        sample.saturating_sub(least) >= time && sample - self.unloaded(packet) >= time
    }

    /// The least time that a packet of this size takes to come back, but for its time on the server. A small packet takes
    /// less time on other links, too.
    #[expect(clippy::cast_possible_truncation, reason = "the time of one packet")]
    fn unloaded(&self, packet: i64) -> Nanos {
        let least = self.least.min().unwrap_or(Nanos::MAX);
        let full = self.full.min().zip(self.busy().rate());
        let full = full.map(|(full, rate)| full - (packet as f64 / rate) as Nanos);
        full.map_or(least, |full| full.max(least))
    }

    fn add(&mut self, start: Nanos, time: Nanos, octets: i64, is_clean: bool) {
        let batches = if is_clean {
            &mut self.clean
        } else {
            &mut self.holed
        };
        batches.add(start, time, octets);
    }

    /// Packets came up to `top`; [`Side::settle`] tells whether the server was busy.
    pub(super) fn hold(&mut self, time: Nanos, top: i64, octets: i64, wire: impl Fn(i64) -> i64) {
        if let Some(mark) = self.mark {
            let (apart, new) = (time - mark.time, octets - mark.octets);
            let pending = &mut self.pending;
            if pending.octets == 0 {
                pending.start = mark.time;
            }
            pending.has_hole |= top - mark.top != new;
            pending.octets += wire(new);
            pending.time += apart;
        }
        self.mark = Some(Mark { time, top, octets });
    }

    /// A sample of the packet that comes now: the server was busy since the last sample if the packet waited that long.
    pub(super) fn settle(&mut self, now: Nanos, sample: Nanos, packet: i64) {
        let pending = std::mem::take(&mut self.pending);
        let since = pending.time + self.mark.map_or(0, |mark| now - mark.time);
        if pending.octets > 0
            && pending.time > 0
            && !pending.has_hole
            && self.is_busy(sample, since, packet)
        {
            self.add(pending.start, pending.time, pending.octets, true);
        }
    }

    /// A packet that advances nothing took its time on the server.
    pub(super) fn touch(&mut self, time: Nanos) {
        self.pending.has_hole = true;
        if let Some(mark) = &mut self.mark {
            mark.time = time;
        }
    }

    /// What came back does not tell when it was served.
    pub(super) fn lose(&mut self) {
        self.mark = None;
    }

    /// All time for which the server was seen to be busy.
    pub(super) fn busy_time(&self) -> Nanos {
        self.clean.busy() + self.holed.busy()
    }

    /// Busy time, without holes if there is enough of it.
    pub(super) fn busy(&self) -> &Batches {
        let clean = self.clean.pairs();
        if clean >= CLEAN_PAIRS || clean >= self.holed.pairs() {
            &self.clean
        } else {
            &self.holed
        }
    }

    /// The longest wait beyond the least time.
    pub(super) fn swing(&self) -> Nanos {
        self.least.min().map_or(0, |least| self.longest - least)
    }
}
