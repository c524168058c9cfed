//! Error correction across paths: blocks of packets, their repair packets, and the reconstruction
//! of lost packets.
//!
//! A symbol of the code is a packet preceded by its place in its flow. The code is Reed-Solomon of
//! `anabranch_fec`. Symbols carry no length, because an IP packet contains its own.

use anabranch_core::units::Duration;
use anabranch_erasure::{Code as _, Cover, reed_solomon::ReedSolomon};
use std::collections::{BTreeMap, VecDeque};

use crate::{
    inner,
    path::Kept,
    pool::Pool,
    time::Instant,
    wire::{Place, Repair},
};

/// The largest number of packets in a block.
pub const SOURCES: usize = 200;
/// Octets of a symbol before the packet.
const PLACE: usize = 4;
/// Blocks that the receiver collects at a time, and whose losses the sender tracks.
const COLLECTED: usize = 64;
/// The largest number of packets and repair packets that the receiver holds.
const HELD: usize = 16 * SOURCES;
/// The largest number of repair packets that wait to be sent.
const WAITING: usize = 4 * SOURCES;

/// The place of a rebuilt packet, of whose number only the low half is known.
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

/// The losses of a block that was sent.
#[derive(Debug, Default)]
struct Losses {
    block: u16,
    /// Repair packets that were not lost; `None` while the block is open.
    repairs: Option<usize>,
    lost: Vec<Kept>,
}

/// The open block of a sender, the repair packets of earlier blocks, and their losses.
#[derive(Debug, Default)]
pub struct Protector {
    sources: Vec<Vec<u8>>,
    block: u16,
    closes: Option<Instant>,
    repairs: VecDeque<(Repair, Vec<u8>)>,
    /// The losses of the last blocks, newest last.
    losses: VecDeque<Losses>,
}

impl Protector {
    /// The time at which the open block must be closed.
    #[must_use]
    pub const fn closes(&self) -> Option<Instant> {
        self.closes
    }

    /// Adds a packet to the block, or to a new one with number `next`. Returns the block's number
    /// and the packet's index.
    pub fn add(
        &mut self,
        place: Place,
        packet: &[u8],
        next: &mut u16,
        closes: Instant,
        pool: &mut Pool,
    ) -> (u16, u8) {
        if self.sources.is_empty() {
            // 0 means no block.
            *next = next.wrapping_add(1).max(1);
            self.block = *next;
            self.closes = Some(closes);
            self.watch(pool);
        }
        let index = u8::try_from(self.sources.len()).unwrap_or(u8::MAX);
        self.sources.push(symbol(place, packet, pool));
        (self.block, index)
    }

    /// Tracks the losses of the open block in place of the oldest one.
    fn watch(&mut self, pool: &mut Pool) {
        let oldest = (self.losses.len() >= COLLECTED).then(|| self.losses.pop_front());
        let mut losses = oldest.flatten().unwrap_or_default();
        for kept in losses.lost.drain(..) {
            pool.put(kept.packet);
        }
        (losses.block, losses.repairs) = (self.block, None);
        self.losses.push_back(losses);
    }

    fn losses(&mut self, block: u16) -> Option<&mut Losses> {
        self.losses.iter_mut().rev().find(|one| one.block == block)
    }

    /// Records the loss of a packet of a block. Returns the packet if the block is no longer
    /// tracked.
    pub fn on_lost(&mut self, kept: Kept) -> Option<Kept> {
        let block = kept.part.map_or(0, |(block, _)| block);
        let Some(losses) = self.losses(block) else {
            return Some(kept);
        };
        losses.lost.push(kept);
        None
    }

    /// Records the loss of a repair packet of a block.
    pub fn on_repair_lost(&mut self, block: u16) {
        if let Some(Losses {
            repairs: Some(repairs),
            ..
        }) = self.losses(block)
        {
            *repairs = repairs.saturating_sub(1);
        }
    }

    /// Takes a lost packet from a block that has lost more than its repair packets can restore.
    pub fn take_excess(&mut self) -> Option<Kept> {
        let is_too_many = |losses: &&mut Losses| {
            losses
                .repairs
                .is_some_and(|repairs| losses.lost.len() > repairs)
        };
        self.losses.iter_mut().find(is_too_many)?.lost.pop()
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

    /// Closes the block with up to `repairs` repair packets.
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
        let block = self.block;
        if let Some(losses) = self.losses(block) {
            losses.repairs = Some(of.into());
        }
        for source in self.sources.drain(..) {
            pool.put(source);
        }
    }

    /// Octets of the next repair packet.
    #[must_use]
    pub fn next_octets(&self) -> Option<usize> {
        self.repairs.front().map(|(_, content)| content.len())
    }

    /// Takes the next repair packet.
    pub fn pop(&mut self) -> Option<(Repair, Vec<u8>)> {
        self.repairs.pop_front()
    }
}

/// The received packets of a block.
#[derive(Debug, Default)]
struct Block {
    since: Instant,
    sources: Vec<Option<Vec<u8>>>,
    repairs: Vec<(u8, Vec<u8>)>,
    /// The number of packets and repair packets held.
    held: usize,
    /// The numbers of packets and of repair packets in the block.
    shape: Option<(u8, u8)>,
    is_done: bool,
}

impl Block {
    /// Resets the entry for another block. Returns the number of packets that it no longer holds.
    fn begin(&mut self, now: Instant, pool: &mut Pool) -> usize {
        let held = self.finish(pool);
        (self.since, self.shape, self.is_done) = (now, None, false);
        held
    }

    /// Releases the block's packets. Returns their number.
    fn finish(&mut self, pool: &mut Pool) -> usize {
        self.is_done = true;
        for source in self.sources.drain(..).flatten() {
            pool.put(source);
        }
        for (_, repair) in self.repairs.drain(..) {
            pool.put(repair);
        }
        std::mem::take(&mut self.held)
    }

    /// The missing symbols, if there are enough repair packets.
    fn rebuild(&self) -> Option<Vec<(usize, Vec<u8>)>> {
        let (count, of) = self.shape?;
        let count = usize::from(count);
        if self.held < count {
            return None;
        }
        let present = self.sources.iter().take(count).flatten().count();
        if present == count {
            return Some(Vec::new());
        }
        if present + self.repairs.len() < count {
            return None;
        }
        let sources: Vec<_> = (0..count)
            .map(|index| self.sources.get(index)?.as_deref())
            .collect();
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
    /// Packets and repair packets of all blocks.
    held: usize,
    /// Dropped blocks, whose memory is reused.
    spare: Vec<Block>,
}

impl Rebuilder {
    /// The number of packets and repair packets held.
    #[must_use]
    pub const fn held(&self) -> usize {
        self.held
    }

    fn block(&mut self, number: u16, now: Instant, pool: &mut Pool) -> &mut Block {
        while self.held >= HELD
            || self.blocks.len() >= COLLECTED && !self.blocks.contains_key(&number)
        {
            let oldest = self.blocks.iter().min_by_key(|(_, block)| block.since);
            let Some((&oldest, _)) = oldest else { break };
            if let Some(mut block) = self.blocks.remove(&oldest) {
                self.held -= block.begin(now, pool);
                self.spare.push(block);
            }
        }
        let block = self.blocks.entry(number).or_insert_with(|| {
            let mut block = self.spare.pop().unwrap_or_default();
            block.begin(now, pool);
            block
        });
        // Numbers are reused after 65,535 blocks.
        if now.saturating_since(block.since) > LIFE {
            self.held -= block.begin(now, pool);
        }
        block
    }

    /// Adds a packet of a block. Returns packets that were rebuilt.
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
            block.held += 1;
            self.held += 1;
        }
        self.attempt(number, pool)
    }

    /// Adds a repair packet. Returns packets that were rebuilt.
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
        block.held += 1;
        self.held += 1;
        self.attempt(repair.block, pool)
    }

    fn attempt(&mut self, number: u16, pool: &mut Pool) -> Vec<(NearPlace, Vec<u8>)> {
        let Some(block) = self.blocks.get_mut(&number) else {
            return Vec::new();
        };
        let Some(rebuilt) = block.rebuild() else {
            return Vec::new();
        };
        self.held -= block.finish(pool);
        rebuilt
            .iter()
            .filter_map(|(_, symbol)| packet(symbol))
            .collect()
    }

    /// Drops all blocks, because the other end has restarted.
    pub fn restart(&mut self) {
        self.blocks.clear();
        self.held = 0;
    }
}

/// A block is complete, or cannot be completed, after this time.
const LIFE: Duration = Duration::from_secs(2);

/// The packet of a symbol, without trailing zeros.
fn packet(symbol: &[u8]) -> Option<(NearPlace, Vec<u8>)> {
    let (&[a, b, c, d], rest) = symbol.split_first_chunk::<PLACE>()?;
    let packet = rest.get(..inner::length(rest)?)?;
    let place = NearPlace {
        flow: u16::from_be_bytes([a, b]),
        low: u16::from_be_bytes([c, d]),
    };
    Some((place, packet.to_vec()))
}
