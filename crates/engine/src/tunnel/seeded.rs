//! Random octets from the scenario's seed.

use anabranch_core::rng::Stream;
use anabranch_gateway::crypto::Entropy;

/// The random source of one name under one seed.
pub(super) struct Seeded {
    stream: Stream,
    index: u64,
}

impl Seeded {
    pub(super) fn new(seed: u64, name: &str) -> Self {
        Self {
            stream: Stream::new(seed, name),
            index: 0,
        }
    }
}

impl Entropy for Seeded {
    fn fill(&mut self, octets: &mut [u8]) {
        for chunk in octets.chunks_mut(4) {
            let bits = self.stream.at(self.index).bits().to_be_bytes();
            chunk.copy_from_slice(&bits[..chunk.len()]);
            self.index += 1;
        }
    }
}
