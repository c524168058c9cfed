//! Flows whose packets carry the tunnel's numbers: who waits, and for how long at most.

use anabranch_core::{packet::PacketId, units::Instant};

use super::{
    Arrived,
    alarms::Alarms,
    line::{Held, Line, Waiting},
};
use crate::multipath::params::Memory;
use anabranch_wire::seq::near;

/// What became of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was the one that was due.
    Due,
    /// One with a higher number had been let go before it.
    Late,
    /// It waits for those before it, if there was room.
    Held,
}

/// All flows.
#[derive(Debug)]
pub(super) struct Numbered {
    held: Held,
    /// By flow number.
    flows: Vec<Line>,
    alarms: Alarms,
    /// How many data packets of a TCP flow may pass a gap before others wait for it.
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

    /// The flow, and the place in it, of a packet.
    pub(super) fn place(&mut self, packet: &Arrived) -> (usize, u64) {
        let flow = usize::from(packet.tunnel.flow);
        if flow >= self.flows.len() {
            self.flows.resize_with(flow + 1, Line::default);
        }
        (flow, near(self.flows[flow].next, packet.tunnel.number))
    }
    /// The first packet that waits in a flow.
    pub(super) fn first(&self, flow: usize) -> Option<&Waiting> {
        self.flows[flow].first()
    }

    /// How many packets a flow waits for, and when the first behind them left.
    pub(super) fn gap(&self, flow: usize) -> Option<(u64, u64)> {
        let line = &self.flows[flow];
        line.first()
            .map(|first| (first.at - line.next, first.departed))
    }

    /// A packet at this place has arrived, which left at `departed`; if it must wait, then until `due` at most. Pure
    /// acknowledgments do not wait, the latest says it all; that they have come is noted.
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
            // Whoever may wait least gives up first. An alarm that came too early is put off.
            self.alarm(None, released);
        }
        Outcome::Held
    }

    /// Gives up what a flow waits for, up to the first packet that waits.
    pub(super) fn give_up(&mut self, flow: usize, released: &mut Vec<PacketId>) {
        let line = &mut self.flows[flow];
        if let Some(at) = line.first().map(|first| first.at) {
            self.gaps_given_up += line.give_up(at, &mut self.held, released);
        }
    }

    /// Those that may not wait past `now` go.
    pub(super) fn on_timer(&mut self, now: Instant, released: &mut Vec<PacketId>) {
        while self.alarms.next().is_some_and(|due| due <= now) {
            self.alarm(Some(now), released);
        }
    }

    /// The earliest alarm sounds: at `now`, or when it is for.
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
