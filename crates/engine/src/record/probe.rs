//! Where observations go: into the digest, and into the packet log and the tally if they are kept.

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

/// The observers of a run. Nothing is spent on those that are off.
#[derive(Debug)]
pub struct Probe {
    end: Instant,
    /// What happens from here on is not observed: the run is over then, or nothing observes.
    closed_at: Instant,
    digest: Option<Digest>,
    log: Option<PacketLog>,
    aside: Option<Box<Aside>>,
    /// There is a log or something aside.
    records: bool,
}

#[derive(Debug, Default)]
struct Aside {
    taps: Option<Taps>,
    tally: Option<Tally>,
}

/// How often each fate was observed, inside and outside the measured time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally([u64; Fate::TooBig as usize + 1]);

impl Tally {
    /// Of this one.
    #[must_use]
    pub fn of(&self, fate: Fate) -> u64 {
        self.0[fate as usize]
    }
}

impl Probe {
    /// Observers for a run that ends at `end`: what links compute ahead of it is not observed.
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
    /// Something observes from here on.
    fn open(&mut self) {
        self.closed_at = self.end.saturating_add(Duration::from_picos(1));
    }
    fn aside(&mut self) -> &mut Aside {
        self.records = true;
        self.open();
        self.aside.get_or_insert_default()
    }
    /// Whether anything is observed.
    #[must_use]
    #[inline]
    pub fn is_on(&self) -> bool {
        self.closed_at > Instant::START
    }
    /// Captures what these taps are to see. Their links must be such that packets enter them one by
    /// one (`LinkSpec::may_change`).
    pub fn tap(&mut self, taps: Taps) {
        self.aside().taps = Some(taps);
    }
    /// Counts fates from here on.
    pub fn keep_tally(&mut self) {
        self.aside().tally = Some(Tally::default());
    }
    /// A packet reaches a link that is not plain; what the link does with it is observed next.
    #[inline]
    pub fn enters<B: Body>(
        &mut self,
        at: Instant,
        element: ElementId,
        flow: FlowId,
        packet: &Packet<Transport<B>>,
    ) {
        if let Some(aside) = &mut self.aside
            && let Some(taps) = &mut aside.taps
        {
            taps.enters(at, element, flow, packet);
        }
    }
    /// Something happened to a packet at an element.
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
    /// Nothing more will be observed of a packet as it is: it is no more, or no element of the network has it.
    #[inline]
    pub fn close<P>(&mut self, packet: &mut Packet<P>) {
        if let Some(digest) = &mut self.digest
            && !packet.trail.is_empty()
        {
            let name = (packet.connection, packet.direction, packet.index);
            digest.add(name, std::mem::take(&mut packet.trail));
        }
    }
    /// A packet waited in a link's queue.
    #[inline]
    pub fn waited<P>(&mut self, packet: &Packet<P>, queue_delay: Duration) {
        if let Some(log) = &mut self.log
            && !queue_delay.is_zero()
        {
            log.add_wait(packet.waits, queue_delay);
        }
    }
    /// This is a copy of a packet: its waiting time is counted apart from the original's.
    #[inline]
    pub fn copies<P>(&mut self, packet: &mut Packet<P>) {
        if let Some(log) = &mut self.log {
            packet.waits = log.copy_account(packet.waits);
        }
    }
    /// A packet has let the receiver rebuild octets, relative to the first of the stream.
    pub fn rebuilt<P>(&mut self, packet: &Packet<P>, octets: (u64, u64)) {
        if let Some(log) = &mut self.log {
            log.rebuilt(packet.connection, packet.direction, octets);
        }
    }
    /// A packet was sent: what the log wants to know of it.
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
    /// A packet arrived reordered (RFC 4737 §3.3).
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
    /// The digest, if one was kept; `open` are packets that may not be closed yet.
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
    /// What was sent last of a connection in a direction, if a log is kept.
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
    /// The captures, if there are any.
    #[must_use]
    pub fn taps(&self) -> Option<&Taps> {
        self.aside.as_ref()?.taps.as_ref()
    }
    /// How often each fate was observed, if that was counted.
    #[must_use]
    pub fn tally(&self) -> Option<&Tally> {
        self.aside.as_ref()?.tally.as_ref()
    }
}
