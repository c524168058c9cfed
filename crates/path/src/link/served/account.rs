//! Counters of a served link: drops, waiting time, capacity.

use anabranch_core::units::Instant;

use super::{
    super::{service::Service, statistics::Statistics},
    ServedLink,
};
use crate::queue::{Item, Outcome};

impl ServedLink {
    /// Counters without the time of packets that still wait.
    #[must_use]
    pub fn counters(&self) -> &Statistics {
        &self.statistics
    }
    /// Packets sent by `now`, without a packet whose outcome is reported but whose transmission has
    /// not ended.
    #[must_use]
    pub fn sent_by(&self, now: Instant) -> u64 {
        let end = if self.shaped {
            self.sent_until
        } else {
            self.busy_until
        };
        let under_way = self.ahead && end > now && self.window.contains(end);
        self.statistics.sent_packets - u64::from(under_way)
    }
    /// Counters up to `now`, including the time of packets that still wait.
    pub fn statistics(&mut self, now: Instant) -> &Statistics {
        self.account_waiting(now, self.waiting());
        &self.statistics
    }
    /// Bits that the link could have sent from the start of the window to `now`; 0 if transmission
    /// takes no time.
    pub fn capacity_bits(&mut self, now: Instant) -> f64 {
        self.account_capacity(now);
        self.capacity_bits
    }

    pub(super) fn account_capacity(&mut self, now: Instant) {
        let to = now.min(self.window.end());
        if self.up {
            let members = self.group.as_ref().map_or(1, |group| group.len());
            self.capacity_bits += self.service.capacity(self.capacity_since, to) * members as f64;
        }
        self.capacity_since = self.capacity_since.max(to);
    }

    /// Updates the integral of the queue length up to `now`; called after each change.
    #[inline]
    pub(super) fn account_queue(&mut self, now: Instant) {
        self.account_waiting(now, self.queue.len());
    }
    #[inline]
    pub(super) fn account_waiting(&mut self, now: Instant, packets: usize) {
        if self.queue_packets > 0 {
            let span = self.window.overlap(self.queue_since, now).as_picos();
            self.statistics.queue_time += u128::from(span) * self.queue_packets as u128;
            self.statistics
                .waited_through(self.window, self.queue_since, now, self.queue_packets);
        }
        self.queue_packets = packets;
        self.queue_since = now;
    }

    /// Packets that wait in the queue or in line for one member of a group.
    #[inline]
    pub(super) fn waiting(&self) -> usize {
        let staged = self.group.as_ref().map_or(0, |group| group.staged().0);
        self.queue.len() + staged as usize
    }

    /// Records the wait of a packet whose transmission begins at `started`.
    #[inline]
    pub(super) fn count_wait(&mut self, item: &Item, started: Instant) {
        if started == item.arrived {
            self.statistics.unqueued(self.window, started);
            return;
        }
        let queue_delay = started - item.arrived;
        self.statistics.queued(self.window, started, queue_delay);
        if self.records_waits {
            self.outcomes.push(Outcome::Waited {
                packet: item.packet,
                queue_delay,
            });
        }
    }

    #[inline]
    pub(super) fn count_drops(&mut self, now: Instant, before: usize) {
        if self.outcomes.len() > before {
            self.count_outcomes(now, before);
        }
    }

    #[inline(never)]
    fn count_outcomes(&mut self, now: Instant, before: usize) {
        let measured = self.window.contains(now);
        for outcome in &self.outcomes[before..] {
            match outcome {
                Outcome::Dropped(_) => self.statistics.dropped_packets += u64::from(measured),
                Outcome::Marked(_) => self.statistics.marked_packets += u64::from(measured),
                Outcome::Moved(_) | Outcome::Waited { .. } => {}
            }
        }
    }
}
