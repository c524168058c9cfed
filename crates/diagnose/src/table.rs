//! The connections of a capture: the open ones, and the finished ones that are reported.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, VecDeque},
    net::IpAddr,
};

use crate::{
    Bounds,
    connection::{Connection, identifications::Counters},
    finding, next,
    order::LONGEST,
    report::{self, Omitted},
    retransmission::ledger::Budget,
    segment::{End, Segment},
    time::{Nanos, SECOND},
    trace::{Trace, Tracer, Watch},
};

#[expect(
    clippy::disallowed_types,
    reason = "connections are looked up and never iterated over"
)]
type Slots = std::collections::HashMap<(End, End), usize>;

/// Recent connections.
const RECENT: usize = 64;

/// The place of two ports among the recent connections, equal for both directions.
fn place(one: &End, other: &End) -> usize {
    usize::from(one.1.wrapping_add(other.1)) % RECENT
}

/// Time for which the ends of a closed connection may retransmit.
const LINGER: Nanos = 120 * SECOND;

/// The key of a connection: the smaller end first, so that both directions have the same key.
fn key(segment: &Segment) -> (End, End) {
    let (one, other): (End, End) = (segment.source, segment.target);
    if rank(&one) <= rank(&other) {
        (one, other)
    } else {
        (other, one)
    }
}

fn rank(end: &End) -> (IpAddr, u16) {
    *end
}

/// Open connections, and the reports of finished ones.
pub(crate) struct Table {
    bounds: Bounds,
    budget: Budget,
    slots: Slots,
    open: Vec<Option<Box<Connection>>>,
    free: Vec<usize>,
    /// The slots of open connections, roughly by the time of their last packet, with that time.
    queue: VecDeque<(usize, u64, Nanos)>,
    /// Slots of recent connections, by their ports: the packets of few connections alternate.
    recent: [usize; RECENT],
    next_id: u64,
    counters: Counters,
    /// The connections that are reported, the ones with the fewest packets first.
    kept: BTreeMap<Rank, Box<report::Connection>>,
    pub(crate) omitted: Omitted,
    /// Connections that were ended because too many were open.
    pub(crate) evicted: u64,
    /// Connections to trace, and the traces of finished ones.
    watch: Option<Watch>,
    traces: Vec<Trace>,
}

/// The rank of a connection: of two with equal packets the later one ranks lower.
type Rank = (u64, Reverse<u64>);

impl Table {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            budget: Budget(bounds.retransmissions),
            slots: Slots::default(),
            open: Vec::new(),
            free: Vec::new(),
            queue: VecDeque::new(),
            recent: [0; RECENT],
            next_id: 1,
            counters: Counters::default(),
            kept: BTreeMap::new(),
            omitted: Omitted::default(),
            evicted: 0,
            watch: None,
            traces: Vec::new(),
        }
    }

    /// Creates a table that also traces some connections.
    pub(crate) fn watching(bounds: Bounds, watch: Watch) -> Self {
        Self {
            watch: Some(watch),
            ..Self::new(bounds)
        }
    }

    /// Adds a segment. Returns the number of its connection, and whether the connection's first end
    /// sent it.
    pub(crate) fn add(&mut self, segment: &Segment) -> Option<(u64, bool)> {
        let slot = self.slot(segment);
        let connection = self.open.get_mut(slot)?.as_mut()?;
        let from = connection.from(segment);
        if self.counters.see(segment) {
            connection.share_counter(from);
        }
        connection.add(segment, from, &mut self.budget);
        connection.note(segment, from);
        Some((connection.id, from == 0))
    }

    /// The slot of a segment's connection, which may begin with the segment.
    fn slot(&mut self, segment: &Segment) -> usize {
        let place = place(&segment.source, &segment.target);
        let recent = self.open.get(self.recent[place]).and_then(Option::as_ref);
        let slot = match recent {
            Some(connection) if connection.has(segment) => Some(self.recent[place]),
            _ => self.slots.get(&key(segment)).copied(),
        };
        let slot = match slot {
            Some(slot) if self.is_another(slot, segment) => {
                self.finish(slot);
                self.begin(key(segment), segment)
            }
            Some(slot) => slot,
            None => self.begin(key(segment), segment),
        };
        self.recent[place] = slot;
        slot
    }

    fn is_another(&self, slot: usize, segment: &Segment) -> bool {
        let connection = self.open.get(slot).and_then(Option::as_ref);
        connection.is_none_or(|connection| {
            // A silence of years ends a connection.
            segment.time.saturating_sub(connection.start) > LONGEST
                || connection.is_another(segment)
        })
    }

    fn begin(&mut self, key: (End, End), segment: &Segment) -> usize {
        self.make_room(segment.time);
        let mut connection = Box::new(Connection::new(self.next_id, segment));
        if let Some(watch) = &self.watch
            && watch.connections.contains(&self.next_id)
        {
            connection.watch(Tracer::new(self.next_id, watch));
        }
        let slot = if let Some(slot) = self.free.pop() {
            self.open[slot] = Some(connection);
            slot
        } else {
            self.open.push(Some(connection));
            self.open.len() - 1
        };
        self.queue.push_back((slot, self.next_id, segment.time));
        self.next_id += 1;
        self.slots.insert(key, slot);
        slot
    }

    /// Ends connections that are closed, and the one that has been silent longest if too many are
    /// open.
    fn make_room(&mut self, now: Nanos) {
        let mut looked = 0;
        loop {
            let is_full = self.slots.len() >= self.bounds.open_connections;
            if !is_full && looked >= 2 {
                return;
            }
            looked += 1;
            let Some((slot, id, seen)) = self.queue.pop_front() else {
                return;
            };
            let connection = self.open.get(slot).and_then(Option::as_ref);
            let Some(connection) = connection.filter(|connection| connection.id == id) else {
                continue;
            };
            let last = connection.last;
            let is_over = connection.is_over() && now.saturating_sub(last) > LINGER;
            if is_over || (is_full && (last == seen || looked > 2 * self.slots.len())) {
                self.evicted += u64::from(!is_over);
                self.finish(slot);
            } else {
                self.queue.push_back((slot, id, last));
            }
        }
    }

    fn finish(&mut self, slot: usize) {
        let Some(mut connection) = self.open.get_mut(slot).and_then(Option::take) else {
            return;
        };
        let [one, other] = connection.ends;
        for key in [(one, other), (other, one)] {
            if self.slots.get(&key) == Some(&slot) {
                self.slots.remove(&key);
            }
        }
        self.free.push(slot);
        connection.finish(&mut self.budget);
        self.traces.extend(connection.end_trace());
        self.keep(&connection);
    }

    fn keep(&mut self, connection: &Connection) {
        if self.kept.len() >= self.bounds.connections
            && self
                .kept
                .first_key_value()
                .is_some_and(|(least, _)| least.0 >= connection.packets)
        {
            let ways = connection.directions.iter();
            let again = ways.map(|direction| direction.ledger.counts.all).sum();
            self.omitted.add(connection.packets, again);
            self.budget.0 += connection.kept_retransmissions();
            return;
        }
        let report = Box::new(report::Connection::of(connection));
        let rank = (connection.packets, Reverse(connection.id));
        self.kept.insert(rank, report);
        if self.kept.len() > self.bounds.connections
            && let Some((rank, least)) = self.kept.pop_first()
        {
            self.omitted.add(rank.0, least.retransmissions());
            self.budget.0 += least.kept_retransmissions();
        }
    }

    /// Ends all connections. Returns the traces, in the order of the connections' first packets.
    pub(crate) fn end_traces(mut self) -> Vec<Trace> {
        for slot in 0..self.open.len() {
            self.finish(slot);
        }
        self.traces.sort_by_key(|trace| trace.id);
        self.traces
    }

    /// Ends all connections. Returns the reported ones, in the order of their first packets.
    pub(crate) fn end(mut self) -> (Vec<report::Connection>, Omitted, u64) {
        for slot in 0..self.open.len() {
            self.finish(slot);
        }
        let kept = self.kept.into_values();
        let mut kept: Vec<_> = kept.map(|kept| *kept).collect();
        kept.sort_by_key(|connection| connection.id);
        finding::add(&mut kept);
        next::add(&mut kept);
        (kept, self.omitted, self.evicted)
    }
}
