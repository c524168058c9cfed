//! Invalid MTUs, and invalid writes of requests.

use super::*;

/// The bottleneck with more keys.
fn link(keys: &str) -> String {
    let queue = "queue = { kind = \"drop-tail\", limit = \"100 packets\" }";
    with(queue, &format!("{queue}\n{keys}"))
}

#[test]
fn an_mtu_has_the_bounds_of_ipv4() {
    for (mtu, shown) in [
        ("67 bytes", "67 bytes"),
        ("65536 bytes", "64 KiB"),
        ("0 bytes", "0 bytes"),
    ] {
        let told = link(&format!("mtu = \"{mtu}\""));
        assert!(
            told.contains(&format!(
                "test.toml:13:7: an MTU of {shown} is outside 68 to 65535 bytes"
            )),
            "{told}"
        );
    }
    for mtu in ["68 bytes", "65535 bytes"] {
        let text = GOOD.replace(
            "delay = \"5 ms\"",
            &format!("delay = \"5 ms\"\nmtu = \"{mtu}\""),
        );
        assert_eq!(check(&text, &[]), Ok(()));
    }
}

#[test]
fn an_mtu_is_in_bytes() {
    let told = link("mtu = 1400");
    assert!(told.starts_with("test.toml:13:7: "), "{told}");
    let told = link("mtu = \"1400 packets\"");
    assert!(told.starts_with("test.toml:13:7: "), "{told}");
}

#[test]
fn reports_need_an_mtu() {
    let told = link("mtu_reports = false");
    assert!(
        told.starts_with("test.toml:13:15: this direction of the link has no MTU"),
        "{told}"
    );
    let told = link("forward.mtu = \"1400 bytes\"\nreverse.mtu_reports = false");
    assert!(
        told.starts_with("test.toml:14:23: this direction of the link has no MTU"),
        "{told}"
    );
    // A key for both directions applies to the direction with an MTU.
    let text = GOOD.replace(
        "delay = \"5 ms\"",
        "delay = \"5 ms\"\nmtu_reports = false\nforward.mtu = \"1400 bytes\"",
    );
    assert_eq!(check(&text, &[]), Ok(()));
}

#[test]
fn ipv6_needs_1280_bytes_of_every_link() {
    for (mtu, is_refused) in [(1279, true), (1280, false)] {
        let text = GOOD
            .replace(
                "delay = \"5 ms\"",
                &format!("delay = \"5 ms\"\nreverse.mtu = \"{mtu} bytes\""),
            )
            .replace("cc = \"reno\"", "cc = \"reno\"\nfamily = 6");
        let live = Extensions::default().live(true);
        let told = Scenario::parse(&text, "test.toml", &live)
            .and_then(|scenario| scenario.resolve(None).map(drop));
        let expected = "test.toml:19:10: the link `bottleneck` has an MTU of 1279 bytes, and IPv6 requires 1280 on every link";
        match told {
            Ok(()) => assert!(!is_refused),
            Err(error) => assert!(
                is_refused && error.to_string().starts_with(expected),
                "{error}"
            ),
        }
    }
}

#[test]
fn an_mtu_does_not_change_in_mid_run() {
    let told = plus("[[at]]\ntime = \"2 s\"\nset = { \"link.bottleneck.mtu\" = \"1400 bytes\" }\n");
    assert!(
        told.contains("`link.bottleneck.mtu` cannot change in mid-run"),
        "{told}"
    );
}

#[test]
fn an_unknown_kind_of_discovery_names_the_nearest() {
    let told = with(
        "stack = \"rfc\"",
        "stack = \"rfc\"\ntransport.mtu_discovery = \"icnp\"",
    );
    assert!(told.contains("`icmp`"), "{told}");
}

#[test]
fn a_request_has_a_byte_for_each_write() {
    let workload = "stack = \"rfc\"\nworkload = { kind = \"request-response\", request = \"10 bytes\", writes = 11 }";
    let told = with("stack = \"rfc\"", workload);
    assert!(
        told.contains("a request of 10 bytes cannot be written in 11 writes"),
        "{told}"
    );
}

#[test]
fn lists_of_writes_have_sizes_that_fit() {
    for (keys, wrong) in [
        (
            "kind = \"request-response\", writes = 0",
            "a list of their sizes",
        ),
        (
            "kind = \"request-response\", writes = []",
            "a list of their sizes",
        ),
        ("kind = \"request-response\", writes = [3]", "with its unit"),
        (
            "kind = \"request-response\", writes = [\"1 kB\", \"0 bytes\"]",
            "a write cannot carry 0 bytes",
        ),
        (
            "kind = \"request-response\", request = \"3 kB\", writes = [\"1 kB\", \"1 kB\"]",
            "these writes add up to 2000 bytes, and `request` is 3000 bytes",
        ),
        (
            "kind = \"request-response\", response = \"9 bytes\", response_writes = [\"1 kB\"]",
            "and `response` is 9 bytes",
        ),
        (
            "kind = \"request-response\", response_writes = [\"18 EB\", \"18 EB\"]",
            "18",
        ),
        (
            "kind = \"paced\", rate = \"1 Mbit/s\", writes = [\"1 kB\", \"5 GB\"]",
            "a write cannot carry 5000 MB",
        ),
        (
            "kind = \"paced\", rate = \"1 Mbit/s\", writes = [\"0 bytes\"]",
            "a write cannot carry 0 bytes",
        ),
        (
            "kind = \"paced\", rate = \"1 Mbit/s\", payload = \"1 kB\", writes = [\"1 kB\"]",
            "`payload` and `writes` do not go together",
        ),
        (
            "kind = \"paced\", rate = \"80 Gbit/s\", writes = [\"1 kB\", \"1 bytes\"]",
            "less than 1 ns",
        ),
    ] {
        let workload = format!("stack = \"rfc\"\nworkload = {{ {keys} }}");
        let told = with("stack = \"rfc\"", &workload);
        assert!(
            told.contains(wrong) && told.contains("test.toml:"),
            "{keys}: {told}"
        );
    }
}

#[test]
fn a_resolved_mtu_reads_back() {
    let text = GOOD.replace(
        "delay = \"5 ms\"",
        "delay = \"5 ms\"\nmtu = \"1400 bytes\"\nmtu_reports = false\nreverse.mtu = \"900 bytes\"",
    );
    let resolve = |text: &str, name: &str| {
        Scenario::parse(text, name, &Extensions::default())
            .and_then(|scenario| scenario.resolve(None))
            .unwrap_or_else(|error| panic!("{error}"))
    };
    let once = resolve(&text, "test.toml");
    let link = &once.links[1].directions;
    let bytes = link
        .each_ref()
        .map(|way| way.mtu.map(|mtu| (mtu.bytes, mtu.reports)));
    assert_eq!(bytes, [Some((1400, false)), Some((900, false))]);
    let twice = resolve(
        &toml::to_string(&once.json.value()).expect("it is TOML"),
        "again.toml",
    );
    assert_eq!(once.json.value()["link"], twice.json.value()["link"]);
}
