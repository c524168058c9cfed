//! The queue of packets before the choice of a path: FQ-CoDel of `anabranch-path` with real
//! packets.
//!
//! There is one queue for all paths rather than one for each, so that no packet waits for a path
//! that has died. A packet's path is chosen when it leaves.

use anabranch_core::{
    packet::{ConnectionId, Direction, Ecn, FlowId, PacketId},
    rng::Stream,
    units::{self, Duration, text::Limit},
};
use anabranch_path::queue::{
    Init, Item, Outcome, QueueContext, QueueDiscipline as _,
    fq_codel::{FqCodel, Params},
};

use crate::{pool::Pool, time::Instant};

/// The largest number of waiting packets. It bounds memory to 3 MB at 1,500 octets.
const PACKETS: u64 = 2_048;

/// The discipline's clock ends after 213 days. The discipline begins again after 106 days, as soon as no
/// packet waits, and after 160 days even if some wait, which are then dropped.
const RENEWED: Duration = Duration::from_picos(1 << 63);
const LATEST: Duration = Duration::from_picos((1 << 63) + (1 << 62));

/// The packets of one lane that wait to be sent.
#[derive(Debug)]
pub struct Queue {
    /// Created with the first packet: it has 76 kB, and many peers of a gateway are idle.
    discipline: Option<FqCodel>,
    /// The start of the discipline's clock.
    base: Instant,
    /// By their numbers in the discipline, which are reused.
    packets: Vec<Option<(u16, Vec<u8>)>>,
    free: Vec<u32>,
    /// Total number of packets.
    order: u32,
    outcomes: Vec<Outcome>,
    stream: Stream,
    dropped: u64,
    expired: u64,
}

impl Queue {
    /// An empty queue; `seed` determines which flows share a bucket.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            discipline: None,
            base: Instant::START,
            packets: Vec::new(),
            free: Vec::new(),
            order: 0,
            outcomes: Vec::new(),
            stream: Stream::new(seed, "queue"),
            dropped: 0,
            expired: 0,
        }
    }

    /// Packets dropped because of their age.
    #[must_use]
    pub const fn expired(&self) -> u64 {
        self.expired
    }

    fn discipline() -> FqCodel {
        let params = Params {
            limit: Limit::Packets(PACKETS),
            // A mark would require a change of the packet's header.
            ecn: false,
            ..Params::default()
        };
        FqCodel::new(
            &params,
            &Init {
                rate: None,
                flows: &[],
                hosts: &[],
            },
        )
    }

    /// Packets dropped.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Packets that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets.len() - self.free.len()
    }

    /// Whether no packet waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Octets that wait.
    #[must_use]
    pub fn octets(&self) -> u64 {
        self.discipline.as_ref().map_or(0, FqCodel::bytes)
    }

    /// The time on the discipline's clock. The discipline begins again before that clock ends.
    fn local(&mut self, now: Instant, pool: &mut Pool) -> units::Instant {
        let past = now.saturating_since(self.base);
        if past >= LATEST || past >= RENEWED && self.is_empty() {
            let waiting = self.packets.drain(..).flatten();
            for (_, packet) in waiting {
                self.dropped += 1;
                pool.put(packet);
            }
            self.free.clear();
            self.discipline = None;
            self.base = now;
        }
        units::Instant::START + now.saturating_since(self.base)
    }

    /// Adds a packet. The buffers of dropped packets return to the pool.
    pub fn push(&mut self, flow: u16, packet: Vec<u8>, now: Instant, pool: &mut Pool) {
        let now = self.local(now, pool);
        let size = u32::try_from(packet.len()).unwrap_or(u32::MAX);
        let number = self.free.pop().unwrap_or_else(|| {
            self.packets.push(None);
            // At most one more than the discipline holds.
            u32::try_from(self.packets.len() - 1).unwrap_or(u32::MAX)
        });
        if let Some(place) = self.packets.get_mut(number as usize) {
            *place = Some((flow, packet));
        }
        let item = Item {
            packet: PacketId(number),
            size,
            flow: FlowId(0),
            connection: ConnectionId(u32::from(flow)),
            arrived: now,
            ecn: Ecn::NotEct,
            dscp: 0,
            has_data: true,
            direction: Direction::Forward,
            order: self.order,
        };
        self.order = self.order.wrapping_add(1);
        self.with(now, pool, |discipline, cx| discipline.enqueue(item, cx));
    }

    /// Takes a packet, with the time of its arrival. Packets that have waited for more than `target` throughout an interval are
    /// dropped (RFC 8289), and all that have waited for more than `age`.
    pub fn pop(
        &mut self,
        target: Duration,
        age: Duration,
        now: Instant,
        pool: &mut Pool,
    ) -> Option<(u16, Vec<u8>, Instant)> {
        let now = self.local(now, pool);
        self.discipline.as_mut()?.set_target(target);
        loop {
            let item = self.with(now, pool, FqCodel::dequeue)?;
            let (flow, packet) = self.take(item.packet)?;
            if now.saturating_since(item.arrived) <= age {
                let since = item.arrived.saturating_since(units::Instant::START);
                return Some((flow, packet, self.base + since));
            }
            self.expired += 1;
            pool.put(packet);
        }
    }

    fn take(&mut self, PacketId(number): PacketId) -> Option<(u16, Vec<u8>)> {
        let packet = self.packets.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(packet)
    }

    fn with<T>(
        &mut self,
        now: units::Instant,
        pool: &mut Pool,
        act: impl FnOnce(&mut FqCodel, &mut QueueContext<'_>) -> T,
    ) -> T {
        let mut outcomes = std::mem::take(&mut self.outcomes);
        let result = act(
            self.discipline.get_or_insert_with(Self::discipline),
            &mut QueueContext {
                now,
                held_packets: 0,
                held_bytes: 0,
                stream: self.stream,
                outcomes: &mut outcomes,
            },
        );
        for outcome in outcomes.drain(..) {
            if let Outcome::Dropped(item) = outcome {
                self.dropped += 1;
                if let Some((_, packet)) = self.take(item.packet) {
                    pool.put(packet);
                }
            }
        }
        self.outcomes = outcomes;
        result
    }
}
