//! A served link: any queue, any service, impairments, changes in mid-run.
//!
//! The engine calls [`ServedLink::arrive`] when a packet comes, [`ServedLink::complete`] when the
//! instant that [`ServedLink::completion`] names has come, and carries out what they report.

use anabranch_core::{
    packet::PacketId,
    rng::Stream,
    trace::ElementId,
    units::{Duration, Instant, text::Limit},
};

use super::{
    service::{AnyService, Service},
    statistics::{Statistics, Window},
};
use crate::{
    impair::{AnyImpairment, Impairment, Verdict, View},
    queue::{Item, Outcome, QueueContext, reorder::Queue},
};

/// One direction of a served link.
#[derive(Debug)]
pub struct ServedLink {
    queue: Queue,
    service: AnyService,
    delay: Duration,
    impairments: Vec<Impaired>,
    up: bool,
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
    /// Packets that have waited since `queue_since`.
    queue_packets: usize,
    queue_since: Instant,
    capacity_bits: f64,
    capacity_since: Instant,
    outcomes: Vec<Outcome>,
}

/// An impairment with its own random stream and packet count.
#[derive(Debug)]
pub struct Impaired {
    /// Its number among the elements.
    pub element: ElementId,
    impairment: AnyImpairment,
    stream: Stream,
    seen: u64,
}

impl Impaired {
    /// An impairment whose fates are drawn from `stream`.
    #[must_use]
    pub fn new(element: ElementId, impairment: AnyImpairment, stream: Stream) -> Self {
        Self {
            element,
            impairment,
            stream,
            seen: 0,
        }
    }
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

/// What becomes of a packet whose transmission has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// The packet.
    pub packet: PacketId,
    /// Its number among the arrivals here.
    pub order: u32,
    /// When it arrives at the far end.
    pub at: Instant,
    /// Whether a second copy arrives with it.
    pub duplicate: bool,
}

/// Something an impairment did, for the observers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Impairing {
    /// Which element.
    pub element: ElementId,
    /// When.
    pub at: Instant,
    /// What.
    pub verdict: Verdict,
}

/// What a completed transmission led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completed {
    /// The packet goes on.
    Exit(Exit),
    /// An impairment loses or damages it.
    Lost {
        /// The packet.
        packet: PacketId,
        /// When, on its way.
        at: Instant,
    },
    /// The link sends it again by itself.
    Resending(PacketId),
    /// A pause ended; the packet is being sent again.
    Resumed(PacketId),
}

/// What a link is made of.
#[derive(Debug)]
pub struct Parts {
    /// Where packets wait.
    pub queue: Queue,
    /// How they are sent.
    pub service: AnyService,
    /// Propagation delay.
    pub delay: Duration,
    /// What the path does to them after it.
    pub impairments: Vec<Impaired>,
    /// Whether the link works at the start.
    pub up: bool,
    /// The link's own random stream (queue and service).
    pub stream: Stream,
    /// What is measured.
    pub window: Window,
}

impl ServedLink {
    /// A link with nothing on it.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let reorders = parts.impairments.iter().any(|i| i.impairment.reorders());
        Self {
            queue: parts.queue,
            service: parts.service,
            delay: parts.delay,
            impairments: parts.impairments,
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
            queue_packets: 0,
            queue_since: Instant::START,
            capacity_bits: 0.0,
            capacity_since: parts.window.start(),
            outcomes: Vec::new(),
        }
    }

    /// A packet arrives. What the queue decided is in [`ServedLink::take_outcomes`].
    pub fn arrive(&mut self, now: Instant, mut item: Item) {
        item.order = self.arrivals;
        self.arrivals = self.arrivals.wrapping_add(1);
        if !self.up {
            self.outcomes.push(Outcome::Dropped(item));
            self.count_drops(now, 0);
            return;
        }
        let idle = self.in_service.is_none();
        let before = self.outcomes.len();
        let mut cx = QueueContext {
            now,
            held_packets: 0,
            held_bytes: 0,
            stream: self.stream,
            outcomes: &mut self.outcomes,
        };
        self.queue.enqueue(item, &mut cx);
        if idle {
            self.start_next(now);
        }
        self.account_queue(now);
        // Behind a transmission that takes no time nobody waits.
        if self.completion() > now {
            self.statistics
                .queue_length(self.window, now, self.queue.len());
        }
        self.count_drops(now, before);
    }

    /// When the transmission (or pause) under way ends; [`Instant::NEVER`] if there is none.
    #[must_use]
    #[inline]
    pub fn completion(&self) -> Instant {
        self.in_service.map_or(Instant::NEVER, |s| s.done)
    }

    /// The transmission (or pause) under way has ended. What impairments did is appended to
    /// `impairing`; what the queue decided is in [`ServedLink::take_outcomes`].
    ///
    /// # Panics
    /// If none was under way.
    pub fn complete(&mut self, now: Instant, impairing: &mut Vec<Impairing>) -> Completed {
        let served = self
            .in_service
            .take()
            .expect("a completion belongs to a transmission");
        let item = served.item;
        let bits = u64::from(item.size) * 8;
        if served.pausing {
            self.serve(now, item, bits);
            return Completed::Resumed(item.packet);
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
            return Completed::Resending(item.packet);
        }
        let before = self.outcomes.len();
        self.start_next(now);
        self.account_queue(now);
        self.count_drops(now, before);
        self.exit(now, item, impairing)
    }

    fn exit(&mut self, now: Instant, item: Item, impairing: &mut Vec<Impairing>) -> Completed {
        let mut at = now + self.delay;
        let mut duplicate = false;
        let mut in_order = true;
        for impaired in &mut self.impairments {
            let view = View {
                size: item.size,
                ecn: item.ecn,
                index: impaired.seen,
            };
            let mut draw = impaired.stream.at(impaired.seen);
            impaired.seen += 1;
            let verdict = impaired.impairment.judge(at, view, &mut draw);
            impairing.push(Impairing {
                element: impaired.element,
                at,
                verdict,
            });
            match verdict {
                Verdict::Pass => {}
                Verdict::Lose | Verdict::Corrupt => {
                    if self.window.contains(at) {
                        self.statistics.lost_packets += 1;
                    }
                    return Completed::Lost {
                        packet: item.packet,
                        at,
                    };
                }
                Verdict::Delay { by, may_overtake } => {
                    at = at.saturating_add(by);
                    in_order &= !may_overtake;
                }
                Verdict::Duplicate => duplicate = true,
            }
        }
        if in_order && !self.reorders {
            // A route that stays FIFO: those behind a late packet wait for it.
            at = at.max(self.latest_exit);
        }
        self.latest_exit = self.latest_exit.max(at);
        if !self.reorders {
            self.count_order(item.order, at);
        }
        Completed::Exit(Exit {
            packet: item.packet,
            order: item.order,
            at,
            duplicate,
        })
    }

    /// RFC 4737 §4 by arrival at this link: the packet that came as number `order` has got through
    /// at `at`, and is reordered if one that came later did so before. Where packets may overtake
    /// each other the owner calls this as they arrive at the far end.
    pub fn count_order(&mut self, order: u32, at: Instant) {
        if order.wrapping_sub(self.next_order).cast_signed() >= 0 {
            self.next_order = order.wrapping_add(1);
        } else if order.wrapping_add(1) != self.next_order && self.window.contains(at) {
            // The copy of a doubled packet comes right behind it and is not reordered.
            self.statistics.reordered_packets += 1;
        }
    }

    /// Brings the integral of the queue length up to `now`; called after each change.
    fn account_queue(&mut self, now: Instant) {
        let span = self.window.overlap(self.queue_since, now).as_picos();
        self.statistics.queue_time += u128::from(span) * self.queue_packets as u128;
        self.queue_packets = self.queue.len();
        self.queue_since = now;
    }

    fn start_next(&mut self, now: Instant) {
        if !self.up {
            return;
        }
        let mut cx = QueueContext {
            now,
            held_packets: 0,
            held_bytes: 0,
            stream: self.stream,
            outcomes: &mut self.outcomes,
        };
        if let Some(item) = self.queue.dequeue(&mut cx) {
            self.statistics.waited(self.window, item.arrived, now);
            self.serve(now, item, u64::from(item.size) * 8);
        }
    }

    fn serve(&mut self, now: Instant, item: Item, bits: u64) {
        // A pause may end while the link is down.
        let done = if self.up {
            self.service.finish(now, bits)
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

    fn count_drops(&mut self, now: Instant, before: usize) {
        let measured = self.window.contains(now);
        for outcome in &self.outcomes[before..] {
            match outcome {
                Outcome::Dropped(_) => self.statistics.dropped_packets += u64::from(measured),
                Outcome::Marked(_) => self.statistics.marked_packets += u64::from(measured),
                Outcome::Moved(_) => {}
            }
        }
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

    /// Changes the service under the packet being sent: what has been sent of it stays sent.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bits of one packet"
    )]
    pub fn set_service(&mut self, now: Instant, service: AnyService) {
        self.account_capacity(now);
        if let Some(served) = self.in_service.as_mut().filter(|s| !s.pausing) {
            if self.up {
                let sent = self.service.capacity(served.since, now).floor() as u64;
                // Without a rate the packet is already through.
                served.remaining_bits = served.remaining_bits.saturating_sub(sent);
            }
            served.since = now;
            served.done = if self.up {
                service.finish(now, served.remaining_bits)
            } else {
                Instant::NEVER
            };
        }
        self.service = service;
    }

    /// Switches the link off or on. While it is off it sends nothing, keeps what waits, and loses
    /// what arrives; the packet being sent goes on from where it was. Packets already propagating
    /// are not touched.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bits of one packet"
    )]
    pub fn set_up(&mut self, now: Instant, up: bool) {
        if up == self.up {
            return;
        }
        self.account_capacity(now);
        if let Some(served) = self.in_service.as_mut().filter(|s| !s.pausing) {
            if up {
                served.done = self.service.finish(now, served.remaining_bits);
            } else {
                let sent = self.service.capacity(served.since, now).floor() as u64;
                served.remaining_bits = served.remaining_bits.saturating_sub(sent);
                served.done = Instant::NEVER;
            }
            served.since = now;
        }
        self.up = up;
        if up && self.in_service.is_none() {
            self.start_next(now);
            self.account_queue(now);
        }
    }

    /// Changes the propagation delay; packets never overtake those sent before.
    pub fn set_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }
    /// Changes the queue's limit; `false` if its discipline has none.
    pub fn set_limit(&mut self, limit: Limit) -> bool {
        self.queue.set_limit(limit)
    }
    /// Whether packets may leave in another order than their transmissions ended.
    #[must_use]
    pub fn reorders(&self) -> bool {
        self.reorders
    }
    /// What it has counted so far, without the waiting that still goes on.
    #[must_use]
    pub fn counters(&self) -> &Statistics {
        &self.statistics
    }
    /// What it measures.
    #[must_use]
    pub fn window(&self) -> Window {
        self.window
    }
    /// Packets that wait.
    #[must_use]
    pub fn queue_packets(&self) -> usize {
        self.queue.len()
    }
    /// Bytes that wait.
    #[must_use]
    pub fn queue_bytes(&self) -> u64 {
        self.queue.bytes()
    }
    /// What it counted up to `now`, the time of what still waits included.
    pub fn statistics(&mut self, now: Instant) -> &Statistics {
        self.account_queue(now);
        &self.statistics
    }
    /// Bits that it could have sent from the start of the window to `now`; `None` without a rate.
    pub fn capacity_bits(&mut self, now: Instant) -> f64 {
        self.account_capacity(now);
        self.capacity_bits
    }
    fn account_capacity(&mut self, now: Instant) {
        let to = now.min(self.window.end());
        if self.up {
            self.capacity_bits += self.service.capacity(self.capacity_since, to);
        }
        self.capacity_since = self.capacity_since.max(to);
    }
}
