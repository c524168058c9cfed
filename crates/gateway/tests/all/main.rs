//! Tests of the tunnel's core.
mod correction;
mod crypto;
mod events;
mod inner;
mod liveness;
mod network;
mod order;
mod policy;
mod states;
mod tunnel;
mod vectors;
mod wire;

use anabranch_core::rng::Stream;
use anabranch_gateway::crypto::Entropy;
use proptest::prelude::ProptestConfig;

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

/// A configuration with few cases, unless `PROPTEST_CASES` asks for more.
#[must_use]
pub fn cases(few: u32) -> ProptestConfig {
    /// What proptest runs where nothing is asked for.
    const DEFAULT: u32 = 256;
    let config = ProptestConfig::default();
    let cases = if config.cases == DEFAULT {
        few
    } else {
        config.cases
    };
    ProptestConfig { cases, ..config }
}
