//! Any octets as a capture: never a panic, and what [`diagnosis::check`] asks.
#![no_main]

mod diagnosis;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|capture: &[u8]| diagnosis::check(capture));
