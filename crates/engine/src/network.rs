//! The compiled network: links, middleboxes and endpoints, and the movement of packets between
//! them.
//!
//! [`Builder`] creates it. A driver queries [`Network::next_event`] for the time of the next event
//! and calls [`Network::run_before`] or [`Network::run_through`] with the time that its clock has
//! reached.
//!
//! Every packet carries its place in the table of routes, so a hop is one look-up. A plain link
//! that receives packets only from one other plain link is *folded*: no other input can affect it,
//! so it is computed together with its input, and needs no event.

use std::{collections::VecDeque, num::NonZeroU64};

use anabranch_core::{
    body::Body,
    digest::Digest,
    interrupt::Interrupt,
    packet::{ConnectionId, PacketId},
    trace::{ElementId, Fate},
    units::{Duration, Instant},
};
use anabranch_path::{
    middlebox::{Middlebox, Output},
    multipath,
};
use anabranch_wire::Transport;

use crate::{
    event_queue::{Class, Entry, Source},
    record::{PacketLog, Probe, Taps},
};

mod agent;
mod ahead;
mod application;
mod builder;
mod census;
mod change;
mod connection;
mod datagrams;
mod ended;
mod fabric;
mod groups;
mod hot;
mod hot_recovery;
mod links;
mod mtu;
mod processing;
mod rounds;
mod script;
mod spawner;
mod windows;

pub use agent::End;
pub use application::App;
pub use builder::{Builder, FlowSpec, GroupSpec, LinkSpec, Stop, Traffic};
pub use census::Census;
pub use change::Change;
pub use connection::{Completions, FlowReport};
pub use datagrams::{Datagrams, OneWayDelay, Schedule, Timing, UdpEnd};
pub use ended::{Ended, Ends};
pub use groups::{GroupReport, GroupState};
pub use links::{LinkReport, LinkState};
pub use script::Script;

use agent::AgentSlot;
use connection::{Connection, Flow};
use fabric::{Fabric, NO_RING, Target};
use mtu::Mtus;
use rounds::Round;
use spawner::Spawner;

/// A host with a processing delay, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u32);

/// One direction of a link, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// A link group, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

/// A middlebox, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MiddleboxId(pub u32);

#[derive(Debug)]
struct MiddleboxSlot<B: Body> {
    middlebox: Box<dyn Middlebox<B>>,
    element: ElementId,
    ports: Vec<u32>,
    /// The route of the packets that it originates: a place in the table of routes.
    onward: Option<u32>,
    /// Another middlebox whose timer depends on the packets handled here.
    wakes: Option<usize>,
    armed: Instant,
    /// Bytes that it adds to each packet.
    overhead: u32,
}

/// A running network.
#[derive(Debug)]
pub struct Network<B: Body> {
    fabric: Fabric<B>,
    rates: Vec<Option<NonZeroU64>>,
    middleboxes: Vec<MiddleboxSlot<B>>,
    agents: Vec<AgentSlot<B>>,
    connections: Vec<Connection>,
    flows: Vec<Flow<B>>,
    spawners: Vec<Spawner>,
    changes: VecDeque<(Instant, Change)>,
    mtus: Mtus<B>,
    rounds: Vec<Round>,
    delivered_packets: u64,
    output: Output<B>,
    element_names: Vec<Box<str>>,
    interrupt: Interrupt,
}

/// Events between two checks of the interrupt: a few milliseconds of real time at most.
const BATCH: u32 = 4096;

impl<B: Body> Network<B> {
    /// Lets `interrupt` end every run of events early, independent of the progress of simulated
    /// time. The state of the network is then not a result.
    pub fn interrupt_by(&mut self, interrupt: Interrupt) {
        self.interrupt = interrupt;
    }
    /// Whether the interrupt has been raised.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.is_raised()
    }
    /// The current time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.fabric.now
    }
    /// The end of the run.
    #[must_use]
    pub fn end(&self) -> Instant {
        self.fabric.window.end()
    }
    /// The time of the next event; [`Instant::NEVER`] if there is none.
    #[must_use]
    pub fn next_event(&self) -> Instant {
        let change = self.changes.front().map_or(Instant::NEVER, |(at, _)| *at);
        let entry = self
            .fabric
            .arrivals
            .earliest()
            .min(self.fabric.timers.earliest());
        if entry == Entry::NEVER {
            change
        } else {
            entry.time().min(change)
        }
    }
    /// The number of events handled.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.fabric.events
    }
    /// Data packets that reached the far end of their flow.
    #[must_use]
    pub fn delivered_packets(&self) -> u64 {
        self.delivered_packets
    }
    /// Packets currently in flight.
    #[must_use]
    pub fn packets_in_flight(&self) -> usize {
        self.fabric.pool.len()
    }
    /// The name of an element: `link.NAME.DIRECTION`, `link.NAME.DIRECTION.impair.KIND.k`,
    /// `gateway.NAME.DIRECTION.split`.
    ///
    /// # Panics
    /// If it is the end of a flow.
    #[must_use]
    pub fn element_name(&self, element: ElementId) -> &str {
        &self.element_names[element.0 as usize]
    }
    /// The names of all elements but the ends of flows, by number.
    #[must_use]
    pub fn element_names(&self) -> &[Box<str>] {
        &self.element_names
    }
    /// The counters of an end of a gateway; `None` for any other middlebox.
    #[must_use]
    pub fn gateway_report(&self, middlebox: MiddleboxId) -> Option<multipath::Report> {
        self.middleboxes[middlebox.0 as usize].middlebox.report()
    }
    /// The digest of the observations, if one is kept.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        self.fabric.probe.digest(self.fabric.pool.places())
    }
    /// Begins to capture.
    pub fn tap(&mut self, taps: Taps) {
        self.fabric.probe.tap(taps);
        self.permit_hot_path(false);
    }
    /// Permits the hot path from now on, or not. Results are the same.
    #[doc(hidden)]
    pub fn permit_hot_path(&mut self, on: bool) {
        self.fabric.hot_permitted = on;
        // Their next event judges anew.
        for end in &mut self.fabric.ends {
            end.is_hot = false;
        }
    }
    /// The log of packets, if one is kept, for callers that add to it.
    pub fn log_mut(&mut self) -> Option<&mut PacketLog> {
        self.fabric.probe.log_mut()
    }
    /// The observers.
    #[must_use]
    pub fn probe(&self) -> &Probe {
        &self.fabric.probe
    }

    /// Handles all events up to and including `until`, but none after the end of the run.
    pub fn run_through(&mut self, until: Instant) {
        self.run_before(
            until
                .min(self.fabric.window.end())
                .saturating_add(Duration::from_picos(1)),
        );
    }

    /// Handles all events before `until`.
    pub fn run_before(&mut self, until: Instant) {
        self.run_on(until, until);
    }

    /// Handles all events before `until`, for a caller that neither reads nor changes the state
    /// before `read`: until then packets may be computed ahead. A later call may not name an earlier
    /// time.
    pub fn run_on(&mut self, until: Instant, read: Instant) {
        let after_end = self.end().saturating_add(Duration::from_picos(1));
        let read = read.min(after_end.max(until));
        while let Some(at) = self.changes.front().map(|(at, _)| *at)
            && at < until
        {
            self.run_events_before(at, at);
            self.fabric.now = at;
            if let Some((_, change)) = self.changes.pop_front() {
                self.apply(change);
            }
        }
        let change = self.changes.front().map_or(read, |(at, _)| *at);
        self.run_events_before(until, read.min(change));
        // The last event may precede `until`; the clock advances to `until`.
        self.fabric.now = self.fabric.now.max(until.min(self.fabric.window.end()));
    }

    fn run_events_before(&mut self, until: Instant, ahead_until: Instant) {
        self.fabric.ahead_until = ahead_until;
        let until = Entry::new(until, Source::new(Class::GroupTimer, 0));
        while !self.is_interrupted() && self.run_batch_before(until) {}
    }

    /// Handles at most [`BATCH`] events. Returns whether there may be more before `until`.
    fn run_batch_before(&mut self, until: Entry) -> bool {
        for _ in 0..BATCH {
            let (arrival, timer) = (self.fabric.arrivals.peek(), self.fabric.timers.peek());
            if arrival < timer {
                if arrival >= until {
                    return false;
                }
                self.fabric.now = arrival.time();
                let index = arrival.source().index();
                match arrival.source().class() {
                    Class::Arrival if arrival.place() == NO_RING => self.overtaking_arrival(index),
                    Class::Arrival => {
                        let (packet, target) = self.fabric.arrival(arrival.place());
                        self.arrive(packet, target);
                    }
                    _ => self.fabric.completion(index),
                }
            } else {
                if timer >= until {
                    return false;
                }
                self.fabric.now = timer.time();
                self.fabric.timers.pop();
                let index = timer.source().index();
                match timer.source().class() {
                    Class::AgentTimer => self.agent_timer(index),
                    Class::MiddleboxTimer => self.middlebox_timer(index),
                    Class::GroupTimer => self.fabric.group_timer(index),
                    Class::PathReport => self.deliver_answer(),
                    _ => self.spawn(index),
                }
            }
            self.reach_all();
        }
        true
    }

    /// Passes a packet to `target`, the next element of its route, now.
    #[expect(
        clippy::inline_always,
        reason = "every packet comes this way at every hop"
    )]
    #[inline(always)]
    fn arrive(&mut self, packet: PacketId, target: Target) {
        match target {
            Target::Plain(link) | Target::Folded(link) => {
                let now = self.fabric.now;
                let arrives = self.fabric.cross_plain(link as usize, packet, now);
                if arrives != Instant::NEVER {
                    self.run_ahead(packet, arrives);
                }
            }
            Target::Served(link) => self.fabric.enter_served(link as usize, packet),
            Target::End => self.reach_end(packet),
            Target::EndAhead => self.finish_approach(packet),
            _ => self.reach(packet, target),
        }
    }

    /// Like [`Self::arrive`], for a link on which packets may overtake each other.
    #[inline(never)]
    fn overtaking_arrival(&mut self, link: usize) {
        if let Some((packet, target)) = self.fabric.overtaking_arrival(link) {
            self.arrive(packet, target);
        }
    }

    /// Passes all packets that are at no link to the next element of their routes, now.
    #[inline]
    fn reach_all(&mut self) {
        while let Some(packet) = self.fabric.reached.pop_front() {
            self.reach(packet, self.fabric.target(packet));
        }
    }

    /// Passes a packet to `target`, the next element of its route, now; out of line, for the rare
    /// targets.
    #[inline(never)]
    fn reach(&mut self, packet: PacketId, target: Target) {
        match target {
            Target::End | Target::EndAhead => self.reach_end(packet),
            Target::Passed => self.fabric.pool.free(packet),
            Target::Middlebox(index) => self.reach_middlebox(index as usize, packet),
            Target::Processing(host) => self.fabric.process(host as usize, packet),
            Target::Checked(link) => self.check_size(link, packet),
            Target::Plain(_) | Target::Folded(_) | Target::Served(_) => self.fabric.go_on(packet),
        }
    }

    fn reach_middlebox(&mut self, index: usize, id: PacketId) {
        let element = self.middleboxes[index].element;
        let packet = &mut self.fabric.pool[id];
        self.fabric
            .probe
            .observe(self.fabric.now, element, packet, Fate::Passed);
        self.fabric.probe.close(packet);
        let mut packet = self.fabric.pool.take(id, Transport::Datagram(B::default()));
        packet.hop += 1;
        let flow = self.fabric.identity(&packet).flow;
        self.middleboxes[index].middlebox.on_packet_of(
            flow,
            self.fabric.now,
            packet,
            &mut self.output,
        );
        self.after_middlebox(index);
    }

    fn middlebox_timer(&mut self, index: usize) {
        let slot = &mut self.middleboxes[index];
        if slot.armed != self.fabric.now {
            return;
        }
        slot.armed = Instant::NEVER;
        let due = slot.middlebox.timer().unwrap_or(Instant::NEVER);
        if due <= self.fabric.now {
            self.fabric.events += 1;
            slot.middlebox.on_timer(self.fabric.now, &mut self.output);
        }
        self.after_middlebox(index);
    }

    fn after_middlebox(&mut self, index: usize) {
        let mut output = std::mem::take(&mut self.output);
        for (port, mut packet, made) in output.drain() {
            let slot = &self.middleboxes[index];
            if packet.connection == ConnectionId::NONE {
                // A packet originated by the middlebox is on no flow's route.
                let Some(onward) = slot.onward else {
                    continue;
                };
                packet.hop = onward;
            }
            if let Some(fate) = made {
                self.fabric.made += 1;
                self.fabric
                    .probe
                    .observe(self.fabric.now, slot.element, &mut packet, fate);
            }
            // The middlebox may send it more than once.
            self.fabric.probe.copies(&mut packet);
            let port = port.map(|port| slot.ports[usize::from(port)]);
            let id = self.fabric.pool.insert(packet);
            match port {
                None => self.fabric.go_on(id),
                Some(link) => {
                    let overhead = self.middleboxes[index].overhead;
                    if self.is_refused_at_port(link, overhead, id) {
                        continue;
                    }
                    // The port's link is not on the route: step back, so that entering the link
                    // leads on.
                    self.fabric.pool[id].hop -= 1;
                    self.fabric.enter_link(link as usize, id);
                }
            }
        }
        self.output = output;
        self.arm_middlebox(index);
        if let Some(other) = self.middleboxes[index].wakes {
            self.arm_middlebox(other);
        }
    }

    fn arm_middlebox(&mut self, index: usize) {
        let slot = &mut self.middleboxes[index];
        // An overdue deadline is due now.
        let due = slot
            .middlebox
            .timer()
            .unwrap_or(Instant::NEVER)
            .max(self.fabric.now);
        if due < slot.armed {
            slot.armed = due;
            self.fabric
                .timers
                .push(Entry::new(due, Source::new(Class::MiddleboxTimer, index)));
        }
    }
}
