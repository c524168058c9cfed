//! The receiving end of a gateway, which merges the routes.

use anabranch_core::{
    body::Body,
    packet::{PacketId, Pool},
    tunnel::Content,
    units::Instant,
};

use super::{
    duplicates::Duplicates,
    meter::Meter,
    micros,
    peer::Peer,
    restore::{AnyRestore, Arrived, Restore, TcpPlace},
};
use crate::{
    link::Window,
    middlebox::{Held, Kept, Middlebox, Output, connection_of},
    report::{Report, RestoreReport},
};
use anabranch_wire::Transport;

/// Components of an exit.
#[derive(Debug)]
pub struct ExitParts {
    /// Decides when a packet is forwarded.
    pub restore: AnyRestore,
    /// Bytes that the tunnel added to each packet.
    pub overhead: u32,
    /// State shared with the entrance at this end, if the tunnel writes its header.
    pub peer: Option<Peer>,
    /// Measured time, in which packets are counted.
    pub window: Window,
    /// Shared with the entrance of this direction.
    pub meter: Meter,
}

/// The end of a gateway that packets leave. It stores the packets that the restorer holds back.
#[derive(Debug)]
pub struct Exit<B: Body> {
    restore: AnyRestore,
    overhead: u32,
    peer: Option<Peer>,
    duplicates: Duplicates,
    window: Window,
    meter: Meter,
    held: Pool<Transport<B>>,
    /// Arrival time of each held packet by handle; [`Instant::NEVER`] for a free handle.
    arrived: Vec<Instant>,
    held_bytes: u64,
    /// Duplicates discarded in the whole run.
    discarded: u64,
    report: RestoreReport,
    /// Packets released by the current call, in order.
    released: Vec<PacketId>,
}

impl<B: Body> Exit<B> {
    /// Creates an exit of these components.
    #[must_use]
    pub fn new(parts: ExitParts) -> Self {
        Self {
            restore: parts.restore,
            overhead: parts.overhead,
            peer: parts.peer,
            duplicates: Duplicates::default(),
            window: parts.window,
            meter: parts.meter,
            held: Pool::default(),
            arrived: Vec::new(),
            held_bytes: 0,
            discarded: 0,
            report: RestoreReport::default(),
            released: Vec::new(),
        }
    }

    /// Processes the tunnel header. Returns true if the packet is a duplicate or a packet of the
    /// tunnel, which is not forwarded.
    fn hear(&mut self, now: Instant, packet: &Held<B>) -> bool {
        let Some(peer) = &self.peer else {
            return false;
        };
        peer.arrived(now, micros(now), &packet.tunnel);
        let ends_here = packet.tunnel.content != Content::Packet;
        if ends_here || self.duplicates.is_copy(&packet.tunnel) {
            self.restore
                .pass_over(now, &packet.tunnel, &mut self.released);
            self.report.duplicates += u64::from(!ends_here && self.window.contains(now));
            return true;
        }
        false
    }

    fn release(&mut self, now: Instant, gaps_before: u64, out: &mut Output<B>) {
        let measured = self.window.contains(now);
        for id in self.released.drain(..) {
            let packet = self.held.take(id, Transport::Datagram(B::default()));
            let arrived = std::mem::replace(&mut self.arrived[id.0 as usize], Instant::NEVER);
            assert!(
                arrived != Instant::NEVER,
                "a restorer lets each packet go once"
            );
            self.held_bytes -= u64::from(packet.size);
            self.meter
                .delivered(now, (packet.connection, packet.index), self.window);
            if measured {
                self.report.released(now.saturating_since(arrived));
            }
            out.forward(packet);
        }
        if !self.held.is_empty() {
            self.meter.waits(now);
        }
        if measured {
            self.report.holds(self.held.len() as u64, self.held_bytes);
            self.report.gaps_given_up += self.restore.gaps_given_up() - gaps_before;
        }
    }
}

impl<B: Body> Middlebox<B> for Exit<B> {
    fn on_packet(&mut self, now: Instant, mut packet: Held<B>, out: &mut Output<B>) {
        let gaps = self.restore.gaps_given_up();
        if self.hear(now, &packet) {
            self.discarded += 1;
            if !self.released.is_empty() {
                self.release(now, gaps, out);
            }
            return;
        }
        packet.size = packet.size.saturating_sub(self.overhead);
        let (size, connection, tunnel) = (packet.size, connection_of(&packet), packet.tunnel);
        let tcp = TcpPlace::of(&packet.payload);
        let id = self.held.insert(packet);
        if self.arrived.len() <= id.0 as usize {
            self.arrived.push(now);
        }
        self.arrived[id.0 as usize] = now;
        self.held_bytes += u64::from(size);
        let arrived = Arrived {
            packet: id,
            size,
            connection,
            tunnel,
            tcp,
        };
        self.restore.arrive(now, arrived, &mut self.released);
        self.release(now, gaps, out);
    }
    fn on_timer(&mut self, now: Instant, out: &mut Output<B>) {
        let gaps = self.restore.gaps_given_up();
        self.restore.on_timer(now, &mut self.released);
        if self.window.contains(now) {
            self.report.released_by_timer += self.released.len() as u64;
        }
        self.release(now, gaps, out);
    }
    fn timer(&self) -> Option<Instant> {
        self.restore.timer()
    }
    fn report(&self) -> Option<Report> {
        let mut report = self.report.clone();
        report.silent = self.meter.longest(self.window);
        Some(Report::Restore(Box::new(report)))
    }
    fn kept(&self) -> Kept {
        Kept {
            held: self.held.len() as u64,
            discarded: self.discarded,
        }
    }
}
