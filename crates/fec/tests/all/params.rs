//! Bounds of the parameters.

use anabranch_fec::{Config, Params};

fn fmax(value: &str) -> Result<u32, serde_json::Error> {
    serde_json::from_str::<Params>(&format!("{{\"fmax\": {value}}}")).map(|params| params.fmax)
}

/// Detects a reader that truncates values beyond 32 bits, and one that accepts fractions.
#[test]
fn fmax_is_read_exactly_or_refused() {
    for number in [0, 1, 10, 65_535] {
        assert_eq!(fmax(&number.to_string()).expect("it is a number"), number);
    }
    for wrong in ["-1", "4294967296", "1.5", "\"10\""] {
        let told = fmax(wrong).expect_err(wrong).to_string();
        assert!(told.contains("0 for no limit, or 1 to 65535"), "{told}");
    }
}

#[test]
fn a_group_has_at_most_65535_packets() {
    let message = |fmax| {
        let config = Config::Xor(Params {
            fmax,
            ..Params::default()
        });
        config.check().err().map(|wrong| wrong.message)
    };
    assert_eq!(message(65_535), None);
    for fmax in [65_536, 65_537, u32::MAX] {
        let told = message(fmax).expect("it is too many");
        assert!(told.contains("a group has 65535 packets at most"), "{told}");
    }
}
