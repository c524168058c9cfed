//! Error correction across paths: blocks of packets, their repair packets, and what these bring back.
//!
//! A symbol of the code is a packet with its place in its flow before it. The code is Reed-Solomon of `anabranch_fec`. It needs no
//! length, because an IP packet contains its own.

use anabranch_core::units::{Duration, Instant};
use anabranch_fec::code::{Code as _, Cover, reed_solomon::ReedSolomon};
use std::collections::{BTreeMap, VecDeque};

use crate::{
    inner,
    pool::Pool,
    wire::{Place, Repair},
};

/// Packets of a block at most.
pub const SOURCES: usize = 200;
/// Octets of a symbol before the packet.
const PLACE: usize = 4;
/// Blocks that the receiver collects at a time.
const COLLECTED: usize = 16;
/// Repair packets that wait to be sent, at most.
const WAITING: usize = 4 * SOURCES;

/// The place of a rebuilt packet: the low half of its number is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NearPlace {
    /// The flow.
    pub flow: u16,
    /// The low half of the number.
    pub low: u16,
}

fn symbol(place: Place, packet: &[u8], pool: &mut Pool) -> Vec<u8> {
    let mut symbol = pool.take();
    symbol.extend(place.flow.to_be_bytes());
    symbol.extend_from_slice(&place.number.to_be_bytes()[2..]);
    symbol.extend_from_slice(packet);
    symbol
}

/// The open block of a sender, and the repair packets of those before it.
#[derive(Debug, Default)]
pub struct Protector {
    sources: Vec<Vec<u8>>,
    block: u16,
    closes: Option<Instant>,
    repairs: VecDeque<(Repair, Vec<u8>)>,
}

impl Protector {
    /// When the block is to be closed.
    #[must_use]
    pub const fn closes(&self) -> Option<Instant> {
        self.closes
    }

    /// Adds a packet to the block, or to a new one of the number `next`. Gives block and index.
    pub fn add(
        &mut self,
        place: Place,
        packet: &[u8],
        next: &mut u16,
        closes: Instant,
        pool: &mut Pool,
    ) -> (u16, u8) {
        if self.sources.is_empty() {
            // 0 is no block.
            *next = next.wrapping_add(1).max(1);
            self.block = *next;
            self.closes = Some(closes);
        }
        let index = u8::try_from(self.sources.len()).unwrap_or(u8::MAX);
        self.sources.push(symbol(place, packet, pool));
        (self.block, index)
    }

    /// Packets in the open block.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sources.len()
    }

    /// Whether no block is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Closes the block with so many repair packets.
    pub fn close(&mut self, repairs: usize, pool: &mut Pool) {
        self.closes = None;
        let room = WAITING.saturating_sub(self.repairs.len());
        let count = u8::try_from(self.sources.len()).unwrap_or(u8::MAX);
        let of = u8::try_from(repairs.min(room).min(SOURCES)).unwrap_or(0);
        if of > 0 && count > 0 {
            let sources: Vec<&[u8]> = self.sources.iter().map(Vec::as_slice).collect();
            let parities = ReedSolomon.encode(&sources, 0, of.into());
            for (key, parity) in (0..of).zip(parities) {
                let Some((place, rest)) = parity.split_first_chunk::<PLACE>() else {
                    continue;
                };
                let repair = Repair {
                    block: self.block,
                    key,
                    of,
                    count,
                    place: *place,
                };
                self.repairs.push_back((repair, pool.copy(rest)));
            }
        }
        for source in self.sources.drain(..) {
            pool.put(source);
        }
    }

    /// Octets of the repair packet that is next.
    #[must_use]
    pub fn next_octets(&self) -> Option<usize> {
        self.repairs.front().map(|(_, content)| content.len())
    }

    /// Takes the next repair packet.
    pub fn pop(&mut self) -> Option<(Repair, Vec<u8>)> {
        self.repairs.pop_front()
    }
}

/// What has arrived of a block.
#[derive(Debug, Default)]
struct Block {
    since: Instant,
    sources: Vec<Option<Vec<u8>>>,
    repairs: Vec<(u8, Vec<u8>)>,
    /// How many packets and repair packets it has.
    shape: Option<(u8, u8)>,
    is_done: bool,
}

impl Block {
    fn finish(&mut self, pool: &mut Pool) {
        self.is_done = true;
        for source in self.sources.drain(..).flatten() {
            pool.put(source);
        }
        for (_, repair) in self.repairs.drain(..) {
            pool.put(repair);
        }
    }

    /// The symbols that are missing, once there are repair packets enough.
    fn rebuild(&self) -> Option<Vec<(usize, Vec<u8>)>> {
        let (count, of) = self.shape?;
        let count = usize::from(count);
        let sources: Vec<_> = (0..count)
            .map(|index| self.sources.get(index)?.as_deref())
            .collect();
        let present = sources.iter().flatten().count();
        if present + self.repairs.len() < count {
            return None;
        }
        let cover = |key: u8| Cover {
            first: 0,
            count,
            key: key.into(),
            of: of.into(),
        };
        let repairs: Vec<_> = self
            .repairs
            .iter()
            .map(|(key, repair)| (cover(*key), repair.as_slice()))
            .collect();
        Some(ReedSolomon.decode(&sources, &repairs))
    }
}

/// The blocks of a receiver.
#[derive(Debug, Default)]
pub struct Rebuilder {
    blocks: BTreeMap<u16, Block>,
}

impl Rebuilder {
    /// Packets and repair packets that it holds.
    #[must_use]
    pub fn held(&self) -> usize {
        let held = |block: &Block| block.sources.iter().flatten().count() + block.repairs.len();
        self.blocks.values().map(held).sum()
    }

    fn block(&mut self, number: u16, now: Instant, pool: &mut Pool) -> &mut Block {
        if !self.blocks.contains_key(&number) && self.blocks.len() >= COLLECTED {
            let oldest = self.blocks.iter().min_by_key(|(_, block)| block.since);
            if let Some(number) = oldest.map(|(&number, _)| number)
                && let Some(mut block) = self.blocks.remove(&number)
            {
                block.finish(pool);
            }
        }
        let fresh = || Block {
            since: now,
            ..Block::default()
        };
        let block = self.blocks.entry(number).or_insert_with(fresh);
        // Numbers are used again after 65,535 blocks.
        if now.saturating_since(block.since) > LIFE {
            block.finish(pool);
            *block = fresh();
        }
        block
    }

    /// A packet of a block arrived.
    pub fn on_source(
        &mut self,
        (number, index): (u16, u8),
        place: Place,
        packet: &[u8],
        now: Instant,
        pool: &mut Pool,
    ) -> Vec<(NearPlace, Vec<u8>)> {
        let index = usize::from(index);
        let block = self.block(number, now, pool);
        if block.is_done || index >= SOURCES {
            return Vec::new();
        }
        if block.sources.len() <= index {
            block.sources.resize_with(index + 1, || None);
        }
        if block.sources[index].is_none() {
            block.sources[index] = Some(symbol(place, packet, pool));
        }
        self.attempt(number, pool)
    }

    /// A repair packet arrived.
    pub fn on_repair(
        &mut self,
        repair: Repair,
        content: &[u8],
        now: Instant,
        pool: &mut Pool,
    ) -> Vec<(NearPlace, Vec<u8>)> {
        let block = self.block(repair.block, now, pool);
        let shape = (repair.count, repair.of);
        let is_known = block.repairs.iter().any(|&(key, _)| key == repair.key);
        if block.is_done || is_known || block.shape.is_some_and(|known| known != shape) {
            return Vec::new();
        }
        block.shape = Some(shape);
        let mut parity = pool.take();
        parity.extend(repair.place);
        parity.extend_from_slice(content);
        block.repairs.push((repair.key, parity));
        self.attempt(repair.block, pool)
    }

    fn attempt(&mut self, number: u16, pool: &mut Pool) -> Vec<(NearPlace, Vec<u8>)> {
        let Some(block) = self.blocks.get_mut(&number) else {
            return Vec::new();
        };
        let Some(rebuilt) = block.rebuild() else {
            return Vec::new();
        };
        block.finish(pool);
        rebuilt
            .iter()
            .filter_map(|(_, symbol)| packet(symbol))
            .collect()
    }

    /// The other end has restarted.
    pub fn restart(&mut self) {
        self.blocks.clear();
    }
}

/// A block is complete, or hopeless, after this time.
const LIFE: Duration = Duration::from_secs(2);

/// The packet of a symbol, without the zeros behind it.
fn packet(symbol: &[u8]) -> Option<(NearPlace, Vec<u8>)> {
    let (&[a, b, c, d], rest) = symbol.split_first_chunk::<PLACE>()?;
    let packet = rest.get(..inner::length(rest)?)?;
    let place = NearPlace {
        flow: u16::from_be_bytes([a, b]),
        low: u16::from_be_bytes([c, d]),
    };
    Some((place, packet.to_vec()))
}
