//! Movement of packets between elements: links, rings of propagating packets, and their events. It
//! does not depend on endpoints, so that an endpoint can pass packets to it while it runs.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use anabranch_core::{
    body::Body,
    packet::{ConnectionId, Direction, Ecn, FlowId, Packet, PacketId, Pool},
    ring::Ring,
    trace::{ElementId, Fate},
    units::Instant,
};
use anabranch_path::{
    impair::Verdict,
    link::{PlainLink, ServedLink, Window, plain, served},
    queue::{Item, Outcome},
};
use anabranch_wire::Transport;

use super::{
    ahead::{Approach, end_of},
    groups::GroupSlot,
    processing::Processing,
};
use crate::{
    event_queue::{Class, Entry, EventQueue, Source},
    record::Probe,
};

/// The next element of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// A plain link.
    Plain(u32),
    /// A plain link that is computed ahead, together with the one before it.
    Folded(u32),
    /// A served link.
    Served(u32),
    Middlebox(u32),
    /// The entry check of a link with an MTU; the link is next on the route.
    Checked(u32),
    /// A host with a processing delay.
    Processing(u32),
    /// The far end of the connection.
    End,
    /// The same, for an end that may run ahead ([`super::ahead`]).
    EndAhead,
    /// Nothing: the end has run ahead to the packet's arrival.
    Passed,
}

#[derive(Debug)]
pub(super) enum LinkKind {
    Plain(PlainLink),
    Served(Box<ServedSlot>),
}

/// A served link and its state in the network.
#[derive(Debug)]
pub(super) struct ServedSlot {
    pub(super) link: ServedLink,
    /// The time of the completion in the event queue.
    pub(super) completion_armed: Instant,
    /// The propagating packets, if packets may overtake each other.
    pub(super) unordered: Option<BinaryHeap<Reverse<Overtaking>>>,
    /// The time of the arrival in the event queue for `unordered`.
    pub(super) armed: Instant,
    /// The link group and the direction that this link is.
    pub(super) group: Option<(u32, Direction)>,
}

impl ServedSlot {
    /// The time of the link's next completion, if it is not in the event queue. The caller pushes
    /// it.
    #[inline]
    fn rearm(&mut self) -> Option<Instant> {
        let due = self.link.completion();
        let armed = std::mem::replace(&mut self.completion_armed, due);
        (due != armed).then_some(due)
    }
}

/// A packet propagating over a link on which packets may overtake each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Overtaking {
    at: Instant,
    /// Its number among the arrivals at the link.
    order: u32,
    packet: PacketId,
}

/// A packet propagating over a link. Two words, so that it stays in registers until it is stored: a
/// value that is assembled in memory and read as a whole causes a stall.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InFlight {
    pub(super) at: Instant,
    /// The link in the upper half, the packet in the lower.
    what: u64,
}

impl InFlight {
    #[inline]
    fn new(at: Instant, link: u32, packet: PacketId) -> Self {
        Self {
            at,
            what: (u64::from(link) << 32) | u64::from(packet.0),
        }
    }
    #[inline]
    pub(super) fn link(self) -> u32 {
        (self.what >> 32) as u32
    }
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
    pub(super) fn packet(self) -> PacketId {
        PacketId(self.what as u32)
    }
    /// Ordered by arrival, then by link.
    #[inline]
    fn is_not_after(self, other: Self) -> bool {
        // One comparison: the packet of the other is the highest possible.
        let key = |entry: Self| (u128::from(entry.at.as_picos()) << 64) | u128::from(entry.what);
        key(self) <= key(other) | u128::from(u32::MAX)
    }
}

/// Propagating packets, in order of (arrival, link), with one entry in the event queue for all of
/// them.
pub(super) type Propagating = Ring<InFlight>;

/// The place of [`Target::Passed`] in the table of routes.
pub(super) const PASSED: u32 = 0;

/// No ring: the place of an entry in the event queue that belongs to none.
pub(super) const NO_RING: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct LinkSlot {
    pub(super) kind: LinkKind,
    pub(super) element: ElementId,
    /// The ring for the output of this link: its own, or the first of [`LANES`] shared with links
    /// whose packets mostly arrive in the order of departure. A packet out of that order goes into
    /// the next lane in whose order it is, or else into the link's own ring. Of two rings of a link
    /// the earlier has the lower number.
    pub(super) ring: u32,
    /// [`NO_RING`] until the link needs it.
    pub(super) own_ring: u32,
}

/// The rings that the same links share.
pub(super) const LANES: u32 = 4;

impl LinkSlot {
    /// The rings for the output of this link.
    pub(super) fn rings(&self) -> impl Iterator<Item = u32> + use<> {
        let lanes = if self.ring == self.own_ring { 0 } else { LANES };
        let own = Some(self.own_ring).filter(|own| *own != NO_RING);
        (self.ring..self.ring + lanes).chain(own)
    }

    /// # Panics
    /// If the link is plain.
    pub(super) fn served(&mut self) -> &mut ServedSlot {
        match &mut self.kind {
            LinkKind::Served(slot) => slot,
            LinkKind::Plain(_) => unreachable!("only served links complete and change"),
        }
    }
}

/// The identity of a connection's packets for queues.
#[derive(Debug, Clone, Copy)]
pub(super) struct Identity {
    pub(super) flow: FlowId,
    /// Unique, unlike the connection's place.
    pub(super) connection: ConnectionId,
}

impl Identity {
    /// For packets that a gateway originates.
    const NONE: Self = Self {
        flow: FlowId(u32::MAX),
        connection: ConnectionId::NONE,
    };
}

/// Links and their packets.
#[derive(Debug)]
pub(super) struct Fabric<B: Body> {
    pub(super) now: Instant,
    pub(super) window: Window,
    pub(super) arrivals: EventQueue,
    pub(super) timers: EventQueue,
    pub(super) pool: Pool<Transport<B>>,
    pub(super) links: Vec<LinkSlot>,
    pub(super) rings: Vec<Propagating>,
    pub(super) processing: Vec<Processing>,
    pub(super) routes: Vec<Target>,
    pub(super) probe: Probe,
    pub(super) events: u64,
    /// Ends may take packets on the hot path, unless a log, a capture or a tally records each.
    pub(super) hot_permitted: bool,
    /// Ends run ahead to this time, exclusive; the state is not read before.
    pub(super) ahead_until: Instant,
    /// Each end's packets to come, by agent.
    pub(super) ends: Vec<Approach>,
    /// The identity of each connection, by place, for queues.
    pub(super) identities: Vec<Identity>,
    /// Connections begun, including ones in the place of an ended connection.
    pub(super) connections_begun: u32,
    /// Packets that have reached a middlebox or their end, now.
    pub(super) reached: VecDeque<PacketId>,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) groups: Vec<GroupSlot>,
    pub(super) impairing: Vec<served::Impairing>,
    /// Packets created by links and middleboxes.
    pub(super) made: u64,
    /// Packets whose loss or drop a link has computed for a time after the end of the run.
    pub(super) past_the_end: u64,
}

impl<B: Body> Fabric<B> {
    /// Adds a route that ends at a middlebox.
    ///
    /// # Panics
    /// If there are 2^32 places in the table.
    pub(super) fn add_end(&mut self, middlebox: u32) -> u32 {
        let place = u32::try_from(self.routes.len()).expect("routes are counted in 32 bits");
        self.routes
            .extend([Target::Middlebox(middlebox), Target::End]);
        place
    }

    /// Begins the next connection, of `flow`.
    ///
    /// # Panics
    /// If there are 2^32 of them.
    pub(super) fn next_identity(&mut self, flow: FlowId) -> Identity {
        let connection = ConnectionId(self.connections_begun);
        // Queues distinguish connections by it. Only a queue would confuse two connections with
        // 2^32 between them.
        self.connections_begun = self.connections_begun.wrapping_add(1);
        Identity { flow, connection }
    }

    /// The identity of a packet for queues and middleboxes.
    pub(super) fn identity(&self, packet: &Packet<Transport<B>>) -> Identity {
        let known = self.identities.get(packet.connection.0 as usize);
        known.copied().unwrap_or(Identity::NONE)
    }

    /// Sets the counters of arrivals at every link and of connections to `order`.
    pub(super) fn count_arrivals_from(&mut self, order: u32) {
        for link in &mut self.links {
            if let LinkKind::Served(slot) = &mut link.kind {
                slot.link.count_arrivals_from(order);
            }
        }
        self.connections_begun = order;
    }

    /// Whether ends may take packets on the hot path.
    #[inline]
    pub(super) fn permits_hot(&self) -> bool {
        self.hot_permitted && !self.probe.records()
    }

    /// Pushes a timer.
    #[inline(never)]
    pub(super) fn push_timer(&mut self, timer: Entry) {
        self.timers.push(timer);
    }

    /// Removes the earliest packet of a ring, whose entry is the earliest in the event queue, and
    /// returns its next target.
    #[inline]
    pub(super) fn arrival(&mut self, ring: u32) -> (PacketId, Target) {
        self.events += 1;
        let waiting = &mut self.rings[ring as usize];
        let first = waiting
            .pop_front()
            .expect("a ring with an entry has a packet");
        let next = waiting.front().copied();
        // Before the event queue, so that the packet is fetched while the queue is sorted.
        let target = self.target(first.packet());
        match next {
            Some(next) => self.arrivals.replace_top(entry(next, ring)),
            None => self.arrivals.pop(),
        }
        (first.packet(), target)
    }

    /// Like [`Self::arrival`] for links on which packets may overtake each other; `None` if an
    /// earlier arrival has replaced this entry.
    #[inline(never)]
    pub(super) fn overtaking_arrival(&mut self, link: usize) -> Option<(PacketId, Target)> {
        self.arrivals.pop();
        let slot = self.links[link].served();
        if slot.armed != self.now {
            return None;
        }
        self.events += 1;
        let unordered = slot.unordered.as_mut()?;
        let Reverse(first) = unordered
            .pop()
            .expect("an armed link has a packet on its way");
        slot.armed = unordered
            .peek()
            .map_or(Instant::NEVER, |Reverse(next)| next.at);
        slot.link.count_order(first.order, self.now);
        let armed = slot.armed;
        if armed != Instant::NEVER {
            self.arm_overtaking(link, armed);
        }
        Some((first.packet, self.target(first.packet)))
    }

    fn arm_overtaking(&mut self, link: usize, at: Instant) {
        let source = Source::new(Class::Arrival, link);
        self.arrivals.push(Entry::placed(at, source, NO_RING));
    }

    /// Frees a packet.
    #[inline]
    pub(super) fn free(&mut self, packet: PacketId) {
        self.probe.close(&mut self.pool[packet]);
        self.pool.free(packet);
    }

    /// The next target on a packet's route.
    #[inline]
    pub(super) fn target(&self, packet: PacketId) -> Target {
        self.routes[self.pool[packet].hop as usize]
    }

    /// Moves a packet to the next element of its route, now.
    pub(super) fn go_on(&mut self, packet: PacketId) {
        let hop = self.pool[packet].hop;
        self.enter_route(packet, hop);
    }

    /// The same for a packet known to be at `hop`.
    #[expect(
        clippy::inline_always,
        reason = "measured: every packet of ours is sent from one of its calls"
    )]
    #[inline(always)]
    pub(super) fn enter_route(&mut self, packet: PacketId, hop: u32) {
        match self.routes[hop as usize] {
            Target::Plain(index) | Target::Folded(index) => {
                self.enter_plain(index as usize, packet, self.now);
            }
            Target::Served(index) => self.enter_served(index as usize, packet),
            Target::Middlebox(_)
            | Target::Checked(_)
            | Target::Processing(_)
            | Target::End
            | Target::EndAhead
            | Target::Passed => {
                self.reached.push_back(packet);
            }
        }
    }

    /// Passes a packet to a link, now.
    pub(super) fn enter_link(&mut self, index: usize, packet: PacketId) {
        match self.links[index].kind {
            LinkKind::Plain(_) => self.enter_plain(index, packet, self.now),
            LinkKind::Served(_) => self.enter_served(index, packet),
        }
    }

    /// Passes a packet to a plain link at `at`: now, or later if the link is computed ahead.
    #[inline]
    pub(super) fn enter_plain(&mut self, index: usize, id: PacketId, at: Instant) {
        let arrives = self.cross_plain(index, id, at);
        if arrives != Instant::NEVER {
            self.approach(end_of(&self.pool[id]), id, arrives);
        }
    }

    /// Passes a packet to a plain link at `at`, and returns when it arrives at its end if that may
    /// run ahead now. The caller then takes the packet there, or calls [`Self::approach`].
    /// [`Instant::NEVER`]: nothing is left to do.
    #[inline(never)]
    pub(super) fn cross_plain(&mut self, index: usize, id: PacketId, at: Instant) -> Instant {
        self.cross_plain_inline(index, id, at)
    }

    #[expect(clippy::inline_always, reason = "measured: a call per packet and leg")]
    #[inline(always)]
    pub(super) fn cross_plain_inline(
        &mut self,
        index: usize,
        id: PacketId,
        at: Instant,
    ) -> Instant {
        if self.probe.is_on() {
            self.pass_plain_observed(index, id, at)
        } else {
            self.pass_plain::<false>(index, id, at)
        }
    }

    #[inline(never)]
    fn pass_plain_observed(&mut self, index: usize, id: PacketId, at: Instant) -> Instant {
        self.pass_plain::<true>(index, id, at)
    }

    /// The body of [`Self::cross_plain`], compiled separately for observed and unobserved runs: the
    /// values that only an observation needs would occupy the loop's registers.
    #[expect(
        clippy::inline_always,
        reason = "compiled into the function for each kind of run"
    )]
    #[inline(always)]
    fn pass_plain<const OBSERVED: bool>(
        &mut self,
        mut index: usize,
        id: PacketId,
        mut at: Instant,
    ) -> Instant {
        let packet = &mut self.pool[id];
        let mut cursor = packet.hop;
        loop {
            cursor += 1;
            let slot = &mut self.links[index];
            let LinkKind::Plain(link) = &mut slot.kind else {
                unreachable!("routes tell plain links from served ones")
            };
            match link.enqueue(self.window, at, packet.size) {
                plain::Fate::Arrives {
                    at: arrives,
                    queue_delay,
                } => {
                    if OBSERVED {
                        self.probe.observe(at, slot.element, packet, Fate::Passed);
                        self.probe.waited(packet, queue_delay);
                    }
                    at = arrives;
                }
                plain::Fate::Dropped => {
                    self.drop_at_plain(index, id, at);
                    return Instant::NEVER;
                }
            }
            let next = self.routes[cursor as usize];
            if let Target::Folded(next) = next {
                index = next as usize;
                continue;
            }
            packet.hop = cursor;
            if next == Target::EndAhead {
                let end = &mut self.ends[end_of(packet)];
                if end.may_run_ahead(self.now) {
                    return at;
                }
                end.last = at;
            }
            let ring = slot.ring;
            self.propagate(index, ring, id, at);
            return Instant::NEVER;
        }
    }

    /// Drops a packet at a plain link at `at`.
    #[inline(never)]
    fn drop_at_plain(&mut self, index: usize, id: PacketId, at: Instant) {
        let (element, packet) = (self.links[index].element, &mut self.pool[id]);
        self.probe.observe(at, element, packet, Fate::Dropped);
        // A drop computed for a time after the end of the run does not occur.
        if at <= self.window.end() {
            self.free(id);
        } else {
            self.past_the_end += 1;
        }
    }

    /// Schedules the arrival of a packet at the far end of a link that keeps order.
    #[expect(
        clippy::inline_always,
        reason = "measured: a call costs half as much again"
    )]
    #[inline(always)]
    pub(super) fn propagate(&mut self, link: usize, ring: u32, packet: PacketId, at: Instant) {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "links are counted in 32 bits"
        )]
        let new = InFlight::new(at, link as u32, packet);
        let waiting = &mut self.rings[ring as usize];
        let last = waiting.back().copied();
        if last.is_some_and(|last| !last.is_not_after(new)) {
            self.propagate_apart(ring, new);
            return;
        }
        waiting.push_back(new);
        if last.is_none() {
            self.arm_ring(ring, new);
        }
    }

    /// Applies the processing delay of a host to a packet.
    #[inline(never)]
    pub(super) fn process(&mut self, host: usize, packet: PacketId) {
        self.pool[packet].hop += 1;
        let slot = &mut self.processing[host];
        let (ring, at) = (slot.ring, slot.departure(self.now));
        // In the order of events, hosts come after all links.
        self.propagate(self.links.len() + host, ring, packet, at);
    }

    /// Like [`Self::propagate`] for a packet out of the order of the first shared ring, `ring`. The
    /// packet at the back of a ring stays until this one has arrived, so later packets of its link
    /// are in order in every ring.
    #[inline(never)]
    fn propagate_apart(&mut self, ring: u32, new: InFlight) {
        debug_assert!(
            self.links[new.link() as usize].own_ring != ring,
            "a link keeps order"
        );
        let mut lanes = ring + 1..ring + LANES;
        let lane = lanes.find(|lane| {
            let last = self.rings[*lane as usize].back();
            last.is_none_or(|last| last.is_not_after(new))
        });
        let ring = lane.unwrap_or_else(|| self.own_ring(new.link()));
        let waiting = &mut self.rings[ring as usize];
        waiting.push_back(new);
        if waiting.len() == 1 {
            self.arm_ring(ring, new);
        }
    }

    /// The own ring of a link, made when the link first needs it.
    fn own_ring(&mut self, link: u32) -> u32 {
        let own = &mut self.links[link as usize].own_ring;
        if *own == NO_RING {
            *own = u32::try_from(self.rings.len()).expect("rings are counted in 32 bits");
            self.rings.push(Propagating::new());
        }
        *own
    }

    /// Pushes the entry of a ring that was empty.
    #[inline(never)]
    fn arm_ring(&mut self, ring: u32, first: InFlight) {
        self.arrivals.push(entry(first, ring));
    }

    /// Passes a packet to a served link, now.
    #[inline(never)]
    pub(super) fn enter_served(&mut self, index: usize, id: PacketId) {
        // A transmission that takes no time ends before the next packet of a burst arrives.
        while self.links[index].served().completion_armed <= self.now {
            self.complete(index);
        }
        let packet = &mut self.pool[id];
        packet.hop += 1;
        let known = self.identities.get(packet.connection.0 as usize);
        let Identity { flow, connection } = known.copied().unwrap_or(Identity::NONE);
        let connection = packet.payload.connection().unwrap_or(connection);
        let item = Item {
            packet: id,
            size: packet.size,
            flow,
            connection,
            arrived: self.now,
            ecn: packet.ecn,
            dscp: packet.dscp,
            has_data: packet.payload.payload_len() > 0,
            direction: packet.direction,
            order: 0,
        };
        let slot = &mut self.links[index];
        let LinkKind::Served(link) = &mut slot.kind else {
            unreachable!("routes tell plain links from served ones")
        };
        self.probe
            .enters(self.now, slot.element, (item.flow, item.connection), packet);
        if let Some((group, Direction::Forward)) = link.group {
            self.groups[group as usize].measure(self.now, item.size);
        }
        let completed = link.link.arrive(self.now, item, &mut self.impairing);
        let decided = link.link.has_outcomes();
        if !decided {
            self.probe
                .observe(self.now, slot.element, packet, Fate::Passed);
        }
        if let Some(due) = link.rearm() {
            self.push_completion(index, due);
        }
        if decided {
            self.carry_out(index, Some(id));
        }
        if let Some(completed) = completed {
            self.follow(index, completed);
        }
    }

    /// Pushes the next completion of a served link into the event queue, if it is not there.
    #[inline]
    pub(super) fn arm_completion(&mut self, index: usize) {
        if let Some(due) = self.links[index].served().rearm() {
            self.push_completion(index, due);
        }
    }

    #[inline(never)]
    fn push_completion(&mut self, index: usize, due: Instant) {
        if due != Instant::NEVER {
            self.arrivals
                .push(Entry::new(due, Source::new(Class::Completion, index)));
        }
    }

    /// Processes the event of a served link's completion.
    pub(super) fn completion(&mut self, index: usize) {
        self.arrivals.pop();
        // Otherwise the link's capacity has changed, or a packet of the same instant came first.
        if self.links[index].served().completion_armed == self.now {
            self.complete(index);
        }
    }

    /// Ends a served link's transmission.
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
        if let Some((group, _)) = self.links[index].served().group {
            self.after_member(group as usize);
        }
    }

    /// Carries out the outcome of a packet in transmission.
    #[expect(
        clippy::inline_always,
        reason = "measured: a call costs more than most of them do"
    )]
    #[inline(always)]
    fn follow(&mut self, index: usize, completed: served::Completed) {
        if !self.probe.is_on() {
            self.impairing.clear();
        } else if !self.impairing.is_empty() {
            let (served::Completed::Exit(served::Exit { packet, .. })
            | served::Completed::Lost { packet, .. }
            | served::Completed::Resending(packet)
            | served::Completed::Resumed(packet)) = completed;
            self.observe_impairing(packet);
        }
        match completed {
            served::Completed::Exit(exit) => {
                // As for losses: an outcome after the end does not occur.
                if exit.duplicate && exit.at <= self.window.end() {
                    self.leave_doubled(index, exit);
                } else {
                    self.leave(index, exit.packet, exit.order, exit.at);
                }
            }
            served::Completed::Lost { at, packet } => {
                // A loss after the end of the run does not occur.
                if at <= self.window.end() {
                    self.free(packet);
                } else {
                    self.past_the_end += 1;
                }
            }
            served::Completed::Resending(packet) => {
                self.probe.observe(
                    self.now,
                    self.links[index].element,
                    &mut self.pool[packet],
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
                .observe(step.at, step.element, &mut self.pool[packet], fate);
        }
    }

    /// Propagates a packet and its copy from a served link.
    #[inline(never)]
    fn leave_doubled(&mut self, index: usize, exit: served::Exit) {
        let mut copy = self.pool[exit.packet].clone();
        self.probe.copies(&mut copy);
        let copy = self.pool.insert(copy);
        self.made += 1;
        for packet in [exit.packet, copy] {
            self.leave(index, packet, exit.order, exit.at);
        }
    }

    /// Propagates a packet from a served link.
    #[expect(
        clippy::inline_always,
        reason = "measured: a call costs half as much again"
    )]
    #[inline(always)]
    fn leave(&mut self, index: usize, packet: PacketId, order: u32, at: Instant) {
        let link = &mut self.links[index];
        let ring = link.ring;
        let slot = link.served();
        let Some(unordered) = &mut slot.unordered else {
            self.propagate(index, ring, packet, at);
            return;
        };
        unordered.push(Reverse(Overtaking { at, order, packet }));
        if at < slot.armed {
            slot.armed = at;
            self.arm_overtaking(index, at);
        }
    }

    /// Carries out a queue's decisions. `arriving` is the packet whose arrival caused them.
    #[inline(never)]
    pub(super) fn carry_out(&mut self, index: usize, arriving: Option<PacketId>) {
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
                        .waited(&self.pool[item.packet], self.now - item.arrived);
                    self.probe.observe(
                        self.now,
                        element,
                        &mut self.pool[item.packet],
                        Fate::Dropped,
                    );
                    if accepted == Some(item.packet) {
                        accepted = None;
                    }
                    self.free(item.packet);
                }
                Outcome::Marked(item) => {
                    self.pool[item.packet].ecn = Ecn::Ce;
                    self.probe.observe(
                        self.now,
                        element,
                        &mut self.pool[item.packet],
                        Fate::Marked,
                    );
                }
                Outcome::Moved(item) => {
                    self.probe
                        .observe(self.now, element, &mut self.pool[item.packet], Fate::Moved);
                }
                Outcome::Waited {
                    packet,
                    queue_delay,
                } => self.probe.waited(&self.pool[packet], queue_delay),
            }
        }
        self.outcomes = outcomes;
        if let Some(packet) = accepted {
            self.probe
                .observe(self.now, element, &mut self.pool[packet], Fate::Passed);
        }
    }
}

/// The entry of a ring whose first packet is `first`.
#[inline]
fn entry(first: InFlight, ring: u32) -> Entry {
    let source = Source::new(Class::Arrival, first.link() as usize);
    Entry::placed(first.at, source, ring)
}
