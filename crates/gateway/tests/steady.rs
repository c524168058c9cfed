//! In steady state a packet costs no allocation at either end. This is a separate program, because
//! allocations are counted for the whole process.

use anabranch_core::units::Duration;
use anabranch_gateway::{
    crypto::{Entropy, Keys, public_key},
    path::Route,
    policy::{Class, Match, Role, Rule},
    time::Instant,
    tunnel::{Config, PathConfig, Tunnel},
    wire::PathId,
};
use std::collections::VecDeque;

struct Counting(u8);

impl Entropy for Counting {
    fn fill(&mut self, octets: &mut [u8]) {
        for octet in octets {
            *octet = self.0;
            self.0 = self.0.wrapping_mul(5).wrapping_add(1);
        }
    }
}

const DELAYS: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(26)];
const STEP: Duration = Duration::from_millis(1);
/// Code point of the flow whose packets are duplicated.
const EF: u8 = 46;

fn route(path: u8, end: usize) -> Route {
    let last = u8::from(end == 1) + 1;
    Route {
        local: path.into(),
        remote: ([192, 0, 2, last], 5_000 + u16::from(path)).into(),
    }
}

fn tunnel(end: usize) -> Tunnel {
    let privates = [[1; 32], [2; 32]];
    let paths = (0..2).filter_map(PathId::new).map(|id| PathConfig {
        id,
        route: (end == 0).then(|| route(id.number(), 1)),
        role: Role::Active,
    });
    let config = Config {
        keys: Keys {
            private: privates[end],
            peer: public_key(&privates[1 - end]),
            psk: None,
        },
        paths: paths.collect(),
        sources: anabranch_gateway::sources::Sources::default(),
        epoch: 0,
        rules: vec![Rule {
            matches: Match {
                dscp: vec![EF],
                ..Match::default()
            },
            class: Class::Interactive,
        }],
    };
    let seed = if end == 0 { 3 } else { 9 };
    Tunnel::new(config, Box::new(Counting(seed)), Instant::START)
}

/// Datagrams in flight on a path in one direction, and buffers for others.
#[derive(Default)]
struct Wire {
    under_way: VecDeque<(Instant, Vec<u8>)>,
    free: Vec<Vec<u8>>,
    count: u64,
}

struct Network {
    /// One in this many datagrams is lost on each path.
    lost_of: u64,
    now: Instant,
    ends: Vec<Tunnel>,
    wires: [[Wire; 2]; 2],
    buffer: Vec<u8>,
    delivered: [u64; 2],
    sent: u64,
}

impl Network {
    /// Advances by a millisecond. Each end sends two bulk packets per millisecond, and one packet
    /// of a call per 20 ms. One datagram in `lost_of` is lost.
    fn step(&mut self) {
        self.now = self.now + STEP;
        self.sent += 1;
        for end in 0..2 {
            let calls = usize::from(self.sent.is_multiple_of(20));
            for flow in 0..2 + calls {
                let mut packet = self.ends[end].buffer();
                packet.resize(1_000, 0);
                packet[..4].copy_from_slice(&[0x45, if flow == 2 { EF << 2 } else { 0 }, 3, 232]);
                packet[19] = u8::try_from(flow).expect("small");
                self.ends[end]
                    .handle_inner(packet, self.now)
                    .expect("a packet of a size that the tunnel takes");
            }
        }
        self.carry();
    }

    /// Delivers the datagrams that are due.
    fn carry(&mut self) {
        for end in 0..2 {
            for path in 0..2 {
                let wire = &mut self.wires[end][path];
                while let Some((at, mut octets)) = wire.under_way.pop_front() {
                    if at > self.now {
                        wire.under_way.push_front((at, octets));
                        break;
                    }
                    let route = route(u8::try_from(path).expect("small"), end);
                    self.ends[1 - end].handle(&mut octets, route, self.now, self.now);
                    wire.free.push(octets);
                }
            }
            self.poll(0);
            self.poll(1);
        }
    }

    fn poll(&mut self, end: usize) {
        let tunnel = &mut self.ends[end];
        while let Some(transmit) = tunnel.poll_transmit(self.now, &mut self.buffer) {
            let path = transmit.path.index();
            let wire = &mut self.wires[end][path];
            wire.count += 1;
            if wire.count % self.lost_of == self.lost_of - 1 {
                continue;
            }
            let mut octets = wire.free.pop().unwrap_or_else(|| Vec::with_capacity(1_500));
            octets.clear();
            octets.extend_from_slice(&self.buffer);
            wire.under_way.push_back((self.now + DELAYS[path], octets));
        }
        while let Some(packet) = tunnel.poll_deliver(self.now) {
            self.delivered[end] += 1;
            tunnel.recycle(packet);
        }
        std::hint::black_box(tunnel.poll_timeout());
    }
}

fn network(lost_of: u64) -> Network {
    Network {
        lost_of,
        now: Instant::START,
        ends: vec![tunnel(0), tunnel(1)],
        wires: Default::default(),
        buffer: Vec::with_capacity(2_048),
        delivered: [0; 2],
        sent: 0,
    }
}

/// Counts the allocations of both ends while each delivers at least 10,000 packets. Also returns
/// the network.
fn allocations(lost_of: u64) -> (u64, Network) {
    let mut network = network(lost_of);
    // Both paths are busy, the path MTU is known, and each flow has waited for a gap.
    for _ in 0..30_000 {
        network.step();
    }
    let before = network.delivered;
    let copies = network.ends[0].stats().counters.copies;
    let allocated = allocation_counter::measure(|| {
        for _ in 0..5_000 {
            network.step();
        }
    });
    for (before, after) in before.iter().zip(network.delivered) {
        let delivered = after - before;
        assert!(delivered >= 10_000, "{delivered} delivered");
    }
    assert!(network.ends[0].stats().counters.copies - copies >= 240);
    (allocated.count_total, network)
}

#[test]
fn ten_thousand_packets_allocate_nothing() {
    // The loss is below the threshold for repair packets.
    let (allocations, network) = allocations(601);
    for end in &network.ends {
        let counters = end.stats().counters;
        assert!(
            counters.retransmitted > 50 && counters.protected == 0,
            "{counters:?}"
        );
    }
    assert_eq!(allocations, 0);
}

#[test]
fn protection_allocates_less_than_once_per_packet() {
    let (allocations, network) = allocations(50);
    let counters = network.ends[0].stats().counters;
    assert!(counters.rebuilt > 500, "{counters:?}");
    // Of both ends: fewer than packets, because the code's tables are allocated per block.
    assert!(allocations < 20_000, "{allocations}");
}

/// A gateway with thousands of peers needs memory for those with traffic alone.
#[test]
fn a_tunnel_without_traffic_is_small() {
    let mut idle = None;
    let allocated = allocation_counter::measure(|| {
        let mut network = network(601);
        for _ in 0..5_000 {
            network.now = network.now + STEP;
            network.carry();
        }
        // The buffers of the network are not the tunnel's.
        network.wires = Default::default();
        idle = Some(network);
    });
    let network = idle.expect("it was made");
    assert!(network.ends.iter().all(Tunnel::is_up));
    let octets = allocated.bytes_current / 2;
    println!("{octets} octets for each end");
    assert!(octets <= 48_000, "{octets}");
}
