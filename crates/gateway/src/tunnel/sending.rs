//! Scheduling of datagrams: control messages first, then probes, then packets on the path where
//! they arrive first.

use super::{
    Copy, OUTBOX, Transmit, Tunnel, is_due,
    lanes::{Lanes, Staged},
    may_probe_mtu,
};
use crate::{
    inner::{self, FLOWS},
    path::{BASE, Kept, Path, RateControl, Sent, Train, Usable},
    policy::{Class, Role},
    time::Instant,
    wire::{Entry, Inner, Kind, OVERHEAD, PathId, Place},
};
use anabranch_core::{packet::Ecn, units::Duration};

/// With this many packets outstanding, a probe follows the last one to detect losses at the end.
const BURST: usize = 4;

/// The share of a path's rate for control messages: half of RTCP's (RFC 3550 §6.2). On a fast path
/// it is never reached.
const CONTROL: f64 = 0.025;
/// Octets of the IPv4 and UDP headers below a datagram.
const BELOW: usize = 28;

/// The content of a datagram.
enum Content<'a> {
    Octets(&'a [u8]),
    /// A packet that can be retransmitted.
    Kept(Kept),
    /// A repair packet of a lane.
    Repair(u8, &'a [u8]),
}

impl Content<'_> {
    fn octets(&self) -> &[u8] {
        match self {
            Self::Octets(octets) | Self::Repair(_, octets) => octets,
            Self::Kept(kept) => &kept.packet,
        }
    }

    /// The ECN field of a datagram: that of its packet (RFC 6040 §4.1, normal mode). Datagrams
    /// without a packet must not be marked.
    fn ecn(&self, kind: Kind) -> Ecn {
        match kind {
            Kind::Packet(_) | Kind::Protected { .. } => inner::ecn(self.octets()),
            Kind::Control | Kind::Probe | Kind::MtuProbe | Kind::Repair(_) => Ecn::NotEct,
        }
    }

    const fn repairs(&self, kind: Kind) -> Option<(u8, u16)> {
        match (self, kind) {
            (Self::Repair(lane, _), Kind::Repair(repair)) => Some((*lane, repair.block)),
            _ => None,
        }
    }

    fn kept(self) -> Option<Kept> {
        match self {
            Self::Octets(_) | Self::Repair(..) => None,
            Self::Kept(kept) => Some(kept),
        }
    }
}

/// The largest backlog set aside for a path: this many seconds of its rate, or this many octets,
/// whichever is more.
const ASIDE_S: f64 = 0.002;
const LEAST_ASIDE: f64 = 3_000.0;
/// CoDel's target for packets that wait for the only path or for paths of equal delay (RFC 8289
/// §4.4).
const TARGET: Duration = Duration::from_millis(5);
impl Tunnel {
    pub(super) fn next_datagram(&mut self, buffer: &mut Vec<u8>) -> Option<Transmit> {
        if !self.handshakes.is_up() {
            return None;
        }
        if let Some(id) = self.path_where(|path, _| path.confirm_due) {
            self.paths.get_mut(id)?.confirm_due = false;
            if self.handshakes.has_fresh() {
                return self.send_under(true, id, Kind::Probe, Content::Octets(&[]), buffer);
            }
        }
        if let Some(id) = self.path_where(|path, _| path.control_due) {
            return self.send_control(id, buffer);
        }
        if let Some(id) = self.path_where(|path, now| path.liveness.probe_at() <= now) {
            return self.send(id, Kind::Probe, Content::Octets(&[]), buffer);
        }
        if let Some(id) =
            self.path_where(|path, now| may_probe_mtu(path) && path.mtu.probe(now).is_some())
        {
            return self.send_mtu_probe(id, buffer);
        }
        if let Some(transmit) = self.send_train(buffer) {
            return Some(transmit);
        }
        self.send_packet(buffer)
    }

    /// Sends the next datagram of a train, on a path that carries nothing else.
    fn send_train(&mut self, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let id = self.path_where(|path, now| {
            path.train.is_under_way()
                || path.liveness.is_well()
                    && path.roles == [Role::Active; 2]
                    && path.rate.is_unused()
                    && path.train.is_due(RateControl::ENOUGH, now)
        })?;
        let path = self.paths.get_mut(id)?;
        if !path.train.is_under_way() {
            path.train.begin(self.now);
        }
        let mut padding = self.pool.take();
        padding.resize(Train::OCTETS - OVERHEAD, 0);
        let transmit = self.send(id, Kind::MtuProbe, Content::Octets(&padding), buffer);
        self.pool.put(padding);
        transmit
    }

    fn path_where(&self, is_it: impl Fn(&Path, Instant) -> bool) -> Option<PathId> {
        let mut paths = self.paths.iter().filter(|(_, path)| path.route.is_some());
        paths
            .find(|(_, path)| is_it(path, self.now))
            .map(|(id, _)| id)
    }

    /// Seals a message for a path under the current session and records it there.
    fn send(
        &mut self,
        id: PathId,
        kind: Kind,
        content: Content<'_>,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        self.send_under(false, id, kind, content, buffer)
    }

    /// As [`Self::send`]; with `confirms` under the session that is to be confirmed.
    fn send_under(
        &mut self,
        confirms: bool,
        id: PathId,
        kind: Kind,
        content: Content<'_>,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let now = self.now;
        let path = self.paths.get_mut(id)?;
        let route = path.route?;
        let inner = Inner { kind };
        let number = self
            .handshakes
            .seal(confirms, id, inner, content.octets(), buffer)?;
        let expects_report = matches!(
            kind,
            Kind::Packet(_) | Kind::Protected { .. } | Kind::Repair(_) | Kind::Probe
        );
        let ecn = content.ecn(kind);
        let octets = if kind == Kind::Control {
            0
        } else {
            buffer.len()
        };
        let sent = Sent {
            number,
            at: now,
            octets,
            in_flight: path.rate.in_flight(),
            expects_report,
            repairs: content.repairs(kind),
            kept: content.kept(),
        };
        let uncounted = path.ledger.add(sent, &mut self.pool);
        path.rate.on_unknown(uncounted);
        path.rate.on_sent(octets, self.is_held_back, now);
        let is_mtu_probe = kind == Kind::MtuProbe && octets > BASE;
        if is_mtu_probe {
            path.mtu
                .on_probe(number, octets, now, path.round_trip.late());
        } else if kind == Kind::MtuProbe {
            path.train.on_sent(number);
        }
        if expects_report {
            let is_burst = kind != Kind::Probe && path.ledger.len() >= BURST;
            // The estimate may grow until the report.
            let window = path.round_trip.reordering();
            // The next packet leaves no earlier than the pace allows.
            let pace = path.rate.paced_until().saturating_since(now);
            let tail = is_burst.then(|| pace + window + window / 4);
            path.liveness.on_sent(now, tail);
        }
        self.counters.datagrams += 1;
        Some(Transmit {
            path: id,
            route,
            ecn,
            is_mtu_probe,
        })
    }

    /// Schedules control messages on every live path if a report or acknowledgments are due.
    pub(super) fn schedule_control(&mut self) {
        let now = self.now;
        if !is_due(self.control_timeout(), now) {
            return;
        }
        self.acknowledge = None;
        let is_any_live = self.is_any_live();
        let is_overdue = self.is_report_overdue();
        let is_unanswered = is_due(self.unanswered_at(), now);
        for path in self.paths.values_mut() {
            path.received.on_control(now);
            let is_open = is_overdue || path.control_after <= now;
            path.control_due = is_open && path.carries_control(is_any_live, is_unanswered);
        }
    }

    /// The time at which control messages are due: if a report or acknowledgments are, and the
    /// share of a path allows it.
    pub(super) fn control_timeout(&self) -> Option<Instant> {
        let reports = self.paths.values().filter_map(|path| path.received.due());
        let due = reports.chain(self.acknowledge).min()?;
        if self.is_report_overdue() {
            return Some(due);
        }
        let is_any_live = self.is_any_live();
        let open = |is_unanswered| {
            let paths = self.paths.values();
            let paths = paths.filter(move |path| path.carries_control(is_any_live, is_unanswered));
            paths.map(|path| path.control_after).min()
        };
        let now = open(false).map_or(due, |open| open.max(due));
        let unanswered = self.unanswered_at().zip(open(true));
        let later = unanswered.map(|(at, open)| at.max(open).max(due));
        Some(later.map_or(now, |later| later.min(now)))
    }

    /// The time at which the paths that carry reports count as not delivering them: reports were
    /// sent, and none was acknowledged in the time after which a path's report is late. The other end
    /// would take all paths for dead soon, and stop sending.
    fn unanswered_at(&self) -> Option<Instant> {
        let paths = self.paths.values();
        let since = paths
            .filter_map(|path| path.received.unanswered_since())
            .min()?;
        let paths = self.paths.values();
        let used = paths.filter(|path| path.carries_control(true, false));
        let late = used.map(|path| path.round_trip.late()).max()?;
        Some(since + late)
    }

    fn is_report_overdue(&self) -> bool {
        self.paths.values().any(|path| path.received.is_overdue())
    }

    fn is_any_live(&self) -> bool {
        let mut paths = self.paths.values();
        paths.any(|path| path.liveness.usable().is_some())
    }

    /// Writes reports before the shell polls for datagrams, because it may have many more arrivals
    /// to deliver first.
    pub(super) fn report_early(&mut self) {
        self.schedule_control();
        while let Some(id) = self.path_where(|path, _| path.control_due) {
            let mut datagram = self.pool.take();
            match self.send_control(id, &mut datagram) {
                Some(transmit) if self.outbox.len() < OUTBOX => {
                    self.outbox.push_back((transmit, datagram));
                }
                // A report is repeated until it is acknowledged.
                _ => {}
            }
        }
    }

    fn send_control(&mut self, id: PathId, buffer: &mut Vec<u8>) -> Option<Transmit> {
        self.paths.get_mut(id)?.control_due = false;
        let mut scratch = std::mem::take(&mut self.scratch);
        let entries = self.paths.iter().filter_map(|(path, state)| {
            let report = state.received.report(self.now);
            let acknowledged = state.peer_report;
            let role = state.roles[0];
            let is_any = report.is_some() || acknowledged.is_some() || role != Role::Active;
            is_any.then_some(Entry {
                path,
                role,
                report,
                acknowledged,
            })
        });
        scratch.control.entries.clear();
        scratch.control.entries.extend(entries);
        scratch.content.clear();
        scratch.control.encode(&mut scratch.content);
        let transmit = self.send(id, Kind::Control, Content::Octets(&scratch.content), buffer);
        if let Some(path) = self.paths.get_mut(id) {
            let octets = (buffer.len() + BELOW) as f64;
            let wait_s = octets / (CONTROL * path.rate.rate());
            path.control_after = self.now + Duration::from_secs_f64(wait_s);
        }
        self.scratch = scratch;
        transmit
    }

    fn send_mtu_probe(&mut self, id: PathId, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let size = self.paths.get(id)?.mtu.probe(self.now)?;
        let mut padding = self.pool.take();
        padding.resize(size.saturating_sub(OVERHEAD), 0);
        let transmit = self.send(id, Kind::MtuProbe, Content::Octets(&padding), buffer);
        self.pool.put(padding);
        transmit
    }

    fn send_packet(&mut self, buffer: &mut Vec<u8>) -> Option<Transmit> {
        if let Some(copy) = self.copy.take() {
            self.counters.copies += 1;
            let kind = Kind::Packet(copy.place);
            let transmit = self.send(copy.path, kind, Content::Octets(&copy.packet), buffer);
            self.pool.put(copy.packet);
            if transmit.is_some() {
                return transmit;
            }
        }
        self.observe_backlog();
        self.judge_trials();
        let mut tried = 0;
        while let Some(lane) = self.lanes.next(tried) {
            tried |= 1 << lane;
            if let Some(transmit) = self.send_from(lane, buffer) {
                return Some(transmit);
            }
        }
        self.is_held_back = self.tier(0).is_some() && self.lanes.next(0).is_some();
        if self.is_held_back {
            for path in self.paths.values_mut() {
                path.rate.on_wait(path.round_trip.feedback(), self.now);
            }
        }
        None
    }

    /// Sends the next repair packet of a lane, if it has one.
    fn send_repair(&mut self, number: u8, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let octets = self.lanes.get(number)?.protector.next_octets()? + OVERHEAD;
        let id = self
            .tier(octets)
            .and_then(|tier| self.choose(number, octets, tier))?;
        let (repair, content) = self.lanes.get_mut(number)?.protector.pop()?;
        self.counters.repairs += 1;
        self.lanes.on_sent(number, octets, self.now);
        let content_of = Content::Repair(number, &content);
        let transmit = self.send(id, Kind::Repair(repair), content_of, buffer);
        self.pool.put(content);
        transmit
    }

    fn send_from(&mut self, number: u8, buffer: &mut Vec<u8>) -> Option<Transmit> {
        if let Some(transmit) = self.send_repair(number, buffer) {
            return Some(transmit);
        }
        if let Some(transmit) = self.send_aside(number, buffer) {
            return Some(transmit);
        }
        loop {
            let octets = self.stage(number)?;
            let Some(tier) = self.tier(octets) else {
                // A path may come back, or no path accepts packets of this size any more.
                self.tier(0)?;
                self.counters.unsendable += 1;
                let staged = self.lanes.get_mut(number)?.staged.take()?;
                self.pool.put(staged.kept.packet);
                continue;
            };
            let is_repair = self.lanes.get(number)?.staged.as_ref()?.is_repair;
            let mut id = if is_repair {
                self.choose_for_repair(number, octets, tier)?
            } else {
                self.choose(number, octets, tier)?
            };
            if let Some(home) = self.keep_home(number, octets, tier, id) {
                id = home;
                if !self.paths.get(home).is_some_and(|path| self.is_ready(path)) {
                    let lane = self.lanes.get_mut(number)?;
                    let kept = lane.staged.take()?.kept;
                    lane.homes.set_aside(home, kept);
                    continue;
                }
            }
            if !is_repair {
                self.on_choice(number, id, octets, tier);
            }
            let staged = self.lanes.get_mut(number)?.staged.take()?;
            return self.send_staged(number, id, staged, buffer);
        }
    }

    fn send_staged(
        &mut self,
        number: u8,
        id: PathId,
        staged: Staged,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let octets = staged.kept.packet.len() + OVERHEAD;
        let Staged {
            mut kept,
            is_repair,
        } = staged;
        kept.attempts += u8::from(is_repair);
        self.counters.retransmitted += u64::from(is_repair);
        self.lanes.on_sent(number, octets, self.now);
        if let Some(path) = self.paths.get_mut(id) {
            path.rate.on_use();
        }
        if !is_repair && let Some(path) = self.second_path(number, id, octets) {
            let packet = self.pool.copy(&kept.packet);
            self.copy = Some(Copy {
                path,
                place: kept.place,
                packet,
            });
        }
        if !is_repair {
            self.protect(&mut kept, octets);
        }
        let kind = kept.kind();
        self.send(id, kind, Content::Kept(kept), buffer)
    }

    /// Sends a packet that has waited for its path, if the path is ready.
    fn send_aside(&mut self, number: u8, buffer: &mut Vec<u8>) -> Option<Transmit> {
        while !self.lanes.get(number)?.homes.is_empty() {
            let (id, is_home) = self.due_aside(number)?;
            let lane = self.lanes.get_mut(number)?;
            if !is_home && lane.staged.is_some() {
                return None;
            }
            let kept = lane.homes.take_aside(id)?;
            let Some(kept) = lane.unless_old(kept, self.now, &mut self.pool) else {
                continue;
            };
            let staged = Staged {
                kept,
                is_repair: false,
            };
            if is_home {
                return self.send_staged(number, id, staged, buffer);
            }
            // The path no longer helps: the packet takes another.
            lane.homes.set(staged.kept.place.flow, None);
            lane.staged = Some(staged);
            return None;
        }
        None
    }

    /// A path for which packets wait that is ready for them, or (`false`) that no longer helps.
    fn due_aside(&self, number: u8) -> Option<(PathId, bool)> {
        let lane = self.lanes.get(number)?;
        lane.homes.waited_for().find_map(|(id, octets)| {
            let octets = octets + OVERHEAD;
            let tier = self.tier(octets)?;
            let path = self.of_tier(octets, tier).find(|&(other, _)| other == id);
            match path {
                Some((_, path)) if self.is_soon(path) && self.is_gain(path, octets, tier) => {
                    self.is_ready(path).then_some((id, true))
                }
                _ => Some((id, false)),
            }
        })
    }

    /// The path for which the next packet waits instead of taking `id`, which is ready: as few
    /// flows as possible use a slower path.
    fn keep_home(&mut self, number: u8, octets: usize, tier: Usable, id: PathId) -> Option<PathId> {
        let lane = self.lanes.get(number)?;
        let staged = lane.staged.as_ref()?;
        if lane.class != Class::Bulk || staged.is_repair || self.is_protected(number) {
            return None;
        }
        let flow = staged.kept.place.flow;
        let home = lane.homes.of(flow);
        let (fastest, fast) = self.lead(octets, tier)?;
        let has_room = |id: PathId, path: &Path| {
            !lane.homes.is_full()
                && self.is_soon(path)
                && (lane.homes.octets(id) as f64) < (ASIDE_S * path.rate.rate()).max(LEAST_ASIDE)
        };
        if home == Some(id) {
            return None;
        }
        if id == fastest || home.is_some() && home != Some(fastest) {
            let home = home?;
            let path = self.of_tier(octets, tier).find(|&(other, _)| other == home);
            if let Some((_, path)) = path
                && has_room(home, path)
                && self.is_gain(path, octets, tier)
            {
                return Some(home);
            }
            self.lanes.get_mut(number)?.homes.set(flow, None);
            return None;
        }
        let (_, slow) = self.of_tier(octets, tier).find(|&(other, _)| other == id)?;
        let all: f64 = self
            .of_tier(octets, tier)
            .map(|(_, path)| path.rate.rate())
            .sum();
        if all > slow.rate.rate() * lane.homes.flows() as f64 {
            return None;
        }
        if has_room(fastest, fast) && !lane.queue.is_empty() {
            return Some(fastest);
        }
        self.lanes.get_mut(number)?.homes.set(flow, Some(id));
        None
    }

    /// Prepares the next packet; returns its octets. Its number is assigned only now, so that a
    /// packet dropped in the queue leaves no gap.
    fn stage(&mut self, number: u8) -> Option<usize> {
        if let Some(Staged { kept, is_repair }) = self.lanes.get_mut(number)?.staged.take() {
            let lane = self.lanes.get_mut(number)?;
            let kept = lane.unless_old(kept, self.now, &mut self.pool);
            lane.staged = kept.map(|kept| Staged { kept, is_repair });
        }
        if self.lanes.get(number)?.staged.is_none() {
            let tier = self.tier(0)?;
            let target = TARGET + self.reach(number, tier) + self.few_packets(tier);
            let lane = self.lanes.get_mut(number)?;
            let repair = lane.take_repair(self.now, &mut self.pool);
            let is_repair = repair.is_some();
            let kept = if let Some(kept) = repair {
                kept
            } else {
                let age = lane.age();
                let (flow, packet, since) =
                    lane.queue.pop(target, age, self.now, &mut self.pool)?;
                lane.homes.on_packet(flow);
                if self.numbers.is_empty() {
                    self.numbers.resize(usize::from(FLOWS), 0);
                }
                let next = self.numbers.get_mut(usize::from(flow))?;
                let place = Place {
                    flow,
                    number: *next,
                };
                *next = next.wrapping_add(1);
                Kept {
                    place,
                    packet,
                    since,
                    attempts: 0,
                    lane: number,
                    part: None,
                }
            };
            lane.staged = Some(Staged { kept, is_repair });
        }
        let staged = self.lanes.get(number)?.staged.as_ref()?;
        Some(staged.kept.packet.len() + OVERHEAD)
    }

    /// Whether only the pace of a path delays its waiting packets, and only briefly. A path without
    /// reports may have died.
    pub(super) fn is_soon(&self, path: &Path) -> bool {
        let soon = self.now + Duration::from_secs_f64(2.0 * ASIDE_S);
        path.rate
            .ready(path.round_trip.feedback())
            .is_some_and(|ready| ready <= soon)
    }

    pub(super) fn is_ready(&self, path: &Path) -> bool {
        is_due(path.rate.ready(path.round_trip.feedback()), self.now)
    }

    /// The time at which the pace allows the next packet.
    pub(super) fn pace_timeout(&self) -> Option<Instant> {
        let lanes = (0..Lanes::MOST).filter_map(|number| {
            let number = u8::try_from(number).ok()?;
            let lane = self.lanes.get(number).filter(|lane| !lane.is_empty())?;
            let octets = lane.next_octets();
            let ready = |path: &Path| path.rate.ready(path.round_trip.feedback());
            if let Some((_, path)) = self.pinned(number, octets) {
                return ready(path).filter(|&ready| ready > self.now);
            }
            let tier = self.tier(octets)?;
            let paths = self.of_tier(octets, tier);
            let paths = paths.chain(self.relieving(octets, tier));
            let times = paths.filter_map(|(_, path)| ready(path));
            times.filter(|&ready| ready > self.now).min()
        });
        lanes.min()
    }
}
