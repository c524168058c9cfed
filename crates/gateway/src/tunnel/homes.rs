//! Assignment of flows to slower paths.
//!
//! A flow in order has the delay of the slowest path that carries some of its packets. If every one
//! of many flows is spread over all paths, each has that delay, and its sender needs a
//! proportionally larger window. Therefore as few flows as possible use a slower path, and the
//! others keep the delay of the fastest one.

use crate::{inner::FLOWS, path::Kept, wire::PathId};
use std::collections::VecDeque;

/// The largest number of packets that wait for their path. It is small because CoDel does not
/// control these packets.
const ASIDE: usize = 128;
/// The number of recent packets from which the active flows are counted.
const RECENT: usize = 256;

/// The flows of a lane that are assigned to a path, and packets that wait for their path.
#[derive(Debug, Default)]
pub(super) struct Homes {
    /// By flow; empty before the first packet.
    paths: Vec<Option<PathId>>,
    /// The flows of the most recent packets, and the number of these packets per flow.
    recent: VecDeque<u16>,
    packets: Vec<u16>,
    flows: usize,
    aside: VecDeque<(PathId, Kept)>,
}

impl Homes {
    /// The slower path to which a flow is assigned.
    pub(super) fn of(&self, flow: u16) -> Option<PathId> {
        self.paths.get(usize::from(flow)).copied().flatten()
    }

    /// Assigns a flow to a path, or to none.
    pub(super) fn set(&mut self, flow: u16, home: Option<PathId>) {
        if let Some(place) = self.paths.get_mut(usize::from(flow)) {
            *place = home;
        }
    }

    /// Records a packet of a flow that leaves the queue.
    pub(super) fn on_packet(&mut self, flow: u16) {
        if self.paths.is_empty() {
            let flows = usize::from(FLOWS);
            self.paths.resize(flows, None);
            self.packets.resize(flows, 0);
            self.recent.reserve_exact(RECENT);
            self.aside.reserve_exact(ASIDE);
        }
        if self.recent.len() >= RECENT
            && let Some(oldest) = self.recent.pop_front()
            && let Some(packets) = self.packets.get_mut(usize::from(oldest))
        {
            *packets -= 1;
            self.flows -= usize::from(*packets == 0);
        }
        if let Some(packets) = self.packets.get_mut(usize::from(flow)) {
            self.recent.push_back(flow);
            *packets += 1;
            self.flows += usize::from(*packets == 1);
        }
    }

    /// The number of active flows.
    pub(super) const fn flows(&self) -> usize {
        self.flows
    }

    /// Sets a packet aside for a path.
    pub(super) fn set_aside(&mut self, path: PathId, kept: Kept) {
        self.aside.push_back((path, kept));
    }

    /// Takes the first packet that waits for a path.
    pub(super) fn take_aside(&mut self, path: PathId) -> Option<Kept> {
        let at = self.aside.iter().position(|&(of, _)| of == path)?;
        self.aside.remove(at).map(|(_, kept)| kept)
    }

    /// Paths for which packets wait, and octets of the first packet of each.
    pub(super) fn waited_for(&self) -> impl Iterator<Item = (PathId, usize)> {
        let firsts = self.aside.iter().enumerate().filter(|&(at, (path, _))| {
            !self.aside.iter().take(at).any(|(before, _)| before == path)
        });
        firsts.map(|(_, (path, kept))| (*path, kept.packet.len()))
    }

    /// Octets that wait for a path.
    pub(super) fn octets(&self, path: PathId) -> usize {
        let aside = self.aside.iter().filter(|&&(of, _)| of == path);
        aside.map(|(_, kept)| kept.packet.len()).sum()
    }

    /// Octets that wait.
    pub(super) fn all_octets(&self) -> usize {
        self.aside.iter().map(|(_, kept)| kept.packet.len()).sum()
    }

    /// Packets that wait.
    pub(super) fn len(&self) -> usize {
        self.aside.len()
    }

    /// Whether no more packets may wait.
    pub(super) fn is_full(&self) -> bool {
        self.aside.len() >= ASIDE
    }

    /// Whether no packet waits.
    pub(super) fn is_empty(&self) -> bool {
        self.aside.is_empty()
    }

    /// Drops the waiting packets, whose numbers are no longer valid.
    pub(super) fn forget(&mut self) {
        self.aside.clear();
    }
}
