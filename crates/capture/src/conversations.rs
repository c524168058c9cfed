//! Who sends to whom in a capture: the choices of a selection, and whether they have two directions.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    net::IpAddr,
};

use crate::{Endpoint, Fragment, Ip};

/// Packets from one sender to one receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conversation {
    /// The sender.
    pub source: IpAddr,
    /// The receiver.
    pub target: IpAddr,
    /// The protocol, if it is one.
    pub protocol: Option<u8>,
    /// Source and destination port, if they are one pair.
    pub ports: Option<(u16, u16)>,
    /// Packets.
    pub packets: u64,
    /// Their bytes, IP headers included.
    pub bytes: u64,
}

/// As the keys of a selection, and what they select.
impl fmt::Display for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = Endpoint::exactly(self.source, self.ports.map(|ports| ports.0));
        let to = Endpoint::exactly(self.target, self.ports.map(|ports| ports.1));
        let protocol = match self.protocol {
            Some(6) => ", TCP",
            Some(17) => ", UDP",
            Some(1 | 58) => ", ICMP",
            Some(132) => ", SCTP",
            _ => "",
        };
        let (packets, bytes) = (self.packets, self.bytes);
        let noun = if packets == 1 { "packet" } else { "packets" };
        write!(
            f,
            "from = \"{from}\", to = \"{to}\"  ({packets} {noun}, {bytes} bytes{protocol})"
        )
    }
}

/// The conversations that are kept apart, at most; memory stays below 32 MiB.
const MOST: usize = 1 << 16;

#[derive(Debug, Clone, Copy, Default)]
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
    hosts: BTreeMap<(IpAddr, IpAddr), Volume>,
    two_way: bool,
    /// Packets beyond [`MOST`] conversations.
    unlisted: u64,
}

impl Conversations {
    /// Counts a packet; `ports` are those of its first fragment.
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
        let connection = (ip.source, ip.target, ip.protocol, ports);
        if let Some(volume) = self.connections.get_mut(&connection) {
            volume.add(ip);
            return;
        }
        // A host that talks to itself has two directions where the ports stand the other way round.
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

    /// The largest, by packets, and how many more there are: by connection if there are no more than `most`, or if
    /// two hosts have them all; else by host.
    #[must_use]
    pub fn largest(&self, most: usize) -> (Vec<Conversation>, usize) {
        let connections = self.connections.iter().map(|(key, volume)| Conversation {
            source: key.0,
            target: key.1,
            protocol: Some(key.2),
            ports: key.3,
            packets: volume.packets,
            bytes: volume.bytes,
        });
        let hosts = self.hosts.iter().map(|(key, volume)| Conversation {
            source: key.0,
            target: key.1,
            protocol: None,
            ports: None,
            packets: volume.packets,
            bytes: volume.bytes,
        });
        let mut all: Vec<_> = if self.connections.len() <= most || self.hosts.len() <= 2 {
            connections.collect()
        } else {
            hosts.collect()
        };
        all.sort_by_key(|one| std::cmp::Reverse((one.packets, one.bytes)));
        let more = all.len().saturating_sub(most);
        all.truncate(most);
        (all, more)
    }
}

/// Ports of packets of which the first fragment has been seen.
#[derive(Debug, Clone, Default)]
pub struct Fragments {
    first: VecDeque<(FragmentKey, (u16, u16))>,
}

type FragmentKey = (IpAddr, IpAddr, u8, u32);

impl Fragments {
    /// First fragments that are remembered; the others follow at once as a rule.
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
