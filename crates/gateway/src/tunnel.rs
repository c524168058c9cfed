//! The tunnel as a state machine: datagrams and packets in, datagrams and packets out.

mod change;
mod choice;
mod handshakes;
mod hindrance;
mod homes;
mod lanes;
mod protection;
mod receiving;
mod sending;
mod spare;
mod stats;

pub use hindrance::Hindrance;
pub use stats::{ClassStats, Counters, PathStats, Stats};

use anabranch_core::{packet::Ecn, units::Duration};
use std::collections::VecDeque;

use crate::{
    blocks::Rebuilder,
    crypto::{Entropy, Identity, Keys},
    inner,
    order::Order,
    path::{BASE, Outcome, Path, Paths, Route, State, Usable},
    policy::{Role, Rule},
    pool::Pool,
    reception::Reception,
    sources::Sources,
    time::Instant,
    wire::{Control, OVERHEAD, PathId, Place},
};
use handshakes::Handshakes;
use lanes::Lanes;
use protection::Paces;

/// The largest number of handshake datagrams that wait to be sent.
const OUTBOX: usize = 64;
/// The minimum MTU of IPv6 (RFC 8200 §5).
const LEAST_MTU: usize = 1_280;

/// A path, as configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathConfig {
    /// Its number, the same at both ends.
    pub id: PathId,
    /// The route. An end that only answers learns it from data that arrives.
    pub route: Option<Route>,
    /// The role of the path.
    pub role: Role,
}

/// The configuration by an operator.
#[derive(Debug, Clone)]
pub struct Config {
    /// Keys.
    pub keys: Keys,
    /// The paths. Paths that only the other end configures may be missing.
    pub paths: Vec<PathConfig>,
    /// Permitted source addresses of the other end's packets.
    pub sources: Sources,
    /// The treatment of packets; packets without a matching rule are bulk.
    pub rules: Vec<Rule>,
    /// The time at [`Instant::START`] in nanoseconds, for stamps. It should not decrease from one
    /// start to the next.
    pub epoch: u64,
}

/// The destination of the datagram in the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// The path.
    pub path: PathId,
    /// The route.
    pub route: Route,
    /// The ECN field for its IP header.
    pub ecn: Ecn,
    /// Whether it probes the path MTU. It must not be a part of a batch: virtual links deliver
    /// batches whose parts exceed their MTU.
    pub is_mtu_probe: bool,
}

/// The reason why an inner packet was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is not one whole IP packet.
    #[error("not a whole IPv4 or IPv6 packet")]
    NotIp,
    /// No path delivers packets of this size. The sender must be notified of this MTU.
    #[error("the packet is larger than the tunnel's MTU, {0} octets")]
    TooBig(usize),
}

/// A copy of a packet that has just been sent.
#[derive(Debug)]
struct Copy {
    path: PathId,
    place: Place,
    packet: Vec<u8>,
}

/// Reused memory for the processing of one report or control message.
#[derive(Debug, Default)]
struct Scratch {
    outcome: Outcome,
    control: Control,
    content: Vec<u8>,
}

/// One end of a tunnel.
pub struct Tunnel {
    entropy: Box<dyn Entropy>,
    config: Config,
    handshakes: Handshakes,
    /// `None` if the shell has one for several tunnels.
    reception: Option<Box<Reception>>,
    paths: Paths,
    lanes: Lanes,
    /// The next number of each flow; empty before the first packet.
    numbers: Vec<u32>,
    paces: Paces,
    /// Whether the pace has held a packet back since the queue was last empty.
    is_held_back: bool,
    standing: choice::Standing,
    load: choice::Load,
    copy: Option<Copy>,
    pool: Pool,
    scratch: Scratch,
    order: Order,
    rebuilder: Rebuilder,
    outbox: VecDeque<(Transmit, Vec<u8>)>,
    /// The time at which acknowledgments of reports are due.
    acknowledge: Option<Instant>,
    /// The first observed difference of the two clocks in microseconds, to which delays are
    /// relative.
    clock_difference: Option<u32>,
    /// The time until which overflow paths carry packets, because all active ones are full.
    overflow: Option<Instant>,
    counters: Counters,
    now: Instant,
    /// Whether all actions due at this time are done, and nothing has arrived since.
    is_advanced: bool,
}

impl std::fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tunnel")
            .field("paths", &self.paths)
            .finish_non_exhaustive()
    }
}

impl Tunnel {
    /// An end that has just started, with its own reception.
    #[must_use]
    pub fn new(config: Config, entropy: Box<dyn Entropy>, now: Instant) -> Self {
        let peer = config.keys.peer;
        let identity = Identity::new(config.keys.private);
        let mut tunnel = Self::behind(&identity, config, entropy, now);
        let mut reception = Reception::new(identity, now, &mut tunnel.entropy);
        reception.insert(peer, 0);
        tunnel.reception = Some(Box::new(reception));
        tunnel
    }

    /// An end that has just started. Its shell has the reception of `identity`, the configured
    /// private key, and passes initiations to [`Self::handle_opened`] and [`Self::handle_copy`].
    #[must_use]
    pub fn behind(
        identity: &Identity,
        config: Config,
        mut entropy: Box<dyn Entropy>,
        now: Instant,
    ) -> Self {
        let seed = u64::from_be_bytes(entropy.draw());
        let handshakes = Handshakes::new(identity, &config, now, &mut entropy);
        let mut paths = Paths::default();
        for path in &config.paths {
            paths.get_or_insert_with(path.id, || Path::new(path.route, path.role));
        }
        Self {
            handshakes,
            reception: None,
            paths,
            lanes: Lanes::new(&config.rules, seed),
            numbers: Vec::new(),
            paces: Paces::default(),
            is_held_back: false,
            standing: choice::Standing::default(),
            load: choice::Load::default(),
            copy: None,
            pool: Pool::default(),
            scratch: Scratch::default(),
            order: Order::default(),
            rebuilder: Rebuilder::default(),
            outbox: VecDeque::new(),
            acknowledge: None,
            clock_difference: None,
            overflow: None,
            counters: Counters::default(),
            now,
            is_advanced: false,
            entropy,
            config,
        }
    }

    /// Takes an IP packet for the other end.
    ///
    /// # Errors
    /// [`Refused`] if it is not an IP packet, or too large.
    pub fn handle_inner(&mut self, mut packet: Vec<u8>, now: Instant) -> Result<(), Refused> {
        self.set_now(now);
        let summary = inner::read(&packet).ok_or(Refused::NotIp)?;
        let mtu = self.inner_mtu();
        // A larger packet than the tunnel's MTU may leave by the paths that deliver it.
        if packet.len() > self.largest() {
            return Err(Refused::TooBig(mtu));
        }
        inner::clamp_mss(&mut packet, &summary, mtu);
        self.counters.entered += 1;
        let (lane, flow) = self.lanes.classify(&summary);
        self.lanes
            .push(lane, flow, packet, self.now, &mut self.pool);
        Ok(())
    }

    /// The next datagram to send, written into `buffer`. Must be called until there is none.
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        self.advance(now);
        if let Some((transmit, datagram)) = self.outbox.pop_front() {
            buffer.clear();
            buffer.extend_from_slice(&datagram);
            self.pool.put(datagram);
            return Some(transmit);
        }
        self.next_datagram(buffer)
    }

    /// The next packet from the other end. Must be called until there is none.
    pub fn poll_deliver(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.set_now(now);
        self.order.advance(self.now);
        self.order.pop()
    }

    /// The next packet from the other end that waits for no other one. Unlike [`Self::poll_deliver`] it
    /// gives up no gap: the missing packet may wait for the shell.
    pub fn poll_ready(&mut self) -> Option<Vec<u8>> {
        self.order.pop()
    }

    /// An empty buffer for a packet to [`Self::handle_inner`].
    #[must_use]
    pub fn buffer(&mut self) -> Vec<u8> {
        self.pool.take()
    }

    /// Takes back a buffer from [`Self::poll_deliver`].
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        self.pool.put(buffer);
    }

    /// The time at which [`Self::poll_transmit`] and [`Self::poll_deliver`] must be called again if
    /// nothing arrives before.
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
        let up = paths
            .chain(self.control_timeout())
            .chain(self.pace_timeout());
        let up = up.chain(self.lanes.closes()).chain(self.spare_timeout());
        always.chain(up).min()
    }

    /// Handles the loss of the carrier of a path's interface.
    pub fn on_carrier_loss(&mut self, id: PathId, now: Instant) {
        self.set_now(now);
        self.is_advanced = false;
        if let Some(path) = self.paths.get_mut(id) {
            path.is_down = true;
            path.liveness.die(self.now);
            path.rate.clear_flight();
        }
    }

    /// The tunnel's MTU: packets of this size fit each path that carries packets now. With the
    /// largest path's MTU, full segments could use only that path. A path whose search has not
    /// ended, or that carries no packet of IPv6's minimum MTU, counts only if there is no other.
    #[must_use]
    pub fn inner_mtu(&self) -> usize {
        let carries = |path: &&Path| {
            let usable = path.liveness.usable();
            let is_used = usable == Some(Usable::Overflow) || !path.liveness.is_spare();
            usable.is_some() && is_used && path.mtu.is_complete()
        };
        let found = || {
            let paths = self.paths.values().filter(carries);
            paths.map(|path| inside(path.mtu.size()))
        };
        let least = found().filter(|&mtu| mtu >= LEAST_MTU).min();
        least
            .or_else(|| found().min())
            .unwrap_or_else(|| self.largest())
    }

    /// The largest packet that any path delivers.
    fn largest(&self) -> usize {
        let usable = self
            .paths
            .values()
            .filter(|path| path.liveness.usable().is_some());
        inside(usable.map(|path| path.mtu.size()).max().unwrap_or(BASE))
    }

    /// Whether there is a session, and a path that delivers.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.handshakes.is_up() && self.tier(0).is_some()
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Counters and the state of each path.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats::of(self)
    }

    /// The state of each path, by number.
    pub fn states(&self) -> impl Iterator<Item = (PathId, State)> {
        let paths = self.paths.iter();
        paths.map(|(id, path)| (id, path.liveness.state()))
    }

    /// The route of a path's datagrams.
    #[must_use]
    pub fn route(&self, id: PathId) -> Option<Route> {
        self.paths.get(id)?.route
    }

    fn path_timeout(path: &Path) -> Option<Instant> {
        path.route?;
        let (late, dead) = (path.round_trip.late(), path.round_trip.dead());
        let mtu = path.mtu.probe_at().filter(|_| may_probe_mtu(path));
        let times = path.liveness.timeout(late, dead).into_iter().chain(mtu);
        times.chain([path.liveness.probe_at()]).min()
    }

    fn has_route(&self) -> bool {
        self.paths.values().any(|path| path.route.is_some())
    }

    /// Whether this end should begin a handshake because no path delivers: the other end may have
    /// restarted.
    fn needs_handshake(&self) -> bool {
        self.paths
            .values()
            .all(|path| path.liveness.is_dead() || path.route.is_none())
    }

    fn set_now(&mut self, now: Instant) {
        if now > self.now {
            self.now = now;
            self.is_advanced = false;
        }
    }

    fn advance(&mut self, now: Instant) {
        self.set_now(now);
        if self.is_advanced {
            return;
        }
        self.is_advanced = true;
        let now = self.now;
        self.order.advance(now);
        self.spare_paths();
        self.advance_handshakes();
        if !self.handshakes.is_up() {
            return;
        }
        for (id, path) in self
            .paths
            .iter_mut()
            .filter(|(_, path)| path.route.is_some())
        {
            if !path.liveness.is_spare() || !path.mtu.is_complete() {
                path.mtu.advance(now);
            }
            let (late, dead) = (path.round_trip.late(), path.round_trip.dead());
            let is_worse = path.liveness.advance(now, late, dead);
            // One change may make another due.
            self.is_advanced &= !is_worse;
            if is_worse && path.liveness.is_dead() {
                path.rate.clear_flight();
                // The other end may be at its configured address again.
                let configured = self.config.paths.iter().find(|path| path.id == id);
                if let Some(route) = configured
                    .and_then(|path| path.route)
                    .filter(|&route| path.route != Some(route))
                {
                    path.move_to(route);
                }
            }
        }
        self.close_blocks();
        self.rescue();
        self.schedule_control();
    }

    /// Retransmits packets outstanding on paths that may be dead, over the other paths.
    fn rescue(&mut self) {
        if !self.paths.values().any(|path| path.liveness.is_well()) {
            return;
        }
        for path in self.paths.values_mut() {
            if path.liveness.is_well() || path.ledger.kept_octets() == 0 {
                continue;
            }
            for kept in path.ledger.take_kept(self.now) {
                self.lanes.repair(kept, &mut self.pool);
            }
        }
    }
}

fn may_probe_mtu(path: &Path) -> bool {
    path.liveness.is_well() && (!path.liveness.is_spare() || !path.mtu.is_complete())
}

/// The packet that a datagram of this size carries. The code of repair packets works on pairs of
/// octets.
const fn inside(datagram: usize) -> usize {
    (datagram - OVERHEAD) & !1
}

/// Whether a time has passed.
fn is_due(time: Option<Instant>, now: Instant) -> bool {
    time.is_some_and(|time| time <= now)
}

/// The time for which acknowledgments of reports wait for more.
const ACKNOWLEDGE: Duration = Duration::from_millis(20);
