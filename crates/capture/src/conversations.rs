//! Conversations of a capture: the candidates for a selection, and whether the capture has both
//! directions.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    net::IpAddr,
};

use crate::{Endpoint, Fragment, Ip, Protocol, Selection};

/// Packets from one sender to one receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conversation {
    /// Selection of exactly these packets.
    pub selection: Selection,
    /// The protocol, if all packets have the same one.
    pub protocol: Option<u8>,
    /// Packets.
    pub packets: u64,
    /// Their bytes, IP headers included.
    pub bytes: u64,
}

/// The keys of the selection, and the number of packets and bytes it selects.
impl fmt::Display for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = match self.protocol {
            // The selection's keys already include the protocol.
            _ if self.selection.protocol.is_some() => "",
            Some(6) => ", TCP",
            Some(17) => ", UDP",
            Some(1 | 58) => ", ICMP",
            Some(50) => ", ESP",
            Some(132) => ", SCTP",
            _ => "",
        };
        let (packets, bytes) = (self.packets, self.bytes);
        let noun = if packets == 1 { "packet" } else { "packets" };
        write!(
            f,
            "{}  ({packets} {noun}, {bytes} bytes{protocol})",
            self.selection
        )
    }
}

/// Maximum number of conversations counted separately; memory stays below 48 MiB.
const MOST: usize = 1 << 16;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Volume {
    packets: u64,
    bytes: u64,
}

impl Volume {
    fn add(&mut self, ip: &Ip) {
        self.packets += 1;
        self.bytes += u64::from(ip.length);
    }
}

/// Sender, receiver, protocol and ports.
type Key = (IpAddr, IpAddr, u8, Option<(u16, u16)>);

/// Counts packets by sender and receiver.
#[derive(Debug, Clone, Default)]
pub struct Conversations {
    connections: BTreeMap<Key, Volume>,
    protocols: BTreeMap<(IpAddr, IpAddr, u8), Volume>,
    hosts: BTreeMap<(IpAddr, IpAddr), Volume>,
    two_way: bool,
    /// Packets beyond [`MOST`] conversations.
    unlisted: u64,
}

impl Conversations {
    /// Counts a packet. `ports` are the ports of its first fragment.
    pub fn add(&mut self, ip: &Ip, ports: Option<(u16, u16)>) {
        let hosts = (ip.source, ip.target);
        if let Some(volume) = self.hosts.get_mut(&hosts) {
            volume.add(ip);
        } else {
            let back = (ip.target, ip.source);
            self.two_way |= ip.source != ip.target && self.hosts.contains_key(&back);
            if self.hosts.len() < MOST {
                self.hosts.entry(hosts).or_default().add(ip);
            }
        }
        let protocol = (ip.source, ip.target, ip.protocol);
        if self.protocols.len() < MOST || self.protocols.contains_key(&protocol) {
            self.protocols.entry(protocol).or_default().add(ip);
        }
        let connection = (ip.source, ip.target, ip.protocol, ports);
        if let Some(volume) = self.connections.get_mut(&connection) {
            volume.add(ip);
            return;
        }
        // Traffic of a host to itself is two-way if the ports also occur swapped.
        if ip.source == ip.target {
            let back = ports.map(|(source, target)| (target, source));
            let back = (ip.source, ip.target, ip.protocol, back);
            self.two_way |= back != connection && self.connections.contains_key(&back);
        }
        if self.connections.len() < MOST {
            self.connections.entry(connection).or_default().add(ip);
        } else {
            self.unlisted += 1;
        }
    }

    /// Whether two hosts have sent to each other.
    #[must_use]
    pub fn is_two_way(&self) -> bool {
        self.two_way
    }

    /// Returns the largest conversations by packets, and the number of further ones. They are by
    /// connection if there are at most `most` connections or only two pairs of hosts; otherwise by
    /// host. `self` counts a subset of `all`, the packets of the capture: the volume of each
    /// conversation is that of its selection in `all`. With `by_protocol`, each has a single
    /// protocol.
    #[must_use]
    pub fn largest(
        &self,
        most: usize,
        all: &Self,
        by_protocol: bool,
    ) -> (Vec<Conversation>, usize) {
        let by_connection = self.connections.len() <= most || self.hosts.len() <= 2;
        let mut found: Vec<_> = if by_connection {
            let pairs = all.pairs();
            let keys = self.connections.keys();
            keys.filter_map(|key| all.connection(key, &pairs, by_protocol))
                .collect()
        } else if by_protocol {
            let keys = self.protocols.keys();
            keys.filter_map(|key| all.protocol(key)).collect()
        } else {
            self.hosts.keys().filter_map(|key| all.host(key)).collect()
        };
        found.sort_by_key(|one| std::cmp::Reverse((one.packets, one.bytes)));
        let more = found.len().saturating_sub(most);
        found.truncate(most);
        (found, more)
    }

    /// Number of protocols per pair of addresses and ports.
    fn pairs(&self) -> Pairs {
        let mut pairs = Pairs::new();
        for (source, target, _, ports) in self.connections.keys() {
            *pairs.entry((*source, *target, *ports)).or_default() += 1;
        }
        pairs
    }

    fn connection(&self, key: &Key, pairs: &Pairs, by_protocol: bool) -> Option<Conversation> {
        let (source, target, protocol, ports) = *key;
        if ports.is_none() {
            // Without ports, the selection includes all packets of the protocol, also those with
            // ports.
            let one = self.protocol(&(source, target, protocol))?;
            let is_all = self.host(&(source, target))?.packets == one.packets;
            let selection = Selection {
                protocol: one.selection.protocol.filter(|_| by_protocol || !is_all),
                ..one.selection
            };
            return Some(Conversation { selection, ..one });
        }
        let is_alone = pairs.get(&(source, target, ports)) == Some(&1) && self.unlisted == 0;
        let selection = Selection {
            from: Some(Endpoint::exactly(source, ports.map(|ports| ports.0))),
            to: Some(Endpoint::exactly(target, ports.map(|ports| ports.1))),
            protocol: (by_protocol || !is_alone).then(|| self.name(&(source, target, protocol))),
        };
        Some(conversation(
            selection,
            Some(protocol),
            self.connections.get(key)?,
        ))
    }

    fn protocol(&self, key: &(IpAddr, IpAddr, u8)) -> Option<Conversation> {
        let volume = self.protocols.get(key)?;
        let selection = Selection {
            protocol: Some(self.name(key)),
            ..hosts(key.0, key.1)
        };
        Some(conversation(selection, Some(key.2), volume))
    }

    fn host(&self, key: &(IpAddr, IpAddr)) -> Option<Conversation> {
        let volume = self.hosts.get(key)?;
        Some(conversation(hosts(key.0, key.1), None, volume))
    }

    /// Returns the name of a protocol, or its number if another protocol between the same hosts
    /// shares the name (ICMP and `ICMPv6`).
    fn name(&self, key: &(IpAddr, IpAddr, u8)) -> Protocol {
        let (source, target, number) = *key;
        let named = Protocol::of(number);
        let mut others = self
            .protocols
            .range((source, target, 0)..=(source, target, u8::MAX));
        let is_shared = others.any(|((.., other), _)| *other != number && named.has(*other));
        if is_shared || self.protocols.len() == MOST {
            Protocol::Number(number)
        } else {
            named
        }
    }
}

type Pairs = BTreeMap<(IpAddr, IpAddr, Option<(u16, u16)>), usize>;

fn hosts(source: IpAddr, target: IpAddr) -> Selection {
    Selection {
        from: Some(Endpoint::exactly(source, None)),
        to: Some(Endpoint::exactly(target, None)),
        protocol: None,
    }
}

fn conversation(selection: Selection, protocol: Option<u8>, volume: &Volume) -> Conversation {
    Conversation {
        selection,
        protocol,
        packets: volume.packets,
        bytes: volume.bytes,
    }
}

/// Ports of packets whose first fragment has been seen.
#[derive(Debug, Clone, Default)]
pub struct Fragments {
    first: VecDeque<(FragmentKey, (u16, u16))>,
}

type FragmentKey = (IpAddr, IpAddr, u8, u32);

impl Fragments {
    /// Maximum number of first fragments stored; later fragments usually follow at once.
    const MOST: usize = 64;

    /// The ports of a packet, or of the packet that it is a fragment of.
    pub fn ports(&mut self, ip: &Ip) -> Option<(u16, u16)> {
        let key = (ip.source, ip.target, ip.protocol, ip.identification);
        match ip.fragment {
            Fragment::Whole => ip.ports,
            Fragment::First => {
                if let Some(ports) = ip.ports {
                    self.first.truncate(Self::MOST - 1);
                    self.first.push_front((key, ports));
                }
                ip.ports
            }
            Fragment::Later => {
                let mut first = self.first.iter();
                first.find(|(of, _)| *of == key).map(|(_, ports)| *ports)
            }
        }
    }
}
