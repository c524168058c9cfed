//! Tests of the tunnel's core. Its laws, and the tests of each:
//!
//! | law | over any events | separately |
//! | --- | --- | --- |
//! | a packet is delivered at most once | `events` | `order::arrivals_are_delivered_once_and_in_order_except_late_ones` |
//! | a flow keeps its order, except packets whose gap was given up | `events` | the same |
//! | traffic flows within a second while one path is alive | `events` | `failures`, by kind |
//! | no nonce is used twice | `network`, in every test | `crypto::each_path_has_a_separate_number_space` |
//! | memory is bounded | `events` | `order`, `correction`, `steady` |
//! | reports arrive under any loss | `events` | `liveness::reports_converge_under_any_loss` |
//! | states follow a model | `events`, with the table of `states` | `liveness::states_follow_the_model` |
//!
//! `PROPTEST_CASES=5000` runs thousands of cases of each.

mod attacks;
mod capacity;
mod clock;
mod correction;
mod crypto;
mod events;
mod failures;
mod inner;
mod liveness;
mod network;
mod octets;
mod order;
mod outage;
mod path_mtu;
mod policy;
mod reception;
mod renewal;
mod restart;
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

/// A configuration with few cases, unless `PROPTEST_CASES` requests more.
#[must_use]
pub fn cases(few: u32) -> ProptestConfig {
    /// The default of proptest.
    const DEFAULT: u32 = 256;
    let config = ProptestConfig::default();
    let cases = if config.cases == DEFAULT {
        few
    } else {
        config.cases
    };
    ProptestConfig { cases, ..config }
}
