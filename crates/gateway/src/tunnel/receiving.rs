//! Processing of datagrams that arrive.

use anabranch_core::{packet::Ecn, units::Duration};

use super::{ACKNOWLEDGE, Tunnel};
use crate::{
    blocks::NearPlace,
    inner,
    path::{Path, Route},
    policy::Role,
    time::Instant,
    wire::{Control, Entry, Header, Inner, Kind, Message, PathId, Place, Report},
};

impl Tunnel {
    /// Handles a datagram from `route`. It arrived at `arrived`; the time until `now` is its wait
    /// for the shell, which must not count as the path's delay. A datagram that is not authentic
    /// changes nothing.
    pub fn handle(&mut self, datagram: &mut [u8], route: Route, arrived: Instant, now: Instant) {
        self.handle_marked(datagram, (route, Ecn::NotEct), arrived, now);
    }

    /// As [`Self::handle`], for a datagram whose IP header had this ECN field.
    pub fn handle_marked(
        &mut self,
        datagram: &mut [u8],
        (route, ecn): (Route, Ecn),
        arrived: Instant,
        now: Instant,
    ) {
        self.set_now(now);
        self.is_advanced = false;
        let arrived = arrived.min(self.now);
        match Message::decode(datagram) {
            Ok(Message::Initiation(initiation)) => self.on_initiation(&initiation, route),
            Ok(Message::Response(response)) => self.on_response(&response),
            Ok(Message::CookieReply(reply)) => self.on_cookie_reply(&reply),
            Ok(Message::StampReply(reply)) => self.on_stamp_reply(&reply),
            Ok(Message::Data(header)) => self.on_data(header, datagram, (route, ecn), arrived),
            Err(_) => self.counters.malformed += 1,
        }
    }

    fn on_data(
        &mut self,
        header: Header,
        datagram: &mut [u8],
        (route, ecn): (Route, Ecn),
        arrived: Instant,
    ) {
        let Some((session, is_unconfirmed)) = self.handshakes.session_of(header.receiver) else {
            self.counters.unauthentic += 1;
            return;
        };
        if !session.is_new(header) {
            self.counters.replayed += 1;
            return;
        }
        let Some(opened) = session.open(header, datagram) else {
            self.counters.unauthentic += 1;
            return;
        };
        if is_unconfirmed {
            self.confirm(header.receiver);
        }
        let now = self.now;
        let path = self
            .paths
            .get_or_insert_with(header.path, || Path::new(None, Role::Active));
        path.is_down = false;
        let is_newest = path
            .received
            .highest()
            .is_none_or(|highest| header.number > highest);
        if path.route != Some(route) && (is_newest || path.route.is_none()) {
            path.move_to(route);
            path.liveness.probe_now(now);
        }
        let Ok((inner, content)) = Inner::decode(opened, header.block) else {
            self.counters.malformed += 1;
            return;
        };
        match inner.kind {
            Kind::Control => {
                path.received.note(header.number, arrived);
                let mut control = std::mem::take(&mut self.scratch.control);
                match control.read(content) {
                    Ok(()) => self.on_control(&control, arrived),
                    Err(_) => self.counters.malformed += 1,
                }
                self.scratch.control = control;
            }
            Kind::Probe | Kind::MtuProbe => path.received.on_arrival(header.number, arrived, now),
            Kind::Packet(place) => {
                path.received.on_arrival(header.number, arrived, now);
                let is_overdue = path.received.is_overdue();
                self.on_packet(place, content, ecn);
                if is_overdue {
                    self.report_early();
                }
            }
            Kind::Protected {
                place,
                block,
                index,
            } => {
                path.received.on_arrival(header.number, arrived, now);
                let is_overdue = path.received.is_overdue();
                let pool = &mut self.pool;
                let rebuilt = self
                    .rebuilder
                    .on_source((block, index), place, content, now, pool);
                self.on_packet(place, content, ecn);
                self.on_rebuilt(rebuilt);
                if is_overdue {
                    self.report_early();
                }
            }
            Kind::Repair(repair) => {
                path.received.on_arrival(header.number, arrived, now);
                let is_overdue = path.received.is_overdue();
                let pool = &mut self.pool;
                let rebuilt = self.rebuilder.on_repair(repair, content, now, pool);
                self.on_rebuilt(rebuilt);
                if is_overdue {
                    self.report_early();
                }
            }
        }
    }

    fn on_rebuilt(&mut self, rebuilt: Vec<(NearPlace, Vec<u8>)>) {
        for (near, packet) in rebuilt {
            let place = Place {
                flow: near.flow,
                number: self.order.near(near),
            };
            self.counters.rebuilt += 1;
            // The ECN field of the lost datagram is unknown.
            self.on_packet(place, &packet, Ecn::NotEct);
        }
    }

    /// Handles a packet of a flow; an empty one is lost for good.
    fn on_packet(&mut self, place: Place, packet: &[u8], outer: Ecn) {
        if packet.is_empty() {
            return self
                .order
                .on_packet(place, packet, self.now, &mut self.pool);
        }
        let Some(summary) = inner::read(packet) else {
            self.counters.malformed += 1;
            return;
        };
        if !self.config.sources.contains(summary.source) {
            self.counters.foreign_sources += 1;
            return;
        }
        let before = inner::ecn(packet);
        let merged = inner::decapsulated(before, outer);
        if merged == Some(before) {
            let pool = &mut self.pool;
            return self.order.on_packet(place, packet, self.now, pool);
        }
        let mut changed = self.pool.copy(packet);
        match merged {
            Some(ecn) => anabranch_wire::set_ecn(&mut changed, ecn),
            // Its flow must not wait for it.
            None => changed.clear(),
        }
        let pool = &mut self.pool;
        self.order.on_packet(place, &changed, self.now, pool);
        pool.put(changed);
    }

    fn on_control(&mut self, control: &Control, arrived: Instant) {
        for entry in &control.entries {
            self.on_entry(entry, arrived);
        }
        let paths = self.paths.values().filter(|path| path.liveness.is_well());
        let late = paths.map(|path| path.round_trip.late()).max();
        self.order.set_repair_time(late.unwrap_or(Duration::ZERO));
    }

    fn on_entry(&mut self, entry: &Entry, arrived: Instant) {
        let Some(path) = self.paths.get_mut(entry.path) else {
            return;
        };
        path.on_peer_role(entry.role);
        if let Some(version) = entry.acknowledged {
            path.received.on_acknowledged(version, self.now);
        }
        let Some(report) = entry.report else { return };
        self.acknowledge = self.acknowledge.or(Some(self.now + ACKNOWLEDGE));
        let is_old = |before: u16| report.version.wrapping_sub(before) > u16::MAX / 2;
        if path.peer_report.is_some_and(is_old) {
            return;
        }
        path.peer_report = Some(report.version);
        self.on_report(entry.path, &report, arrived);
    }

    fn on_report(&mut self, id: PathId, report: &Report, arrived: Instant) {
        let now = self.now;
        let Some(path) = self.paths.get_mut(id) else {
            return;
        };
        let outcome = &mut self.scratch.outcome;
        path.ledger
            .on_report(report, path.round_trip.reordering(), outcome);
        if let Some((sent, _)) = outcome.advanced {
            let held = Duration::from_micros(u64::from(report.held));
            path.round_trip
                .sample(arrived.saturating_since(sent).saturating_sub(held));
            path.round_trip.on_feedback(now.saturating_since(sent));
            let since = path.liveness.waiting().unwrap_or(sent);
            path.round_trip.on_silence(now.saturating_since(since));
            // A path that was removed or reloaded may still be reported, but not be used.
            if path.route.is_some() && path.liveness.on_report(now, sent, path.ledger.waiting()) {
                path.rate.resume(now);
            }
        }
        let liveness = &path.liveness;
        if let Some((sent, in_flight)) = outcome.advanced
            && !liveness.is_of_outage(sent)
        {
            let delay = relative_delay(report.arrived, sent, &mut self.clock_difference);
            path.rate.on_delay(report.arrived, delay, in_flight, now);
            let newest = outcome.arrived.last().map_or(0, |newest| newest.octets);
            let seen = path.train.on_delay(report.highest, sent, newest, delay);
            if let Some(rate) = seen {
                path.rate.on_first_estimate(rate);
            }
        }
        for sent in outcome.arrived.drain(..) {
            if liveness.is_of_outage(sent.at) {
                path.rate.on_unknown(sent.octets);
            } else {
                path.loss.on_arrived(1);
                path.rate.on_arrived(sent.octets);
            }
            path.mtu.on_arrived(sent.number, sent.octets, now);
            if let Some(kept) = sent.kept {
                self.pool.put(kept.packet);
            }
        }
        path.rate.on_spurious(outcome.spurious);
        for sent in outcome.lost.drain(..) {
            let is_of_outage = liveness.is_of_outage(sent.at);
            if !is_of_outage {
                path.loss.on_lost(sent.number);
            }
            if sent.expects_report && !is_of_outage {
                path.rate.on_lost(sent.octets);
                path.mtu.on_lost(sent.number, sent.octets, now);
            } else {
                path.rate.on_unknown(sent.octets);
            }
            if let Some((lane, block)) = sent.repairs {
                self.lanes.on_repair_lost(lane, block, &mut self.pool);
            }
            match sent.kept {
                Some(kept) if kept.part.is_some() => {
                    self.lanes.on_protected_lost(kept, &mut self.pool);
                }
                Some(mut kept) => {
                    // The inner sender must notice congestion (RFC 9265 §3), and at once: one loss
                    // per round, for which the receiver does not wait.
                    if path.rate.take_signal() {
                        kept.packet.clear();
                    }
                    self.lanes.repair(kept, &mut self.pool);
                }
                None => {}
            }
        }
        if path.rate.on_report(path.round_trip.srtt(), arrived) {
            path.loss.on_round(path.rate.is_congested());
        }
    }
}

/// The one-way delay in seconds, relative to the first one, because the clocks are not
/// synchronized.
fn relative_delay(arrived: u32, sent: Instant, reference: &mut Option<u32>) -> f64 {
    let difference = arrived.wrapping_sub(sent.as_wrapped_micros());
    let reference = *reference.get_or_insert(difference);
    f64::from(difference.wrapping_sub(reference).cast_signed()) * 1e-6
}
