//! One row per packet sent, for figures and for diagnosis.

use anabranch_core::{
    packet::{ConnectionId, Direction, FlowId, Packet, WaitAccount},
    trace::{ElementId, Fate},
    units::{Duration, Instant},
};
use anabranch_tcp::{RetransmitCause, WindowEvent};

use super::{
    needed::needed,
    retransmitted::{Retransmitted, retransmitted},
    window_events::WindowRow,
};

/// The most rows of a log, including pure acknowledgments: some 5 GB.
pub const MOST_ROWS: usize = 50_000_000;

/// The history of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketRow {
    /// The flow.
    pub flow: FlowId,
    /// The connection, for flows with several.
    pub connection: ConnectionId,
    /// The direction.
    pub direction: Direction,
    /// Its number within connection and direction.
    pub index: u32,
    /// First octet, relative to the first of the stream.
    pub sequence: u64,
    /// Octets of payload.
    pub payload: u32,
    /// Octets of the IP packet.
    pub size: u32,
    /// Whether it is a retransmission.
    pub retransmission: bool,
    /// The cause of the retransmission by TCP.
    pub cause: Option<RetransmitCause>,
    /// The time of sending.
    pub sent: Instant,
    /// The time of arrival.
    pub received: Option<Instant>,
    /// The element that dropped or lost it, and the outcome.
    pub lost: Option<(ElementId, Fate)>,
    /// Whether it was lost, and error correction rebuilt some of its octets.
    pub rebuilt: bool,
    /// Octets at its end that its receiver did not have and refused on arrival (RFC 7323 §5).
    pub refused: u32,
    /// Time in the queues of the links that it crossed, until it arrived, was dropped or was lost.
    /// `None` while it is in flight, and if datagrams of a tunnel carried it.
    pub queue_delay: Option<Duration>,
    /// Whether it arrived reordered (RFC 4737 §3.3).
    pub reordered: bool,
    /// Its reordering extent, in packets (RFC 4737 §4.2).
    pub extent: u64,
}

impl PacketRow {
    /// Whether `sent_packets` counts it: it has data, or it is a retransmitted SYN, whose number
    /// precedes the first octet.
    #[must_use]
    pub const fn counts(&self) -> bool {
        self.payload > 0 || self.retransmission && self.sequence == 0
    }
}

/// The key of a packet's row in the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacketKey {
    pub(crate) connection: ConnectionId,
    pub(crate) direction: Direction,
    pub(crate) index: u32,
    pub(crate) waits: WaitAccount,
}

impl<P> From<&Packet<P>> for PacketKey {
    fn from(packet: &Packet<P>) -> Self {
        Self {
            connection: packet.connection,
            direction: packet.direction,
            index: packet.index,
            waits: packet.waits,
        }
    }
}

/// The rows of a run, by connection and direction, in order of sending.
#[derive(Debug)]
pub struct PacketLog {
    rows: Vec<Vec<PacketRow>>,
    windows: Vec<WindowRow>,
    /// Time in queues until now, by [`WaitAccount`]: each copy of a packet has a separate account.
    waits: Vec<Duration>,
    /// The number of rows that can still be added.
    room: usize,
    left_out: u64,
}

impl Default for PacketLog {
    fn default() -> Self {
        Self::with_room(MOST_ROWS)
    }
}

impl PacketLog {
    /// Creates a log of at most `room` rows: the first that are sent.
    #[must_use]
    pub const fn with_room(room: usize) -> Self {
        Self {
            rows: Vec::new(),
            windows: Vec::new(),
            waits: Vec::new(),
            room,
            left_out: 0,
        }
    }
    fn slot(connection: ConnectionId, direction: Direction) -> usize {
        connection.0 as usize * 2 + direction as usize
    }
    fn row(
        &mut self,
        connection: ConnectionId,
        direction: Direction,
        index: u32,
    ) -> Option<&mut PacketRow> {
        let rows = self.rows.get_mut(Self::slot(connection, direction))?;
        let first = rows.first()?.index;
        rows.get_mut(index.wrapping_sub(first) as usize)
    }
    /// The last packet sent on a connection in a direction.
    pub(super) fn last(
        &self,
        connection: ConnectionId,
        direction: Direction,
    ) -> Option<&PacketRow> {
        self.rows.get(Self::slot(connection, direction))?.last()
    }
    pub(super) fn sent<P>(
        &mut self,
        at: Instant,
        flow: FlowId,
        packet: &mut Packet<P>,
        (sequence, payload, cause): (u64, u32, Option<RetransmitCause>),
    ) {
        packet.waits = WaitAccount::NONE;
        let slot = Self::slot(packet.connection, packet.direction);
        let row = PacketRow {
            flow,
            connection: packet.connection,
            direction: packet.direction,
            index: packet.index,
            sequence,
            payload,
            size: packet.size,
            retransmission: packet.retransmission,
            cause,
            sent: at,
            received: None,
            lost: None,
            rebuilt: false,
            refused: 0,
            queue_delay: None,
            reordered: false,
            extent: 0,
        };
        // Rows are never removed, so that the rows of a connection have no gaps.
        if self.room == 0 {
            self.left_out += u64::from(row.counts());
            return;
        }
        self.room -= 1;
        if self.rows.len() <= slot {
            self.rows.resize_with(slot + 1, Vec::new);
        }
        self.rows[slot].push(row);
        packet.waits = self.open_account(Duration::ZERO);
    }
    fn open_account(&mut self, waited: Duration) -> WaitAccount {
        let account = u32::try_from(self.waits.len()).map_or(WaitAccount::NONE, WaitAccount);
        if account != WaitAccount::NONE {
            self.waits.push(waited);
        }
        account
    }
    /// Time in queues until now of a packet with this account.
    fn waited(&self, account: WaitAccount) -> Option<Duration> {
        self.waits.get(account.0 as usize).copied()
    }
    /// Opens the account of a copy, which starts with the original's waiting time.
    pub(super) fn copy_account(&mut self, of: WaitAccount) -> WaitAccount {
        match self.waited(of) {
            Some(waited) => self.open_account(waited),
            None => WaitAccount::NONE,
        }
    }
    pub(super) fn add_wait(&mut self, account: WaitAccount, delay: Duration) {
        if let Some(waited) = self.waits.get_mut(account.0 as usize) {
            *waited += delay;
        }
    }
    pub(crate) fn fate(&mut self, at: Instant, element: ElementId, fate: Fate, of: PacketKey) {
        let waited = self.waited(of.waits);
        let Some(row) = self.row(of.connection, of.direction, of.index) else {
            return;
        };
        let has_arrived = row.received.is_some();
        match fate {
            Fate::Received => row.received = row.received.or(Some(at)),
            Fate::Dropped | Fate::TooBig | Fate::Lost | Fate::Corrupted => {
                row.lost = Some((element, fate));
            }
            _ => return,
        }
        // The first copy that arrives counts.
        if !has_arrived {
            row.queue_delay = waited;
        }
    }
    /// Records that error correction has rebuilt the octets `from..to`: the packets that first
    /// carried them count as arrived.
    pub(super) fn rebuilt(
        &mut self,
        connection: ConnectionId,
        direction: Direction,
        (from, to): (u64, u64),
    ) {
        let rows = self.rows.get_mut(Self::slot(connection, direction));
        // In reverse order, numbers decrease; an increase marks an earlier transfer.
        let mut lowest = u64::MAX;
        for row in rows.into_iter().flatten().rev() {
            if row.retransmission || row.payload == 0 {
                continue;
            }
            if row.sequence + u64::from(row.payload) <= from || row.sequence > lowest {
                break;
            }
            lowest = row.sequence;
            if row.sequence < to {
                (row.rebuilt, row.refused) = (true, 0);
            }
        }
    }
    pub(super) fn refused(
        &mut self,
        connection: ConnectionId,
        direction: Direction,
        (index, octets): (u32, u32),
    ) {
        if let Some(row) = self.row(connection, direction, index) {
            row.refused = octets;
        }
    }
    pub(super) fn reordered(
        &mut self,
        connection: ConnectionId,
        direction: Direction,
        index: u32,
        extent: u64,
    ) {
        if let Some(row) = self.row(connection, direction, index) {
            (row.reordered, row.extent) = (true, extent);
        }
    }
    /// All rows, by connection and direction, in order of sending.
    pub fn rows(&self) -> impl Iterator<Item = &PacketRow> {
        self.rows.iter().flatten()
    }
    /// The rows of each connection and direction.
    #[must_use]
    pub fn connections(&self) -> &[Vec<PacketRow>] {
        &self.rows
    }
    /// Packets with data, and retransmitted SYNs, sent after the log was full.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }
    /// The retransmissions of every connection, in the order of [`Self::rows`].
    pub fn retransmitted(&self) -> impl Iterator<Item = Retransmitted<'_>> {
        self.rows.iter().flat_map(|rows| retransmitted(rows))
    }
    /// Whether each of [`Self::rows`] was needed, as far as the run shows: a retransmission was
    /// needed if some of its octets, or its SYN, had not arrived by an earlier transmission. `None`
    /// for other packets, and for retransmissions of data that was still in flight.
    #[must_use]
    pub fn needed(&self) -> Vec<Option<bool>> {
        self.rows.iter().flat_map(|rows| needed(rows)).collect()
    }
    /// All rows, for callers that complete them.
    pub fn rows_mut(&mut self) -> impl Iterator<Item = &mut PacketRow> {
        self.rows.iter_mut().flatten()
    }
    /// Adds window events of a TCP outside this engine.
    pub fn add_windows(&mut self, rows: impl IntoIterator<Item = WindowRow>) {
        self.windows.extend(rows);
        self.sort_windows();
    }
    pub(crate) fn window_events(&mut self, flow: FlowId, events: &[WindowEvent]) {
        let rows = events.iter().map(|event| WindowRow::new(flow, event));
        self.windows.extend(rows);
    }
    pub(crate) fn sort_windows(&mut self) {
        self.windows.sort_by_key(|row| (row.at, row.flow.0));
    }
    /// The window events, after the end of the run (`Network::note_windows`): in order of time,
    /// then of flows.
    #[must_use]
    pub fn windows(&self) -> &[WindowRow] {
        &self.windows
    }
}

#[cfg(test)]
mod tests {
    use anabranch_core::{packet::Ecn, trail::Trail};

    use super::*;

    fn packet(connection: u32, index: u32) -> Packet<()> {
        Packet {
            connection: ConnectionId(connection),
            index,
            size: 1_500,
            hop: 0,
            direction: Direction::Forward,
            retransmission: false,
            ecn: Ecn::NotEct,
            dscp: 0,
            trail: Trail::default(),
            waits: WaitAccount::NONE,
            tunnel: anabranch_core::tunnel::Header::default(),
            payload: (),
        }
    }

    #[test]
    fn a_full_log_counts_further_packets() {
        let mut log = PacketLog::with_room(3);
        for (connection, index) in [(0, 0), (1, 0), (0, 1), (0, 2), (1, 1)] {
            let mut packet = packet(connection, index);
            log.sent(Instant::START, FlowId(0), &mut packet, (0, 1_460, None));
            log.reordered(packet.connection, packet.direction, index, 1);
        }
        let kept: Vec<_> = log
            .rows()
            .map(|row| (row.connection.0, row.index))
            .collect();
        assert_eq!(kept, [(0, 0), (0, 1), (1, 0)]);
        assert_eq!(log.left_out(), 2);
    }
}
