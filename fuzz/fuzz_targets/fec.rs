//! Any octets as redundant packets, and as what the receiving half of the layer hears between data: never a panic,
//! and never anything brought back that was not sent. What the octets say is told where the run is, beside its tests.
#![no_main]

use anabranch_elements::wire;
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/elements/tests/all/fec_support/any_redundancy.rs"]
mod any_redundancy;

fuzz_target!(|bytes: &[u8]| {
    let _ = wire::decode_redundant(bytes);
    any_redundancy::run(bytes);
});
