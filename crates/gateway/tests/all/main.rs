//! Tests of the tunnel's core.
mod crypto;
mod network;
mod tunnel;
mod wire;

use anabranch_core::rng::Stream;
use anabranch_gateway::crypto::Entropy;

/// A seeded source of octets.
pub struct Seeded {
    stream: Stream,
    index: u64,
}

impl Seeded {
    /// The source of `name` under `seed`.
    #[must_use]
    pub fn new(seed: u64, name: &str) -> Self {
        let stream = Stream::new(seed, name);
        Self { stream, index: 0 }
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
