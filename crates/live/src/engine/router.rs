//! A router as the end of a hidden flow: it answers packets that end there.

use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use anabranch_core::{
    packet::{Direction, FlowId},
    units::Instant,
};
use anabranch_path::host::{Arrived, Departing, Host};
use anabranch_wire::{
    icmp::{Reaction, at_router},
    take_hops,
};

use crate::{
    engine::audit::Recorder,
    plan::{
        devices,
        frame::{self, Frame},
        hops::{Hop, RateLimit, Shared},
    },
};

/// The rate limits of all routers, by router and by the device of the host that they answer.
#[derive(Debug, Default)]
pub struct RateLimits(HashMap<(usize, usize), Shared>);

impl RateLimits {
    pub fn of(&mut self, hop: &Hop) -> Shared {
        let limit = self.0.entry((hop.router, hop.device));
        Arc::clone(limit.or_insert_with(|| Arc::new(Mutex::new(RateLimit::new()))))
    }
}

/// The router's end of a hidden flow.
#[derive(Debug)]
pub struct RouterEnd {
    /// One address of each IP version.
    addresses: [IpAddr; 2],
    /// Routers before it on the way, each of which has decremented the hop limit.
    before: u8,
    limit: Shared,
    recorder: Arc<Recorder>,
    flow: FlowId,
    answers: VecDeque<Departing<Frame>>,
}

impl RouterEnd {
    pub fn new(
        hop: &Hop,
        before: u8,
        limit: Shared,
        recorder: &Arc<Recorder>,
        flow: FlowId,
    ) -> Self {
        Self {
            addresses: [false, true].map(|is_v6| devices::address(hop.router, is_v6)),
            before,
            limit,
            recorder: Arc::clone(recorder),
            flow,
            answers: VecDeque::new(),
        }
    }
}

impl Host<Frame> for RouterEnd {
    fn on_packet(&mut self, now: Instant, packet: Arrived<'_, Frame>) {
        self.recorder.release((self.flow, Direction::Forward), now);
        let mut octets = frame::write(packet.transport, packet.ecn).into_owned();
        take_hops(&mut octets, self.before);
        let answer = match at_router(&octets, self.addresses) {
            Reaction::Answer(answer) => Some(answer),
            Reaction::Error(error) => {
                let mut limit = self.limit.lock().unwrap_or_else(PoisonError::into_inner);
                limit.allows(now).then_some(error)
            }
            Reaction::Silence => None,
        };
        self.answers
            .extend(answer.and_then(|answer| frame::departing(&answer)));
    }
    fn poll_transmit(&mut self, _now: Instant) -> Option<Departing<Frame>> {
        let answer = self.answers.pop_front()?;
        self.recorder.taken((self.flow, Direction::Reverse));
        Some(answer)
    }
}
