//! Flows and their connections: routes, counters, and the report of a flow.

use std::{ops::Range, sync::Arc};

use anabranch_core::{
    body::Body,
    packet::{Direction, FlowId},
    reordering,
    units::{Duration, Instant},
};
use anabranch_fec::{self as fec};
use anabranch_path::link::Window;
use anabranch_tcp::{Endpoint, LimitTimes, Refusals, Settings, Snapshot, Stats};
use anabranch_wire::Seq;

use super::{
    App, End, Network,
    datagrams::OneWayDelay,
    ended::{Ended, Ends},
};
use crate::record::{ReceiverMeter, Resent, SenderMeter};

/// A connection of a flow.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) flow: FlowId,
    /// The start of each direction's route in the table of routes.
    pub(super) route: [u32; 2],
    /// The numbers of the next packets. They never wrap; a packet carries the low 32 bits.
    pub(super) next_index: [u64; 2],
    /// Initial sequence numbers, forward and reverse.
    pub(super) iss: [u32; 2],
    /// The numbers of the first packets of this transfer; lower ones belong to an earlier transfer
    /// in this place.
    pub(super) first_index: [u64; 2],
    /// Octets after which the transfer is complete; `u64::MAX` if it is unlimited.
    pub(super) size: u64,
    /// Bytes delivered in order to the far end.
    pub(super) delivered: u64,
    pub(super) sender: SenderMeter,
    pub(super) receiver: ReceiverMeter,
    /// Counters at the start of the measured time.
    pub(super) base: Option<Box<Base>>,
    /// Whether its counters are final: the file is complete, or the application was stopped.
    pub(super) settled: bool,
    /// Octets delivered at that time; later ones at the same instant do not count.
    settled_at: u64,
    /// The differentiated services code point of packets for which their host sets none.
    pub(super) dscp: u8,
    /// Created at the first retransmission in the measured time.
    pub(super) resent: Option<Box<Resent>>,
    /// The workload of which this connection is a transfer.
    pub(super) spawner: Option<u32>,
    /// The round that its client belongs to.
    pub(super) round: Option<u32>,
    pub(super) started: Instant,
}

/// Counters of both ends at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Base {
    pub(super) sender: Stats,
    pub(super) receiver: Stats,
    /// The time for which each limit has held the sender.
    pub(super) limits: LimitTimes,
    /// Both ends together.
    pub(super) refused: Refusals,
    /// The error correction layers of both ends: the sender's half of the sending end, the
    /// receiver's half of the receiving end.
    pub(super) fec: Option<Box<[fec::Stats; 2]>>,
}

impl Connection {
    /// Updates the number of delivered bytes, and returns whether the transfer is now complete.
    #[inline]
    pub(super) fn note_delivery(&mut self, now: Instant, delivered: u64) -> bool {
        if delivered == self.delivered {
            return false;
        }
        self.delivered = delivered;
        self.receiver.last_delivery = now;
        delivered == self.size
    }

    /// Returns the number of a packet that carries `index`: the highest sent number with these low
    /// bits, because fewer than 2^32 packets are in flight.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low half travels")]
    pub(super) const fn number(&self, direction: Direction, index: u32) -> u64 {
        let next = self.next_index[direction as usize];
        // 2^32 if both halves are equal: the next number has not been sent.
        let behind = (next as u32).wrapping_sub(index).wrapping_sub(1) as u64 + 1;
        next.wrapping_sub(behind)
    }

    /// Whether a packet belongs to an earlier transfer in this place. Numbers continue from one
    /// transfer to the next.
    #[inline]
    pub(super) const fn is_stale(&self, direction: Direction, number: u64) -> bool {
        number < self.first_index[direction as usize]
    }

    /// Records a retransmission of `octets` in the packet `number`; octets before `acknowledged`
    /// have been acknowledged.
    #[cold]
    #[inline(never)]
    pub(super) fn note_resent(&mut self, octets: Range<Seq>, number: u64, acknowledged: Seq) {
        if !self.settled {
            let resent = self.resent.get_or_insert_default();
            resent.sent(octets, number, acknowledged);
        }
    }

    /// Whether there are retransmissions that [`Self::compare_resent`] has not processed.
    #[inline]
    pub(super) fn has_fresh_resent(&self) -> bool {
        self.resent.as_deref().is_some_and(Resent::has_fresh)
    }

    /// Compares the retransmissions sent at this time with the data at the receiver.
    #[cold]
    #[inline(never)]
    pub(super) fn compare_resent<B: Body>(&mut self, receiver: &Endpoint<B>) {
        if let Some(resent) = &mut self.resent {
            let spurious = resent.compare(|octets| receiver.missing(octets));
            self.receiver.spurious_retransmissions += spurious;
        }
    }

    /// Whether a retransmission was sent after the packet `number` of the sender.
    #[inline]
    pub(super) fn has_resent_after(&self, number: u64) -> bool {
        self.resent
            .as_deref()
            .is_some_and(|resent| resent.is_after(number))
    }

    /// Records that the packet `number` of the sender brought `octets` to the receiver.
    #[cold]
    #[inline(never)]
    pub(super) fn note_arrival(&mut self, octets: &Range<Seq>, number: u64) {
        if let Some(resent) = &mut self.resent {
            self.receiver.spurious_retransmissions += resent.arrived(octets, number);
        }
    }
}

/// A flow of the scenario.
#[derive(Debug)]
pub(super) struct Flow<B: Body> {
    pub(super) name: String,
    /// Its connection, unless a workload creates several.
    pub(super) connection: Option<u32>,
    pub(super) window: Window,
    /// The differentiated services code point of its packets.
    pub(super) dscp: u8,
    /// The settings of our TCP; `None` for UDP and hosts supplied by the caller.
    pub(super) settings: Option<Arc<Settings>>,
    /// Created when it first counts.
    totals: Option<Box<Totals>>,
    pub(super) body: std::marker::PhantomData<B>,
}

/// Sums over the finished connections of a flow.
#[derive(Debug, Default)]
pub(super) struct Totals {
    /// Created when the first of them has ended.
    pub(super) base: Option<Box<Base>>,
    pub(super) ip_bytes: u64,
    pub(super) spurious: u64,
    pub(super) delivered_bytes: u64,
    pub(super) completion_times: Vec<Duration>,
    pub(super) started: u64,
    /// Whether the measured time is over.
    pub(super) frozen: bool,
}

impl Totals {
    fn sums(&self) -> Base {
        self.base.as_deref().cloned().unwrap_or_default()
    }
}

/// The transfers of a workload with several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completions {
    /// Transfers begun.
    pub started: u64,
    /// Completion times of ended transfers, in order of their ends.
    pub times: Vec<Duration>,
}

/// The report of a flow.
#[derive(Debug, Clone)]
pub struct FlowReport {
    /// Its name: `main`, or `main/0` if there are copies.
    pub name: String,
    /// The measured time: from the later of start and warm-up to its end.
    pub measured: Duration,
    /// Counters of the sending end in that time.
    pub sender: Stats,
    /// Counters of the receiving end in that time.
    pub receiver: Stats,
    /// Segments and SACK blocks refused by either end in that time.
    pub refused: Refusals,
    /// IP bytes that arrived in that time.
    pub ip_bytes: u64,
    /// Retransmissions of data that an earlier transmission delivered: a part of the sender's
    /// retransmissions.
    pub spurious_retransmissions: u64,
    /// Mean window in bytes; `None` if not applicable.
    pub mean_cwnd_bytes: Option<f64>,
    /// Mean srtt in milliseconds.
    pub mean_srtt_ms: Option<f64>,
    /// The time for which each limit held the sender in the measured time; `None` unless it is one
    /// connection of our TCP.
    pub limits: Option<LimitTimes>,
    /// The state of the sending end now.
    pub snapshot: Option<Snapshot>,
    /// Payload bytes of a full segment.
    pub smss: u64,
    /// Whether our TCP runs over it. For hosts supplied by the caller only arrivals are known, and
    /// for UDP also the datagrams sent.
    pub is_tcp: bool,
    /// Time from the start to the last in-order delivery of a file.
    pub completion_time: Option<Duration>,
    /// The outcome of the connection and its time; `None` for UDP, for hosts supplied by the caller
    /// and for workloads with several connections.
    pub ended: Option<(Ended, Option<Instant>)>,
    /// Reordering at the receiver.
    pub reordering: Option<reordering::Summary>,
    /// Transfers, if a workload creates several.
    pub completions: Option<Completions>,
    /// Requests and their responses, if there is a client.
    pub exchanges: Option<Completions>,
    /// Delays of datagrams, over UDP.
    pub one_way_delay: Option<OneWayDelay>,
    /// Counters of the error correction layer, if any: the sending end's, the receiving end's.
    pub fec: Option<Box<[fec::Stats; 2]>>,
}

impl<B: Body> Network<B> {
    /// Number of flows.
    #[must_use]
    pub fn flow_count(&self) -> usize {
        self.flows.len()
    }
    /// A flow's name.
    #[must_use]
    pub fn flow_name(&self, flow: FlowId) -> &str {
        &self.flows[flow.0 as usize].name
    }
    /// Payload bytes of a flow's full segment; `None` for UDP and for hosts supplied by the caller.
    #[must_use]
    pub fn mss(&self, flow: FlowId) -> Option<u32> {
        self.flows[flow.0 as usize]
            .settings
            .as_ref()
            .map(|settings| settings.mss)
    }
    /// The state of a flow's sending end; `None` for UDP, for hosts supplied by the caller and for
    /// workloads with several connections.
    #[must_use]
    pub fn snapshot(&self, flow: FlowId) -> Option<(Snapshot, Stats)> {
        let connection = self.flows[flow.0 as usize].connection?;
        let (endpoint, _) = self.agents[connection as usize * 2].end.tcp()?;
        Some((endpoint.snapshot(), endpoint.stats()))
    }
    /// Bytes delivered in order to a flow's receiving end until now; for several transfers, by
    /// ended ones.
    #[must_use]
    pub fn delivered_bytes(&self, flow: FlowId) -> u64 {
        let flow = &self.flows[flow.0 as usize];
        flow.connection
            .map_or(flow.summed(|sum| sum.delivered_bytes), |c| {
                self.connections[c as usize].delivered
            })
    }

    /// IP bytes that have arrived at a flow's receiving end in the measured time until now; for
    /// several transfers, by ended ones.
    #[must_use]
    pub fn arrived_bytes(&self, flow: FlowId) -> u64 {
        let flow = &self.flows[flow.0 as usize];
        flow.connection
            .map_or(flow.summed(|sum| sum.ip_bytes), |c| {
                self.connections[c as usize].receiver.ip_bytes
            })
    }

    fn stats_of(&self, agent: usize) -> Stats {
        match &self.agents[agent].end {
            End::Tcp(endpoint, _) => endpoint.stats(),
            End::Protected(layer, _) => layer.tcp().stats(),
            End::Udp(end) => end.stats(),
            End::Host(host) => Stats {
                delivered_bytes: host.delivered_bytes(),
                ..Stats::default()
            },
            End::Vacant => Stats::default(),
        }
    }
    fn refused_by(&self, agent: usize) -> Refusals {
        let tcp = self.agents[agent].end.tcp();
        tcp.map_or_else(Refusals::default, |(endpoint, _)| endpoint.refusals())
    }
    pub(super) fn counters(&self, connection: usize) -> Base {
        let (sender, receiver) = (connection * 2, connection * 2 + 1);
        Base {
            sender: self.stats_of(sender),
            receiver: self.stats_of(receiver),
            limits: self.agents[sender]
                .end
                .tcp()
                .map_or_else(LimitTimes::default, |(endpoint, _)| {
                    endpoint.limit_times(self.fabric.now)
                }),
            refused: self.refused_by(sender).plus(&self.refused_by(receiver)),
            fec: match (&self.agents[sender].end, &self.agents[receiver].end) {
                (End::Protected(sender, _), End::Protected(receiver, _)) => {
                    Some(Box::new([*sender.stats(), *receiver.stats()]))
                }
                _ => None,
            },
        }
    }
    /// Sets the number of the next packet of every connection to `number`, and the counter of
    /// arrivals at every link to its low half. Only before a run: tests use it to start counters
    /// just below their limits.
    #[doc(hidden)]
    #[expect(clippy::cast_possible_truncation, reason = "links count modulo 2^32")]
    pub fn number_packets_from(&mut self, number: u64) {
        for connection in &mut self.connections {
            connection.next_index = [number; 2];
            connection.first_index = [number; 2];
        }
        self.fabric.count_arrivals_from(number as u32);
    }
    /// The same for the places of ended transfers.
    #[doc(hidden)]
    pub fn renumber_idle_places(&mut self, number: u64) {
        for spawner in &self.spawners {
            for place in &spawner.vacant {
                self.connections[*place as usize].next_index = [number; 2];
            }
        }
    }
    /// Begins the measured time of a flow: stores its counters.
    pub(super) fn begin_measuring(&mut self, flow: FlowId) {
        let connections = self.connections_of(flow);
        for connection in connections {
            let base = self.counters(connection);
            let conn = &mut self.connections[connection];
            conn.base = Some(Box::new(base));
            // Earlier retransmissions do not count, regardless of when their data arrives.
            conn.resent = None;
            conn.receiver.spurious_retransmissions = 0;
        }
        // Transfers that ended earlier do not count.
        self.flows[flow.0 as usize].totals = None;
    }
    /// Ends the measured time of a flow before the end of the run: its counters are final.
    pub(super) fn end_measuring(&mut self, flow: FlowId) {
        for connection in self.connections_of(flow) {
            self.settle(connection);
        }
        self.flows[flow.0 as usize].totals().frozen = true;
    }
    /// Records that all data of a transfer has been delivered.
    pub(super) fn transfer_is_complete(&mut self, connection: usize) {
        let conn = &mut self.connections[connection];
        if let Some(round) = conn.round {
            self.response_is_complete(round);
            return;
        }
        let took = self.fabric.now - conn.started;
        let flow = &mut self.flows[conn.flow.0 as usize];
        if conn.spawner.is_some() {
            if flow.window.contains(self.fabric.now) {
                flow.totals().completion_times.push(took);
            }
        } else {
            self.settle(connection);
        }
    }
    /// Adds a connection's counters until now to its flow's totals, once.
    pub(super) fn settle(&mut self, connection: usize) {
        if std::mem::replace(&mut self.connections[connection].settled, true) {
            return;
        }
        let counters = self.counters(connection);
        let conn = &mut self.connections[connection];
        conn.settled_at = conn.delivered;
        conn.sender.stop(self.fabric.now);
        conn.receiver.stop(self.fabric.now);
        let sums = counters.since(conn.base.take().as_deref());
        let totals = self.flows[conn.flow.0 as usize].totals();
        if !totals.frozen {
            totals.base.get_or_insert_default().add(&sums);
        }
    }
    /// The connections of a flow that have not ended.
    fn connections_of(&self, flow: FlowId) -> Vec<usize> {
        match self.flows[flow.0 as usize].connection {
            Some(connection) => vec![connection as usize],
            None => (0..self.connections.len())
                .filter(|&c| {
                    self.connections[c].flow == flow
                        && !matches!(self.agents[c * 2].end, End::Vacant)
                })
                .collect(),
        }
    }

    /// Returns the report of a flow until now.
    pub fn flow_report(&mut self, id: FlowId) -> FlowReport {
        let now = self.fabric.now;
        match self.flows[id.0 as usize].connection {
            Some(connection) => self.single_report(id, connection as usize, now),
            None => self.workload_report(id, now),
        }
    }

    fn single_report(&mut self, id: FlowId, connection: usize, now: Instant) -> FlowReport {
        let counters = self.counters(connection);
        let flow = &self.flows[id.0 as usize];
        let conn = &mut self.connections[connection];
        let sums = if conn.settled {
            flow.totals.as_deref().map(Totals::sums).unwrap_or_default()
        } else {
            counters.since(conn.base.as_deref())
        };
        let end = now.min(flow.window.end());
        let last = conn.receiver.last_delivery;
        let delivered = if conn.settled {
            conn.settled_at
        } else {
            conn.delivered
        };
        let completed = delivered >= conn.size && last <= end;
        let stops = conn.size == u64::MAX && conn.delivered > 0;
        let stopped = Some(flow.window.end()).filter(|stop| stops && *stop < now);
        let end = if completed { last } else { end };
        let (mean_cwnd_bytes, mean_srtt_ms) = conn.sender.finish(end);
        let summary = conn.receiver.reordering.summary();
        let tcp = self.agents[connection * 2].end.tcp();
        let snapshot = tcp.map(|(endpoint, _)| endpoint.snapshot());
        let broken = [0, 1].map(|side| {
            let (endpoint, _) = self.agents[connection * 2 + side].end.tcp()?;
            Some((endpoint.ending()?.into(), endpoint.ended_at()?))
        });
        let ends = Ends {
            completed: completed.then_some(last),
            broken,
            stopped,
        };
        let receiver = &self.agents[connection * 2 + 1].end;
        let (exchanges, one_way_delay) = match receiver {
            End::Tcp(_, App::Scripted(script)) | End::Protected(_, App::Scripted(script)) => {
                (script.exchanges().cloned(), None)
            }
            End::Udp(end) => (None, end.one_way_delay().cloned()),
            _ => (None, None),
        };
        FlowReport {
            name: flow.name.clone(),
            measured: end.saturating_since(flow.window.start()),
            sender: sums.sender,
            receiver: sums.receiver,
            refused: sums.refused,
            ip_bytes: conn.receiver.ip_bytes,
            spurious_retransmissions: conn.receiver.spurious_retransmissions,
            mean_cwnd_bytes: snapshot.is_some().then_some(mean_cwnd_bytes).flatten(),
            mean_srtt_ms: snapshot.is_some().then_some(mean_srtt_ms).flatten(),
            limits: snapshot.is_some().then_some(sums.limits),
            snapshot,
            smss: flow.smss(),
            is_tcp: snapshot.is_some(),
            completion_time: completed.then(|| end.saturating_since(conn.started)),
            ended: snapshot.is_some().then(|| ends.first()),
            reordering: Some(summary),
            completions: None,
            exchanges,
            one_way_delay,
            fec: sums.fec,
        }
    }

    fn workload_report(&mut self, id: FlowId, now: Instant) -> FlowReport {
        let live = self.connections_of(id);
        let totals = self.flows[id.0 as usize].totals();
        let (mut ip_bytes, mut spurious) = (totals.ip_bytes, totals.spurious);
        let mut sums = totals.sums();
        let completions = Completions {
            started: totals.started,
            times: totals.completion_times.clone(),
        };
        for connection in live {
            let counters = self.counters(connection);
            let conn = &self.connections[connection];
            if !conn.settled {
                sums.add(&counters.since(conn.base.as_deref()));
            }
            ip_bytes += conn.receiver.ip_bytes;
            spurious += conn.receiver.spurious_retransmissions;
        }
        let flow = &self.flows[id.0 as usize];
        FlowReport {
            name: flow.name.clone(),
            measured: now
                .min(flow.window.end())
                .saturating_since(flow.window.start()),
            sender: sums.sender,
            receiver: sums.receiver,
            refused: sums.refused,
            ip_bytes,
            spurious_retransmissions: spurious,
            mean_cwnd_bytes: None,
            mean_srtt_ms: None,
            limits: None,
            snapshot: None,
            smss: flow.smss(),
            is_tcp: true,
            completion_time: None,
            ended: None,
            reordering: None,
            completions: Some(completions),
            exchanges: None,
            one_way_delay: None,
            fec: sums.fec,
        }
    }
}

impl<B: Body> Flow<B> {
    /// A flow without connections.
    pub(super) fn new(name: String, window: Window, dscp: u8) -> Self {
        Self {
            name,
            connection: None,
            window,
            dscp,
            settings: None,
            totals: None,
            body: std::marker::PhantomData,
        }
    }
    pub(super) fn totals(&mut self) -> &mut Totals {
        self.totals.get_or_insert_default()
    }
    fn summed(&self, sum: impl Fn(&Totals) -> u64) -> u64 {
        self.totals.as_deref().map_or(0, sum)
    }
    /// Payload bytes of a full segment; 1 without our TCP.
    fn smss(&self) -> u64 {
        self.settings
            .as_ref()
            .map_or(1, |settings| u64::from(settings.mss))
    }
}

impl Base {
    pub(super) fn since(mut self, base: Option<&Self>) -> Self {
        if let Some(base) = base {
            self.sender = self.sender.since(&base.sender);
            self.receiver = self.receiver.since(&base.receiver);
            self.limits = self.limits.since(&base.limits);
            self.refused = self.refused.since(&base.refused);
            if let (Some(fec), Some(earlier)) = (&mut self.fec, &base.fec) {
                for (fec, earlier) in fec.iter_mut().zip(earlier.iter()) {
                    *fec = fec.since(earlier);
                }
            }
        }
        self
    }
    pub(super) fn add(&mut self, other: &Self) {
        self.sender = self.sender.plus(&other.sender);
        self.receiver = self.receiver.plus(&other.receiver);
        self.limits = self.limits.plus(&other.limits);
        self.refused = self.refused.plus(&other.refused);
        if let Some(others) = &other.fec {
            let sums = self.fec.get_or_insert_default();
            for (sum, other) in sums.iter_mut().zip(others.iter()) {
                *sum = sum.plus(other);
            }
        }
    }
}

impl Connection {
    pub(super) fn new(flow: FlowId, route: [u32; 2], window: Window) -> Self {
        Self {
            flow,
            route,
            next_index: [0; 2],
            iss: [0; 2],
            first_index: [0; 2],
            size: u64::MAX,
            delivered: 0,
            sender: SenderMeter::new(window),
            receiver: ReceiverMeter::new(window),
            base: None,
            settled: false,
            settled_at: 0,
            dscp: 0,
            resent: None,
            spawner: None,
            round: None,
            started: window.start(),
        }
    }
}
