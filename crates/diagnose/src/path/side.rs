//! One side of the capture point: its round-trip time, and the rate at which packets arrive from
//! it.

use super::{
    batches::Batches,
    summaries::{Bins, DELAY, Least, Recent},
};
use crate::time::Nanos;

/// Number of pairs without holes that is sufficient.
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

/// The position of the stream of packets from this side.
#[derive(Debug, Clone, Copy)]
struct Mark {
    time: Nanos,
    /// The highest octet, and the number of octets that have arrived: both grow alike while no data
    /// is missing or late.
    top: i64,
    octets: i64,
}

/// Observations of one side.
#[derive(Debug, Default)]
pub(crate) struct Side {
    /// Minima of all samples, including the handshake, and of full segments.
    pub(crate) least: Least,
    pub(super) full: Least,
    pub(super) recent: Recent,
    pub(super) bins: Bins,
    pub(super) longest: Nanos,
    /// Busy time without and with holes: receivers delay acknowledgments of data above holes.
    clean: Batches,
    holed: Batches,
    mark: Option<Mark>,
    /// Octets since the last sample.
    pending: Pending,
}

/// Packets since the last sample.
#[derive(Debug, Default, Clone, Copy)]
struct Pending {
    start: Nanos,
    time: Nanos,
    octets: i64,
    has_hole: bool,
}

impl Side {
    /// Records a sample: the segment that passed at `sent` was answered after `sample`.
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
        self.bins.see(sample, i64::from(segments));
    }

    pub(super) fn see_least(&mut self, sample: Nanos, is_full: bool) {
        self.least.see(sample);
        if is_full {
            self.full.see(sample);
        }
    }

    /// Packets returned up to `top`; the round trip of the latest was `sample`.
    ///
    /// The server of a first-in first-out queue is busy from a packet's arrival there to its
    /// departure. The excess of the sample over the least time is the packet's time in queue and
    /// server. If it is at least the time since the last mark, the server was busy since then.
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

    /// Whether a packet of this size with this sample waited at least `time`, including its
    /// transmission.
    fn is_busy(&self, sample: Nanos, time: Nanos, packet: i64) -> bool {
        if let Some(full) = self.full.min()
            && sample - full >= time
        {
            return true;
        }
        let least = self.least.min().unwrap_or(Nanos::MAX);
        sample.saturating_sub(least) >= time && sample - self.unloaded(packet) >= time
    }

    /// The minimum round-trip time of a packet of this size, without its transmission time at the
    /// bottleneck. A small packet also takes less time on other links.
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

    /// Records packets up to `top`. [`Side::settle`] decides later whether the server was busy.
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

    /// Processes the sample of the current packet: the server was busy since the last sample if the
    /// packet waited that long.
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

    /// A packet without new data took time on the server.
    pub(super) fn touch(&mut self, time: Nanos) {
        self.pending.has_hole = true;
        if let Some(mark) = &mut self.mark {
            mark.time = time;
        }
    }

    /// Discards the mark: the returned packets do not show when they were served.
    pub(super) fn lose(&mut self) {
        self.mark = None;
    }

    /// All time for which the server was observed to be busy.
    pub(super) fn busy_time(&self) -> Nanos {
        self.clean.busy() + self.holed.busy()
    }

    /// Busy time, without holes if there is enough.
    pub(super) fn busy(&self) -> &Batches {
        let clean = self.clean.pairs;
        if clean >= CLEAN_PAIRS || clean >= self.holed.pairs {
            &self.clean
        } else {
            &self.holed
        }
    }

    /// The longest excess over the minimum time.
    pub(super) fn swing(&self) -> Nanos {
        self.least.min().map_or(0, |least| self.longest - least)
    }
}
