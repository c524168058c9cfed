//! Any octets as redundant packets, and as input of the layer's receiving half between data:
//! nothing panics, and no data is recovered that was not sent. The interpretation of the octets is
//! documented at the run, among the crate's tests.
#![cfg_attr(feature = "libfuzzer", no_main)]

use anabranch_fuzz::fuzz_target;

#[path = "../../crates/fec/tests/all/support/any_redundancy.rs"]
mod any_redundancy;

fuzz_target!(|bytes: &[u8]| {
    let _ = anabranch_wire::decode_redundant(bytes);
    any_redundancy::run(bytes);
});
