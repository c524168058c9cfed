//! Errors of `held_limit`.

use super::*;

const DELAY: &str = "delay = \"5 ms\"";

/// The error of the bottleneck with more keys.
fn link(keys: &str) -> String {
    with(DELAY, &format!("{DELAY}\n{keys}"))
}

#[test]
fn a_link_must_hold_at_least_one_packet() {
    for limit in ["0 packets", "0 bytes"] {
        let told = link(&format!("held_limit = \"{limit}\""));
        let expected = "test.toml:12:14: a link that can hold no packet delivers none";
        assert!(told.starts_with(expected), "{told}");
    }
    let told = link("forward.held_limit = \"0 packets\"");
    assert!(
        told.starts_with("test.toml:12:22: a link that can hold"),
        "{told}"
    );
    for limit in ["1 packets", "1000 packets", "64 KiB", "2 bdp", "unlimited"] {
        let keys = format!("{DELAY}\nheld_limit = \"{limit}\"");
        assert_eq!(check(&GOOD.replace(DELAY, &keys), &[]), Ok(()));
    }
}

#[test]
fn a_bound_in_bdp_needs_a_rate() {
    let told = with("rate = \"10 Mbit/s\"", "held_limit = \"1 bdp\"");
    let expected =
        "test.toml:10:14: a held_limit in bdp needs a rate, and this link's is unlimited";
    assert!(told.starts_with(expected), "{told}");
}

#[test]
fn a_bound_has_a_name_and_a_unit() {
    let told = link("held_limt = \"1 packets\"");
    assert!(told.contains("did you mean `held_limit`?"), "{told}");
    for wrong in ["1000", "\"1000\"", "\"-1 packets\"", "\"ten packets\""] {
        let told = link(&format!("held_limit = {wrong}"));
        assert!(told.starts_with("test.toml:12:14: "), "{told}");
    }
}

#[test]
fn a_bound_does_not_change_in_mid_run() {
    let told =
        plus("[[at]]\ntime = \"1 s\"\nset = { \"link.bottleneck.held_limit\" = \"9 packets\" }\n");
    assert!(told.contains("held_limit"), "{told}");
}

/// A direction's value replaces the link's, even with "unlimited"; the resolved scenario contains
/// the same.
#[test]
fn a_direction_has_its_own_bound() {
    let keys = format!("{DELAY}\nheld_limit = \"9 packets\"\nreverse.held_limit = \"unlimited\"");
    let text = GOOD.replace(DELAY, &keys);
    let resolve = |text: &str| {
        Scenario::parse(text, "test.toml", &Extensions::default())
            .and_then(|scenario| scenario.resolve(None))
            .unwrap_or_else(|error| panic!("{error}"))
    };
    let json = resolve(&text).json.value();
    let link = &json["link"]["bottleneck"];
    assert_eq!(link["forward"]["held_limit"], "9 packets");
    assert!(link["reverse"].get("held_limit").is_none(), "{link}");
    assert!(link.get("held_limit").is_none(), "{link}");
}
