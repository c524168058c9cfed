//! Any bytes as a capture to replay: the result is a recording in order of time or an error that
//! renders; nothing panics.
//!
//! Run it with `cargo fuzz run recording`.
#![cfg_attr(feature = "libfuzzer", no_main)]

use anabranch_fuzz::fuzz_target;
use anabranch_scenario::workload::Recording;

fuzz_target!(|bytes: &[u8]| match Recording::parse(bytes) {
    Ok(recording) => {
        let packets = recording.packets();
        assert!(packets[0].time.is_zero());
        assert!(packets.windows(2).all(|pair| pair[0].time <= pair[1].time));
        let sum: u64 = packets.iter().map(|packet| u64::from(packet.size)).sum();
        assert_eq!(recording.bytes(), sum);
    }
    Err(error) => assert!(!error.to_string().is_empty()),
});
