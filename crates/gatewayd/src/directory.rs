//! All peers, found by key, by index, by address and by due time. The work for a datagram, a packet
//! or a turn does not depend on their number.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
};

use anabranch_core::units::Instant;
use anabranch_gateway::{
    crypto::Identity,
    reception::{Admission, Reception},
    wire::Initiation,
};
use ipnet::IpNet;

use crate::peers::{Peer, System};

/// The peers and their indices. A peer's number is its place in the list.
pub struct Directory {
    peers: Vec<Peer>,
    notes: Vec<Note>,
    reception: Reception,
    /// Two tunnels may draw the same index.
    indices: BTreeSet<(u32, u32)>,
    /// Disjoint networks by their first address.
    networks: BTreeMap<IpAddr, (IpNet, u32)>,
    timers: BTreeSet<(Instant, u32)>,
    /// Peers that may have something to send or to deliver.
    touched: BTreeSet<u32>,
    /// The number of tunnels that are up by MTU.
    mtus: BTreeMap<usize, u32>,
}

/// The entries of a peer in the indices.
#[derive(Default)]
struct Note {
    indices: Vec<u32>,
    timer: Option<Instant>,
    mtu: Option<usize>,
}

impl Directory {
    /// The directory of these peers of the private key `identity`.
    pub fn new(identity: Identity, peers: Vec<Peer>, now: Instant) -> Self {
        let mut directory = Self {
            peers: Vec::new(),
            notes: Vec::new(),
            reception: Reception::new(identity, now, &mut System),
            indices: BTreeSet::new(),
            networks: BTreeMap::new(),
            timers: BTreeSet::new(),
            touched: BTreeSet::new(),
            mtus: BTreeMap::new(),
        };
        directory.set(peers);
        directory
    }

    /// Replaces the peers.
    pub fn set(&mut self, peers: Vec<Peer>) {
        self.peers = peers;
        self.notes.clear();
        self.notes.resize_with(self.peers.len(), Note::default);
        self.reception.clear();
        self.indices.clear();
        self.networks.clear();
        self.timers.clear();
        self.mtus.clear();
        self.touched = (0..).take(self.peers.len()).collect();
        for (number, peer) in (0..).zip(&self.peers) {
            self.reception.insert(peer.key(), number);
            // Networks of one peer may contain each other.
            for net in IpNet::aggregate(&peer.allowed) {
                self.networks.insert(net.network(), (net, number));
            }
        }
        for number in 0..self.peers.len() {
            self.settle(u32::try_from(number).unwrap_or(u32::MAX));
        }
    }

    /// Removes all peers, to be changed and set again.
    pub fn take(&mut self) -> Vec<Peer> {
        std::mem::take(&mut self.peers)
    }

    /// The peers in the configuration's order.
    pub fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter()
    }

    /// All peers, for a change of each.
    pub fn all(&mut self) -> impl Iterator<Item = &mut Peer> {
        self.touched.extend((0..).take(self.peers.len()));
        self.peers.iter_mut()
    }

    /// A peer, for a datagram or a packet.
    pub fn get(&mut self, number: u32) -> Option<&mut Peer> {
        self.touched.insert(number);
        self.peers.get_mut(usize::try_from(number).ok()?)
    }

    /// A peer of [`Self::take_due`], whose tunnel is polled until nothing is left.
    pub fn polled(&mut self, number: u32) -> Option<&mut Peer> {
        self.peers.get_mut(usize::try_from(number).ok()?)
    }

    /// The result for an initiation, and the number of its peer.
    pub fn admit(&mut self, initiation: &Initiation, from: SocketAddr, now: Instant) -> Admission {
        self.reception.admit(initiation, from, now, &mut System)
    }

    /// The peers whose tunnels have an index: one, hardly ever more.
    pub fn with_index(&self, index: u32) -> impl Iterator<Item = u32> {
        let range = self.indices.range((index, 0)..=(index, u32::MAX));
        range.map(|&(_, number)| number)
    }

    /// The peer to which packets to an address belong.
    pub fn of(&self, address: IpAddr) -> Option<u32> {
        let (_, (net, number)) = self.networks.range(..=address).next_back()?;
        net.contains(&address).then_some(*number)
    }

    /// The least MTU of the tunnels that are up.
    pub fn mtu(&self) -> Option<usize> {
        self.mtus.first_key_value().map(|(mtu, _)| *mtu)
    }

    /// The time at which a peer has something due.
    pub fn timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Takes the peers that were changed or have something due.
    pub fn take_due(&mut self, now: Instant) -> BTreeSet<u32> {
        let due = self.timers.range(..=(now, u32::MAX));
        self.touched.extend(due.map(|(_, number)| number));
        std::mem::take(&mut self.touched)
    }

    /// Renews the entries of a peer after its tunnel was polled.
    pub fn settle(&mut self, number: u32) {
        let Some(at) = usize::try_from(number).ok() else {
            return;
        };
        let (Some(peer), Some(note)) = (self.peers.get(at), self.notes.get_mut(at)) else {
            return;
        };
        if !peer.tunnel.indices().eq(note.indices.iter().copied()) {
            for index in note.indices.drain(..) {
                self.indices.remove(&(index, number));
            }
            note.indices.extend(peer.tunnel.indices());
            let entries = note.indices.iter().map(|&index| (index, number));
            self.indices.extend(entries);
        }
        let timer = peer.tunnel.poll_timeout();
        if timer != note.timer {
            if let Some(before) = note.timer {
                self.timers.remove(&(before, number));
            }
            self.timers.extend(timer.map(|at| (at, number)));
            note.timer = timer;
        }
        let mtu = peer.tunnel.is_up().then(|| peer.tunnel.inner_mtu());
        if mtu != note.mtu {
            if let Some(before) = note.mtu
                && let Some(count) = self.mtus.get_mut(&before)
            {
                *count -= 1;
                if *count == 0 {
                    self.mtus.remove(&before);
                }
            }
            if let Some(mtu) = mtu {
                *self.mtus.entry(mtu).or_insert(0) += 1;
            }
            note.mtu = mtu;
        }
    }
}
