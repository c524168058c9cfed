//! Any octets as a capture: the diagnosis does not panic and satisfies [`diagnosis::check`].
#![cfg_attr(feature = "libfuzzer", no_main)]

mod diagnosis;

use anabranch_fuzz::fuzz_target;

fuzz_target!(|capture: &[u8]| diagnosis::check(capture));
