//! A link whose members replace the single transmitter. Outcomes are reported at the end of a
//! transmission, because concurrent members finish in another order than they started.

use anabranch_core::{packet::Ecn, units::Instant};

use super::{
    ServedLink,
    exit::{Completed, Impairing, Travel},
};
use crate::{
    group::{
        Members, Spread,
        members::{Frame, Load, Notice},
    },
    impair::View,
    link::service::Service,
    queue::{Item, QueueContext, reorder::Queue},
};

impl ServedLink {
    /// Members, if this is an aggregated link.
    #[must_use]
    pub fn members(&self) -> Option<&Members> {
        self.group.as_deref()
    }
    /// Members, for switching.
    pub fn members_mut(&mut self) -> Option<&mut Members> {
        self.group.as_deref_mut()
    }
    /// Latest propagation delay.
    #[must_use]
    pub fn delay(&self) -> anabranch_core::units::Duration {
        self.propagation.latest()
    }

    fn group(&mut self) -> &mut Members {
        self.group.as_mut().expect("the caller looked")
    }

    /// Calls `f` with the queue, as [`ServedLink::with_queue`] does. Packets in line for one member
    /// count as waiting.
    fn with_shared_queue<T>(
        &mut self,
        now: Instant,
        f: impl FnOnce(&mut Queue, &mut QueueContext<'_>) -> T,
    ) -> T {
        let (held_packets, held_bytes) = self.group().staged();
        self.with_queue(now, |queue, cx| {
            (cx.held_packets, cx.held_bytes) = (held_packets, held_bytes);
            f(queue, cx)
        })
    }

    #[inline(never)]
    pub(super) fn arrive_at_group(&mut self, now: Instant, mut item: Item) {
        let before = self.outcomes.len();
        let nobody_waits = self.queue.is_empty();
        let group = self.group();
        let to = if !nobody_waits || group.staged().0 > 0 {
            None
        } else if group.spread() == Spread::PerPacket {
            group.first_idle()
        } else {
            let own = group.of_flow(item.connection);
            own.filter(|member| group.may_start(*member, item.connection))
        };
        if let Some(member) = to {
            let passes = self.with_queue(now, |queue, cx| queue.pass(&mut item, cx));
            self.count_drops(now, before);
            if passes {
                self.start_on(now, member, Load::Packet(item));
            }
            return;
        }
        self.with_shared_queue(now, |queue, cx| queue.enqueue(item, cx));
        self.feed(now);
        self.account_waiting(now, self.waiting());
        let waiting = self.waiting();
        self.statistics.queue_length(self.window, now, waiting);
        self.count_drops(now, before);
    }

    /// Gives waiting packets to idle members.
    fn feed(&mut self, now: Instant) {
        if self.group().spread() == Spread::PerFlow {
            self.feed_by_flow(now);
            return;
        }
        while !self.queue.is_empty()
            && let Some(member) = self.group().first_idle()
        {
            let Some(item) = self.with_queue(now, Queue::dequeue) else {
                break;
            };
            self.start_on(now, member, Load::Packet(item));
        }
    }
    fn feed_by_flow(&mut self, now: Instant) {
        loop {
            if let Some((member, item)) = self.group().unstage() {
                self.start_on(now, member, Load::Packet(item));
                continue;
            }
            if self.queue.is_empty() || !self.group().wants_more() {
                break;
            }
            let Some(item) = self.with_shared_queue(now, Queue::dequeue) else {
                break;
            };
            let group = self.group();
            let member = group
                .of_flow(item.connection)
                .expect("a member that wants more distributes");
            group.stage(member, item);
        }
    }

    #[inline]
    fn start_on(&mut self, now: Instant, member: usize, load: Load) {
        let begin = self.group().ready(member, now);
        if let Load::Packet(item) = &load {
            self.count_wait(item, begin);
        }
        let done = self.service.finish(begin, u64::from(load.size()) * 8);
        self.group().start(member, load, begin, done);
    }

    /// Ends a member's transmission.
    #[inline(never)]
    pub(super) fn complete_member(
        &mut self,
        now: Instant,
        impairing: &mut Vec<Impairing>,
    ) -> Option<Completed> {
        let before = self.outcomes.len();
        let (member, load) = self.group().complete(now);
        if let Some(frame) = self.group().next_frame(member) {
            self.start_on(now, member, Load::Frame(frame));
        }
        self.feed(now);
        if self.group().is_idle() && self.waiting() == 0 {
            self.with_queue(now, Queue::ran_out);
        }
        self.account_waiting(now, self.waiting());
        self.count_drops(now, before);
        let completed = match load {
            Load::Packet(item) => {
                self.statistics.sent(self.window, now, item.size);
                Some(self.exit(now, &item, impairing))
            }
            Load::Frame(frame) => {
                self.send_off(now, member, frame);
                None
            }
        };
        self.group().note_drained(member);
        completed
    }

    /// Sends an LACPDU into propagation, with the impairments that packets meet.
    fn send_off(&mut self, now: Instant, port: usize, frame: Frame) {
        let view = View {
            size: Load::Frame(frame).size(),
            ecn: Ecn::NotEct,
            index: 0,
            has_data: false,
        };
        let notice = match self.travel(now, view, &mut Vec::new()) {
            Travel::Through { at, duplicate } => Notice::Left {
                port,
                at,
                copies: 1 + u8::from(duplicate),
                frame,
            },
            Travel::Lost { .. } => Notice::Lost,
        };
        self.group().notify(notice);
    }

    /// Sends an LACPDU over its port, ahead of all packets.
    ///
    /// # Panics
    /// If this is no aggregated link.
    pub fn send_frame(&mut self, now: Instant, port: usize, frame: Frame) {
        let group = self.group();
        group.queue_frame(port, frame);
        if self.up
            && let Some(frame) = self.group().next_frame(port)
        {
            self.start_on(now, port, Load::Frame(frame));
        }
    }

    /// Sets the members that distribute packets, as a bit mask.
    ///
    /// # Panics
    /// If this is no aggregated link.
    pub fn distribute(&mut self, now: Instant, set: u64) {
        let before = self.outcomes.len();
        self.group().distribute(now, set);
        if self.up {
            self.feed(now);
        }
        self.account_waiting(now, self.waiting());
        self.count_drops(now, before);
    }

    pub(super) fn set_members_up(&mut self, now: Instant, up: bool) {
        let before = self.outcomes.len();
        self.group().set_up(now, up);
        if up {
            for member in 0..self.group().len() {
                if let Some(frame) = self.group().next_frame(member) {
                    self.start_on(now, member, Load::Frame(frame));
                }
            }
            self.feed(now);
        }
        self.account_waiting(now, self.waiting());
        self.count_drops(now, before);
    }
}
