//! Reed-Solomon: a block of `k` data packets is recovered from any `k` of its data and redundant
//! packets.
//!
//! A maximum distance separable block code, like that of RFC 5510 for bulk delivery, over GF(2¹⁶).
//! The crate `reed-solomon-simd` provides the arithmetic.
//!
//! # Differs from RFC 5510
//! - The field, the basis and therefore the redundant packets are the crate's.
//!
//! # Not implemented
//! - Blocks of more than 255 data packets or more than 255 redundant packets.

use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};

use super::{Code, Cover};

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReedSolomon;

/// Maximum number of packets of either kind in a block.
const MOST: usize = 255;

/// Pads a packet with zeros to `size`.
fn padded<'a>(packet: &'a [u8], size: usize, frame: &'a mut Vec<u8>) -> &'a [u8] {
    if packet.len() == size {
        return packet;
    }
    frame.clear();
    frame.extend_from_slice(packet);
    frame.resize(size, 0);
    frame
}

/// Groups redundant packets by block.
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

/// The missing places of a block, if it has enough packets to recover them.
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
    /// Recovers the missing packets of a block; `None` if the redundant packets are inconsistent.
    fn rebuild(
        sources: &[Option<&[u8]>],
        block: &[(Cover, &[u8])],
    ) -> Option<Vec<(usize, Vec<u8>)>> {
        let (cover, first) = *block.first()?;
        let size = first.len();
        let mut decoder = ReedSolomonDecoder::new(cover.count, usize::from(cover.of), size).ok()?;
        let mut frame = Vec::new();
        for (k, place) in cover.places().enumerate() {
            if let Some(source) = sources[place] {
                if source.len() > size {
                    return None;
                }
                let shard = padded(source, size, &mut frame);
                decoder.add_original_shard(k, shard).ok()?;
            }
        }
        for (cover, parity) in block {
            decoder
                .add_recovery_shard(usize::from(cover.key), parity)
                .ok()?;
        }
        let result = decoder.decode().ok()?;
        let restored = result.restored_original_iter();
        Some(
            restored
                .map(|(k, shard)| (cover.first + k, shard.to_vec()))
                .collect(),
        )
    }
}

impl Code for ReedSolomon {
    fn most_sources(&self) -> u32 {
        255
    }
    fn most_redundant(&self) -> u32 {
        255
    }
    fn encode(&self, sources: &[&[u8]], key: u16, n: u16) -> Vec<Vec<u8>> {
        assert!(key == 0, "a block's redundant packets are made together");
        let longest = sources.iter().map(|source| source.len()).max().unwrap_or(0);
        // The code works on pairs of octets.
        let size = longest.next_multiple_of(2).max(2);
        let mut encoder = ReedSolomonEncoder::new(sources.len(), usize::from(n), size)
            .expect("a block of 1 to 255 packets and 1 to 255 redundant ones");
        let mut frame = Vec::new();
        for source in sources {
            encoder
                .add_original_shard(padded(source, size, &mut frame))
                .expect("as many as were announced, of one size");
        }
        let result = encoder.encode().expect("all of them are there");
        result.recovery_iter().map(<[u8]>::to_vec).collect()
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
        redundant: &[(Cover, &[u8])],
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
