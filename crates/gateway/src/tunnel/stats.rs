//! Counters, and the state of each path.

use core::net::SocketAddr;

use anabranch_core::units::Duration;

use super::{Tunnel, lanes::Lane};
use crate::{order::OrderStats, path::State, policy::Class, time::Instant, wire::PathId};

/// The counters of the tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Packets taken from the inside.
    pub entered: u64,
    /// Datagrams sealed.
    pub datagrams: u64,
    /// Packets retransmitted.
    pub retransmitted: u64,
    /// Copies of interactive packets sent.
    pub copies: u64,
    /// Packets of blocks, which repair packets protect.
    pub protected: u64,
    /// Repair packets sent.
    pub repairs: u64,
    /// Packets restored by repair packets.
    pub rebuilt: u64,
    /// Packets dropped because no path accepts their size any more.
    pub unsendable: u64,
    /// Packets with a source address that the other end must not use.
    pub foreign_sources: u64,
    /// Messages that cannot be decoded.
    pub malformed: u64,
    /// Data messages that are not authentic.
    pub unauthentic: u64,
    /// Data messages of a session whose number is not new. They are not authenticated.
    pub replayed: u64,
    /// Initiations that are not for this end, or not from the other end, at an end with its own
    /// reception.
    pub refused_initiations: u64,
    /// Initiations beyond the rate, at an end with its own reception.
    pub limited_initiations: u64,
    /// Cookie replies sent under load, at an end with its own reception.
    pub cookies: u64,
    /// Initiations with an old stamp.
    pub stale_initiations: u64,
    /// Detected restarts of the other end.
    pub peer_restarts: u64,
}

/// The state of a path.
#[derive(Debug, Clone, PartialEq)]
pub struct PathStats {
    /// Its number.
    pub path: PathId,
    /// Its liveness.
    pub state: State,
    /// The other end's address.
    pub remote: Option<SocketAddr>,
    /// The smoothed round-trip time; the way back is on the fastest path.
    pub srtt: Option<Duration>,
    /// The sending rate in octets per second.
    pub rate: f64,
    /// Octets in flight.
    pub in_flight: usize,
    /// The share of the other end's datagrams that did not arrive.
    pub loss: f64,
    /// The largest datagram.
    pub mtu: usize,
    /// The number of deaths.
    pub deaths: u64,
    /// Changes of the other end's address.
    pub roamed: u64,
    /// The sending time of the oldest packet whose report is awaited.
    pub waiting: Option<Instant>,
    /// Packets outstanding.
    pub outstanding: usize,
    /// Octets stored for retransmission.
    pub kept_octets: usize,
}

/// The packets of a class that this end sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassStats {
    /// The treatment.
    pub class: Class,
    /// Packets sent, repair packets and retransmissions included.
    pub packets: u64,
    /// Their octets.
    pub octets: u64,
    /// Packets that wait for a path.
    pub queued: usize,
    /// Packets dropped in the queue.
    pub dropped: u64,
}

/// The state of a tunnel.
#[derive(Debug, Clone, PartialEq)]
pub struct Stats {
    /// Whether there is a session, and a path that delivers.
    pub is_up: bool,
    /// Sessions since the start.
    pub sessions: u64,
    /// Counters.
    pub counters: Counters,
    /// Counters of the restorer of order.
    pub order: OrderStats,
    /// Packets that wait for a path.
    pub queued: usize,
    /// Packets that wait for retransmission.
    pub repairing: usize,
    /// Handshake datagrams that wait to be sent.
    pub answering: usize,
    /// Packets dropped in the queue.
    pub queue_dropped: u64,
    /// Packets that wait for others of their flow.
    pub waiting: usize,
    /// Packets and repair packets of incomplete blocks.
    pub collected: usize,
    /// Stored buffers.
    pub buffers: usize,
    /// Paths by number.
    pub paths: Vec<PathStats>,
    /// Classes; the first is bulk.
    pub classes: Vec<ClassStats>,
}

impl Stats {
    pub(super) fn of(tunnel: &Tunnel) -> Self {
        let paths = tunnel.paths.iter().map(|(id, path)| PathStats {
            path: id,
            state: path.liveness.state(),
            remote: path.route.map(|route| route.remote),
            srtt: path.round_trip.srtt(),
            rate: path.rate.rate(),
            in_flight: path.rate.in_flight(),
            loss: path.received.loss(),
            mtu: path.mtu.size(),
            deaths: path.liveness.deaths(),
            roamed: path.roamed,
            waiting: path.liveness.waiting(),
            outstanding: path.ledger.len(),
            kept_octets: path.ledger.kept_octets(),
        });
        Self {
            is_up: tunnel.is_up(),
            sessions: tunnel.handshakes.count,
            counters: tunnel.counters,
            order: tunnel.order.stats(),
            queued: tunnel.lanes.queued(),
            repairing: tunnel.lanes.repairing(),
            answering: tunnel.outbox.len(),
            queue_dropped: tunnel.lanes.dropped(),
            waiting: tunnel.order.waiting(),
            collected: tunnel.rebuilder.held(),
            buffers: tunnel.pool.len(),
            paths: paths.collect(),
            classes: tunnel.lanes.iter().map(Lane::stats).collect(),
        }
    }
}
