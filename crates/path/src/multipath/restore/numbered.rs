//! Flows with the tunnel's packet numbers: order and maximum wait.

use anabranch_core::{packet::PacketId, units::Instant};

use super::{
    Arrived,
    alarms::Alarms,
    line::{Held, Line, Waiting},
};
use crate::multipath::params::Memory;
use anabranch_wire::seq::near;

/// Outcome of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was the next expected packet.
    Due,
    /// A packet with a higher number had been released before it.
    Late,
    /// It waits for earlier packets, if there was room.
    Held,
}

/// All flows.
#[derive(Debug)]
pub(super) struct Numbered {
    held: Held,
    /// By flow number.
    flows: Vec<Line>,
    alarms: Alarms,
    /// Number of data packets of a TCP flow that may pass a gap before others wait for it.
    pub(super) ahead: usize,
    pub(super) gaps_given_up: u64,
}

impl Numbered {
    pub(super) const fn new(memory: Memory) -> Self {
        Self {
            ahead: 0,
            held: Held::new(memory.get()),
            flows: Vec::new(),
            alarms: Alarms::new(),
            gaps_given_up: 0,
        }
    }

    /// Returns the flow of a packet and its position there.
    pub(super) fn place(&mut self, packet: &Arrived) -> (usize, u64) {
        let flow = usize::from(packet.tunnel.flow);
        if flow >= self.flows.len() {
            self.flows.resize_with(flow + 1, Line::default);
        }
        (flow, near(self.flows[flow].next, packet.tunnel.number))
    }
    /// Returns the first waiting packet of a flow.
    pub(super) fn first(&self, flow: usize) -> Option<&Waiting> {
        self.flows[flow].first()
    }

    /// Returns the number of packets that a flow waits for, and the departure of the first packet
    /// after them.
    pub(super) fn gap(&self, flow: usize) -> Option<(u64, u64)> {
        let line = &self.flows[flow];
        line.first()
            .map(|first| (first.at - line.next, first.departed))
    }

    /// A packet at this position, sent at `departed`, has arrived. If it must wait, it does so
    /// until `due` at most. Pure acknowledgments do not wait, because the latest supersedes the
    /// others; their arrival is recorded.
    pub(super) fn arrive(
        &mut self,
        packet: Arrived,
        (flow, at): (usize, u64),
        departed: u64,
        due: Instant,
        released: &mut Vec<PacketId>,
    ) -> Outcome {
        let line = &mut self.flows[flow];
        if at < line.next {
            released.push(packet.packet);
            return Outcome::Late;
        }
        if at == line.next {
            released.push(packet.packet);
            line.next += 1;
            line.release(&mut self.held, released);
            return Outcome::Due;
        }
        let ahead = self.ahead;
        let passes = packet
            .tcp
            .is_some_and(|tcp| tcp.is_pure_ack() || line.lets_pass(ahead));
        if passes {
            released.push(packet.packet);
        }
        let waiting = Waiting {
            at,
            end: at + 1,
            packet: (!passes).then_some(packet.packet),
            size: if passes { 0 } else { packet.size },
            route: packet.tunnel.route,
            departed,
            due,
        };
        line.hold(&mut self.held, waiting);
        if line.armed.is_some_and(|armed| due < armed) {
            line.armed = None;
        }
        line.arm(number(flow), &mut self.alarms);
        while self.held.is_over() {
            // The packet with the earliest deadline is released first. An early alarm is set again.
            self.alarm(None, released);
        }
        Outcome::Held
    }

    /// Gives up the gap of a flow, up to its first waiting packet.
    pub(super) fn give_up(&mut self, flow: usize, released: &mut Vec<PacketId>) {
        let line = &mut self.flows[flow];
        if let Some(at) = line.first().map(|first| first.at) {
            self.gaps_given_up += line.give_up(at, &mut self.held, released);
        }
    }

    /// Releases packets whose deadline is at most `now`.
    pub(super) fn on_timer(&mut self, now: Instant, released: &mut Vec<PacketId>) {
        while self.alarms.next().is_some_and(|due| due <= now) {
            self.alarm(Some(now), released);
        }
    }

    /// Handles the earliest alarm as of `now`, or as of the alarm's time.
    fn alarm(&mut self, now: Option<Instant>, released: &mut Vec<PacketId>) {
        let Some((due, flow)) = self.alarms.pop() else {
            return;
        };
        let line = &mut self.flows[flow as usize];
        line.armed = None;
        self.gaps_given_up += line.sound(now.unwrap_or(due), &mut self.held, released);
        line.arm(flow, &mut self.alarms);
    }

    pub(super) fn timer(&self) -> Option<Instant> {
        self.alarms.next()
    }
}

fn number(flow: usize) -> u32 {
    u32::try_from(flow).expect("flows have 16 bits")
}
