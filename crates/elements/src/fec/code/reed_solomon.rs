//! Reed-Solomon: any `k` of a block's `k` data packets and its redundant packets bring the block back.
//!
//! A maximum distance separable block code, as RFC 5510 has it for bulk delivery, over GF(2¹⁶); the
//! arithmetic is that of the crate `reed-solomon-simd`.
//!
//! # Differs from RFC 5510
//! - The field, the basis and so the redundant packets themselves are the crate's.
//!
//! # Not implemented
//! - Blocks of more than 255 packets, or with more than 255 redundant ones.

use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};

use super::{Code, Cover, Parity, cut, length_of};

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReedSolomon;

/// The most of either kind in a block.
const MOST: usize = 255;

/// A packet as the code takes it: its length, itself, zeros.
fn framed(packet: &[u8], size: usize, frame: &mut Vec<u8>) {
    frame.clear();
    frame.extend_from_slice(&length_of(packet));
    frame.extend_from_slice(packet);
    frame.resize(size, 0);
}

/// The redundant packets that say something of one block.
fn blocks(redundant: &[Cover]) -> Vec<Vec<usize>> {
    let mut blocks: Vec<Vec<usize>> = Vec::new();
    for (k, cover) in redundant.iter().enumerate() {
        if cover.count > MOST || usize::from(cover.of) > MOST || cover.key >= cover.of {
            continue;
        }
        let same = blocks.iter_mut().find(|block| {
            let other = redundant[block[0]];
            (other.first, other.count, other.of) == (cover.first, cover.count, cover.of)
        });
        match same {
            Some(block) => {
                if block.iter().all(|other| redundant[*other].key != cover.key) {
                    block.push(k);
                }
            }
            None => blocks.push(vec![k]),
        }
    }
    blocks
}

/// The places that a block lacks, if it has enough to bring them back.
fn lacking(present: &[bool], cover: Cover, redundant: usize) -> Vec<usize> {
    if cover.places().end > present.len() {
        return Vec::new();
    }
    let missing: Vec<_> = cover.places().filter(|place| !present[*place]).collect();
    if missing.len() <= redundant {
        missing
    } else {
        Vec::new()
    }
}

impl ReedSolomon {
    /// `None` if the redundant packets cannot be a block's.
    fn rebuild(
        sources: &[Option<&[u8]>],
        block: &[(Cover, &Parity)],
    ) -> Option<Vec<(usize, Vec<u8>)>> {
        let (cover, first) = *block.first()?;
        let size = first.body.len() + 2;
        let mut decoder =
            ReedSolomonDecoder::new(cover.count, usize::from(cover.of), size).ok()?;
        let mut frame = Vec::with_capacity(size);
        for (k, place) in cover.places().enumerate() {
            if let Some(source) = sources[place] {
                if source.len() + 2 > size {
                    return None;
                }
                framed(source, size, &mut frame);
                decoder.add_original_shard(k, &frame).ok()?;
            }
        }
        for (cover, parity) in block {
            frame.clear();
            frame.extend_from_slice(&parity.lengths);
            frame.extend_from_slice(&parity.body);
            decoder
                .add_recovery_shard(usize::from(cover.key), &frame)
                .ok()?;
        }
        let result = decoder.decode().ok()?;
        result
            .restored_original_iter()
            .map(|(k, shard)| {
                let (lengths, body) = shard.split_first_chunk()?;
                Some((cover.first + k, cut(*lengths, body.to_vec())?))
            })
            .collect()
    }
}

impl Code for ReedSolomon {
    fn most_sources(&self) -> u32 {
        255
    }
    fn most_redundant(&self, _sources: u32) -> u32 {
        255
    }
    fn encode(&self, sources: &[&[u8]], key: u16, n: u16) -> Vec<Parity> {
        assert!(key == 0, "a block's redundant packets are made together");
        let longest = sources.iter().map(|source| source.len()).max().unwrap_or(0);
        // The code works on pairs of octets.
        let size = (longest + 2).next_multiple_of(2);
        let mut encoder = ReedSolomonEncoder::new(sources.len(), usize::from(n), size)
            .expect("a block of 1 to 255 packets and 1 to 255 redundant ones");
        let mut frame = Vec::with_capacity(size);
        for source in sources {
            framed(source, size, &mut frame);
            encoder
                .add_original_shard(&frame)
                .expect("as many as were announced, of one size");
        }
        let result = encoder.encode().expect("all of them are there");
        result
            .recovery_iter()
            .map(|shard| Parity {
                lengths: [shard[0], shard[1]],
                body: shard[2..].to_vec(),
            })
            .collect()
    }
    fn recoverable(&self, present: &[bool], redundant: &[Cover]) -> Vec<usize> {
        let mut places: Vec<_> = blocks(redundant)
            .iter()
            .flat_map(|block| lacking(present, redundant[block[0]], block.len()))
            .collect();
        places.sort_unstable();
        places.dedup();
        places
    }
    fn decode(
        &self,
        sources: &[Option<&[u8]>],
        redundant: &[(Cover, &Parity)],
    ) -> Vec<(usize, Vec<u8>)> {
        let present: Vec<_> = sources.iter().map(Option::is_some).collect();
        let covers: Vec<_> = redundant.iter().map(|(cover, _)| *cover).collect();
        let mut rebuilt = Vec::new();
        for block in blocks(&covers) {
            if lacking(&present, covers[block[0]], block.len()).is_empty() {
                continue;
            }
            let block: Vec<_> = block.iter().map(|k| redundant[*k]).collect();
            rebuilt.extend(Self::rebuild(sources, &block).unwrap_or_default());
        }
        rebuilt.sort_unstable_by_key(|(place, _)| *place);
        rebuilt.dedup_by_key(|(place, _)| *place);
        rebuilt
    }
}
