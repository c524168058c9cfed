//! Any bytes as a scenario file: the result is a scenario or an error that renders; nothing panics.
//!
//! Lines that begin with `#set ` are also passed as `--set`. Run it with `cargo fuzz run scenario
//! fuzz/corpus/scenario scenarios -- -dict=fuzz/scenario.dict`.
#![cfg_attr(feature = "libfuzzer", no_main)]

use anabranch_fuzz::fuzz_target;
use anabranch_scenario::{Extensions, Scenario};

fuzz_target!(|bytes: &[u8]| {
    let mut scenario = match Scenario::parse_bytes(bytes, "fuzz.toml", &Extensions::default()) {
        Ok(scenario) => scenario,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let text = std::str::from_utf8(bytes).expect("it was read as text");
    for set in text.lines().filter_map(|line| line.strip_prefix("#set ")) {
        let _ = scenario.set(set).map_err(|error| error.to_string());
    }
    let _ = scenario.sweep().map_err(|error| error.to_string());
    // Many copies are valid but slow; two show the same behaviour.
    let _ = scenario.set("flow.main.count=2");
    match scenario.resolve(None) {
        Ok(resolved) => assert!(resolved.json.value().is_object()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
