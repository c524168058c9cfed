//! Tests of the tunnel's core. Its laws, and what shows them:
//!
//! | law | over any events | by itself |
//! | --- | --- | --- |
//! | a packet is delivered at most once | `events` | `order::any_arrivals_are_delivered_once_and_in_order_but_for_late_ones` |
//! | a flow keeps its order but for packets whose gap was given up | `events` | the same |
//! | traffic flows within a second while one path is alive | `events` | `tunnel`, by kind of failure |
//! | no nonce is used twice | `network`, in every test | `crypto::paths_are_spaces_of_their_own` |
//! | memory is bounded | `events` | `order`, `correction`, `steady` |
//! | reports arrive whatever is lost | `events` | `liveness::reports_converge_whatever_is_lost` |
//! | states follow a model | `events`, with the table of `states` | `liveness::states_follow_the_model` |
//!
//! `PROPTEST_CASES=5000` runs thousands of cases of each.

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
