//! The tables of a run as columns. Names carry their units.
//!
//! A column is declared once, by [`table!`]: its meaning, its name, its kind, and its value in a
//! row. The tables `flows` and `links` also have the scalars of the summary's structs.

use anabranch::{
    AckSample, Body, Finished, FlowSample, GroupSample, LinkSample, Underway,
    network::{GroupId, LinkId, Network},
    packet::FlowId,
    record::{PacketRow, WindowRow},
    trace::Fate,
    units::{Bytes, Duration, Instant},
};
use anabranch_columns::{Column, Table, UnequalLengths};
use serde::Serialize;
use serde_json::Value;

use crate::{
    packed::{Cursor, Judged, Packets, Retransmission},
    scalars::{DeclaredColumn, scalars},
};

/// A table cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no table of this name.
    #[error("no table {name:?}; there are {tables}")]
    NoTable {
        /// The name.
        name: String,
        /// The valid names.
        tables: String,
    },
    /// A fault of the declaration.
    #[error(transparent)]
    Columns(#[from] UnequalLengths),
}

type Columns = Vec<(&'static str, Column)>;

/// The description of a table.
#[derive(Serialize)]
pub struct Declared {
    name: &'static str,
    about: &'static str,
    /// `None` for both engines.
    engine: Option<&'static str>,
    columns: Vec<DeclaredColumn>,
}

/// The column of a figure of the summary.
fn figure(declared: &DeclaredColumn, rows: &[&Value]) -> Column {
    let name = declared.name;
    match declared.kind {
        "number" => number(rows, |row| row[name].as_f64()),
        "count" => count(rows, |row| row[name].as_u64()),
        "flag" => flag(rows, |row| row[name].as_bool()),
        _ => text(rows, |row| row[name].as_str()),
    }
}

/// The names of a run, and the segment sizes of its flows.
struct View<'a, B: Body> {
    network: &'a Network<B>,
    links: &'a [(String, [LinkId; 2])],
    groups: &'a [(String, GroupId)],
    controls: &'a [String],
    mss: Vec<f64>,
}

impl<'a, B: Body> View<'a, B> {
    fn of(run: &'a Finished<B>) -> Self {
        Self {
            network: &run.network,
            links: &run.links,
            groups: &run.groups,
            controls: &run.samples.controls,
            mss: segment_sizes(&run.network),
        }
    }
    fn underway(run: &Underway<'a, B>) -> Self {
        Self {
            network: run.network,
            links: run.links,
            groups: run.groups,
            controls: &run.samples.controls,
            mss: segment_sizes(run.network),
        }
    }
    fn flow(&self, flow: FlowId) -> &'a str {
        self.network.flow_name(flow)
    }
    /// Bytes of a flow in full segments.
    fn packets(&self, flow: FlowId, bytes: Bytes) -> f64 {
        bytes.get() as f64 / self.mss[flow.0 as usize]
    }
    /// The element that dropped or lost a packet.
    fn place(&self, row: &PacketRow) -> Option<&'a str> {
        let lost = row.lost.filter(|_| row.received.is_none());
        lost.map(|(at, _)| self.network.element_name(at))
    }
}

fn segment_sizes<B: Body>(network: &Network<B>) -> Vec<f64> {
    let flows = (0..network.flow_count()).map(u32::try_from);
    let mss = flows.map(|flow| network.mss(FlowId(flow.unwrap_or(u32::MAX))));
    mss.map(|mss| f64::from(mss.unwrap_or(1))).collect()
}

/// Declares a table: a module of its description, and a function that builds a column by its name.
macro_rules! table {
    (
        $(#[doc = $about:literal])+
        $(#[engine = $engine:literal])?
        $table:ident($view:ident, $Row:ty) {
            $(
                $(#[doc = $meaning:literal])+
                $(#[unit = $unit:literal])?
                $column:ident: $kind:ident = $value:expr;
            )+
        }
    ) => {
        mod $table {
            use super::{Declared, DeclaredColumn};

            pub const COLUMNS: &[DeclaredColumn] = &[$(DeclaredColumn {
                name: stringify!($column),
                kind: stringify!($kind),
                meaning: concat!($($meaning),+),
                unit: table!(@option $($unit)?),
                engine: None,
            }),+];

            pub fn declared() -> Declared {
                Declared {
                    name: stringify!($table),
                    about: concat!($($about),+),
                    engine: table!(@option $($engine)?),
                    columns: COLUMNS.to_vec(),
                }
            }
        }

        fn $table<'a, B: Body>($view: &'a View<'_, B>, rows: &'a [$Row], column: &str) -> Column {
            match column {
                $(stringify!($column) => $kind(rows, $value),)+
                _ => unreachable!("a declared column"),
            }
        }
    };
    (@option) => { None };
    (@option $value:literal) => { Some($value) };
}

fn number<T>(rows: &[T], of: impl Fn(&T) -> Option<f64>) -> Column {
    Column::floats(rows.iter().map(of))
}
fn count<T>(rows: &[T], of: impl Fn(&T) -> Option<u64>) -> Column {
    Column::counts(rows.iter().map(of))
}
fn small_count<T>(rows: &[T], of: impl Fn(&T) -> u32) -> Column {
    Column::short_counts(rows.iter().map(of))
}
fn text<'a, T>(rows: &'a [T], of: impl Fn(&'a T) -> Option<&'a str>) -> Column {
    Column::strings(rows.iter().map(of))
}
fn flag<T>(rows: &[T], of: impl Fn(&T) -> Option<bool>) -> Column {
    Column::flags(rows.iter().map(of))
}

/// A flow, and its figures.
type FlowFigures<'a> = (&'a str, &'a Value);

table! {
    /// One row per flow: figures of the summary. Always there.
    flows(_view, FlowFigures<'_>) {
        /// The flow's name; `NAME/0`, `NAME/1` and so on if `count` is more than one
        flow: text = |row| Some(row.0);
    }
}

/// A link, one of its directions, and their figures.
type LinkFigures<'a> = (&'a str, &'static str, &'a Value);

table! {
    /// One row per link and direction: figures of the summary. Always there.
    links(_view, LinkFigures<'_>) {
        /// The link's name
        link: text = |row| Some(row.0);
        /// `forward`: from the first to the second name of `between`; `reverse`
        #[unit = ""]
        direction: text = |row| Some(row.1);
    }
}

table! {
    /// Senders at regular times. Recorded with `samples_ms`; live always, every 10 ms.
    samples(view, FlowSample) {
        /// Time since the start of the run
        time_s: number = |s| Some(s.at.as_secs_f64());
        /// The flow's name
        flow: text = |s| Some(view.flow(s.flow));
        /// Congestion window ÷ MSS
        cwnd_packets: number = |s| Some(view.packets(s.flow, s.snapshot.cwnd));
        /// Slow start threshold ÷ MSS; null before the first reduction
        ssthresh_packets: number = |s| Some(view.packets(s.flow, s.snapshot.ssthresh?));
        /// Octets in flight ÷ MSS
        in_flight_packets: number = |s| Some(view.packets(s.flow, s.snapshot.in_flight));
        /// Smoothed round-trip time; null before the first measurement
        srtt_ms: number = |s| measured_ms(s.snapshot.srtt);
        /// Retransmission timeout
        rto_ms: number = |s| Some(s.snapshot.rto.as_millis_f64());
        /// Rate at which the sender paces its packets; null if it does not pace them
        pacing_rate_mbit_s: number = |s| Some(s.snapshot.pacing_rate?.as_mbit_per_s());
        /// BBR's estimate of the path's bandwidth; null for other controls, and live
        bandwidth_estimate_mbit_s: number =
            |s| Some(s.snapshot.bandwidth_estimate?.as_mbit_per_s());
        /// Octets delivered in order up to this time
        delivered_bytes: count = |s| Some(s.delivered_bytes);
        /// Fast recoveries up to this time; null live without a trace
        fast_recoveries: count = |s| s.fast_recoveries;
        /// Expiries of the retransmission timer up to this time
        timeouts: count = |s| Some(s.timeouts);
        /// Packets retransmitted up to this time
        retransmitted_packets: count = |s| Some(s.retransmitted_packets);
        /// Congestion state: `slow-start`, `open`, `disorder`, `recovery` or `loss`
        state: text = |s| Some(s.snapshot.state.name());
    }
}

table! {
    /// Senders at each segment that they receive, before it is processed. Recorded live with
    /// `trace="acks"`.
    #[engine = "live"]
    ack_samples(view, AckSample) {
        /// Time since the start of the run
        time_s: number = |s| Some(s.at.as_secs_f64());
        /// The flow's name
        flow: text = |s| Some(view.flow(s.flow));
        /// Number of the connection in its flow, from 0
        #[unit = ""]
        connection: count = |s| Some(s.connection.into());
        /// Octets of the stream that the segment acknowledges
        acknowledged_bytes: count = |s| Some(s.acknowledged_bytes);
        /// Congestion window
        cwnd_packets: number = |s| Some(s.cwnd.into());
        /// Slow start threshold; null before the first reduction
        ssthresh_packets: number = |s| s.ssthresh.map(f64::from);
        /// Packets in flight: sent, less those SACKed or marked lost, plus those retransmitted
        in_flight_packets: number = |s| Some(s.in_flight.into());
        /// Smoothed round-trip time; null before the first measurement
        srtt_ms: number = |s| measured_ms(s.srtt);
        /// Fast recoveries of the connection up to this time
        fast_recoveries: count = |s| Some(s.fast_recoveries.into());
        /// Expiries of the retransmission timer up to this time
        timeouts: count = |s| Some(s.timeouts.into());
        /// Segments retransmitted up to this time
        retransmitted_packets: count = |s| Some(s.retransmitted_packets.into());
        /// Congestion state of the kernel, by the names of the table `samples`
        state: text = |s| Some(s.state.name());
        /// The congestion control's name in the kernel
        congestion_control: text = |s| Some(view.controls.get(s.control)?);
    }
}

table! {
    /// Links at regular times. Recorded with `samples_ms`.
    link_samples(view, LinkSample) {
        /// Time since the start of the run
        time_s: number = |s| Some(s.at.as_secs_f64());
        /// The link's name
        link: text = |s| Some(&view.links[s.link].0);
        /// `forward` or `reverse`
        direction: text = |s| Some(DIRECTIONS[s.direction]);
        /// Packets waiting, without the packet in transmission
        queue_packets: count = |s| Some(s.queue_packets as u64);
        /// Octets waiting
        queue_bytes: count = |s| Some(s.queue_bytes);
        /// Packets sent up to this time
        sent_packets: count = |s| Some(s.sent_packets);
        /// Packets that the queue has dropped up to this time
        dropped_packets: count = |s| Some(s.dropped_packets);
    }
}

table! {
    /// Link groups at regular times. Recorded with `samples_ms`.
    group_samples(view, GroupSample) {
        /// Time since the start of the run
        time_s: number = |s| Some(s.at.as_secs_f64());
        /// The group's name
        group: text = |s| Some(&view.groups[s.group].0);
        /// Members that the controller requests
        #[unit = "members"]
        wanted_members: count = |s| Some(s.state.wanted.into());
        /// Members that distribute packets in the forward direction
        #[unit = "members"]
        active_members: count = |s| Some(s.state.active[0].into());
        /// Members that distribute packets in the reverse direction
        #[unit = "members"]
        reverse_active_members: count = |s| Some(s.state.active[1].into());
        /// Sleeping ports of both ends
        #[unit = "ports"]
        sleeping_ports: count = |s| Some(s.state.sleeping.iter().sum::<u32>().into());
    }
}

table! {
    /// One row per packet with data, retransmitted SYN or SYN-ACK, and datagram, in order of
    /// sending. Recorded with `packets=True`.
    packets(view, Judged) {
        /// The flow's name
        flow: text = |(row, _)| Some(view.flow(row.flow));
        /// `forward`: from the flow's `from` to its `to`; `reverse`
        direction: text = |(row, _)| Some(row.direction.name());
        /// Number of the packet in its flow and direction, in order of sending
        #[unit = ""]
        packet_index: small_count = |(row, _)| row.index;
        /// Octet of the stream that the payload begins with; the first is 1, after the SYN
        sequence_bytes: count = |(row, _)| Some(row.sequence);
        /// Octets of payload
        payload_bytes: count = |(row, _)| Some(row.payload.into());
        /// Octets of the IP packet
        size_bytes: count = |(row, _)| Some(row.size.into());
        /// Whether an octet of it had been sent before
        retransmission: flag = |(row, _)| Some(row.retransmission);
        /// Trigger of the retransmission (`rto`, `dup-thresh`, `rack`, `tlp` and others); null for
        /// other packets
        cause: text = |(row, _)| cause(row);
        /// Whether the retransmission was necessary; null if this cannot be decided, and for other
        /// packets
        needed: flag = |(_, needed)| *needed;
        /// Time of sending since the start of the run
        sent_s: number = |(row, _)| Some(row.sent.as_secs_f64());
        /// Time of arrival since the start of the run; null if it did not arrive
        received_s: number = |(row, _)| row.received.map(Instant::as_secs_f64);
        /// `delivered`, `refused` (arrived, but the receiver lacked and refused its data, for example
        /// for an old timestamp), `dropped` (by a queue), `too-big` (for a link's MTU), `lost` (by an
        /// impairment) or `in-flight` (at the end of the run)
        fate: text = |(row, _)| Some(fate(row));
        /// The element that dropped or lost it; null otherwise
        where: text = |(row, _)| view.place(row);
        /// Time in the queues of the links that it crossed, until it arrived, was dropped or was lost:
        /// for each link from its arrival to the start of its transmission, as in
        /// `p95_queue_delay_ms`. Time that a gateway holds it, or that a medium takes for its access,
        /// is not included. The copy that arrives first counts. Null while it is under way, and if
        /// datagrams of a `tunnel` carried it
        queue_delay_ms: number = |(row, _)| row.queue_delay.map(Duration::as_millis_f64);
        /// Whether it arrived reordered (RFC 4737 §3.3). No for packets that arrive outside the
        /// flow's measured time, and for the direction `reverse`
        reordered: flag = |(row, _)| Some(row.reordered);
        /// Its reordering extent (RFC 4737 §4.2); 0 for a packet in order
        reordering_extent_packets: count = |(row, _)| Some(row.extent);
    }
}

table! {
    /// Changes of a sender's window other than growth. Recorded with `packets=True`; live by the
    /// trace.
    window_events(view, WindowRow) {
        /// The flow's name
        flow: text = |row| Some(view.flow(row.flow));
        /// Time since the start of the run
        time_s: number = |row| Some(row.at.as_secs_f64());
        /// `recovery-entered`, `recovery-left`, `rto`, `timer-rule`, `ecn`, `loss-repaired`, `tlp` or
        /// `undo`
        event: text = |row| Some(row.event());
        /// Congestion window before it ÷ MSS
        cwnd_before_packets: number = |row| Some(view.packets(row.flow, row.cwnd.0));
        /// Congestion window after it ÷ MSS
        cwnd_after_packets: number = |row| Some(view.packets(row.flow, row.cwnd.1));
        /// Slow start threshold after it ÷ MSS; null before the first reduction
        ssthresh_packets: number = |row| Some(view.packets(row.flow, row.ssthresh?));
    }
}

table! {
    /// Each retransmission, and the outcome of the original transmission of its octets.
    retransmissions(view, Retransmission) {
        /// The flow's name
        flow: text = |one| Some(view.flow(one.row.flow));
        /// Direction of the packet
        direction: text = |one| Some(one.row.direction.name());
        /// Time of sending since the start of the run
        time_s: number = |one| Some(one.row.sent.as_secs_f64());
        /// Octet of the stream that the payload begins with
        sequence_bytes: count = |one| Some(one.row.sequence);
        /// Octets of payload
        payload_bytes: count = |one| Some(one.row.payload.into());
        /// Trigger of the retransmission
        cause: text = |one| cause(&one.row);
        /// Whether the retransmission was necessary; null if this cannot be decided
        needed: flag = |one| one.needed;
        /// Time at which the original was sent
        original_s: number = |one| Some(one.original.as_ref()?.sent.as_secs_f64());
        /// Outcome of the original, as in `packets`
        original_fate: text = |one| one.original.as_ref().map(fate);
        /// The element that dropped or lost the original; null otherwise
        original_where: text = |one| view.place(one.original.as_ref()?);
        /// Time of arrival of the original; null if it did not arrive
        original_received_s: number = |one| one.original.as_ref()?.received.map(Instant::as_secs_f64);
        /// Outcome of the retransmission, as in `packets`
        fate: text = |one| Some(fate(&one.row));
    }
}

const DIRECTIONS: [&str; 2] = ["forward", "reverse"];

/// Declares which tables there are, with the rows of each, and the struct of the summary that has
/// further columns.
macro_rules! tables {
    ($run:ident, $log:ident; $($table:ident = $rows:expr $(, $kind:literal in $figures:tt)?;)+) => {
        /// All tables, as the reference describes them.
        pub fn declared() -> Vec<Declared> {
            vec![$(Declared {
                columns: [$table::COLUMNS.to_vec(), $(scalars($kind).collect())?].concat(),
                ..$table::declared()
            }),+]
        }

        /// The table called `name`.
        ///
        /// # Errors
        /// [`Error::NoTable`].
        pub fn build<B: Body>(
            $run: &Finished<B>,
            $log: &Packets,
            name: &str,
        ) -> Result<Table, Error> {
            let view = View::of($run);
            $(if name == stringify!($table) {
                let rows = $rows;
                let own = columns_of($table::COLUMNS, |column| $table(&view, &rows, column));
                let columns = [own, $(figures($kind, rows.iter().map(|row| row.$figures)))?];
                return Ok(Table::new(columns.into_iter().flatten())?);
            })+
            Err(Error::NoTable {
                name: name.to_owned(),
                tables: [$(stringify!($table)),+].join(", "),
            })
        }
    };
}

tables! {
    run, log;
    flows = flow_figures(run), "FlowSummary" in 1;
    links = link_figures(run), "LinkSummary" in 2;
    samples = &run.samples.flows;
    ack_samples = &run.samples.acks;
    link_samples = &run.samples.links;
    group_samples = &run.samples.groups;
    packets = Cursor::default().take(log, usize::MAX);
    window_events = &log.windows;
    retransmissions = &log.retransmissions;
}

fn flow_figures<B: Body>(run: &Finished<B>) -> Vec<FlowFigures<'_>> {
    let flows = run.summary.flows.iter();
    flows.map(|(name, one)| (&**name, one)).collect()
}

fn link_figures<B: Body>(run: &Finished<B>) -> Vec<LinkFigures<'_>> {
    let links = run.summary.links.iter();
    let both = links.flat_map(|(name, both)| DIRECTIONS.map(|way| (&**name, way, &both[way])));
    both.collect()
}

fn columns_of(declared: &[DeclaredColumn], of: impl Fn(&str) -> Column) -> Columns {
    let column = |one: &DeclaredColumn| (one.name, of(one.name));
    declared.iter().map(column).collect()
}

/// The scalars of a struct of the summary.
fn figures<'a>(kind: &str, rows: impl Iterator<Item = &'a Value>) -> Columns {
    let rows: Vec<&Value> = rows.collect();
    let column = |one: DeclaredColumn| (one.name, figure(&one, &rows));
    scalars(kind).map(column).collect()
}

/// The samples of a run under way: `samples`, `link_samples` or `group_samples`; `None` for another
/// name.
///
/// # Errors
/// None.
pub fn build_underway<B: Body>(run: &Underway<'_, B>, name: &str) -> Result<Option<Table>, Error> {
    let (view, taken) = (View::underway(run), run.samples);
    let columns = match name {
        "samples" => columns_of(samples::COLUMNS, |one| samples(&view, &taken.flows, one)),
        "link_samples" => columns_of(link_samples::COLUMNS, |one| {
            link_samples(&view, &taken.links, one)
        }),
        "group_samples" => columns_of(group_samples::COLUMNS, |one| {
            group_samples(&view, &taken.groups, one)
        }),
        _ => return Ok(None),
    };
    Ok(Some(Table::new(columns)?))
}

/// The name of a column of the table `packets`, if there is one of this name.
#[must_use]
pub fn packet_column(name: &str) -> Option<&'static str> {
    packet_columns().find(|known| *known == name)
}

/// The columns of the table `packets`.
pub fn packet_columns() -> impl Iterator<Item = &'static str> {
    packets::COLUMNS.iter().map(|column| column.name)
}

/// The given packets as a table, with the given columns of [`packet_columns`].
///
/// # Errors
/// None.
pub fn packet_table<B: Body>(
    run: &Finished<B>,
    rows: &[Judged],
    columns: &[&'static str],
) -> Result<Table, Error> {
    let view = View::of(run);
    let column = |name: &&'static str| (*name, packets(&view, rows, name));
    Ok(Table::new(columns.iter().map(column))?)
}

/// `None` for a duration that was never measured.
fn measured_ms(duration: Duration) -> Option<f64> {
    (!duration.is_zero()).then(|| duration.as_millis_f64())
}

fn cause(row: &PacketRow) -> Option<&'static str> {
    row.cause.map(anabranch::tcp::RetransmitCause::name)
}

const fn fate(row: &PacketRow) -> &'static str {
    match (row.received, row.lost) {
        (Some(_), _) if row.refused > 0 && row.refused >= row.payload => "refused",
        (Some(_), _) => "delivered",
        (None, Some((_, Fate::Dropped))) => "dropped",
        (None, Some((_, Fate::TooBig))) => "too-big",
        (None, Some(_)) => "lost",
        (None, None) => "in-flight",
    }
}
