//! The queue in front of the paths: FQ-CoDel of `anabranch-path` over real packets.
//!
//! It stands before all paths rather than before each, so that nothing waits for a path that has died. A packet chooses its path
//! when it leaves.

use anabranch_core::{
    packet::{ConnectionId, Ecn, FlowId, PacketId},
    rng::Stream,
    units::{Instant, text::Limit},
};
use anabranch_path::queue::{
    Init, Item, Outcome, QueueContext, QueueDiscipline as _,
    fq_codel::{FqCodel, Params},
};
use std::collections::BTreeMap;

/// Packets that wait at most. It bounds memory to 3 MB at 1,500 octets.
const PACKETS: u64 = 2_048;

/// The queue.
#[derive(Debug)]
pub struct Queue {
    discipline: FqCodel,
    packets: BTreeMap<u32, (u16, Vec<u8>)>,
    next: u32,
    stream: Stream,
    dropped: u64,
}

impl Queue {
    /// An empty queue; `seed` decides which flows share a place.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let params = Params {
            limit: Limit::Packets(PACKETS),
            // Marks would have to be written into the packet's header.
            ecn: false,
            ..Params::default()
        };
        Self {
            discipline: FqCodel::new(
                &params,
                &Init {
                    rate: None,
                    flows: &[],
                },
            ),
            packets: BTreeMap::new(),
            next: 0,
            stream: Stream::new(seed, "queue"),
            dropped: 0,
        }
    }

    /// Packets dropped.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Packets that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Octets that wait.
    #[must_use]
    pub fn octets(&self) -> u64 {
        self.discipline.bytes()
    }

    /// Adds a packet.
    pub fn push(&mut self, flow: u16, packet: Vec<u8>, now: Instant) {
        let item = Item {
            packet: PacketId(self.next),
            size: u32::try_from(packet.len()).unwrap_or(u32::MAX),
            flow: FlowId(0),
            connection: ConnectionId(u32::from(flow)),
            arrived: now,
            ecn: Ecn::NotEct,
            order: self.next,
        };
        self.packets.insert(self.next, (flow, packet));
        self.next = self.next.wrapping_add(1);
        self.with(now, |discipline, cx| discipline.enqueue(item, cx));
    }

    /// Takes a packet.
    pub fn pop(&mut self, now: Instant) -> Option<(u16, Vec<u8>)> {
        let item = self.with(now, FqCodel::dequeue)?;
        self.packets.remove(&item.packet.0)
    }

    fn with<T>(
        &mut self,
        now: Instant,
        act: impl FnOnce(&mut FqCodel, &mut QueueContext<'_>) -> T,
    ) -> T {
        let mut outcomes = Vec::new();
        let result = act(
            &mut self.discipline,
            &mut QueueContext {
                now,
                held_packets: 0,
                held_bytes: 0,
                stream: self.stream,
                outcomes: &mut outcomes,
            },
        );
        for outcome in outcomes {
            if let Outcome::Dropped(item) = outcome {
                self.packets.remove(&item.packet.0);
                self.dropped += 1;
            }
        }
        result
    }
}
