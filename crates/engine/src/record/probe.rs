//! Distribution of observations to the digest, the packet log and the tally, if they are kept.

use anabranch_core::{
    body::Body,
    digest::Digest,
    packet::{ConnectionId, Direction, FlowId, Packet},
    trace::{ElementId, Fate},
    units::{Duration, Instant},
};
use anabranch_tcp::RetransmitCause;
use anabranch_wire::Transport;

use super::{
    packet_log::{PacketKey, PacketLog, PacketRow},
    tap::Taps,
};

/// The observers of a run. Disabled ones cost nothing.
#[derive(Debug)]
pub struct Probe {
    end: Instant,
    /// The time from which nothing is observed: the end of the run, or the start if no observer is
    /// on.
    closed_at: Instant,
    digest: Option<Digest>,
    log: Option<PacketLog>,
    aside: Option<Box<Aside>>,
    /// Whether there is a log or something in `aside`.
    records: bool,
}

#[derive(Debug, Default)]
struct Aside {
    taps: Option<Taps>,
    tally: Option<Tally>,
}

/// The number of observations of each outcome, inside and outside the measured time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally([u64; Fate::TooBig as usize + 1]);

impl Tally {
    /// The number of observations of `fate`.
    #[must_use]
    pub fn of(&self, fate: Fate) -> u64 {
        self.0[fate as usize]
    }
}

impl Probe {
    /// Observers for a run that ends at `end`: events computed for a later time are not observed.
    #[must_use]
    pub fn new(end: Instant, digest: bool, log: bool) -> Self {
        let mut probe = Self {
            end,
            closed_at: Instant::START,
            digest: digest.then(Digest::default),
            log: log.then(PacketLog::default),
            aside: None,
            records: log,
        };
        if digest || log {
            probe.open();
        }
        probe
    }
    /// Begins to observe.
    fn open(&mut self) {
        self.closed_at = self.end.saturating_add(Duration::from_picos(1));
    }
    fn aside(&mut self) -> &mut Aside {
        self.records = true;
        self.open();
        self.aside.get_or_insert_default()
    }
    /// Whether any observer is on.
    #[must_use]
    #[inline]
    pub fn is_on(&self) -> bool {
        self.closed_at > Instant::START
    }
    /// Whether every observation is recorded, by a log, a capture or a tally.
    #[must_use]
    #[inline]
    pub const fn records(&self) -> bool {
        self.records
    }
    /// Captures packets with `taps`. Packets must enter the tapped links individually
    /// (`LinkSpec::may_change`).
    pub fn tap(&mut self, taps: Taps) {
        self.aside().taps = Some(taps);
    }
    /// Begins to count outcomes.
    pub fn keep_tally(&mut self) {
        self.aside().tally = Some(Tally::default());
    }
    /// Records that a packet reaches a link that is not plain; its outcome at the link is observed
    /// next. `of` is its flow and the number of its connection, which no other connection has.
    #[inline]
    pub fn enters<B: Body>(
        &mut self,
        at: Instant,
        element: ElementId,
        of: (FlowId, ConnectionId),
        packet: &Packet<Transport<B>>,
    ) {
        if let Some(aside) = &mut self.aside
            && let Some(taps) = &mut aside.taps
        {
            taps.enters(at, element, of, packet);
        }
    }
    /// Records the outcome of a packet at an element.
    #[inline]
    pub fn observe<P>(
        &mut self,
        at: Instant,
        element: ElementId,
        packet: &mut Packet<P>,
        fate: Fate,
    ) {
        if at >= self.closed_at {
            return;
        }
        packet.trail.add(at, element, fate);
        if self.records {
            self.record(at, element, fate, PacketKey::from(&*packet));
        }
    }
    #[inline(never)]
    fn record(&mut self, at: Instant, element: ElementId, fate: Fate, of: PacketKey) {
        if let Some(log) = &mut self.log {
            log.fate(at, element, fate, of);
        }
        if let Some(aside) = &mut self.aside {
            if let Some(taps) = &mut aside.taps {
                taps.fate(element, (of.connection, of.direction, of.index), fate);
            }
            if let Some(tally) = &mut aside.tally {
                tally.0[fate as usize] += 1;
            }
        }
    }
    /// Finishes the observation of a packet: it no longer exists, or is outside the network's
    /// elements.
    #[inline]
    pub fn close<P>(&mut self, packet: &mut Packet<P>) {
        if let Some(digest) = &mut self.digest
            && !packet.trail.is_empty()
        {
            let name = (packet.connection, packet.direction, packet.index);
            digest.add(name, std::mem::take(&mut packet.trail));
        }
    }
    /// Records the wait of a packet in a link's queue.
    #[inline]
    pub fn waited<P>(&mut self, packet: &Packet<P>, queue_delay: Duration) {
        if let Some(log) = &mut self.log
            && !queue_delay.is_zero()
        {
            log.add_wait(packet.waits, queue_delay);
        }
    }
    /// Gives a copy of a packet a separate account of its waiting time.
    #[inline]
    pub fn copies<P>(&mut self, packet: &mut Packet<P>) {
        if let Some(log) = &mut self.log {
            packet.waits = log.copy_account(packet.waits);
        }
    }
    /// Records that a packet let the receiver rebuild octets, relative to the first of the stream.
    pub fn rebuilt<P>(&mut self, packet: &Packet<P>, octets: (u64, u64)) {
        if let Some(log) = &mut self.log {
            log.rebuilt(packet.connection, packet.direction, octets);
        }
    }
    /// Records that the receiver refused the last `octets` of a packet, which it did not have.
    pub fn refused<P>(&mut self, packet: &Packet<P>, octets: u32) {
        if let Some(log) = &mut self.log {
            log.refused(packet.connection, packet.direction, (packet.index, octets));
        }
    }
    /// Records the sending of a packet in the log.
    #[inline]
    pub fn sent<P>(
        &mut self,
        at: Instant,
        flow: FlowId,
        packet: &mut Packet<P>,
        told: (u64, u32, Option<RetransmitCause>),
    ) {
        if let Some(log) = &mut self.log {
            log.sent(at, flow, packet, told);
        }
    }
    /// Records that a packet arrived reordered (RFC 4737 §3.3).
    #[inline]
    pub fn reordered<P>(&mut self, packet: &Packet<P>, extent: u64) {
        if let Some(log) = &mut self.log {
            log.reordered(packet.connection, packet.direction, packet.index, extent);
        }
    }
    /// Whether a log is kept.
    #[must_use]
    #[inline]
    pub fn logs(&self) -> bool {
        self.log.is_some()
    }
    /// The digest, if one was kept; `open` are packets whose observation may be unfinished.
    #[must_use]
    pub(crate) fn digest<P>(&self, open: &[Packet<P>]) -> Option<Digest> {
        let mut digest = self.digest?;
        for packet in open.iter().filter(|packet| !packet.trail.is_empty()) {
            let name = (packet.connection, packet.direction, packet.index);
            digest.add(name, packet.trail);
        }
        Some(digest)
    }
    /// The log, if one was kept.
    #[must_use]
    pub fn log(&self) -> Option<&PacketLog> {
        self.log.as_ref()
    }
    /// The last packet sent on a connection in a direction, if a log is kept.
    pub(crate) fn last_sent(
        &self,
        connection: ConnectionId,
        direction: Direction,
    ) -> Option<&PacketRow> {
        self.log.as_ref()?.last(connection, direction)
    }
    pub(crate) fn log_mut(&mut self) -> Option<&mut PacketLog> {
        self.log.as_mut()
    }
    /// The captures, if any.
    #[must_use]
    pub fn taps(&self) -> Option<&Taps> {
        self.aside.as_ref()?.taps.as_ref()
    }
    /// The number of observations of each outcome, if counted.
    #[must_use]
    pub fn tally(&self) -> Option<&Tally> {
        self.aside.as_ref()?.tally.as_ref()
    }
}
