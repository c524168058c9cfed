//! Loss detection by transmission time: by the limits of the timer rule, and by RACK.
//!
//! Segments sent once are in the order of their times; retransmitted segments are in a separate
//! queue. Each is scanned once.

use anabranch_core::units::{Duration, Instant};

use super::{
    Scoreboard,
    record::{Marks, Record, SETTLED},
};
use crate::cause::RetransmitCause;
use anabranch_wire::seq::Seq;

/// Marks lost the segments sent before `latest` and at least `age` ago.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// RACK.xmit_ts and RACK.end_seq.
    pub latest: (Instant, Seq),
    /// RACK.rtt + RACK.reo_wnd
    pub age: Duration,
}

/// Losses that [`Scoreboard::expire`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expired {
    /// Sequence numbers newly marked lost.
    pub lost: u64,
    /// Some of them were retransmissions.
    pub retransmissions: bool,
    /// Segments newly marked lost.
    pub segments: u32,
    /// First number of the latest sent among the lost segments that were sent once.
    pub latest: Option<Seq>,
    /// Time at which the earliest segment still in flight was sent.
    pub next: Option<Instant>,
}

/// Losses that [`Scoreboard::detect`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Sequence numbers newly marked lost.
    pub lost: u64,
    /// A segment in flight was sent before the latest delivered, but not long enough ago.
    pub waits: bool,
}

impl Scoreboard {
    /// Marks lost the segments in flight that were sent before `once`, or retransmitted before
    /// `again`.
    pub fn expire(&mut self, once: Instant, again: Instant) -> Expired {
        let before = self.lost;
        let (mut segments, mut latest, mut next) = (0, None, None::<Instant>);
        let mut number = self
            .repair
            .as_ref()
            .map_or(0, |repair| repair.expired)
            .max(self.gone());
        // Segments sent once are in the order of their times.
        while let Some(record) = self.records.get(self.index(number)) {
            if !record.any(SETTLED.with(Marks::RETRANSMITTED)) {
                if record.sent_at >= once {
                    next = Some(record.sent_at);
                    break;
                }
                (segments, latest) = (segments + 1, Some(record.start(self.una)));
                self.mark_lost(self.index(number), RetransmitCause::TimerRule);
            }
            number += 1;
        }
        let first_copies = self.lost - before;
        if let Some(repair) = &mut self.repair {
            repair.expired = number;
        }
        while let Some(&(sent_at, start)) = self
            .repair
            .as_ref()
            .and_then(|repair| repair.resent.front())
        {
            let index = self.index_after(start);
            let current = self
                .records
                .get(index)
                .is_some_and(|record| record.sent_at == sent_at && !record.any(SETTLED));
            if current {
                if sent_at >= again {
                    next = Some(next.map_or(sent_at, |next| next.min(sent_at)));
                    break;
                }
                segments += 1;
                self.mark_lost(index, RetransmitCause::TimerRule);
            }
            if let Some(repair) = &mut self.repair {
                repair.resent.pop_front();
            }
        }
        Expired {
            lost: self.lost - before,
            retransmissions: self.lost - before > first_copies,
            segments,
            latest,
            next,
        }
    }

    /// RACK_detect_loss (RFC 8985 §6.2 step 5).
    pub fn detect(&mut self, now: Instant, limit: &Limit) -> Found {
        let before = self.lost;
        let mut waits = false;
        let mut number = self
            .repair
            .as_ref()
            .map_or(0, |repair| repair.expired)
            .max(self.gone());
        let (latest_at, latest_end) = limit.latest;
        while let Some(record) = self.records.get(self.index(number)) {
            if !record.any(SETTLED.with(Marks::RETRANSMITTED)) {
                if (record.sent_at, record.end(self.una)) >= (latest_at, latest_end) {
                    break;
                }
                if record.sent_at.saturating_add(limit.age) > now {
                    waits = true;
                    break;
                }
                self.mark_lost(self.index(number), RetransmitCause::Rack);
            }
            number += 1;
        }
        let Some(repair) = &mut self.repair else {
            return Found { lost: 0, waits };
        };
        repair.expired = number;
        while let Some(&(sent_at, start)) = self
            .repair
            .as_ref()
            .and_then(|repair| repair.resent.front())
        {
            if let Some((index, end)) = self.resent_record(sent_at, start) {
                if (sent_at, end) >= (latest_at, latest_end) {
                    break;
                }
                if sent_at.saturating_add(limit.age) > now {
                    waits = true;
                    break;
                }
                self.mark_lost(index, RetransmitCause::Rack);
            }
            if let Some(repair) = &mut self.repair {
                repair.resent.pop_front();
            }
        }
        Found {
            lost: self.lost - before,
            waits,
        }
    }

    /// RACK_mark_losses_on_RTO (RFC 8985 §6.3): marks lost the first segment and all sent at least
    /// `age` ago.
    pub fn time_out(&mut self, now: Instant, age: Duration) {
        for index in 0..self.records.len() {
            let sent_before = |record: &Record| record.sent_at.saturating_add(age) <= now;
            if index == 0 || self.records.get(index).is_some_and(sent_before) {
                self.mark_lost(index, RetransmitCause::Rto);
            }
        }
    }

    /// Index of the segment that began at `start` when it was sent; its front may have been
    /// acknowledged since.
    fn index_after(&self, start: Seq) -> usize {
        let una = self.una;
        self.records
            .partition_point(|record| record.end(una) <= start)
    }

    /// Index and end of the segment retransmitted at `sent_at`, if that copy is its latest and in
    /// flight.
    fn resent_record(&self, sent_at: Instant, start: Seq) -> Option<(usize, Seq)> {
        let index = self.index_after(start);
        let record = self.records.get(index)?;
        (record.sent_at == sent_at && record.is_retransmitted() && !record.any(SETTLED))
            .then_some((index, record.end(self.una)))
    }

    fn resent_in_flight(&self) -> impl Iterator<Item = &Record> {
        let in_flight = |record: &&Record| record.is_retransmitted() && !record.any(SETTLED);
        self.records.iter().filter(in_flight)
    }

    /// Whether a retransmission is in flight.
    #[must_use]
    pub fn has_resent(&self) -> bool {
        self.resent_in_flight().next().is_some()
    }

    /// Retransmitted segments in flight.
    #[must_use]
    pub fn resent_segments(&self) -> u64 {
        self.resent_in_flight().count() as u64
    }

    /// Rebuilds the queue of retransmissions in flight, in the order of their times.
    pub(super) fn note_resent(&mut self) {
        if self.repair.is_none() {
            return;
        }
        let mut resent: Vec<(Instant, Seq)> = self
            .resent_in_flight()
            .map(|record| (record.sent_at, record.start(self.una)))
            .collect();
        resent.sort_unstable();
        self.repair.get_or_insert_default().resent = resent.into();
    }
}
