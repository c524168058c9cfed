//! Lost originals: the lengths of runs, the round-trip times around them, and window reductions.

use std::collections::BTreeMap;

use super::summaries::keep_every_second;
use crate::time::Nanos;

/// Maximum number of retransmitted originals without a verdict.
const MOST_PENDING: usize = 4096;
/// Maximum number of runs. Beyond it, every second one is discarded.
const MOST_RUNS: usize = 1024;

/// A side of the capture point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Before,
    After,
}

/// A run of consecutive lost originals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Run {
    pub(super) place: Place,
    /// Its first octet, and when it passed.
    pub(super) start: i64,
    pub(super) sent: Option<Nanos>,
    /// The round-trip time around the first.
    pub(super) around: Option<Nanos>,
    pub(super) segments: u32,
}

/// Lost originals.
#[derive(Debug, Default)]
pub(super) struct Lost {
    /// Retransmitted originals without a verdict, by their first octets, with one past the last.
    pending: BTreeMap<i64, (i64, Run)>,
    runs: Vec<Run>,
    /// One in this number of runs is stored.
    every: u32,
    seen: u32,
    /// One past the last lost original, and whether its run is stored.
    last: Option<(i64, bool)>,
    pub(super) segments: u64,
}

impl Lost {
    /// Records the first retransmission of an original up to `end`, as a run without segments.
    pub(super) fn suspect(&mut self, end: i64, run: Run) {
        if self.pending.len() >= MOST_PENDING {
            self.pending.pop_first();
        }
        self.pending.insert(run.start, (end, run));
    }

    /// Records the verdict on an original.
    pub(super) fn decide(&mut self, start: i64, end: i64, is_lost: bool, mss: i64) {
        let below = self.pending.range(..=start).next_back();
        let covers = below.map(|(at, pending)| (*at, *pending));
        let Some((at, (until, run))) = covers.filter(|(_, (until, _))| start < *until) else {
            return;
        };
        self.pending.remove(&at);
        if until > end {
            self.pending.insert(end, (until, run));
        }
        if is_lost {
            let segments = (end - start + mss - 1) / mss.max(1);
            let segments = u32::try_from(segments).unwrap_or(u32::MAX);
            self.add(
                end,
                Run {
                    start,
                    segments,
                    ..run
                },
            );
        }
    }

    fn add(&mut self, end: i64, run: Run) {
        self.segments += u64::from(run.segments);
        if let Some((last, is_kept)) = self.last
            && last == run.start
        {
            self.last = Some((end, is_kept));
            if is_kept && let Some(kept) = self.runs.last_mut() {
                kept.segments = kept.segments.saturating_add(run.segments);
            }
            return;
        }
        self.every = self.every.max(1);
        self.seen += 1;
        let is_kept = self.seen >= self.every;
        self.last = Some((end, is_kept));
        if !is_kept {
            return;
        }
        self.seen = 0;
        if self.runs.len() >= MOST_RUNS {
            keep_every_second(&mut self.runs);
            self.every = self.every.saturating_mul(2);
        }
        self.runs.push(run);
    }

    /// The stored runs, and the number of runs that each represents.
    pub(super) fn runs(&self) -> (&[Run], u32) {
        (&self.runs, self.every.max(1))
    }
}

/// Maximum number of stored reductions.
const MOST_RATIOS: usize = 256;

/// The amounts in flight before and after recoveries.
#[derive(Debug, Default)]
pub(super) struct Reductions {
    /// The largest amount in flight in the current round.
    peak: i64,
    former: i64,
    round: i64,
    before: Option<i64>,
    ratios: Vec<f64>,
}

impl Reductions {
    /// Processes a segment that was sent: its end, the cumulative acknowledgment, and whether a
    /// loss is being repaired.
    pub(super) fn see(&mut self, next: i64, una: i64, is_recovering: bool, by_timer: bool) {
        let flight = next - una;
        if by_timer {
            self.before = None;
            self.peak = 0;
            return;
        }
        match (is_recovering, self.before) {
            (true, None) => self.before = Some(self.peak.max(self.former)),
            (false, Some(before)) => {
                self.before = None;
                if before > 0 && self.ratios.len() < MOST_RATIOS {
                    self.ratios.push(flight as f64 / before as f64);
                }
                self.restart(next, flight);
            }
            (true, Some(_)) => {}
            (false, None) if una >= self.round => {
                self.former = self.peak;
                self.restart(next, flight);
            }
            (false, None) => self.peak = self.peak.max(flight),
        }
    }

    fn restart(&mut self, next: i64, flight: i64) {
        self.round = next;
        self.peak = flight;
    }

    /// The median ratio, and the number of ratios.
    pub(super) fn median(&self) -> Option<(f64, usize)> {
        let mut sorted = self.ratios.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.get(sorted.len() / 2)?;
        Some((*middle, sorted.len()))
    }
}
