//! A served link: any queue, any service, impairments, changes in mid-run.
//!
//! The engine calls [`ServedLink::arrive`] when a packet comes, [`ServedLink::complete`] when the
//! instant that [`ServedLink::completion`] names has come, and carries out what they report.
//!
//! Where neither the rate nor the link's state can change, the end of a transmission is known when it
//! begins, and so is all that follows from it: the packet's fate is told *ahead*, and a completion is asked
//! for only while something waits to be sent next. On an idle link a packet then costs one call.

mod account;
mod change;
mod exit;
mod group;
mod held;

use anabranch_core::{
    rng::Stream,
    units::{Instant, text::Limit},
};

pub use self::exit::{Completed, Exit, Impaired, Impairing};

use self::held::Held;
use super::{
    propagation::Propagation,
    service::{AnyService, Service},
    statistics::Statistics,
};
use crate::window::Window;
use crate::{
    group::Members,
    impair::Impairment,
    queue::{Item, Outcome, QueueContext, reorder::Queue},
};

/// One direction of a served link.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts of their own")]
pub struct ServedLink {
    queue: Queue,
    service: AnyService,
    propagation: Propagation,
    impairments: Vec<Impaired>,
    up: bool,
    /// Fates are told when transmissions begin.
    ahead: bool,
    /// With `ahead`: when the link is free for the next packet, and the completion asked for.
    busy_until: Instant,
    due: Instant,
    /// With `ahead`: nothing has waited since `busy_until`, and the discipline has not been told.
    ran_out: bool,
    /// The queue may hold packets back although the link is free.
    shaped: bool,
    /// With `shaped` and `ahead`: the end of the last transmission, before which `busy_until` is not.
    sent_until: Instant,
    /// With `shaped` and without `ahead`: when the queue may be asked again.
    held_until: Instant,
    /// Otherwise: the transmission under way.
    in_service: Option<InService>,
    stream: Stream,
    arrivals: u32,
    transmissions: u64,
    latest_exit: Instant,
    reorders: bool,
    window: Window,
    statistics: Statistics,
    /// The next expected of the numbers that arrivals here were given.
    next_order: u32,
    /// The number of the last to get through.
    last_order: u32,
    /// Packets that have waited since `queue_since`.
    queue_packets: usize,
    queue_since: Instant,
    capacity_bits: f64,
    capacity_since: Instant,
    outcomes: Vec<Outcome>,
    /// The wait of each packet is an outcome.
    records_waits: bool,
    /// The bound on all that the link holds, if it has one.
    held: Option<Box<Held>>,
    /// The members of an aggregated link, which send in the place of one transmitter.
    group: Option<Box<Members>>,
}

#[derive(Debug, Clone, Copy)]
struct InService {
    item: Item,
    /// Bits still to send at `since`.
    remaining_bits: u64,
    since: Instant,
    done: Instant,
    /// A pause before the link sends the same packet again.
    pausing: bool,
}

/// What a link is made of.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts of their own")]
pub struct Parts {
    /// Where packets wait.
    pub queue: Queue,
    /// Whether the queue may hold packets back although the link is free ([`crate::queue::QueueParams::shapes`]).
    pub shaped: bool,
    /// How they are sent.
    pub service: AnyService,
    /// Propagation delay.
    pub propagation: Propagation,
    /// Whether a packet that leaves after the delay has fallen may overtake those under way.
    pub overtake: bool,
    /// What the path does to them after it.
    pub impairments: Vec<Impaired>,
    /// Whether the link works at the start.
    pub up: bool,
    /// Whether its service, delay or state may change in mid-run.
    pub may_change: bool,
    /// The link's own random stream (queue and service).
    pub stream: Stream,
    /// What is measured.
    pub window: Window,
    /// How much it may hold in all: waiting, being sent and propagating.
    pub held_limit: Limit,
    /// Whether [`ServedLink::take_outcomes`] reports how long each packet has waited.
    pub records_waits: bool,
    /// The members of an aggregated link; `service` is one member's then.
    pub group: Option<Members>,
}

impl ServedLink {
    /// A link with nothing on it.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let fixed = matches!(parts.service, AnyService::Fixed(_));
        let reorders = parts.overtake || parts.impairments.iter().any(|i| i.impairment.reorders());
        Self {
            queue: parts.queue,
            service: parts.service,
            propagation: parts.propagation,
            impairments: parts.impairments,
            ahead: parts.up && !parts.may_change && fixed && parts.group.is_none(),
            busy_until: Instant::START,
            due: Instant::NEVER,
            ran_out: false,
            shaped: parts.shaped,
            sent_until: Instant::START,
            held_until: Instant::NEVER,
            up: parts.up,
            in_service: None,
            stream: parts.stream,
            arrivals: 0,
            transmissions: 0,
            latest_exit: Instant::START,
            reorders,
            window: parts.window,
            statistics: Statistics::default(),
            next_order: 0,
            last_order: u32::MAX,
            queue_packets: 0,
            queue_since: Instant::START,
            capacity_bits: 0.0,
            capacity_since: parts.window.start(),
            outcomes: Vec::new(),
            records_waits: parts.records_waits,
            held: Held::new(parts.held_limit),
            group: parts.group.map(Box::new),
        }
    }

    /// Arrivals are numbered from `order` on. Only before the first: for tests of the wrap.
    #[doc(hidden)]
    pub const fn count_arrivals_from(&mut self, order: u32) {
        self.arrivals = order;
        self.next_order = order;
        self.last_order = order.wrapping_sub(1);
    }

    /// A packet arrives. What the queue decided is in [`ServedLink::take_outcomes`]; what impairments did is
    /// appended to `impairing` if the packet's fate is known at once, which is the answer then.
    #[inline]
    pub fn arrive(
        &mut self,
        now: Instant,
        mut item: Item,
        impairing: &mut Vec<Impairing>,
    ) -> Option<Completed> {
        item.order = self.arrivals;
        self.arrivals = self.arrivals.wrapping_add(1);
        if !self.up || (self.held.is_some() && !self.has_room(now, &item)) {
            let before = self.outcomes.len();
            self.outcomes.push(Outcome::Dropped(item));
            self.count_drops(now, before);
            return None;
        }
        let idle = if self.ahead {
            self.busy_until <= now
        } else if self.group.is_some() {
            self.arrive_at_group(now, item);
            return None;
        } else {
            self.in_service.is_none() && !(self.shaped && now < self.queue.held_until())
        };
        let before = self.outcomes.len();
        if idle && self.queue.is_empty() {
            self.tell_ran_out();
            let passes = self.with_queue(now, |queue, cx| queue.pass(&mut item, cx));
            self.count_drops(now, before);
            if !passes {
                return None;
            }
            return self.start(now, &item, impairing);
        }
        self.with_queue(now, |queue, cx| queue.enqueue(item, cx));
        let started = if idle {
            self.start_next(now, impairing)
        } else {
            self.due = self.busy_until;
            self.hold();
            None
        };
        self.account_queue(now);
        self.statistics
            .queue_length(self.window, now, self.queue.len());
        self.count_drops(now, before);
        started
    }

    /// When to call [`Self::complete`]: the transmission (or pause) under way ends; [`Instant::NEVER`] if
    /// there is none, or nothing waits behind one whose fate is told.
    #[must_use]
    #[inline]
    pub fn completion(&self) -> Instant {
        if self.ahead {
            self.due
        } else if let Some(group) = &self.group {
            group.completion()
        } else {
            self.in_service.map_or(self.held_until, |s| s.done)
        }
    }

    /// The transmission (or pause) under way has ended. Says what became of its packet, or of the next one
    /// where fates are told ahead. What impairments did is appended to `impairing`; what the queue
    /// decided is in [`ServedLink::take_outcomes`].
    ///
    /// # Panics
    /// If none was under way.
    pub fn complete(&mut self, now: Instant, impairing: &mut Vec<Impairing>) -> Option<Completed> {
        let before = self.outcomes.len();
        if self.ahead {
            self.due = Instant::NEVER;
            let started = self.start_next(now, impairing);
            self.account_queue(now);
            self.count_drops(now, before);
            return started;
        }
        if self.group.is_some() {
            return self.complete_member(now, impairing);
        }
        if self.shaped && self.in_service.is_none() {
            self.held_until = Instant::NEVER;
            self.start_next(now, impairing);
            self.account_queue(now);
            self.count_drops(now, before);
            return None;
        }
        let served = self
            .in_service
            .take()
            .expect("a completion belongs to a transmission");
        let item = served.item;
        let bits = u64::from(item.size) * 8;
        if served.pausing {
            self.serve(now, item, bits);
            return Some(Completed::Resumed(item.packet));
        }
        self.statistics.sent(self.window, now, item.size);
        let mut draw = self.stream.at(self.transmissions);
        self.transmissions += 1;
        if let Some(pause) = self.service.retransmit(now, &mut draw) {
            let done = now + pause;
            self.in_service = Some(InService {
                item,
                remaining_bits: bits,
                since: now,
                done,
                pausing: true,
            });
            return Some(Completed::Resending(item.packet));
        }
        let left = now.saturating_add(self.service.lag());
        self.start_next(now, impairing);
        self.account_queue(now);
        self.count_drops(now, before);
        Some(self.exit(left, &item, impairing))
    }

    #[inline]
    fn with_queue<T>(
        &mut self,
        now: Instant,
        f: impl FnOnce(&mut Queue, &mut QueueContext<'_>) -> T,
    ) -> T {
        let mut cx = QueueContext {
            now,
            held_packets: 0,
            held_bytes: 0,
            stream: self.stream,
            outcomes: &mut self.outcomes,
        };
        f(&mut self.queue, &mut cx)
    }

    /// The discipline hears at the latest before the next packet that the link had sent everything.
    #[inline]
    fn tell_ran_out(&mut self) {
        if self.ran_out {
            self.ran_out = false;
            let at = self.busy_until;
            self.with_queue(at, Queue::ran_out);
        }
    }

    /// The queue holds back what waits, and the link is to ask again.
    fn is_held(&mut self, now: Instant) -> bool {
        let held = now < self.queue.held_until() && !self.queue.is_empty();
        self.held_until = Instant::NEVER;
        if held {
            self.held_until = self.queue.held_until();
        }
        held
    }

    /// A packet has joined a queue that may hold it back on a free link.
    #[inline]
    fn hold(&mut self) {
        if self.shaped && !self.ahead && self.up && self.in_service.is_none() {
            self.held_until = self.queue.held_until();
        }
    }

    /// The link is free: the next packet that waits goes into service, if the link works.
    fn start_next(&mut self, now: Instant, impairing: &mut Vec<Impairing>) -> Option<Completed> {
        if !self.up || (self.shaped && !self.ahead && self.is_held(now)) {
            return None;
        }
        if self.queue.is_empty() {
            // With `ahead` that is told once the transmission has ended.
            self.with_queue(now, Queue::ran_out);
            return None;
        }
        let next = self.with_queue(now, Queue::dequeue);
        next.and_then(|item| self.start(now, &item, impairing))
    }

    /// A packet goes into service. Says what becomes of it where that is told ahead.
    #[inline]
    fn start(
        &mut self,
        now: Instant,
        item: &Item,
        impairing: &mut Vec<Impairing>,
    ) -> Option<Completed> {
        self.count_wait(item, now);
        if !self.ahead {
            self.serve(now, *item, u64::from(item.size) * 8);
            return None;
        }
        let done = self.service.finish(now, u64::from(item.size) * 8);
        self.busy_until = done;
        if self.shaped {
            self.sent_until = done;
            self.busy_until = done.max(self.queue.held_until());
        }
        self.ran_out = self.queue.is_empty();
        if !self.ran_out {
            self.due = self.busy_until;
        }
        self.statistics.sent(self.window, done, item.size);
        Some(self.exit(done, item, impairing))
    }

    fn serve(&mut self, now: Instant, item: Item, bits: u64) {
        // A pause may end while the link is down.
        let done = if self.up {
            self.service.begin(now, bits, item.arrived)
        } else {
            Instant::NEVER
        };
        self.in_service = Some(InService {
            item,
            remaining_bits: bits,
            since: now,
            done,
            pausing: false,
        });
    }

    /// What the queue decided since the last call, in order.
    pub fn take_outcomes(&mut self, into: &mut Vec<Outcome>) {
        into.append(&mut self.outcomes);
    }

    /// Whether the queue decided anything since it was last asked.
    #[must_use]
    #[inline]
    pub fn has_outcomes(&self) -> bool {
        !self.outcomes.is_empty()
    }

    /// Whether packets may leave in another order than their transmissions ended.
    #[must_use]
    pub fn reorders(&self) -> bool {
        self.reorders
    }
    /// What it measures.
    #[must_use]
    pub fn window(&self) -> Window {
        self.window
    }
    /// Packets that wait.
    #[must_use]
    pub fn queue_packets(&self) -> usize {
        self.waiting()
    }
    /// Packets in transmission, or in a pause before they are retransmitted. Those whose fate is told when it begins have left.
    #[must_use]
    pub fn packets_in_service(&self) -> usize {
        let members = self
            .group
            .as_ref()
            .map_or(0, |group| group.sending_packets());
        members + usize::from(self.in_service.is_some())
    }
    /// Bytes that wait.
    #[must_use]
    pub fn queue_bytes(&self) -> u64 {
        let staged = self.group.as_ref().map_or(0, |group| group.staged().1);
        self.queue.bytes() + staged
    }
}
