//! An end of a flow as the model sees it: what comes goes to the kernel, what the kernel sends goes in.

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

/// What a host has sent and the model has not taken yet.
pub type Inbox = Arc<Mutex<VecDeque<Departing<Frame>>>>;

/// One end of a flow.
#[derive(Debug)]
pub struct KernelEnd {
    pub device: Arc<dyn Device>,
    pub inbox: Inbox,
    pub recorder: Arc<Recorder>,
    /// Whose packets come here, and which way they came.
    pub place: (FlowId, Direction),
    /// Routers on the way of what comes, each of which takes one from the hop limit.
    pub routers: u8,
    /// Who answers what does not fit a link.
    pub answering: Answering,
    /// Where is written down when datagrams came, if somebody asks for it.
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
            // Before it can be read.
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

/// An end that takes what comes, and says nothing.
#[derive(Debug)]
pub struct Nobody;

impl Host<Frame> for Nobody {
    fn on_packet(&mut self, _now: Instant, _packet: Arrived<'_, Frame>) {}
    fn poll_transmit(&mut self, _now: Instant) -> Option<Departing<Frame>> {
        None
    }
}
