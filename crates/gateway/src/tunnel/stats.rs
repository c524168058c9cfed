//! Counters, and the state of each path.

use anabranch_core::units::{Duration, Instant};

use super::Tunnel;
use crate::{order::OrderStats, path::State, wire::PathId};

/// What the tunnel counts.
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
    /// Packets that repair packets brought back.
    pub rebuilt: u64,
    /// Packets dropped because no path takes their size any more.
    pub unsendable: u64,
    /// Packets whose source address the other end must not use.
    pub foreign_sources: u64,
    /// Messages of no known form.
    pub malformed: u64,
    /// Data messages that are not authentic.
    pub unauthentic: u64,
    /// Data messages of a session whose number is not new. They are not authenticated.
    pub replayed: u64,
    /// Initiations that are not for this end, or not from the other.
    pub refused_initiations: u64,
    /// Cookies handed out, under load.
    pub cookies: u64,
    /// Restarts of the other end that were noticed.
    pub peer_restarts: u64,
}

/// A path.
#[derive(Debug, Clone, PartialEq)]
pub struct PathStats {
    /// Its number.
    pub path: PathId,
    /// Whether it delivers.
    pub state: State,
    /// The smoothed round-trip time, back on whichever path is first.
    pub srtt: Option<Duration>,
    /// Octets per second at which it is sent on.
    pub rate: f64,
    /// Octets in flight.
    pub in_flight: usize,
    /// The share of the other end's datagrams that did not arrive.
    pub loss: f64,
    /// The largest datagram.
    pub mtu: usize,
    /// How often it died.
    pub deaths: u64,
    /// How often the other end's address changed.
    pub roamed: u64,
    /// When the oldest packet was sent that should have been reported since.
    pub waiting: Option<Instant>,
    /// Packets outstanding.
    pub outstanding: usize,
    /// Octets kept for retransmission.
    pub kept_octets: usize,
}

/// The state of a tunnel.
#[derive(Debug, Clone, PartialEq)]
pub struct Stats {
    /// Whether there is a session, and a path that delivers.
    pub is_up: bool,
    /// Sessions so far.
    pub sessions: u64,
    /// Counters.
    pub counters: Counters,
    /// Counters of the restorer.
    pub order: OrderStats,
    /// Packets that wait for a path.
    pub queued: usize,
    /// Packets that wait to be retransmitted.
    pub repairing: usize,
    /// Datagrams of handshakes that wait to be sent.
    pub answering: usize,
    /// Packets dropped in the queue.
    pub queue_dropped: u64,
    /// Packets that wait for others of their flow.
    pub waiting: usize,
    /// Packets and repair packets of incomplete blocks.
    pub collected: usize,
    /// Buffers that wait to be used again.
    pub buffers: usize,
    /// Paths by number.
    pub paths: Vec<PathStats>,
}

impl Stats {
    pub(super) fn of(tunnel: &Tunnel) -> Self {
        let paths = tunnel.paths.iter().map(|(id, path)| PathStats {
            path: id,
            state: path.liveness.state(),
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
        }
    }
}
