//! Any octets as redundant packets, and as what the receiving half of the layer hears between data: never a panic,
//! and never anything brought back that was not sent. What the octets say is told where the run is, beside its tests.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/fec/tests/all/support/any_redundancy.rs"]
mod any_redundancy;

fuzz_target!(|bytes: &[u8]| {
    let _ = anabranch_wire::decode_redundant(bytes);
    any_redundancy::run(bytes);
});
