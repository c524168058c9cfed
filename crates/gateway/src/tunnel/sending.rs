//! Datagrams that leave: control messages first, then probes, then packets on the path where they arrive first.

use anabranch_core::units::Instant;

use super::{OUTBOX, Staged, Transmit, Tunnel, is_due, may_probe_mtu};
use crate::{
    path::{Kept, Path, Sent, Usable},
    wire::{Control, Entry, HEADER, INNER, Inner, Kind, OVERHEAD, PathId, Place},
};

impl Tunnel {
    pub(super) fn next_datagram(&mut self, buffer: &mut Vec<u8>) -> Option<Transmit> {
        if !self.handshakes.is_up() {
            return None;
        }
        if let Some(id) = self.path_where(|path, _| path.control_due) {
            return self.send_control(id, buffer);
        }
        if let Some(id) = self.path_where(|path, now| path.liveness.probe_at() <= now) {
            return self.send(id, Kind::Probe, &[], None, buffer);
        }
        if let Some(id) =
            self.path_where(|path, now| may_probe_mtu(path) && path.mtu.probe(now).is_some())
        {
            return self.send_mtu_probe(id, buffer);
        }
        self.send_packet(buffer)
    }

    fn path_where(&self, is_it: impl Fn(&Path, Instant) -> bool) -> Option<PathId> {
        let mut paths = self.paths.iter().filter(|(_, path)| path.route.is_some());
        paths
            .find(|(_, path)| is_it(path, self.now))
            .map(|(&id, _)| id)
    }

    /// Seals a message for a path and counts it there.
    fn send(
        &mut self,
        id: PathId,
        kind: Kind,
        content: &[u8],
        kept: Option<Kept>,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let now = self.now;
        let path = self.paths.get_mut(&id)?;
        let route = path.route?;
        let number = self
            .handshakes
            .current()?
            .seal(id, Inner { kind }, content, buffer)?;
        let expects_report = matches!(kind, Kind::Packet(_) | Kind::Probe);
        let octets = if kind == Kind::Control {
            0
        } else {
            buffer.len()
        };
        let uncounted = path.ledger.add(Sent {
            number,
            at: now,
            octets,
            expects_report,
            kept,
        });
        path.rate.on_unknown(uncounted);
        path.rate.on_sent(octets, self.is_held_back, now);
        if kind == Kind::MtuProbe {
            path.mtu
                .on_probe(number, octets, now, path.round_trip.late());
        }
        if expects_report {
            path.liveness.on_sent(now);
        }
        self.counters.datagrams += 1;
        Some(Transmit { path: id, route })
    }

    /// Has control messages sent on every live path if a report or acknowledgments are due.
    pub(super) fn schedule_control(&mut self) {
        let now = self.now;
        let is_report_due = self
            .paths
            .values()
            .any(|path| is_due(path.received.due(), now));
        if !is_report_due && !is_due(self.acknowledge, now) {
            return;
        }
        self.acknowledge = None;
        let is_any_live = self
            .paths
            .values()
            .any(|path| path.liveness.usable().is_some());
        for path in self.paths.values_mut() {
            path.received.on_control(now);
            path.control_due =
                path.route.is_some() && (!is_any_live || path.liveness.usable().is_some());
        }
    }

    /// Writes reports before the shell asks for datagrams, as it may have many more arrivals to hand over first.
    pub(super) fn report_early(&mut self) {
        self.schedule_control();
        while let Some(id) = self.path_where(|path, _| path.control_due) {
            let mut datagram = Vec::new();
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
        self.paths.get_mut(&id)?.control_due = false;
        let entries = self.paths.iter().filter_map(|(&path, state)| {
            let report = state.received.report(self.now);
            let acknowledged = state.peer_report;
            (report.is_some() || acknowledged.is_some()).then_some(Entry {
                path,
                report,
                acknowledged,
            })
        });
        let control = Control {
            entries: entries.collect(),
        };
        let mut content = Vec::new();
        control.encode(&mut content);
        self.send(id, Kind::Control, &content, None, buffer)
    }

    fn send_mtu_probe(&mut self, id: PathId, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let size = self.paths.get(&id)?.mtu.probe(self.now)?;
        let padding = vec![0; size.saturating_sub(OVERHEAD)];
        self.send(id, Kind::MtuProbe, &padding, None, buffer)
    }

    fn send_packet(&mut self, buffer: &mut Vec<u8>) -> Option<Transmit> {
        loop {
            let Some(staged) = self.stage() else {
                self.is_held_back = false;
                return None;
            };
            let octets = staged.kept.packet.len() + OVERHEAD;
            let Some(tier) = self.tier(octets) else {
                // A path may come back, or none takes packets of this size any more.
                if self.tier(0).is_some() {
                    self.counters.unsendable += 1;
                    self.staged = None;
                    continue;
                }
                return None;
            };
            let Some(id) = self.choose(octets, tier) else {
                self.is_held_back = true;
                return None;
            };
            let Staged {
                mut kept,
                is_repair,
            } = self.staged.take()?;
            kept.attempts += u8::from(is_repair);
            self.counters.retransmitted += u64::from(is_repair);
            let packet = std::sync::Arc::clone(&kept.packet);
            return self.send(id, Kind::Packet(kept.place), &packet, Some(kept), buffer);
        }
    }

    /// The packet that leaves next. It takes its number only now, so that one dropped in the queue leaves no gap.
    fn stage(&mut self) -> Option<&Staged> {
        if self.staged.is_none() {
            self.tier(0)?;
            self.staged = if let Some(kept) = self.repairs.pop_front() {
                Some(Staged {
                    kept,
                    is_repair: true,
                })
            } else {
                let (flow, packet) = self.queue.pop(self.now)?;
                let number = self.numbers.entry(flow).or_insert(0);
                let place = Place {
                    flow,
                    number: *number,
                };
                *number = number.wrapping_add(1);
                let kept = Kept {
                    place,
                    packet: packet.into(),
                    attempts: 0,
                };
                Some(Staged {
                    kept,
                    is_repair: false,
                })
            };
        }
        self.staged.as_ref()
    }

    /// The best kind of paths that take datagrams of this size.
    fn tier(&self, octets: usize) -> Option<Usable> {
        self.candidates(octets)
            .filter_map(|(_, path)| path.liveness.usable())
            .min()
    }

    fn candidates(&self, octets: usize) -> impl Iterator<Item = (PathId, &Path)> {
        let paths = self.paths.iter().map(|(&id, path)| (id, path));
        paths.filter(move |(_, path)| path.route.is_some() && path.mtu.size() >= octets)
    }

    /// The path of a kind on which the packet arrives first, if one is ready. A slower path helps only if the packet arrives before
    /// the last one of the backlog would on the fastest.
    fn choose(&self, octets: usize, tier: Usable) -> Option<PathId> {
        let delay = |path: &Path| path.rate.delay_s().unwrap_or(0.0);
        let mut paths: Vec<_> = self
            .candidates(octets)
            .filter(|(_, path)| path.liveness.usable() == Some(tier))
            .collect();
        paths.sort_by(|(_, a), (_, b)| delay(a).total_cmp(&delay(b)));
        let &(_, fastest) = paths.first()?;
        let backlog_s = (self.queue.octets() as f64 + octets as f64) / fastest.rate.rate();
        let is_gain = |path: &Path| delay(path) - delay(fastest) <= backlog_s;
        let is_ready = |path: &Path| is_due(path.rate.ready(path.round_trip.feedback()), self.now);
        let ready = paths
            .iter()
            .find(|(_, path)| is_ready(path) && is_gain(path));
        ready.map(|&(id, _)| id)
    }

    /// When the pace allows the next packet.
    pub(super) fn pace_timeout(&self) -> Option<Instant> {
        let octets = self
            .staged
            .as_ref()
            .map_or(HEADER + INNER, |staged| staged.kept.packet.len() + OVERHEAD);
        if self.staged.is_none() && self.queue.is_empty() && self.repairs.is_empty() {
            return None;
        }
        let tier = self.tier(octets)?;
        let paths = self
            .candidates(octets)
            .filter(|(_, path)| path.liveness.usable() == Some(tier));
        let ready = paths.filter_map(|(_, path)| path.rate.ready(path.round_trip.feedback()));
        ready.filter(|&ready| ready > self.now).min()
    }
}
