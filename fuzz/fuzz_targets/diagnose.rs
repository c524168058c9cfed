//! Any octets as a capture: the diagnosis does not panic and satisfies [`diagnosis::check`].
#![no_main]

mod diagnosis;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|capture: &[u8]| diagnosis::check(capture));
