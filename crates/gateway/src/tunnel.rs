//! The tunnel as a state machine: datagrams and packets in, datagrams and packets out.

mod change;
mod handshakes;
mod receiving;
mod sending;
mod stats;

pub use stats::{Counters, PathStats, Stats};

use anabranch_core::units::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

use crate::{
    crypto::{Entropy, Keys},
    inner::{self, Prefix},
    order::Order,
    path::{BASE, Kept, Path, Route, Usable},
    queue::Queue,
    wire::{OVERHEAD, PathId},
};
use handshakes::Handshakes;

/// Datagrams of handshakes that wait to be sent, at most.
const OUTBOX: usize = 64;
/// Packets that wait to be retransmitted, at most.
const REPAIRS: usize = 512;

/// A path, as configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathConfig {
    /// Its number, the same at both ends.
    pub id: PathId,
    /// Where it goes. An end that only answers learns it from data that arrives.
    pub route: Option<Route>,
    /// It is used where no other path delivers.
    pub standby: bool,
}

/// What an operator configures.
#[derive(Debug, Clone)]
pub struct Config {
    /// Keys.
    pub keys: Keys,
    /// Paths. Those that the other end adds need not be here.
    pub paths: Vec<PathConfig>,
    /// Source addresses that the other end's packets may have; all if there are none here.
    pub sources: Vec<Prefix>,
}

/// A datagram to be sent: it is in the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// The path.
    pub path: PathId,
    /// Where it goes.
    pub route: Route,
}

/// Why an inner packet was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is not one whole IP packet.
    #[error("not a whole IPv4 or IPv6 packet")]
    NotIp,
    /// No path delivers packets of this size: the sender is to be told this MTU.
    #[error("the packet is larger than the tunnel's MTU, {0} octets")]
    TooBig(usize),
}

/// A packet that has a place in its flow and waits for its path.
#[derive(Debug, Clone)]
struct Staged {
    kept: Kept,
    is_repair: bool,
}

/// One end of a tunnel.
pub struct Tunnel {
    entropy: Box<dyn Entropy>,
    config: Config,
    handshakes: Handshakes,
    paths: BTreeMap<PathId, Path>,
    queue: Queue,
    /// The next number of each flow.
    numbers: BTreeMap<u16, u32>,
    staged: Option<Staged>,
    /// The pace has held a packet back since the queue was last empty.
    is_held_back: bool,
    repairs: VecDeque<Kept>,
    order: Order,
    outbox: VecDeque<(Transmit, Vec<u8>)>,
    /// When acknowledgments of reports are due.
    acknowledge: Option<Instant>,
    /// The first difference of the two clocks that was seen, in microseconds: delays are relative to it.
    clock_difference: Option<u32>,
    counters: Counters,
    now: Instant,
}

impl std::fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tunnel")
            .field("paths", &self.paths)
            .finish_non_exhaustive()
    }
}

impl Tunnel {
    /// An end that has just started.
    #[must_use]
    pub fn new(config: Config, mut entropy: Box<dyn Entropy>, now: Instant) -> Self {
        let seed = u64::from_be_bytes(entropy.draw());
        let handshakes = Handshakes::new(&config.keys, now, &mut entropy);
        let path = |path: &PathConfig| (path.id, Path::new(path.route, path.standby));
        Self {
            handshakes,
            paths: config.paths.iter().map(path).collect(),
            queue: Queue::new(seed),
            numbers: BTreeMap::new(),
            staged: None,
            is_held_back: false,
            repairs: VecDeque::new(),
            order: Order::default(),
            outbox: VecDeque::new(),
            acknowledge: None,
            clock_difference: None,
            counters: Counters::default(),
            now,
            entropy,
            config,
        }
    }

    /// Takes an IP packet that is to go to the other end.
    ///
    /// # Errors
    /// [`Refused`] where it is no IP packet or too large.
    pub fn handle_inner(&mut self, mut packet: Vec<u8>, now: Instant) -> Result<(), Refused> {
        self.now = self.now.max(now);
        let summary = inner::read(&packet).ok_or(Refused::NotIp)?;
        let mtu = self.inner_mtu();
        if packet.len() > mtu {
            return Err(Refused::TooBig(mtu));
        }
        inner::clamp_mss(&mut packet, &summary, mtu);
        self.counters.entered += 1;
        self.queue.push(summary.flow, packet, self.now);
        Ok(())
    }

    /// The next datagram to send, written into `buffer`. To be called until there is none.
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        self.advance(now);
        if let Some((transmit, datagram)) = self.outbox.pop_front() {
            buffer.clear();
            buffer.extend_from_slice(&datagram);
            return Some(transmit);
        }
        self.next_datagram(buffer)
    }

    /// The next packet from the other end. To be called until there is none.
    pub fn poll_deliver(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.now = self.now.max(now);
        self.order.advance(self.now);
        self.order.pop()
    }

    /// When to call [`Self::poll_transmit`] and [`Self::poll_deliver`] again, if nothing arrives until then.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let handshakes = self
            .handshakes
            .timeout(self.needs_handshake(), self.has_route());
        let always = handshakes.into_iter().chain(self.order.timeout());
        if !self.handshakes.is_up() {
            return always.min();
        }
        let paths = self.paths.values().filter_map(Self::path_timeout);
        let up = paths.chain(self.acknowledge).chain(self.pace_timeout());
        always.chain(up).min()
    }

    /// The interface of a path has lost its carrier.
    pub fn on_carrier_loss(&mut self, id: PathId, now: Instant) {
        self.now = self.now.max(now);
        if let Some(path) = self.paths.get_mut(&id) {
            path.liveness.die(self.now);
            path.rate.clear_flight();
        }
    }

    /// The largest packet that the tunnel takes.
    #[must_use]
    pub fn inner_mtu(&self) -> usize {
        let usable = self
            .paths
            .values()
            .filter(|path| path.liveness.usable().is_some());
        usable.map(|path| path.mtu.size()).max().unwrap_or(BASE) - OVERHEAD
    }

    /// Counters and the state of each path.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats::of(self)
    }

    fn path_timeout(path: &Path) -> Option<Instant> {
        path.route?;
        let (late, dead) = (path.round_trip.late(), path.round_trip.dead());
        let mtu = path.mtu.probe_at().filter(|_| may_probe_mtu(path));
        let times = [path.liveness.timeout(late, dead), path.received.due(), mtu];
        times
            .into_iter()
            .flatten()
            .chain([path.liveness.probe_at()])
            .min()
    }

    fn has_route(&self) -> bool {
        self.paths.values().any(|path| path.route.is_some())
    }

    /// Whether this end should begin a handshake because no path delivers: the other end may have restarted.
    fn needs_handshake(&self) -> bool {
        self.paths
            .values()
            .all(|path| path.liveness.is_dead() || path.route.is_none())
    }

    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
        let now = self.now;
        self.order.advance(now);
        self.advance_handshakes();
        if !self.handshakes.is_up() {
            return;
        }
        for (&id, path) in self
            .paths
            .iter_mut()
            .filter(|(_, path)| path.route.is_some())
        {
            path.mtu.advance(now);
            let (late, dead) = (path.round_trip.late(), path.round_trip.dead());
            if path.liveness.advance(now, late, dead) && path.liveness.is_dead() {
                path.rate.clear_flight();
                // The other end may have gone back to where it was configured.
                let configured = self.config.paths.iter().find(|path| path.id == id);
                if let Some(route) = configured
                    .and_then(|path| path.route)
                    .filter(|&route| path.route != Some(route))
                {
                    path.move_to(route);
                }
            }
        }
        self.rescue();
        self.schedule_control();
    }

    /// Retransmits what is outstanding on paths that may be dead over those that are not.
    fn rescue(&mut self) {
        let is_well = |path: &Path| {
            matches!(
                path.liveness.usable(),
                Some(Usable::Active | Usable::Standby)
            )
        };
        if !self.paths.values().any(is_well) {
            return;
        }
        for path in self.paths.values_mut() {
            if is_well(path) || path.ledger.kept_octets() == 0 {
                continue;
            }
            for kept in path.ledger.take_kept(self.now) {
                repair(&mut self.repairs, kept);
            }
        }
    }
}

/// Queues a packet for retransmission, unless there are too many or it was retransmitted often enough.
fn repair(repairs: &mut VecDeque<Kept>, kept: Kept) {
    const ATTEMPTS: u8 = 3;
    if kept.attempts < ATTEMPTS && repairs.len() < REPAIRS {
        repairs.push_back(kept);
    }
}

fn may_probe_mtu(path: &Path) -> bool {
    matches!(
        path.liveness.usable(),
        Some(Usable::Active | Usable::Standby)
    )
}

/// A time that has passed is one to act at now.
fn is_due(time: Option<Instant>, now: Instant) -> bool {
    time.is_some_and(|time| time <= now)
}

/// How long acknowledgments of reports wait for more.
const ACKNOWLEDGE: Duration = Duration::from_millis(20);
