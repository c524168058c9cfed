//! Captures: every packet that enters a direction of a link, and its outcome there.
//!
//! [`Probe::enters`](super::Probe::enters) passes each packet to a tap, and the observations that
//! follow pass its outcomes. The tap stores the content of a capture: the octets of the headers
//! and, up to the snap length, of the payload; a payload known only by its length is captured as
//! zeros. A packet that a gateway originates is captured as a UDP datagram of zeros.
//!
//! The addresses of hosts are derived from their place in the scenario (10.0.0.1 for the first),
//! the ports from the connection's number, so that no two connections share both.

mod pcapng;

use core::net::IpAddr;
use std::collections::BTreeMap;

use anabranch_core::{
    body::Body,
    packet::{ConnectionId, Direction, FlowId, Packet},
    trace::{ElementId, Fate},
    units::Instant,
};
use anabranch_wire::{self as wire, IpHeader, Ports, Transport, Version};

use crate::octets;
use anabranch_scenario::Resolved;

/// Octets of the headers of UDP and IPv4.
const UDP_IP: u32 = 28;
/// The port of the gateway's daemon in the documentation.
const GATEWAY_PORT: u16 = 51_900;

/// The links to capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tapping {
    /// Links, by place in the scenario, each with a direction.
    pub places: Vec<(usize, Direction)>,
    /// The most octets kept of each packet.
    pub snap_length: u32,
    /// The addresses of each node, if the packets have addresses.
    pub addresses: Option<Vec<Vec<IpAddr>>>,
}

impl Tapping {
    /// Whether this direction of this link is captured.
    #[must_use]
    pub fn holds(&self, link: usize, direction: Direction) -> bool {
        self.places.contains(&(link, direction))
    }
}

/// The captures of a run.
#[derive(Debug)]
pub struct Taps {
    snap_length: u32,
    places: Vec<Tap>,
    /// The tap of each element: a link's direction and its impairments.
    tap_of: BTreeMap<ElementId, usize>,
    /// By flow: its name, its ends as indices of nodes, and the port at `to`.
    flows: Vec<(String, [usize; 2], Option<u16>)>,
    /// By node: its name and its addresses.
    nodes: Vec<(String, Vec<IpAddr>)>,
    title: String,
}

/// One direction of one link.
#[derive(Debug)]
struct Tap {
    place: (usize, Direction),
    /// `NAME.DIRECTION`
    name: String,
    records: Vec<Record>,
    /// Captured octets of all records, concatenated.
    octets: Vec<u8>,
    /// The outcomes of a record's packet other than passing, in order of observation.
    fates: Vec<(u32, ElementId, Fate)>,
    /// The records of a packet, oldest first: several if it was duplicated before this link.
    records_of: BTreeMap<(ConnectionId, Direction, u32), Vec<u32>>,
}

#[derive(Debug)]
struct Record {
    at: Instant,
    start: usize,
    captured: u32,
    len: u32,
    flow: FlowId,
    index: u32,
    retransmission: bool,
    /// Whether the queue has accepted or dropped it.
    decided: bool,
    /// Whether its packet has a final outcome here.
    over: bool,
}

impl Taps {
    /// Creates taps at these places; `elements` are the names of the network's elements.
    #[must_use]
    pub fn new(tapping: &Tapping, resolved: &Resolved, elements: &[Box<str>]) -> Self {
        let mut tap_of = BTreeMap::new();
        let mut taps = Vec::new();
        for &(link, direction) in &tapping.places {
            let name = format!("{}.{}", resolved.links[link].name, direction.name());
            let own = format!("link.{name}");
            let impairments = format!("{own}.impair.");
            for (id, element) in (0..).zip(elements) {
                if **element == *own || element.starts_with(&impairments) {
                    tap_of.insert(ElementId(id), taps.len());
                }
            }
            taps.push(Tap {
                place: (link, direction),
                name,
                records: Vec::new(),
                octets: Vec::new(),
                fates: Vec::new(),
                records_of: BTreeMap::new(),
            });
        }
        Self {
            snap_length: tapping.snap_length,
            places: taps,
            tap_of,
            flows: resolved
                .flows
                .iter()
                .map(|flow| (flow.name.clone(), flow.ends, flow.port))
                .collect(),
            nodes: named(&resolved.nodes, tapping.addresses.as_deref()),
            title: resolved.title.clone(),
        }
    }

    /// Captures a packet of a flow and a connection that reaches a link's direction. The packet
    /// names its connection by a place, which later connections take.
    pub(super) fn enters<B: Body>(
        &mut self,
        at: Instant,
        element: ElementId,
        (flow, connection): (FlowId, ConnectionId),
        packet: &Packet<Transport<B>>,
    ) {
        let Some(&tap) = self.tap_of.get(&element) else {
            return;
        };
        let is_own = packet.connection == ConnectionId::NONE;
        let (ip, ports) = if is_own {
            own_addresses(packet)
        } else {
            self.addresses(flow, connection, packet)
        };
        let tap = &mut self.places[tap];
        let start = tap.octets.len();
        let body = match &packet.payload {
            Transport::Tcp(segment) => &segment.body,
            Transport::Redundant(redundant) => &redundant.body,
            Transport::Datagram(body) => body,
        };
        let whole = body.ip_packet(packet.ecn);
        let len = if is_own {
            // Encrypted, or a header that no field of a capture describes.
            let content = usize::try_from(packet.size.saturating_sub(UDP_IP)).unwrap_or(0);
            let to = wire::Prefix {
                octets: &mut tap.octets,
                most: self.snap_length as usize,
            };
            wire::encode_datagram(&ip, ports, wire::Carried::Zeros(content), to)
        } else if let Some(whole) = &whole {
            if whole.is_empty() {
                return;
            }
            let kept = whole.len().min(self.snap_length as usize);
            tap.octets.extend_from_slice(&whole[..kept]);
            Ok(u32::try_from(whole.len()).expect("an IP packet"))
        } else {
            let to = wire::Prefix {
                octets: &mut tap.octets,
                most: self.snap_length as usize,
            };
            octets::encode(&ip, ports, &packet.payload, to)
        };
        // A packet that does not fit a header cannot be captured: a host supplied by the caller may
        // send one.
        let Ok(len) = len else {
            tap.octets.truncate(start);
            return;
        };
        let record = u32::try_from(tap.records.len()).expect("fewer than 2^32 packets");
        let captured = u32::try_from(tap.octets.len() - start).expect("an IP packet");
        tap.records.push(Record {
            at,
            start,
            captured,
            len,
            flow,
            index: packet.index,
            retransmission: packet.retransmission,
            decided: false,
            over: false,
        });
        let key = (packet.connection, packet.direction, packet.index);
        tap.records_of.entry(key).or_default().push(record);
    }

    /// Records the outcome of a packet at an element.
    pub(super) fn fate(
        &mut self,
        element: ElementId,
        packet: (ConnectionId, Direction, u32),
        fate: Fate,
    ) {
        let Some(&tap) = self.tap_of.get(&element) else {
            return;
        };
        let tap = &mut self.places[tap];
        let Some(records) = tap.records_of.get(&packet) else {
            return;
        };
        // The record being decided on, or else the oldest: packets mostly leave a queue in the
        // order of their arrival.
        let newest = *records.last().expect("never empty");
        let record = if tap.records[newest as usize].decided {
            let goes_on = |record: &&u32| !tap.records[**record as usize].over;
            records.iter().find(goes_on).copied().unwrap_or(newest)
        } else {
            newest
        };
        if matches!(fate, Fate::Passed | Fate::Dropped | Fate::TooBig) {
            tap.records[record as usize].decided = true;
        }
        tap.records[record as usize].over |= is_final(fate);
        if fate != Fate::Passed {
            tap.fates.push((record, element, fate));
        }
    }

    /// The headers of a packet in captures.
    fn addresses<P>(
        &self,
        flow: FlowId,
        connection: ConnectionId,
        packet: &Packet<P>,
    ) -> (IpHeader, Ports) {
        let flow = self.flows.get(flow.0 as usize);
        let (ends, port) = flow.map_or(([0, 1], None), |&(_, ends, port)| (ends, port));
        let ports = octets::ports(connection, packet.direction, port);
        let (from, to) = match packet.direction {
            Direction::Forward => (ends[0], ends[1]),
            Direction::Reverse => (ends[1], ends[0]),
        };
        (header(packet, address(from), address(to)), ports)
    }

    /// Describes the outcome of a record's packet in words.
    fn words(
        &self,
        record: &Record,
        fates: &[(u32, ElementId, Fate)],
        names: &[Box<str>],
    ) -> String {
        let flow = self.flows.get(record.flow.0 as usize);
        let flow = flow.map_or("the gateway", |flow| &flow.0);
        let again = if record.retransmission {
            ", retransmission"
        } else {
            ""
        };
        let mut told = Vec::new();
        for (_, element, fate) in fates {
            let by = &names[element.0 as usize];
            // The queue and the link itself use the link's name.
            let by = if by.contains(".impair.") {
                by
            } else {
                "the queue"
            };
            told.push(match fate {
                Fate::Dropped => format!("dropped by {by}"),
                Fate::TooBig => "dropped because it is larger than the link's MTU".to_owned(),
                Fate::Marked => format!("marked CE by {by}"),
                Fate::Moved => format!("moved by {by}"),
                Fate::Lost => format!("lost by {by}"),
                Fate::Delayed => format!("delayed by {by}"),
                Fate::Duplicated => format!("doubled by {by}"),
                Fate::Corrupted => format!("damaged by {by}"),
                Fate::Resent => "retransmitted by the link".to_owned(),
                Fate::Sent | Fate::Received | Fate::Passed | Fate::Injected | Fate::Rebuilt => {
                    continue;
                }
            });
        }
        if !fates.iter().any(|(.., fate)| is_final(*fate)) {
            told.push("passed".to_owned());
        }
        format!(
            "packet {} of {flow}{again}: {}",
            record.index,
            told.join(", ")
        )
    }
}

/// The headers of a packet that a gateway originates: UDP between addresses for documentation (RFC
/// 5737 §3), whose last octet is the route's place from 1 on.
fn own_addresses<P>(packet: &Packet<P>) -> (IpHeader, Ports) {
    let last = packet.tunnel.route.saturating_add(1);
    let ends = [[192, 0, 2, last], [198, 51, 100, last]];
    let [source, destination] = match packet.direction {
        Direction::Forward => ends,
        Direction::Reverse => [ends[1], ends[0]],
    };
    let ports = Ports {
        source: GATEWAY_PORT,
        destination: GATEWAY_PORT,
    };
    (header(packet, source, destination), ports)
}

/// The IP header of a packet.
fn header<P>(packet: &Packet<P>, source: [u8; 4], destination: [u8; 4]) -> IpHeader {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the field holds the low half (RFC 6864: unique only within a short time)"
    )]
    let identification = packet.index as u16;
    IpHeader {
        version: Version::V4 {
            source,
            destination,
            identification,
            dont_fragment: true,
        },
        dscp: packet.dscp,
        ecn: packet.ecn,
        hop_limit: 64,
    }
}

/// The nodes' names with their given addresses, or else with the addresses that captures use.
fn named(nodes: &[String], given: Option<&[Vec<IpAddr>]>) -> Vec<(String, Vec<IpAddr>)> {
    let own = |node: usize| match given {
        Some(given) => given.get(node).cloned().unwrap_or_default(),
        None => vec![IpAddr::from(address(node))],
    };
    let nodes = nodes.iter().enumerate();
    nodes
        .map(|(node, name)| (name.clone(), own(node)))
        .collect()
}

/// Whether an outcome is final.
const fn is_final(fate: Fate) -> bool {
    matches!(
        fate,
        Fate::Dropped | Fate::TooBig | Fate::Lost | Fate::Corrupted
    )
}

/// The address of the n-th node.
fn address(node: usize) -> [u8; 4] {
    let number = u32::try_from(node + 1).unwrap_or(u32::MAX);
    let [_, a, b, c] = number.to_be_bytes();
    [10, a, b, c]
}

#[cfg(test)]
mod tests {
    use anabranch_core::{
        body::Length,
        packet::{Ecn, WaitAccount},
        trail::Trail,
        tunnel::Header,
    };

    use super::*;

    const LINK: ElementId = ElementId(0);

    /// The outcome of another packet, which entered first, comes between the outcomes of two
    /// copies. Detects outcomes assigned in the order of the packets.
    #[test]
    fn each_copy_has_a_separate_outcome() {
        let mut taps = Taps {
            snap_length: 64,
            places: vec![Tap {
                place: (0, Direction::Forward),
                name: "path.forward".to_owned(),
                records: Vec::new(),
                octets: Vec::new(),
                fates: Vec::new(),
                records_of: BTreeMap::new(),
            }],
            tap_of: BTreeMap::from([(LINK, 0)]),
            flows: vec![("main".to_owned(), [0, 1], None)],
            nodes: Vec::new(),
            title: String::new(),
        };
        let name = |index| (ConnectionId(0), Direction::Forward, index);
        for index in [0, 1, 1] {
            let packet = Packet {
                connection: ConnectionId(0),
                index,
                size: 128,
                hop: 0,
                direction: Direction::Forward,
                retransmission: false,
                ecn: Ecn::NotEct,
                dscp: 0,
                trail: Trail::default(),
                waits: WaitAccount::NONE,
                tunnel: Header::default(),
                payload: Transport::Datagram(Length(100)),
            };
            taps.enters(Instant::START, LINK, (FlowId(0), ConnectionId(0)), &packet);
            taps.fate(LINK, name(index), Fate::Passed);
        }
        for index in [1, 0, 1] {
            taps.fate(LINK, name(index), Fate::Lost);
        }
        let of: Vec<u32> = taps.places[0]
            .fates
            .iter()
            .map(|(record, ..)| *record)
            .collect();
        assert_eq!(of, [1, 0, 2]);
    }
}
