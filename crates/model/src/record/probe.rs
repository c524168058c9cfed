//! Where observations go: into the digest, and into the packet log if one is kept.

use anabranch_core::{
    digest::Digest,
    packet::{ConnectionId, Direction, FlowId, Packet},
    trace::{ElementId, Fate, Observation},
    units::{Duration, Instant},
};

use super::packet_log::PacketLog;

/// The observers of a run. Nothing is spent on those that are off.
#[derive(Debug)]
pub struct Probe {
    end: Instant,
    digest: Option<Digest>,
    log: Option<PacketLog>,
    on: bool,
}

impl Probe {
    /// Observers for a run that ends at `end`: what links compute ahead of it is not observed.
    #[must_use]
    pub fn new(end: Instant, digest: bool, log: bool) -> Self {
        Self {
            end,
            digest: digest.then(Digest::default),
            log: log.then(PacketLog::default),
            on: digest || log,
        }
    }
    /// Whether anything is observed.
    #[must_use]
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on
    }
    /// Something happened to a packet at an element.
    #[inline]
    pub fn observe<P>(&mut self, at: Instant, element: ElementId, packet: &Packet<P>, fate: Fate) {
        if self.on {
            self.record(
                at,
                element,
                packet.connection,
                packet.direction,
                packet.index,
                fate,
            );
        }
    }
    fn record(
        &mut self,
        at: Instant,
        element: ElementId,
        connection: ConnectionId,
        direction: Direction,
        index: u32,
        fate: Fate,
    ) {
        if at > self.end {
            return;
        }
        if let Some(digest) = &mut self.digest {
            let packet = u64::from(index);
            digest.add(&Observation {
                at,
                element,
                connection,
                direction,
                packet,
                fate,
            });
        }
        if let Some(log) = &mut self.log {
            log.fate(connection, direction, index, at, element, fate);
        }
    }
    /// A packet waited in a queue.
    #[inline]
    pub fn waited<P>(&mut self, packet: &Packet<P>, queue_delay: Duration) {
        if let Some(log) = &mut self.log
            && !queue_delay.is_zero()
        {
            log.waited(
                packet.connection,
                packet.direction,
                packet.index,
                queue_delay,
            );
        }
    }
    /// A packet was sent: what the log wants to know of it.
    #[inline]
    pub fn sent<P>(
        &mut self,
        at: Instant,
        flow: FlowId,
        packet: &Packet<P>,
        sequence: u64,
        payload: u32,
    ) {
        if let Some(log) = &mut self.log {
            log.sent(at, flow, packet, sequence, payload);
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
    /// The digest, if one was kept.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }
    /// The log, if one was kept.
    #[must_use]
    pub fn log(&self) -> Option<&PacketLog> {
        self.log.as_ref()
    }
}
