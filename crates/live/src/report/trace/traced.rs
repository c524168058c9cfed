//! The records of a run, ordered by time, and derived data: recoveries, windows, retransmissions
//! with their causes, and the acknowledgments of each segment.

use std::{collections::HashMap, fs};

use anabranch_bpf::trace::{CaState, Detail, Kind, Record};
use anabranch_core::{
    packet::{ConnectionId, Direction, FlowId},
    units::{Bytes, Instant},
};
use anabranch_engine::{
    network::Network,
    record::{PacketLog, PacketRow, WindowRow},
    summary::Named,
};
use anabranch_scenario::{Protocol, Resolved, ResolvedFlow, workload::Config};
use anabranch_tcp::{EcnMode, Recovery, RetransmitCause, WindowChange};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    kernel::host::LiveHost,
    plan::{frame::Frame, settings::is_carried},
};

/// The records of a run.
#[derive(Debug, Clone, Default)]
pub struct Traced {
    pub(super) detail: Option<Detail>,
    pub(super) why_not: Option<String>,
    /// The traced flows, in order.
    pub(super) flows: Vec<u32>,
    /// Ordered by time.
    pub(super) records: Vec<Record>,
    /// Indices of each flow's records.
    pub(super) places: HashMap<u32, Vec<usize>>,
    pub(super) lost: u64,
    pub(super) start_ns: u64,
}

/// The trace of the kernel's TCP.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(extend("engine" = "live"))]
pub struct LiveTrace {
    /// `acks` or `events`; null without a trace.
    detail: Option<&'static str>,
    /// The reason for no trace; null with one.
    why_not: Option<String>,
    /// Records of the trace.
    records: usize,
    /// Records lost.
    lost_records: u64,
    /// Acknowledgments that the kernel merged before TCP saw them, by host; null without a trace.
    #[schemars(extend("unit" = "packets"))]
    merged_segments: Option<Named<u64>>,
    /// Traced events of each flow, by its name.
    flows: Named<TracedFlow>,
}

/// Traced events of a flow.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(extend("engine" = "live"))]
struct TracedFlow {
    /// Segments received; 0 with `events`.
    segments: usize,
    /// Fast recoveries begun.
    recoveries: usize,
    /// Entries into the state `loss`.
    timeouts: usize,
    /// Segments retransmitted.
    retransmissions: u32,
    /// Name of the congestion control in the kernel at the end.
    congestion_control: String,
}

/// The state of a sender when a segment arrived, before it was processed. Windows are in segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledged {
    /// The time of arrival.
    pub at: Instant,
    /// Index into the scenario's flows.
    pub flow: usize,
    /// The number of the connection in its flow, from 0.
    pub connection: u32,
    /// Octets of the stream that the segment acknowledges.
    pub acknowledged_bytes: u64,
    /// Fast recoveries of the connection before this segment.
    pub fast_recoveries: u32,
    /// Retransmission timeouts of the connection before this segment.
    pub timeouts: u32,
    /// The record.
    pub record: Record,
}

impl Traced {
    /// Whether all events of a flow were recorded.
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

    /// The start of each fast recovery of a flow.
    pub fn recoveries(&self, flow: usize) -> impl Iterator<Item = Instant> {
        self.of_flow(flow)
            .filter(|record| begins_recovery(record))
            .map(|record| self.at(record))
    }

    /// Fast recoveries of a flow in its measured time; `None` if the trace is incomplete.
    #[must_use]
    pub fn recoveries_within(&self, flow: usize, (start, end): (Instant, Instant)) -> Option<u64> {
        let within = |at: &Instant| (start..=end).contains(at);
        self.tells_of(flow)
            .then(|| self.recoveries(flow).filter(within).count() as u64)
    }

    /// Adds the traced data to the packet log, if there is one.
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

    /// Description for the summary: the extent of tracing or the reason why there was none, and
    /// counts for each flow.
    #[must_use]
    pub fn described(&self, resolved: &Resolved, hosts: &[Option<LiveHost>]) -> LiveTrace {
        let of = |index: usize| {
            let count = |of: fn(&Record) -> bool| self.of_flow(index).filter(|r| of(r)).count();
            let last = self.of_flow(index).last()?;
            Some(TracedFlow {
                segments: count(|record| matches!(record.kind, Kind::Segment { .. })),
                recoveries: count(begins_recovery),
                timeouts: count(begins_loss),
                retransmissions: self.of_flow(index).map(sent_again).sum(),
                congestion_control: last.control(),
            })
        };
        let flows = resolved.flows.iter().enumerate();
        LiveTrace {
            detail: self.detail.map(|detail| match detail {
                Detail::Events => "events",
                Detail::Segments => "acks",
            }),
            why_not: self.why_not.clone(),
            records: self.records.len(),
            lost_records: self.lost,
            merged_segments: self.detail.map(|_| {
                let hosts = resolved.nodes.iter().zip(hosts);
                hosts
                    .filter_map(|(name, host)| Some((name.clone(), merged(host.as_ref())?)))
                    .collect()
            }),
            flows: flows
                .filter_map(|(index, flow)| Some((flow.name.clone(), of(index)?)))
                .collect(),
        }
    }

    /// Every segment that a sender received, ordered by time. Empty if segments were not traced.
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

    /// The changes of the windows, in the form of the simulator's log.
    fn windows(&self, resolved: &Resolved) -> Vec<WindowRow> {
        let mut rows = Vec::new();
        let mut open: HashMap<u64, Window> = HashMap::new();
        for record in &self.records {
            let flow = &resolved.flows[record.flow as usize];
            let window = open.entry(record.socket).or_default();
            match record.kind {
                // The first segment after a change shows the resulting window.
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
                        // The kernel records the window before the reduction only if no other
                        // reduction is in progress.
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

    /// Marks retransmitted packets in the packet log, with the cause as far as the congestion state
    /// determines it.
    fn mark(&self, log: &mut PacketLog, resolved: &Resolved) {
        for (index, flow) in resolved.flows.iter().enumerate() {
            let id = FlowId(u32::try_from(index).unwrap_or(u32::MAX));
            let rows = log.rows_mut().filter(|row| {
                (row.flow, row.direction) == (id, Direction::Forward) && row.payload > 0
            });
            let mut by_number: HashMap<u32, Vec<&mut PacketRow>> = HashMap::new();
            for row in rows {
                // Packets of a kernel carry TCP sequence numbers of 32 bits.
                #[expect(clippy::cast_possible_truncation, reason = "sequence numbers")]
                by_number.entry(row.sequence as u32).or_default().push(row);
            }
            for record in self.of_flow(index) {
                let Kind::Again { first, end } = record.kind else {
                    continue;
                };
                let at = self.at(record);
                // One record covers a TSO burst, whose packets have consecutive numbers.
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

/// The packet that was retransmitted at `at`, among packets with one sequence number in order of
/// sending: the nearest that is not assigned yet. The engine may have recorded it before or after
/// the BPF program did. The first packet is the original.
fn sent_again_at<'a>(at: Instant, rows: &'a mut [&mut PacketRow]) -> Option<&'a mut PacketRow> {
    let far = |row: &PacketRow| {
        at.saturating_since(row.sent)
            .max(row.sent.saturating_since(at))
    };
    let again = rows.iter_mut().skip(1);
    let free = again.filter(|row| !row.retransmission);
    free.min_by_key(|row| far(row)).map(|row| &mut **row)
}

/// Marks retransmissions by their sequence numbers. Only the trace provides their causes.
fn find_resent<'a>(rows: impl Iterator<Item = &'a mut PacketRow>, is_tcp: impl Fn(FlowId) -> bool) {
    let mut ends: HashMap<(ConnectionId, Direction), u32> = HashMap::new();
    for row in rows.filter(|row| is_tcp(row.flow)) {
        #[expect(clippy::cast_possible_truncation, reason = "sequence numbers")]
        let number = row.sequence as u32;
        let Some(end) = ends.get_mut(&(row.connection, row.direction)) else {
            // The SYN, which takes one sequence number.
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

/// Replaces sequence numbers in the packet log by stream offsets, for flows of one connection.
/// Offsets count from the SYN, so the first octet of the stream is 1.
fn number(log: &mut PacketLog, resolved: &Resolved) {
    let mut streams: HashMap<(FlowId, Direction), Numbers> = HashMap::new();
    for row in log.rows_mut() {
        // Hidden flows have higher numbers than the flows of the scenario.
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

/// The sequence numbers of a stream, which have 32 bits.
#[derive(Debug, Clone, Copy)]
struct Numbers {
    /// The highest number, and its offset in the stream.
    highest: (u32, u64),
}

impl Numbers {
    /// Starts with the number of the SYN.
    const fn from(first: u32) -> Self {
        Self {
            highest: (first, 0),
        }
    }
    /// The stream offset of a sequence number. A number before the start has offset 0.
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

/// The number of retransmitted packets of a record. A FIN after data has a sequence number and no
/// separate packet.
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

/// Whether a retransmission is a tail loss probe, because no loss recovery is in progress.
fn probes(record: &Record) -> bool {
    !matches!(record.ca_state, CaState::Recovery | CaState::Loss)
}

/// The cause of a retransmission, as far as the state determines it: in a recovery, the flow's loss
/// detection.
fn cause(record: &Record, flow: &ResolvedFlow) -> RetransmitCause {
    let finds_by_time = flow.stack.sack && flow.stack.recovery == Recovery::Rack;
    match record.ca_state {
        CaState::Loss => RetransmitCause::Rto,
        CaState::Recovery if finds_by_time => RetransmitCause::Rack,
        CaState::Recovery => RetransmitCause::DupThresh,
        CaState::Open | CaState::Disorder | CaState::Cwr => RetransmitCause::Tlp,
    }
}

/// Segments that a host's kernel merged before TCP processed them; only one of several merged
/// segments is recorded (`TCPBacklogCoalesce` of proc_net(5)).
fn merged(host: Option<&LiveHost>) -> Option<u64> {
    let namespace = host?.namespace.as_ref()?;
    let table = namespace.inside(|| fs::read_to_string("/proc/thread-self/net/netstat"));
    let table = table.ok()?;
    let mut lines = table
        .lines()
        .filter_map(|line| line.strip_prefix("TcpExt:"));
    let mut names = lines.next()?.split_whitespace();
    let place = names.position(|name| name == "TCPBacklogCoalesce")?;
    lines.next()?.split_whitespace().nth(place)?.parse().ok()
}

/// The window of one connection, as far as it was recorded.
#[derive(Debug, Default)]
struct Window {
    /// Rows whose window after the change is not known yet.
    to_be_seen: Vec<usize>,
    /// ssthresh at the start of the last reduction.
    reduced_to: Option<u32>,
    /// Whether a tail loss probe was sent since the last change of state.
    has_probed: bool,
}

impl Window {
    /// The changes of the window that a change of state implies.
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
                // Only an undo raises it before the next reduction.
                if record.ssthresh > self.reduced_to.unwrap_or(u32::MAX) {
                    changes.push(WindowChange::Undone);
                }
            }
            // CWR without marks or a probe has its cause in a queue of the host, for which there is
            // no name here.
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
    /// The number of connections of each flow.
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
            // Before the first record only the SYN can be acknowledged, and only after the SYN-ACK
            // has arrived.
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
            refused: 0,
            queue_delay: None,
            reordered: false,
            extent: 0,
        }
    }

    /// Detects a comparison that does not wrap, an ACK that is taken for a SYN, and an equal number
    /// of another connection that is taken for a copy.
    #[test]
    fn octets_sent_before_are_a_retransmission() {
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

    /// Detects a search that takes the earliest packet: an original, or an earlier retransmission.
    #[test]
    fn a_retransmission_is_the_nearest_packet() {
        let micros = |micros| Instant::START + Duration::from_micros(micros);
        let mut rows = [0, 2000, 4000].map(|sent| PacketRow {
            sent: micros(sent),
            ..row(77, 1000)
        });
        let mut rows: Vec<&mut PacketRow> = rows.iter_mut().collect();
        // The engine recorded the packet before the program did, then after it.
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
