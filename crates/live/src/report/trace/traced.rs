//! What was told of a run, in order of time, and what follows from it: recoveries, windows, what was retransmitted and why, and what
//! each segment acknowledged.

use std::{collections::HashMap, fs};

use anabranch_bpf::trace::{CaState, Detail, Kind, Record};
use anabranch_core::{
    packet::{ConnectionId, Direction, FlowId},
    units::{Bytes, Instant},
};
use anabranch_engine::{
    network::Network,
    record::{PacketLog, PacketRow, WindowRow},
};
use anabranch_scenario::{Protocol, Resolved, ResolvedFlow, workload::Config};
use anabranch_tcp::{EcnMode, Recovery, RetransmitCause, WindowChange};
use serde_json::{Map, Value, json};

use crate::{
    apps::application::Outcome,
    kernel::host::LiveHost,
    plan::{frame::Frame, settings::is_carried},
    report::summary,
};

/// What was told of a run.
#[derive(Debug, Clone, Default)]
pub struct Traced {
    pub(super) detail: Option<Detail>,
    pub(super) why_not: Option<String>,
    /// The flows that were traced, in order.
    pub(super) flows: Vec<u32>,
    /// In order of time.
    pub(super) records: Vec<Record>,
    /// Where those of each flow are.
    pub(super) places: HashMap<u32, Vec<usize>>,
    pub(super) lost: u64,
    pub(super) start_ns: u64,
}

/// A sender when a segment came to it, before it was handled. Windows are in segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledged {
    /// When.
    pub at: Instant,
    /// Index into the scenario's flows.
    pub flow: usize,
    /// Which of the flow's connections, from 0.
    pub connection: u32,
    /// Octets of the stream that the segment acknowledges.
    pub acknowledged_bytes: u64,
    /// Fast recoveries of the connection so far.
    pub fast_recoveries: u32,
    /// Expiries of its retransmission timer so far.
    pub timeouts: u32,
    /// How it was.
    pub record: Record,
}

impl Traced {
    /// Whether all that happened to a flow was told.
    #[must_use]
    pub fn tells_of(&self, flow: usize) -> bool {
        let number = u32::try_from(flow).unwrap_or(u32::MAX);
        self.lost == 0 && self.flows.binary_search(&number).is_ok()
    }

    fn at(&self, record: &Record) -> Instant {
        Instant::from_nanos(record.time_ns.saturating_sub(self.start_ns))
    }

    fn of_flow(&self, flow: usize) -> impl Iterator<Item = &Record> {
        let number = u32::try_from(flow).unwrap_or(u32::MAX);
        let places = self.places.get(&number).into_iter().flatten();
        places.map(|place| &self.records[*place])
    }

    /// When each fast recovery of a flow began.
    pub fn recoveries(&self, flow: usize) -> impl Iterator<Item = Instant> {
        self.of_flow(flow)
            .filter(|record| begins_recovery(record))
            .map(|record| self.at(record))
    }

    /// Writes into the flows' figures what only the trace tells: `fast_recoveries`.
    pub fn fill_in(
        &self,
        flows: &mut Map<String, Value>,
        resolved: &Resolved,
        outcomes: &[[Outcome; 2]],
    ) {
        for (index, (flow, outcomes)) in resolved.flows.iter().zip(outcomes).enumerate() {
            let Some(Value::Object(figures)) = flows.get_mut(&flow.name) else {
                continue;
            };
            if self.tells_of(index) {
                let (start, end) = summary::window(flow, resolved, outcomes);
                let counted = self
                    .recoveries(index)
                    .filter(|at| (start..=end).contains(at));
                figures.insert("fast_recoveries".into(), counted.count().into());
            }
        }
    }

    /// Puts what it tells into the log of packets, if one is kept.
    pub fn note(&self, network: &mut Network<Frame>, resolved: &Resolved) {
        if let Some(log) = network.log_mut() {
            self.mark(log, resolved);
            find_resent(log.rows_mut(), |flow| {
                let flow = resolved.flows.get(flow.0 as usize);
                flow.is_some_and(|flow| {
                    flow.protocol == Protocol::Tcp && !is_carried(flow, resolved)
                })
            });
            number(log, resolved);
            log.add_windows(self.windows(resolved));
        }
    }

    /// For the summary: what was traced or why it was not, and how much was told of each flow.
    #[must_use]
    pub fn described(&self, resolved: &Resolved, hosts: &[Option<LiveHost>]) -> Value {
        let of = |index: usize| {
            let count = |of: fn(&Record) -> bool| self.of_flow(index).filter(|r| of(r)).count();
            let last = self.of_flow(index).last()?;
            Some(json!({
                "segments": count(|record| matches!(record.kind, Kind::Segment { .. })),
                "recoveries": count(begins_recovery),
                "timeouts": count(begins_loss),
                "retransmissions": self.of_flow(index).map(sent_again).sum::<u32>(),
                "congestion_control": last.control(),
            }))
        };
        let flows = resolved.flows.iter().enumerate();
        let flows: Map<String, Value> = flows
            .filter_map(|(index, flow)| Some((flow.name.clone(), of(index)?)))
            .collect();
        let merged = self.detail.map(|_| {
            let hosts = resolved.nodes.iter().zip(hosts);
            let merged =
                hosts.filter_map(|(name, host)| Some((name.clone(), merged(host.as_ref())?)));
            merged.collect::<Map<String, Value>>()
        });
        json!({
            "detail": self.detail.map(|detail| match detail {
                Detail::Events => "events",
                Detail::Segments => "acks",
            }),
            "why_not": self.why_not,
            "records": self.records.len(),
            "lost_records": self.lost,
            "merged_segments": merged,
            "flows": flows,
        })
    }

    /// Every segment that a sender received, in order of time. Empty if segments were not traced.
    #[must_use]
    pub fn acknowledged(&self) -> Vec<Acknowledged> {
        if self.detail != Some(Detail::Segments) {
            return Vec::new();
        }
        let mut connections = Connections::default();
        let mut all = Vec::new();
        for record in &self.records {
            let connection = connections.of(record);
            match record.kind {
                Kind::Segment { ack } => {
                    let acknowledged_bytes = connection.numbers.offset(ack);
                    all.push(Acknowledged {
                        at: self.at(record),
                        flow: record.flow as usize,
                        connection: connection.number,
                        acknowledged_bytes,
                        fast_recoveries: connection.fast_recoveries,
                        timeouts: connection.timeouts,
                        record: *record,
                    });
                }
                _ if begins_recovery(record) => connection.fast_recoveries += 1,
                _ if begins_loss(record) => connection.timeouts += 1,
                _ => {}
            }
        }
        all
    }

    /// What happened to the windows, as the simulator's log of them has it.
    fn windows(&self, resolved: &Resolved) -> Vec<WindowRow> {
        let mut rows = Vec::new();
        let mut open: HashMap<u64, Window> = HashMap::new();
        for record in &self.records {
            let flow = &resolved.flows[record.flow as usize];
            let window = open.entry(record.socket).or_default();
            match record.kind {
                // The first segment after a change finds what that has made of the window.
                Kind::Segment { .. } => {
                    for place in window.to_be_seen.drain(..) {
                        let row: &mut WindowRow = &mut rows[place];
                        row.cwnd.1 = segments(record.cwnd);
                    }
                }
                Kind::Again { .. } => {
                    window.has_probed |= probes(record);
                }
                Kind::State { next } => {
                    for change in window.changes(record, next, flow) {
                        // What it was before the reduction is noted where no other one is under way.
                        let is_first = change != WindowChange::Timeout || probes(record);
                        let before = match change {
                            WindowChange::Recovered | WindowChange::Undone => record.cwnd_before,
                            _ if is_first => record.prior_cwnd,
                            _ => record.cwnd_before,
                        };
                        window.to_be_seen.push(rows.len());
                        rows.push(WindowRow {
                            flow: FlowId(record.flow),
                            at: self.at(record),
                            change,
                            cwnd: (segments(before), segments(record.cwnd)),
                            ssthresh: record.ssthresh().map(segments),
                        });
                    }
                }
            }
        }
        rows
    }

    /// Says in the log of packets which were retransmitted, and why as far as the congestion state tells.
    fn mark(&self, log: &mut PacketLog, resolved: &Resolved) {
        for (index, flow) in resolved.flows.iter().enumerate() {
            let id = FlowId(u32::try_from(index).unwrap_or(u32::MAX));
            let rows = log.rows_mut().filter(|row| {
                (row.flow, row.direction) == (id, Direction::Forward) && row.payload > 0
            });
            let mut by_number: HashMap<u32, Vec<&mut PacketRow>> = HashMap::new();
            for row in rows {
                // A kernel's packets carry the numbers of TCP, which have 32 bits.
                #[expect(clippy::cast_possible_truncation, reason = "sequence numbers")]
                by_number.entry(row.sequence as u32).or_default().push(row);
            }
            for record in self.of_flow(index) {
                let Kind::Again { first, end } = record.kind else {
                    continue;
                };
                let at = self.at(record);
                // One record for what leaves as one; the packets of it are numbered one behind the other.
                let mut number = first;
                while end.wrapping_sub(number).cast_signed() > 0 {
                    let sent = by_number.get_mut(&number);
                    let Some(row) = sent.and_then(|rows| sent_again_at(at, rows)) else {
                        number = number.wrapping_add(record.mss.max(1));
                        continue;
                    };
                    row.retransmission = true;
                    row.cause = Some(cause(record, flow));
                    number = number.wrapping_add(row.payload.max(1));
                }
            }
        }
    }
}

/// Of the packets with one number, in order of sending, the one that left again at `at`: the nearest of those that are not taken. The
/// engine may have noted it sooner than the program did, or later. The first is no retransmitting.
fn sent_again_at<'a>(at: Instant, rows: &'a mut [&mut PacketRow]) -> Option<&'a mut PacketRow> {
    let far = |row: &PacketRow| {
        at.saturating_since(row.sent)
            .max(row.sent.saturating_since(at))
    };
    let again = rows.iter_mut().skip(1);
    let free = again.filter(|row| !row.retransmission);
    free.min_by_key(|row| far(row)).map(|row| &mut **row)
}

/// Marks retransmissions by their sequence numbers. Their cause is known from the trace alone.
fn find_resent<'a>(rows: impl Iterator<Item = &'a mut PacketRow>, is_tcp: impl Fn(FlowId) -> bool) {
    let mut ends: HashMap<(ConnectionId, Direction), u32> = HashMap::new();
    for row in rows.filter(|row| is_tcp(row.flow)) {
        #[expect(clippy::cast_possible_truncation, reason = "sequence numbers")]
        let number = row.sequence as u32;
        let Some(end) = ends.get_mut(&(row.connection, row.direction)) else {
            // The SYN, which has a number of its own.
            ends.insert((row.connection, row.direction), number.wrapping_add(1));
            continue;
        };
        let is_before = end.wrapping_sub(number).cast_signed() > 0;
        let is_syn = row.payload == 0 && end.wrapping_sub(number) == 1;
        row.retransmission |= is_before && (row.payload > 0 || is_syn);
        let here = number.wrapping_add(row.payload);
        if here.wrapping_sub(*end).cast_signed() > 0 {
            *end = here;
        }
    }
}

/// Numbers of octets in the log of packets, where a flow is one connection: from the SYN on, so that the first of the stream is 1.
fn number(log: &mut PacketLog, resolved: &Resolved) {
    let mut streams: HashMap<(FlowId, Direction), Numbers> = HashMap::new();
    for row in log.rows_mut() {
        // Hidden flows have numbers behind those of the scenario.
        let Some(flow) = resolved.flows.get(row.flow.0 as usize) else {
            continue;
        };
        let is_one = !matches!(flow.workload, Config::Poisson(_));
        if flow.protocol != Protocol::Tcp || is_carried(flow, resolved) || !is_one {
            continue;
        }
        #[expect(clippy::cast_possible_truncation, reason = "sequence numbers")]
        let number = row.sequence as u32;
        let stream = streams.entry((row.flow, row.direction));
        let stream = stream.or_insert_with(|| Numbers::from(number));
        row.sequence = stream.offset(number);
    }
}

/// The numbers of a stream, which have 32 bits.
#[derive(Debug, Clone, Copy)]
struct Numbers {
    /// The highest so far, and where in the stream that is.
    highest: (u32, u64),
}

impl Numbers {
    /// With that of the SYN.
    const fn from(first: u32) -> Self {
        Self {
            highest: (first, 0),
        }
    }
    /// Where in the stream a number is; what is before its beginning is there.
    fn offset(&mut self, number: u32) -> u64 {
        let (highest, offset) = self.highest;
        let ahead = number.wrapping_sub(highest).cast_signed();
        let here = offset.saturating_add_signed(ahead.into());
        if ahead > 0 {
            self.highest = (number, here);
        }
        here
    }
}

fn segments(n: u32) -> Bytes {
    Bytes::new(n.into())
}

fn begins_recovery(record: &Record) -> bool {
    let next = CaState::Recovery;
    record.kind == Kind::State { next } && record.ca_state != next
}

/// How many packets a record says have left again. A FIN behind data has a number and no packet of its own.
fn sent_again(record: &Record) -> u32 {
    match record.kind {
        Kind::Again { first, end } => {
            let octets = end.wrapping_sub(first).saturating_sub(1);
            octets.div_ceil(record.mss.max(1)).max(1)
        }
        _ => 0,
    }
}

fn begins_loss(record: &Record) -> bool {
    let next = CaState::Loss;
    record.kind == Kind::State { next }
}

/// Whether what is retransmitted probes the tail: no loss is being repaired.
fn probes(record: &Record) -> bool {
    !matches!(record.ca_state, CaState::Recovery | CaState::Loss)
}

/// Why a segment was retransmitted, as far as the state tells: in a recovery by what finds losses in it.
fn cause(record: &Record, flow: &ResolvedFlow) -> RetransmitCause {
    let finds_by_time = flow.stack.sack && flow.stack.recovery == Recovery::Rack;
    match record.ca_state {
        CaState::Loss => RetransmitCause::Rto,
        CaState::Recovery if finds_by_time => RetransmitCause::Rack,
        CaState::Recovery => RetransmitCause::DupThresh,
        CaState::Open | CaState::Disorder | CaState::Cwr => RetransmitCause::Tlp,
    }
}

/// Segments that a host's kernel has merged before TCP looked at them: of these only one is told
/// (`TCPBacklogCoalesce` of proc_net(5)).
fn merged(host: Option<&LiveHost>) -> Option<Value> {
    let namespace = host?.namespace.as_ref()?;
    let table = namespace.inside(|| fs::read_to_string("/proc/thread-self/net/netstat"));
    let table = table.ok()?;
    let mut lines = table
        .lines()
        .filter_map(|line| line.strip_prefix("TcpExt:"));
    let mut names = lines.next()?.split_whitespace();
    let place = names.position(|name| name == "TCPBacklogCoalesce")?;
    let count: u64 = lines.next()?.split_whitespace().nth(place)?.parse().ok()?;
    Some(count.into())
}

/// The window of one connection, as far as it has been told.
#[derive(Debug, Default)]
struct Window {
    /// Rows whose window after the change is not known yet.
    to_be_seen: Vec<usize>,
    /// ssthresh when the last reduction began.
    reduced_to: Option<u32>,
    /// A probe of the tail has left since the state last changed.
    has_probed: bool,
}

impl Window {
    /// What a change of state means for the window.
    fn changes(
        &mut self,
        record: &Record,
        next: CaState,
        flow: &ResolvedFlow,
    ) -> Vec<WindowChange> {
        let mut changes = Vec::new();
        let is_repairing = !probes(record);
        match next {
            CaState::Recovery => changes.push(WindowChange::Recovery(cause(
                &Record {
                    ca_state: next,
                    ..*record
                },
                flow,
            ))),
            CaState::Loss => changes.push(WindowChange::Timeout),
            CaState::Cwr if self.has_probed => changes.push(WindowChange::ProbeRepaired),
            CaState::Cwr if flow.stack.ecn != EcnMode::Off => changes.push(WindowChange::Mark),
            CaState::Open | CaState::Disorder if is_repairing => {
                changes.push(WindowChange::Recovered);
                // Nothing but an undo raises it before the next reduction.
                if record.ssthresh > self.reduced_to.unwrap_or(u32::MAX) {
                    changes.push(WindowChange::Undone);
                }
            }
            // In CWR without marks or a probe it is a queue of the host itself, which nothing here names.
            CaState::Open | CaState::Disorder | CaState::Cwr => {}
        }
        if matches!(next, CaState::Recovery | CaState::Loss | CaState::Cwr) {
            self.reduced_to = Some(record.ssthresh);
        }
        self.has_probed = false;
        changes
    }
}

/// Connections by their sockets.
#[derive(Debug, Default)]
struct Connections {
    all: HashMap<u64, Connection>,
    /// Of each flow.
    begun: HashMap<u32, u32>,
}

#[derive(Debug)]
struct Connection {
    number: u32,
    numbers: Numbers,
    fast_recoveries: u32,
    timeouts: u32,
}

impl Connections {
    fn of(&mut self, record: &Record) -> &mut Connection {
        let begun = &mut self.begun;
        self.all.entry(record.socket).or_insert_with(|| {
            let next = begun.entry(record.flow).or_default();
            let number = *next;
            *next += 1;
            // Nothing is acknowledged before the first record but the SYN, and that only once its answer is there.
            let first = record
                .snd_una
                .wrapping_add(u32::from(record.state == SYN_SENT));
            Connection {
                number,
                numbers: Numbers::from(first),
                fast_recoveries: 0,
                timeouts: 0,
            }
        })
    }
}

/// `TCP_SYN_SENT`.
const SYN_SENT: u8 = 2;

#[cfg(test)]
mod tests {
    use anabranch_core::units::Duration;

    use super::*;

    fn row(sequence: u64, payload: u32) -> PacketRow {
        PacketRow {
            flow: FlowId(0),
            connection: ConnectionId(0),
            direction: Direction::Forward,
            index: 0,
            sequence,
            payload,
            size: payload + 52,
            retransmission: false,
            cause: None,
            sent: Instant::START,
            received: None,
            lost: None,
            rebuilt: false,
            queue_delay: None,
            reordered: false,
            extent: 0,
        }
    }

    /// Fails for one that compares numbers that have wrapped, takes an acknowledgment for a SYN, or the same number of another
    /// connection for a copy.
    #[test]
    fn octets_that_were_sent_before_are_a_retransmission() {
        let last = u64::from(u32::MAX);
        let mut rows = [
            (last - 1, 0, false),
            (last - 1, 0, true),
            (last, 0, false),
            (last, 1000, false),
            (999, 1000, false),
            (last, 1000, true),
            (1999, 0, false),
            (1999, 500, false),
            (2400, 200, true),
            (2600, 100, false),
        ]
        .map(|(sequence, payload, again)| (row(sequence, payload), again));
        let mut other = row(999, 1000);
        other.connection = ConnectionId(1);
        let all = rows.iter_mut().map(|(row, _)| row);
        find_resent(all.chain([&mut other]), |_| true);
        for (row, again) in &rows {
            assert_eq!(
                row.retransmission, *again,
                "{} {}",
                row.sequence, row.payload
            );
        }
        assert!(!other.retransmission);
    }

    /// Fails where the earliest is taken: an original, or the last retransmitting but one.
    #[test]
    fn what_was_sent_again_is_the_nearest() {
        let micros = |micros| Instant::START + Duration::from_micros(micros);
        let mut rows = [0, 2000, 4000].map(|sent| PacketRow {
            sent: micros(sent),
            ..row(77, 1000)
        });
        let mut rows: Vec<&mut PacketRow> = rows.iter_mut().collect();
        // The engine took it before the program told of it; then after that.
        for (at, sent) in [(4020, Some(4000)), (1950, Some(2000)), (4100, None)] {
            let found = sent_again_at(micros(at), &mut rows);
            let found = found.map(|row| {
                row.retransmission = true;
                row.sent
            });
            assert_eq!(found, sent.map(micros), "told of at {at} us");
        }
    }
}
