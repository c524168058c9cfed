//! A served link: any queue, any service, impairments, changes in mid-run.
//!
//! The engine calls [`ServedLink::arrive`] when a packet arrives and [`ServedLink::complete`] at
//! the instant that [`ServedLink::completion`] returns, and carries out the results.
//!
//! If neither the rate nor the link's state can change, the end of a transmission is known at its
//! start, and so is the packet's outcome. The link then reports outcomes *ahead*, and requests a
//! completion only while another packet waits. On an idle link a packet then costs one call.

mod account;
mod change;
mod exit;
mod group;
mod held;

use std::sync::Arc;

use anabranch_core::{
    rng::Stream,
    units::{Duration, Instant, Rate, text::Limit},
};

pub use self::exit::{Completed, Exit, Impaired, Impairing};

use self::held::Held;
use super::{
    propagation::{Delays, Propagation},
    service::{AnyService, Capacity, Fixed, Medium, Service},
    statistics::Statistics,
};
use crate::window::Window;
use crate::{
    group::Members,
    impair::{self, Impairment},
    queue::{
        self, Discipline, Item, Outcome, QueueContext,
        reorder::{Queue, Reorder},
    },
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
    /// Outcomes are reported at the start of each transmission.
    ahead: bool,
    /// With `ahead`: when the link is free for the next packet. `due` is the completion requested.
    busy_until: Instant,
    due: Instant,
    /// With `ahead`: nothing has waited since `busy_until`, and the discipline has not been
    /// notified.
    ran_out: bool,
    /// The queue may hold packets back while the link is free.
    shaped: bool,
    /// With `shaped` and `ahead`: the end of the last transmission; `busy_until` is not earlier.
    sent_until: Instant,
    /// With `shaped` and without `ahead`: when the queue may release the next packet.
    held_until: Instant,
    /// Without `ahead`: the current transmission.
    in_service: Option<InService>,
    stream: Stream,
    arrivals: u32,
    transmissions: u64,
    latest_exit: Instant,
    reorders: bool,
    window: Window,
    statistics: Statistics,
    /// Next expected number among the numbers assigned to arrivals.
    next_order: u32,
    /// Number of the last packet that got through.
    last_order: u32,
    /// Packets that have waited since `queue_since`.
    queue_packets: usize,
    queue_since: Instant,
    capacity_bits: f64,
    capacity_since: Instant,
    outcomes: Vec<Outcome>,
    /// The wait of each packet is reported as an outcome.
    records_waits: bool,
    /// Bound on all packets that the link holds, if there is one.
    held: Option<Box<Held>>,
    /// Members of an aggregated link, which replace the single transmitter.
    group: Option<Box<Members>>,
}

#[derive(Debug, Clone, Copy)]
struct InService {
    item: Item,
    /// Bits not yet sent at `since`.
    remaining_bits: u64,
    since: Instant,
    done: Instant,
    /// The link pauses before it retransmits the same packet.
    pausing: bool,
}

/// Properties of one direction of a link. A scenario resolves to them, and a network is built from
/// them. Of a group, they are one member's.
#[derive(Debug, Clone, PartialEq)]
pub struct Properties {
    /// The rate at which it sends; `None` if transmission takes no time. For a trace, its mean.
    pub rate: Option<Rate>,
    /// The trace of its capacity, if its rate is not fixed.
    pub trace: Option<Capacity>,
    /// The medium, if its access is modelled; `rate` is that of its physical layer.
    pub medium: Option<Medium>,
    /// The propagation delay. For a trace, the mean.
    pub delay: Duration,
    /// The trace of its delay, if the delay is not fixed.
    pub delays: Option<Arc<Delays>>,
    /// Whether a packet sent after the delay has fallen may overtake earlier packets.
    pub overtake: bool,
    /// The queue discipline; its limits are not in bdp.
    pub queue: queue::Config,
    /// Reordering inside the queue.
    pub reorder: Option<Reorder>,
    /// The limit on all packets that it holds: waiting, in transmission and propagating; never in
    /// bdp.
    pub held_limit: Limit,
    /// The impairments of packets in flight, in this order.
    pub impair: Vec<impair::Config>,
    /// Whether it works at the start.
    pub up: bool,
    /// The MTU, if any.
    pub mtu: Option<Mtu>,
}

/// The largest packet that a link carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mtu {
    /// Bytes of the IP packet.
    pub bytes: u32,
    /// Whether the router before the link reports larger packets to the sender.
    pub reports: bool,
}

impl Properties {
    /// A link with an unlimited FIFO and no impairment.
    #[must_use]
    pub fn new(rate: Option<Rate>, delay: Duration) -> Self {
        Self {
            rate,
            trace: None,
            medium: None,
            delay,
            delays: None,
            overtake: false,
            queue: queue::Config::default(),
            reorder: None,
            held_limit: Limit::Unlimited,
            impair: Vec::new(),
            up: true,
            mtu: None,
        }
    }

    /// The smallest propagation delay.
    #[must_use]
    pub fn least_delay(&self) -> Duration {
        let traced = self.delays.as_ref().map(|delays| delays.least());
        traced.unwrap_or(self.delay)
    }

    /// The limit of a [`PlainLink`](super::PlainLink)'s queue, if all other properties equal those of
    /// [`Self::new`], except `overtake` (no effect at a constant delay) and `mtu` (checked before the
    /// link).
    #[must_use]
    pub fn plain_limit(&self) -> Option<Limit> {
        let queue::Config::DropTail(params) = &self.queue else {
            return None;
        };
        let plain = Self {
            queue: self.queue.clone(),
            overtake: self.overtake,
            mtu: self.mtu,
            ..Self::new(self.rate, self.delay)
        };
        (*self == plain).then_some(params.limit)
    }

    /// Creates the service at the start of a run.
    #[must_use]
    pub fn service(&self, stream: Stream) -> AnyService {
        let trace = self.trace.as_ref();
        match (&self.medium, self.rate, trace) {
            (Some(medium), Some(rate), _) => AnyService::Boxed(medium.service(rate, trace, stream)),
            (_, _, Some(trace)) => AnyService::Boxed(trace.service()),
            (_, rate, None) => AnyService::Fixed(Fixed::new(rate)),
        }
    }
}

/// Components of a link, built from its properties for one run.
#[derive(Debug)]
pub struct Parts {
    /// Queue discipline.
    pub queue: Discipline,
    /// Transmission times.
    pub service: AnyService,
    /// Impairments that apply after the propagation delay.
    pub impairments: Vec<Impaired>,
    /// Whether a property may change in mid-run.
    pub may_change: bool,
    /// Random stream of the link's queue and service.
    pub stream: Stream,
    /// Measurement window.
    pub window: Window,
    /// Whether [`ServedLink::take_outcomes`] reports the waiting time of each packet.
    pub records_waits: bool,
    /// Members of an aggregated link; `service` is then one member's.
    pub group: Option<Members>,
}

impl ServedLink {
    /// Creates an idle link.
    #[must_use]
    pub fn new(properties: Properties, parts: Parts) -> Self {
        let fixed = matches!(parts.service, AnyService::Fixed(_));
        let is_out_of_order = parts.impairments.iter().any(|i| i.impairment.reorders());
        Self {
            queue: Queue::new(parts.queue, properties.reorder),
            service: parts.service,
            propagation: (properties.delays).map_or(properties.delay.into(), Propagation::traced),
            impairments: parts.impairments,
            ahead: properties.up && !parts.may_change && fixed && parts.group.is_none(),
            busy_until: Instant::START,
            due: Instant::NEVER,
            ran_out: false,
            shaped: properties.queue.shapes(),
            sent_until: Instant::START,
            held_until: Instant::NEVER,
            up: properties.up,
            in_service: None,
            stream: parts.stream,
            arrivals: 0,
            transmissions: 0,
            latest_exit: Instant::START,
            reorders: properties.overtake || is_out_of_order,
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
            held: Held::new(properties.held_limit),
            group: parts.group.map(Box::new),
        }
    }

    /// Numbers arrivals from `order` on. Valid only before the first arrival; for tests of the
    /// wrap.
    #[doc(hidden)]
    pub const fn count_arrivals_from(&mut self, order: u32) {
        self.arrivals = order;
        self.next_order = order;
        self.last_order = order.wrapping_sub(1);
    }

    /// Accepts a packet. The queue's decisions are in [`ServedLink::take_outcomes`]. If the
    /// packet's outcome is known at once, it is returned and the impairments' verdicts are appended
    /// to `impairing`.
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
            self.notify_ran_out();
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

    /// When to call [`Self::complete`]: the end of the current transmission or pause.
    /// [`Instant::NEVER`] if the link is idle, or if the outcome of the current packet is reported
    /// and the queue is empty.
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

    /// Ends the current transmission or pause. Returns the outcome of its packet, or with `ahead`
    /// that of the next packet. The impairments' verdicts are appended to `impairing`; the queue's
    /// decisions are in [`ServedLink::take_outcomes`].
    ///
    /// # Panics
    /// If there was no transmission or pause.
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

    /// Notifies the discipline that the link ran out of packets, at the latest before the next one.
    #[inline]
    fn notify_ran_out(&mut self) {
        if self.ran_out {
            self.ran_out = false;
            let at = self.busy_until;
            self.with_queue(at, Queue::ran_out);
        }
    }

    /// Whether the queue holds its packets back. If so, `held_until` schedules the next attempt.
    fn is_held(&mut self, now: Instant) -> bool {
        let held = now < self.queue.held_until() && !self.queue.is_empty();
        self.held_until = Instant::NEVER;
        if held {
            self.held_until = self.queue.held_until();
        }
        held
    }

    /// Schedules the release of a packet that a shaping queue holds back on a free link.
    #[inline]
    fn hold(&mut self) {
        if self.shaped && !self.ahead && self.up && self.in_service.is_none() {
            self.held_until = self.queue.held_until();
        }
    }

    /// Starts the next waiting packet on a link that has become free, if the link is up.
    fn start_next(&mut self, now: Instant, impairing: &mut Vec<Impairing>) -> Option<Completed> {
        if !self.up || (self.shaped && !self.ahead && self.is_held(now)) {
            return None;
        }
        if self.queue.is_empty() {
            // With `ahead` the discipline is notified when the transmission has ended.
            self.with_queue(now, Queue::ran_out);
            return None;
        }
        let next = self.with_queue(now, Queue::dequeue);
        next.and_then(|item| self.start(now, &item, impairing))
    }

    /// Starts a transmission. Returns the packet's outcome with `ahead`.
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

    /// Moves the queue's decisions since the last call to `into`, in order.
    pub fn take_outcomes(&mut self, into: &mut Vec<Outcome>) {
        into.append(&mut self.outcomes);
    }

    /// Whether there are decisions that [`ServedLink::take_outcomes`] has not returned yet.
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
    /// Measurement window.
    #[must_use]
    pub fn window(&self) -> Window {
        self.window
    }
    /// Packets that wait.
    #[must_use]
    pub fn queue_packets(&self) -> usize {
        self.waiting()
    }
    /// Packets in transmission, or in a pause before a retransmission. With `ahead`, a packet
    /// counts as sent from the start of its transmission.
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
