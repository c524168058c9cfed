//! Changes in mid-run.

use anabranch_core::units::{Duration, Instant, Rate, text::Limit};

use super::{
    super::service::{AnyService, Fixed, Service},
    ServedLink,
};
use crate::{impair, queue};

impl ServedLink {
    /// Changes the rate during a transmission and notifies the queue.
    pub fn set_rate(&mut self, now: Instant, rate: Option<Rate>) {
        self.set_service(now, AnyService::Fixed(Fixed::new(rate)));
        self.queue.set_rate(rate);
    }
    /// Changes the service during a transmission; bits already sent stay sent.
    pub fn set_service(&mut self, now: Instant, mut service: AnyService) {
        debug_assert!(!self.ahead, "a link that changes is built as one");
        self.account_capacity(now);
        if let Some(served) = self.in_service.as_mut().filter(|s| !s.pausing) {
            if self.up {
                let sent = self.service.interrupt(served.since, now);
                // Without a rate the packet has already been sent.
                served.remaining_bits = served.remaining_bits.saturating_sub(sent);
            }
            served.since = now;
            served.done = if self.up {
                service.begin(now, served.remaining_bits, served.item.arrived)
            } else {
                Instant::NEVER
            };
        }
        self.service = service;
    }

    /// Takes the link down or up. While it is down it sends nothing, keeps its queue and drops
    /// arrivals; the current transmission resumes afterwards. Propagating packets are not affected.
    pub fn set_up(&mut self, now: Instant, up: bool) {
        debug_assert!(!self.ahead, "a link that changes is built as one");
        if up == self.up {
            return;
        }
        self.account_capacity(now);
        if self.group.is_some() {
            self.up = up;
            self.set_members_up(now, up);
            return;
        }
        if let Some(served) = self.in_service.as_mut().filter(|s| !s.pausing) {
            if up {
                let (bits, arrived) = (served.remaining_bits, served.item.arrived);
                served.done = self.service.begin(now, bits, arrived);
            } else {
                let sent = self.service.interrupt(served.since, now);
                served.remaining_bits = served.remaining_bits.saturating_sub(sent);
                served.done = Instant::NEVER;
            }
            served.since = now;
        }
        self.up = up;
        if up && self.in_service.is_none() {
            self.start_next(now, &mut Vec::new());
            self.account_queue(now);
        }
    }

    /// Changes the propagation delay of packets that leave from now on.
    pub fn set_delay(&mut self, delay: Duration) {
        debug_assert!(!self.ahead, "a link that changes is built as one");
        self.propagation = delay.into();
    }
    /// Changes the parameters of the queue discipline.
    pub fn set_queue(&mut self, to: &queue::Config) {
        self.queue.change(to);
    }
    /// Changes the parameters of the impairment at index `place`.
    ///
    /// # Panics
    /// If there is none, or if it reorders now and did not before.
    pub fn set_impairment(&mut self, place: usize, to: &impair::Config) {
        debug_assert!(!self.ahead, "a link that changes is built as one");
        self.impairments[place].impairment.change(to);
    }
    /// Changes the queue's limit; returns `false` if its discipline has none.
    pub fn set_limit(&mut self, limit: Limit) -> bool {
        self.queue.set_limit(limit)
    }
}
