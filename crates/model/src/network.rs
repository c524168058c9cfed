//! The compiled network: links, middleboxes and endpoints, and what moves packets between them.
//!
//! [`Builder`] makes one; a driver asks [`Network::next_event`] when the next event is due and
//! calls [`Network::run_before`] or [`Network::run_through`] with the time its clock has reached.
//!
//! Every packet carries its place in the table of routes, so a hop is one look-up. A plain link
//! whose packets all come from one other plain link is *folded*: since nothing else can touch it,
//! it is computed as soon as its input is, and costs no event.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use anabranch_core::{
    packet::{Ecn, PacketId, Pool},
    trace::{ElementId, Fate},
    units::{Duration, Instant},
};
use anabranch_elements::{
    body::Body,
    impair::Verdict,
    link::{PlainLink, ServedLink, Statistics, Window, plain, served},
    middlebox::{Middlebox, Output},
    queue::{Item, Outcome},
    transport::Transport,
};

use crate::{
    event_queue::{Class, Entry, EventQueue, Source},
    record::Probe,
};

mod agent;
mod builder;
mod change;
mod connection;
mod spawner;

pub use agent::{App, End};
pub use builder::{Builder, FlowSpec, LinkSpec, Stop, Traffic};
pub use change::Change;
pub use connection::{Completions, FlowReport};

use agent::AgentSlot;
use connection::{Connection, Flow};
use spawner::Spawner;

/// One direction of a link, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// A middlebox, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MiddleboxId(pub u32);

/// Where a route goes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Link(u32),
    /// A link that is computed ahead, together with the one before it.
    Folded(u32),
    Middlebox(u32),
    /// The far end of the connection.
    End,
}

#[derive(Debug)]
enum LinkKind {
    Plain(PlainLink),
    Served(Box<ServedSlot>),
}

/// A served link and what the network keeps of it.
#[derive(Debug)]
struct ServedSlot {
    link: ServedLink,
    /// The transmission end that stands in the event queue.
    completion_armed: Instant,
    /// What propagates where packets may overtake each other.
    unordered: Option<BinaryHeap<Reverse<InFlight>>>,
    /// The arrival that stands in the event queue for `unordered`.
    armed: Instant,
}

/// A packet on its way to the far end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct InFlight {
    at: Instant,
    /// The link that it is on; where packets may overtake each other, its number
    /// among the arrivals there.
    link: u32,
    packet: PacketId,
}

#[derive(Debug)]
struct LinkSlot {
    kind: LinkKind,
    element: ElementId,
    /// Where what this link passes on waits: its own ring (the link's number), or one that it shares
    /// with links whose packets mostly arrive in the order in which they left. All of a ring needs one entry
    /// in the event queue; a packet that does not fit into the order goes into the link's own.
    ring: u32,
}

impl LinkSlot {
    /// # Panics
    /// If the link is plain.
    fn served(&mut self) -> &mut ServedSlot {
        match &mut self.kind {
            LinkKind::Served(slot) => slot,
            LinkKind::Plain(_) => unreachable!("only served links complete and change"),
        }
    }
}

#[derive(Debug)]
struct MiddleboxSlot<B: Body> {
    middlebox: Box<dyn Middlebox<B>>,
    element: ElementId,
    ports: Vec<u32>,
    armed: Instant,
}

/// A network that runs.
#[derive(Debug)]
pub struct Network<B: Body> {
    now: Instant,
    window: Window,
    arrivals: EventQueue,
    timers: EventQueue,
    pool: Pool<Transport<B>>,
    links: Vec<LinkSlot>,
    /// What propagates, in order of arrival: one ring for each link, then those that several share.
    rings: Vec<VecDeque<InFlight>>,
    rates: Vec<Option<u64>>,
    middleboxes: Vec<MiddleboxSlot<B>>,
    routes: Vec<Target>,
    agents: Vec<AgentSlot<B>>,
    connections: Vec<Connection>,
    flows: Vec<Flow<B>>,
    spawners: Vec<Spawner>,
    changes: VecDeque<(Instant, Change)>,
    probe: Probe,
    events: u64,
    delivered_packets: u64,
    output: Output<B>,
    outcomes: Vec<Outcome>,
    impairing: Vec<served::Impairing>,
    element_names: Vec<String>,
}

impl<B: Body> Network<B> {
    /// The time that has been reached.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }
    /// When the run ends.
    #[must_use]
    pub fn end(&self) -> Instant {
        self.window.end()
    }
    /// When something happens next; [`Instant::NEVER`] if nothing will.
    #[must_use]
    pub fn next_event(&self) -> Instant {
        let change = self.changes.front().map_or(Instant::NEVER, |(at, _)| *at);
        let entry = self.arrivals.earliest().min(self.timers.earliest());
        if entry == Entry::NEVER {
            change
        } else {
            entry.time().min(change)
        }
    }
    /// Events handled.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }
    /// Data packets that reached the far end of their flow.
    #[must_use]
    pub fn delivered_packets(&self) -> u64 {
        self.delivered_packets
    }
    /// Packets now on their way.
    #[must_use]
    pub fn packets_in_flight(&self) -> usize {
        self.pool.len()
    }
    /// The name of an element: `link.NAME.DIRECTION`, `link.NAME.DIRECTION.impair.KIND.k`, `flow.NAME.sender`.
    #[must_use]
    pub fn element_name(&self, element: ElementId) -> &str {
        &self.element_names[element.0 as usize]
    }
    /// What has been observed.
    #[must_use]
    pub fn probe(&self) -> &Probe {
        &self.probe
    }

    /// Handles all that is due up to and including `until`, but nothing past the end of the run.
    pub fn run_through(&mut self, until: Instant) {
        self.run_before(
            until
                .min(self.window.end())
                .saturating_add(Duration::from_picos(1)),
        );
    }

    /// Handles all that is due before `until`.
    pub fn run_before(&mut self, until: Instant) {
        while let Some(&(at, change)) = self.changes.front()
            && at < until
        {
            self.run_events_before(at);
            self.changes.pop_front();
            self.now = at;
            self.apply(change);
        }
        self.run_events_before(until);
        // Events that a driver asked for exclusively leave the clock just before it.
        self.now = self.now.max(until.min(self.window.end()));
    }

    fn run_events_before(&mut self, until: Instant) {
        let until = Entry::new(until, Source::new(Class::Completion, 0));
        loop {
            let (arrival, timer) = (self.arrivals.peek(), self.timers.peek());
            if arrival < timer {
                if arrival >= until {
                    break;
                }
                self.now = arrival.time();
                let index = arrival.source().index();
                match arrival.source().class() {
                    Class::Arrival => self.arrival(index),
                    _ => self.completion(index),
                }
            } else {
                if timer >= until {
                    break;
                }
                self.now = timer.time();
                self.timers.pop();
                let index = timer.source().index();
                match timer.source().class() {
                    Class::AgentTimer => self.agent_timer(index),
                    Class::MiddleboxTimer => self.middlebox_timer(index),
                    _ => self.spawn(index),
                }
            }
        }
    }

    /// The packet at the head of a link's far end arrives.
    #[inline]
    fn arrival(&mut self, index: usize) {
        let ring = self.links[index].ring as usize;
        let packet = match self.take_first(ring, index) {
            Some(packet) => packet,
            None => match self.detached_arrival(ring, index) {
                Some(packet) => packet,
                None => return,
            },
        };
        self.events += 1;
        match self.routes[self.pool[packet].hop as usize] {
            Target::End => self.reach_end(packet),
            Target::Middlebox(index) => self.reach_middlebox(index as usize, packet),
            Target::Link(index) | Target::Folded(index) => {
                self.enter_link(index as usize, packet, self.now);
            }
        }
    }

    /// Takes the packet that is due from the head of a ring, if it is on the link `index`.
    #[inline]
    fn take_first(&mut self, ring: usize, index: usize) -> Option<PacketId> {
        let ring = &mut self.rings[ring];
        let first = ring.front()?;
        if first.link as usize != index || first.at != self.now {
            return None;
        }
        let packet = first.packet;
        ring.pop_front();
        match ring.front() {
            Some(next) => {
                let source = Source::new(Class::Arrival, next.link as usize);
                self.arrivals.replace_top(Entry::new(next.at, source));
            }
            None => self.arrivals.pop(),
        }
        Some(packet)
    }

    /// As [`Self::arrival`], for a packet that did not fit into the order of its ring, and where packets
    /// may overtake each other; `None` if an earlier arrival has taken this entry's place.
    fn detached_arrival(&mut self, ring: usize, index: usize) -> Option<PacketId> {
        if ring != index {
            return self.take_first(index, index);
        }
        self.arrivals.pop();
        let slot = self.links[index].served();
        if slot.armed != self.now {
            return None;
        }
        let unordered = slot.unordered.as_mut()?;
        let Reverse(first) = unordered
            .pop()
            .expect("an armed link has a packet on its way");
        slot.armed = unordered
            .peek()
            .map_or(Instant::NEVER, |Reverse(next)| next.at);
        if slot.armed != Instant::NEVER {
            self.arrivals
                .push(Entry::new(slot.armed, Source::new(Class::Arrival, index)));
        }
        slot.link.count_order(first.link, self.now);
        Some(first.packet)
    }

    /// A packet goes on to the next element of its route, now.
    #[inline]
    fn go_on(&mut self, packet: PacketId) {
        match self.routes[self.pool[packet].hop as usize] {
            Target::Link(index) | Target::Folded(index) => {
                self.enter_link(index as usize, packet, self.now);
            }
            Target::Middlebox(index) => self.reach_middlebox(index as usize, packet),
            Target::End => self.reach_end(packet),
        }
    }

    /// A packet arrives at a link at `at`: now, or later if the link is computed ahead.
    #[inline]
    fn enter_link(&mut self, mut index: usize, id: PacketId, mut at: Instant) {
        let mut cursor = self.pool[id].hop;
        loop {
            cursor += 1;
            let packet = &self.pool[id];
            let slot = &mut self.links[index];
            let LinkKind::Plain(link) = &mut slot.kind else {
                self.pool[id].hop = cursor;
                self.enter_served(index, id);
                return;
            };
            match link.enqueue(self.window, at, packet.size) {
                plain::Fate::Arrives {
                    at: arrives,
                    queue_delay,
                } => {
                    self.probe.observe(at, slot.element, packet, Fate::Passed);
                    if !queue_delay.is_zero() {
                        self.probe.waited(packet, queue_delay);
                    }
                    at = arrives;
                }
                plain::Fate::Dropped => {
                    self.probe.observe(at, slot.element, packet, Fate::Dropped);
                    // A drop computed ahead of the end has not happened when the run ends.
                    if at <= self.window.end() {
                        self.discard(id);
                    }
                    return;
                }
            }
            if let Target::Folded(next) = self.routes[cursor as usize] {
                index = next as usize;
                continue;
            }
            self.pool[id].hop = cursor;
            self.propagate(index, id, at);
            return;
        }
    }

    /// A packet is to arrive at the far end of a link whose packets keep their order.
    #[inline]
    fn propagate(&mut self, index: usize, packet: PacketId, at: Instant) {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "links are counted in 32 bits"
        )]
        let entry = InFlight {
            at,
            link: index as u32,
            packet,
        };
        let ring = self.links[index].ring as usize;
        if ring != index {
            // Once a packet has gone into the link's own ring, those behind it follow.
            let own_is_empty = self.rings[index].is_empty();
            let shared = &mut self.rings[ring];
            match shared.back() {
                Some(last) if own_is_empty && (last.at, last.link) < (at, entry.link) => {
                    shared.push_back(entry);
                    return;
                }
                None if own_is_empty => {
                    shared.push_back(entry);
                    self.arrivals
                        .push(Entry::new(at, Source::new(Class::Arrival, index)));
                    return;
                }
                _ => {}
            }
        }
        let own = &mut self.rings[index];
        if own.is_empty() {
            self.arrivals
                .push(Entry::new(at, Source::new(Class::Arrival, index)));
        }
        own.push_back(entry);
    }

    fn enter_served(&mut self, index: usize, id: PacketId) {
        // A transmission that takes no time is over before the next packet of one burst arrives.
        while self.links[index].served().completion_armed <= self.now {
            self.complete(index);
        }
        let packet = &self.pool[id];
        let item = Item {
            packet: id,
            size: packet.size,
            flow: self.connections[packet.connection.0 as usize].flow,
            connection: packet.connection,
            arrived: self.now,
            ecn: packet.ecn,
            order: 0,
        };
        let slot = &mut self.links[index];
        let LinkKind::Served(link) = &mut slot.kind else {
            unreachable!("the caller looked")
        };
        let completed = link.link.arrive(self.now, item, &mut self.impairing);
        if link.link.has_outcomes() {
            self.carry_out(index, Some(id));
        } else {
            self.probe
                .observe(self.now, slot.element, &self.pool[id], Fate::Passed);
        }
        if let Some(completed) = completed {
            self.follow(index, completed);
        }
        self.arm_completion(index);
    }

    /// Puts the end of the transmission under way into the event queue, if it is not there.
    fn arm_completion(&mut self, index: usize) {
        let slot = self.links[index].served();
        let due = slot.link.completion();
        if due != slot.completion_armed {
            slot.completion_armed = due;
            if due != Instant::NEVER {
                self.arrivals
                    .push(Entry::new(due, Source::new(Class::Completion, index)));
            }
        }
    }

    /// The time at which a served link's transmission was to end has come.
    fn completion(&mut self, index: usize) {
        self.arrivals.pop();
        // Otherwise the link's capacity changed since, or a packet of the same instant came first.
        if self.links[index].served().completion_armed == self.now {
            self.complete(index);
        }
    }

    /// A served link's transmission ends.
    fn complete(&mut self, index: usize) {
        self.events += 1;
        let slot = self.links[index].served();
        slot.completion_armed = Instant::NEVER;
        let completed = slot.link.complete(self.now, &mut self.impairing);
        if slot.link.has_outcomes() {
            self.carry_out(index, None);
        }
        if let Some(completed) = completed {
            self.follow(index, completed);
        }
        self.arm_completion(index);
    }

    /// Carries out what became of a packet in transmission.
    #[inline]
    fn follow(&mut self, index: usize, completed: served::Completed) {
        if !self.impairing.is_empty() {
            let (served::Completed::Exit(served::Exit { packet, .. })
            | served::Completed::Lost { packet, .. }
            | served::Completed::Resending(packet)
            | served::Completed::Resumed(packet)) = completed;
            self.observe_impairing(packet);
        }
        match completed {
            served::Completed::Exit(exit) => {
                if exit.duplicate {
                    let copy = self.pool[exit.packet].clone();
                    let copy = self.pool.insert(copy);
                    self.leave(index, exit.packet, exit.order, exit.at);
                    self.leave(index, copy, exit.order, exit.at);
                } else {
                    self.leave(index, exit.packet, exit.order, exit.at);
                }
            }
            served::Completed::Lost { at, packet } => {
                // A loss past the end has not happened when the run ends.
                if at <= self.window.end() {
                    self.discard(packet);
                }
            }
            served::Completed::Resending(packet) => {
                self.probe.observe(
                    self.now,
                    self.links[index].element,
                    &self.pool[packet],
                    Fate::Resent,
                );
            }
            served::Completed::Resumed(_) => {}
        }
    }

    #[inline(never)]
    fn observe_impairing(&mut self, packet: PacketId) {
        for step in self.impairing.drain(..) {
            let fate = match step.verdict {
                Verdict::Pass => Fate::Passed,
                Verdict::Lose => Fate::Lost,
                Verdict::Corrupt => Fate::Corrupted,
                Verdict::Delay { .. } => Fate::Delayed,
                Verdict::Duplicate => Fate::Duplicated,
            };
            self.probe
                .observe(step.at, step.element, &self.pool[packet], fate);
        }
    }

    /// A packet has left a served link and propagates.
    fn leave(&mut self, index: usize, packet: PacketId, order: u32, at: Instant) {
        let slot = self.links[index].served();
        if let Some(unordered) = &mut slot.unordered {
            unordered.push(Reverse(InFlight {
                at,
                link: order,
                packet,
            }));
            if at < slot.armed {
                slot.armed = at;
                self.arrivals
                    .push(Entry::new(at, Source::new(Class::Arrival, index)));
            }
            return;
        }
        self.propagate(index, packet, at);
    }

    /// What a queue decided. `arriving` is the packet whose arrival made it decide.
    fn carry_out(&mut self, index: usize, arriving: Option<PacketId>) {
        let slot = &mut self.links[index];
        let LinkKind::Served(link) = &mut slot.kind else {
            return;
        };
        let mut outcomes = std::mem::take(&mut self.outcomes);
        link.link.take_outcomes(&mut outcomes);
        let element = slot.element;
        let mut accepted = arriving;
        for outcome in outcomes.drain(..) {
            match outcome {
                Outcome::Dropped(item) => {
                    self.probe
                        .observe(self.now, element, &self.pool[item.packet], Fate::Dropped);
                    if accepted == Some(item.packet) {
                        accepted = None;
                    }
                    self.discard(item.packet);
                }
                Outcome::Marked(item) => {
                    self.pool[item.packet].ecn = Ecn::Ce;
                    self.probe
                        .observe(self.now, element, &self.pool[item.packet], Fate::Marked);
                }
                Outcome::Moved(item) => {
                    self.probe
                        .observe(self.now, element, &self.pool[item.packet], Fate::Moved);
                }
            }
        }
        self.outcomes = outcomes;
        if let Some(packet) = accepted {
            self.probe
                .observe(self.now, element, &self.pool[packet], Fate::Passed);
        }
    }

    /// A packet is no more.
    #[inline]
    fn discard(&mut self, packet: PacketId) {
        self.pool.free(packet);
    }

    fn reach_middlebox(&mut self, index: usize, id: PacketId) {
        let element = self.middleboxes[index].element;
        self.probe
            .observe(self.now, element, &self.pool[id], Fate::Passed);
        let mut packet = self.pool[id].clone();
        packet.hop += 1;
        self.discard(id);
        self.middleboxes[index]
            .middlebox
            .on_packet(self.now, packet, &mut self.output);
        self.after_middlebox(index);
    }

    fn middlebox_timer(&mut self, index: usize) {
        let slot = &mut self.middleboxes[index];
        if slot.armed != self.now {
            return;
        }
        slot.armed = Instant::NEVER;
        let due = slot.middlebox.timer().unwrap_or(Instant::NEVER);
        if due <= self.now {
            self.events += 1;
            slot.middlebox.on_timer(self.now, &mut self.output);
        }
        self.after_middlebox(index);
    }

    fn after_middlebox(&mut self, index: usize) {
        let mut output = std::mem::take(&mut self.output);
        for (port, packet, made) in output.drain() {
            let slot = &self.middleboxes[index];
            if let Some(fate) = made {
                self.probe.observe(self.now, slot.element, &packet, fate);
            }
            let port = port.map(|port| slot.ports[usize::from(port)]);
            let id = self.pool.insert(packet);
            match port {
                None => self.go_on(id),
                Some(link) => {
                    // The route does not name the port's link: step back so that entering it leads on.
                    self.pool[id].hop -= 1;
                    self.enter_link(link as usize, id, self.now);
                }
            }
        }
        self.output = output;
        let slot = &mut self.middleboxes[index];
        // What was due already is due now.
        let due = slot
            .middlebox
            .timer()
            .unwrap_or(Instant::NEVER)
            .max(self.now);
        if due < slot.armed {
            slot.armed = due;
            self.timers
                .push(Entry::new(due, Source::new(Class::MiddleboxTimer, index)));
        }
    }

    /// The statistics of a link's direction up to now.
    pub fn link_statistics(&mut self, link: LinkId) -> LinkReport {
        let now = self.now;
        let measured = self.window.overlap(Instant::START, now);
        let rate = self.rates[link.0 as usize];
        match &mut self.links[link.0 as usize].kind {
            LinkKind::Plain(plain) => LinkReport {
                statistics: plain.statistics(),
                capacity_bits: rate.map(|rate| rate as f64 * measured.as_secs_f64()),
                measured,
                queue_packets: plain.queue(now).0,
            },
            LinkKind::Served(slot) => {
                let capacity = slot.link.capacity_bits(now);
                LinkReport {
                    statistics: slot.link.statistics(now).clone(),
                    capacity_bits: (capacity > 0.0).then_some(capacity),
                    measured,
                    queue_packets: slot.link.queue_packets(),
                }
            }
        }
    }
    /// A link's direction now; of a folded link (see [`Builder::fold`]) what has been computed of it.
    #[must_use]
    pub fn link_state(&self, link: LinkId) -> LinkState {
        match &self.links[link.0 as usize].kind {
            LinkKind::Plain(plain) => {
                let (queue_packets, queue_bytes) = plain.queue(self.now);
                LinkState {
                    queue_packets,
                    queue_bytes,
                    sent_packets: plain.sent_by(self.window, self.now),
                    dropped_packets: plain.dropped_packets(),
                }
            }
            LinkKind::Served(slot) => LinkState {
                queue_packets: slot.link.queue_packets(),
                queue_bytes: slot.link.queue_bytes(),
                sent_packets: slot.link.sent_by(self.now),
                dropped_packets: slot.link.counters().dropped_packets,
            },
        }
    }
    /// How many links are computed ahead of time.
    #[must_use]
    pub fn folded_links(&self) -> usize {
        let mut folded: Vec<u32> = self
            .routes
            .iter()
            .filter_map(|target| {
                if let Target::Folded(index) = target {
                    Some(*index)
                } else {
                    None
                }
            })
            .collect();
        folded.sort_unstable();
        folded.dedup();
        folded.len()
    }
}

/// What one direction of a link counted.
#[derive(Debug, Clone)]
pub struct LinkReport {
    /// Its counters.
    pub statistics: Statistics,
    /// What it could have sent in the measured time; `None` without a rate.
    pub capacity_bits: Option<f64>,
    /// The measured time.
    pub measured: Duration,
    /// Packets that wait now.
    pub queue_packets: usize,
}

/// One direction of a link at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkState {
    /// Packets that wait.
    pub queue_packets: usize,
    /// Bytes that wait.
    pub queue_bytes: u64,
    /// Packets sent in the measured time so far.
    pub sent_packets: u64,
    /// Packets dropped in the measured time so far.
    pub dropped_packets: u64,
}
