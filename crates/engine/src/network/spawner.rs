//! A workload of several transfers: Poisson arrivals, each on a separate connection.

use anabranch_congestion as cc;
use anabranch_core::{body::Body, packet::FlowId, units::Instant};
use anabranch_fec as fec;

use super::{
    App, End, Network, agent::AgentSlot, ahead::Approach, application::tcp_ends,
    connection::Connection, script::Tardiness,
};
use crate::event_queue::{Class, Entry, Source};
use anabranch_scenario::workload::Arrivals;

/// The arrivals of one flow.
#[derive(Debug)]
pub(super) struct Spawner {
    pub(super) flow: FlowId,
    pub(super) control: cc::Config,
    /// The error correction of each transfer.
    pub(super) fec: fec::Config,
    pub(super) arrivals: Arrivals,
    pub(super) stop: Instant,
    pub(super) route: [u32; 2],
    pub(super) elements: [anabranch_core::trace::ElementId; 2],
    /// The delays of each transfer's applications.
    pub(super) tardiness: Tardiness,
    /// The number of transfers begun.
    pub(super) begun: u64,
    /// Places of ended connections, for reuse.
    pub(super) vacant: Vec<u32>,
}

impl<B: Body> Network<B> {
    /// Begins the next transfer, and draws the one after it.
    pub(super) fn spawn(&mut self, index: usize) {
        self.fabric.events += 1;
        let now = self.fabric.now;
        let spawner = &mut self.spawners[index];
        if now >= spawner.stop {
            return;
        }
        let size = spawner.arrivals.draw().size;
        let due = spawner.arrivals.due;
        let number = spawner.begun;
        spawner.begun += 1;
        let (flow_id, route, elements, vacant) = (
            spawner.flow,
            spawner.route,
            spawner.elements,
            spawner.vacant.pop(),
        );
        self.fabric
            .timers
            .push(Entry::new(due, Source::new(Class::Spawn, index)));

        let flow = &mut self.flows[flow_id.0 as usize];
        if flow.window.contains(now) {
            flow.totals().started += 1;
        }
        let Some(settings) = flow.settings.clone() else {
            unreachable!("a workload of many runs over our TCP")
        };
        let spawner = &self.spawners[index];
        let late = (&spawner.tardiness, number);
        let app = App::File(size);
        let ends = tcp_ends(&settings, &spawner.control, &spawner.fec, app, late);
        let mut connection = Connection::new(flow_id, route, flow.window);
        connection.spawner = u32::try_from(index).ok();
        connection.started = now;
        connection.dscp = flow.dscp;
        connection.size = size;
        let identity = self.fabric.next_identity(flow_id);
        let place = if let Some(place) = vacant {
            // The packet numbers continue, so that a packet's identity stays unique.
            connection.next_index = self.connections[place as usize].next_index;
            connection.first_index = connection.next_index;
            self.connections[place as usize] = connection;
            self.fabric.identities[place as usize] = identity;
            place as usize
        } else {
            self.fabric.identities.push(identity);
            self.connections.push(connection);
            self.fabric.ends.extend([Approach::default(); 2]);
            for element in elements {
                self.agents.push(AgentSlot::vacant(element));
            }
            self.connections.len() - 1
        };
        for (side, end) in ends.into_iter().enumerate() {
            self.agents[place * 2 + side].end = end;
        }
        if let Some((endpoint, _)) = self.agents[place * 2].end.tcp_mut() {
            if self.fabric.probe.logs() {
                endpoint.keep_window_log();
            }
            endpoint.open(now);
        }
        self.after_agent(place * 2);
    }

    /// Releases a transfer's place after both ends have closed. Its packets still in flight are
    /// recognized by their numbers.
    pub(super) fn retire_if_over(&mut self, place: usize) {
        let over = self.agents[place * 2].is_over()
            && (self.agents[place * 2 + 1].is_over() || self.agents[place * 2 + 1].listens())
            && !matches!(self.agents[place * 2].end, End::Vacant);
        if !over {
            return;
        }
        self.settle(place);
        self.note_window(place);
        let conn = &mut self.connections[place];
        let totals = self.flows[conn.flow.0 as usize].totals();
        totals.ip_bytes += conn.receiver.ip_bytes;
        totals.spurious += conn.receiver.spurious_retransmissions;
        totals.delivered_bytes += conn.delivered;
        let spawner = conn.spawner.expect("only a workload's connections retire");
        for side in 0..2 {
            let slot = &mut self.agents[place * 2 + side];
            slot.end = End::Vacant;
            self.fabric.ends[place * 2 + side].is_hot = false;
        }
        self.spawners[spawner as usize]
            .vacant
            .push(u32::try_from(place).expect("connections are counted in 32 bits"));
    }
}
