//! All peers, found by key, by index, by address and by due time. The work for a datagram, a packet
//! or a turn does not depend on their number.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
};

use anabranch_gateway::{
    crypto::Identity,
    reception::{Admission, Reception},
    sources::Sources,
    time::Instant,
    wire::Initiation,
};
use ipnet::IpNet;

use crate::{
    peers::{Peer, System},
    prefixes::Longest,
    servers::Choice,
};

/// The peers and their indices. A peer's number is its place in the list.
pub struct Directory {
    peers: Vec<Peer>,
    notes: Vec<Note>,
    reception: Reception,
    /// Two tunnels may draw the same index.
    indices: BTreeSet<(u32, u32)>,
    /// The number of the choice that serves a network.
    networks: Longest<u32>,
    by_network: BTreeMap<IpNet, u32>,
    choices: Vec<Choice>,
    /// The choices among several peers.
    shared: Vec<u32>,
    /// Peers whose routes may need another MTU.
    resized: BTreeSet<u32>,
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
            networks: Longest::default(),
            by_network: BTreeMap::new(),
            choices: Vec::new(),
            shared: Vec::new(),
            resized: BTreeSet::new(),
            timers: BTreeSet::new(),
            touched: BTreeSet::new(),
            mtus: BTreeMap::new(),
        };
        directory.set(peers, now);
        directory
    }

    /// Replaces the peers.
    pub fn set(&mut self, peers: Vec<Peer>, now: Instant) {
        self.peers = peers;
        self.notes.clear();
        self.notes.resize_with(self.peers.len(), Note::default);
        self.reception.clear();
        self.indices.clear();
        self.timers.clear();
        self.mtus.clear();
        self.touched = (0..).take(self.peers.len()).collect();
        for (number, peer) in (0..).zip(&self.peers) {
            self.reception.insert(peer.key(), number);
        }
        self.index_networks();
        for number in (0..).take(self.peers.len()) {
            self.settle(number, now);
        }
    }

    /// Finds the peers of each network, and the sources that each peer may use.
    fn index_networks(&mut self) {
        let mut owners: BTreeMap<IpNet, Vec<u32>> = BTreeMap::new();
        for (number, peer) in (0..).zip(&self.peers) {
            for net in &peer.allowed {
                let owners = owners.entry(*net).or_default();
                // A peer may have a network twice.
                if owners.last() != Some(&number) {
                    owners.push(number);
                }
            }
        }
        self.choices.clear();
        let rank = |&number: &u32| self.peers.get(place(number)).map(|peer| peer.rank.priority);
        let mut known: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
        self.by_network.clear();
        for (net, mut owners) in owners {
            owners.sort_by_key(rank);
            let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
            let number = *known.entry(owners).or_insert_with_key(|owners| {
                self.choices.extend(Choice::new(owners.clone()));
                next
            });
            self.by_network.insert(net, number);
        }
        let networks = self.by_network.iter();
        self.networks = Longest::of(networks.map(|(&net, &number)| (net, number)));
        let choices = (0..).zip(&mut self.choices);
        let shared = choices.filter(|(_, choice)| choice.candidates().len() > 1);
        self.shared.clear();
        for (number, choice) in shared {
            let mut candidates = choice.candidates().iter().copied();
            let carries = |number: &u32| self.peers.get(place(*number)).is_some_and(|p| p.carries);
            if let Some(before) = candidates.find(carries) {
                choice.resume(before);
            }
            self.shared.push(number);
        }
        let mut sources: Vec<Vec<[IpAddr; 2]>> = vec![Vec::new(); self.peers.len()];
        for (range, choice) in self.networks.ranges() {
            let choice = self.choices.get(place(choice));
            for &number in choice.map_or(&[][..], Choice::candidates) {
                if let Some(sources) = sources.get_mut(place(number)) {
                    sources.push(range);
                }
            }
        }
        for (peer, sources) in self.peers.iter_mut().zip(sources) {
            peer.tunnel.set_sources(Sources::of(sources));
        }
        self.mark();
    }

    /// Chooses again among the peers of each group. Calls `report` with the earlier and the new
    /// peer if traffic moves.
    pub fn follow_servers(&mut self, now: Instant, mut report: impl FnMut(&Peer, &Peer)) {
        let mut moves = BTreeSet::new();
        let peers = &self.peers;
        let health = |number: u32| {
            peers
                .get(place(number))
                .map(|p| p.health)
                .unwrap_or_default()
        };
        for number in &self.shared {
            let choice = self.choices.get_mut(place(*number));
            if let Some(choice) = choice
                && let Some(before) = choice.follow(health, now)
            {
                moves.insert((before, choice.current()));
            }
        }
        if moves.is_empty() {
            return;
        }
        for &(before, after) in &moves {
            self.resized.insert(after);
            let pair = (self.peers.get(place(before)), self.peers.get(place(after)));
            if let (Some(before), Some(after)) = pair {
                report(before, after);
            }
        }
        self.mark();
    }

    /// Notes which peers carry the traffic of a group.
    fn mark(&mut self) {
        for peer in &mut self.peers {
            peer.carries = false;
        }
        for number in &self.shared {
            let choice = self.choices.get(place(*number));
            let peer = choice.and_then(|choice| self.peers.get_mut(place(choice.current())));
            if let Some(peer) = peer {
                peer.carries = true;
            }
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
        let choice = self.networks.get(address)?;
        Some(self.choices.get(place(choice))?.current())
    }

    /// The greatest MTU of the tunnels that are up.
    pub fn mtu(&self) -> Option<usize> {
        self.mtus.last_key_value().map(|(mtu, _)| *mtu)
    }

    /// Takes the networks whose routes may need another MTU, with that MTU.
    pub fn take_route_mtus(&mut self) -> Vec<(IpNet, usize)> {
        let mut found = Vec::new();
        for number in std::mem::take(&mut self.resized) {
            let note = self.notes.get(place(number));
            let (Some(peer), Some(mtu)) = (
                self.peers.get(place(number)),
                note.and_then(|note| note.mtu),
            ) else {
                continue;
            };
            let is_carried = |net: &&IpNet| {
                let choice = self.by_network.get(*net);
                let choice = choice.and_then(|&choice| self.choices.get(place(choice)));
                choice.is_some_and(|choice| choice.current() == number)
            };
            let nets = peer.allowed.iter().filter(is_carried);
            found.extend(nets.map(|&net| (net, mtu)));
        }
        found
    }

    /// The time at which a peer has something due, or a better server becomes usable.
    pub fn timeout(&self) -> Option<Instant> {
        let health = |number: u32| {
            let peer = self.peers.get(place(number));
            peer.map(|peer| peer.health).unwrap_or_default()
        };
        let shared = self
            .shared
            .iter()
            .filter_map(|&n| self.choices.get(place(n)));
        let servers = shared.filter_map(|choice| choice.timeout(health));
        let first = self.timers.first().map(|(at, _)| *at);
        first.into_iter().chain(servers).min()
    }

    /// Takes the peers that were changed or have something due.
    pub fn take_due(&mut self, now: Instant) -> BTreeSet<u32> {
        let due = self.timers.range(..=(now, u32::MAX));
        self.touched.extend(due.map(|(_, number)| number));
        std::mem::take(&mut self.touched)
    }

    /// Renews the entries of a peer after its tunnel was polled.
    pub fn settle(&mut self, number: u32, now: Instant) {
        let at = place(number);
        let (Some(peer), Some(note)) = (self.peers.get_mut(at), self.notes.get_mut(at)) else {
            return;
        };
        peer.health.note(peer.tunnel.is_up(), now);
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
            self.resized.insert(number);
        }
    }
}

/// The place of a number in a list.
fn place(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
