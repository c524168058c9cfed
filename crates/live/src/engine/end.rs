//! An end of a flow in the model whose TCP or application is in the kernel: it passes packets to
//! and from the kernel.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use anabranch_core::{
    packet::{Direction, FlowId},
    units::Instant,
};
use anabranch_path::host::{Arrived, Departing, Host, Refused};
use anabranch_wire::take_hops;

use crate::{
    apps::datagram::Stamps,
    engine::audit::Recorder,
    kernel::tun::Device,
    plan::{
        frame::{self, Frame},
        hops::Answering,
    },
};

/// Packets that a host has sent and the model has not taken yet.
pub type Inbox = Arc<Mutex<VecDeque<Departing<Frame>>>>;

/// One end of a flow.
#[derive(Debug)]
pub struct KernelEnd {
    pub device: Arc<dyn Device>,
    pub inbox: Inbox,
    pub recorder: Arc<Recorder>,
    /// The flow and direction of the packets that arrive here.
    pub place: (FlowId, Direction),
    /// Routers on the way here, each of which decrements the hop limit.
    pub routers: u8,
    /// The routers that report packets too big for a link.
    pub answering: Answering,
    /// Arrival times of datagrams, if they are recorded.
    pub stamps: Option<Stamps>,
}

impl Host<Frame> for KernelEnd {
    fn on_packet(&mut self, now: Instant, packet: Arrived<'_, Frame>) {
        let mut octets = frame::write(packet.transport, packet.ecn);
        if self.routers > 0 {
            take_hops(octets.to_mut(), self.routers);
        }
        let released = self.recorder.release(self.place, now);
        if let (Some(stamps), Some(at)) = (&self.stamps, released) {
            // Recorded before the receiver can read it.
            stamps.came(packet.transport, at);
        }
        if self.device.send(&octets, self.place).is_err() {
            self.recorder.undelivered(self.place);
        }
    }
    fn on_refused(&mut self, _now: Instant, packet: Refused<'_, Frame>) {
        let router = self.answering.about(packet.router);
        if let Some(message) = frame::too_big(packet.transport, packet.mtu, router)
            && self.device.send(&message, self.place).is_ok()
        {
            self.recorder.answered(self.place);
        }
    }
    fn poll_transmit(&mut self, _now: Instant) -> Option<Departing<Frame>> {
        self.inbox
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    }
}

/// An end that ignores packets and sends none.
#[derive(Debug)]
pub struct Nobody;

impl Host<Frame> for Nobody {
    fn on_packet(&mut self, _now: Instant, _packet: Arrived<'_, Frame>) {}
    fn poll_transmit(&mut self, _now: Instant) -> Option<Departing<Frame>> {
        None
    }
}
