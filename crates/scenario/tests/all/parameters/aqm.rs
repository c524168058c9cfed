//! Error messages of parameters of active queue management: file, line, column, the value found and
//! the value expected.

use anabranch_scenario::Resolved;

use super::{refusals, resolve, scenario};

fn read(queue: &str) -> Result<Resolved, String> {
    resolve(&with(queue))
}

fn with(queue: &str) -> String {
    scenario(&format!("queue = {queue}"), "")
}

#[test]
fn wrong_parameters_have_a_place() {
    let text = refusals(
        [
            r#"{ kind = "codel", target = "150 ms" }"#,
            r#"{ kind = "codel", interval = "1 ms" }"#,
            r#"{ kind = "codel", target = "0 ms" }"#,
            r#"{ kind = "codel", target = 5 }"#,
            r#"{ kind = "codel", interval = "200 s" }"#,
            r#"{ kind = "codel", mtu = "20 bytes" }"#,
            r#"{ kind = "codel", ecn = "on" }"#,
            r#"{ kind = "codel", ce_threshold = "none" }"#,
            r#"{ kind = "codel", ce_threshold = 1 }"#,
            r#"{ kind = "codel", intervall = "100 ms" }"#,
            r#"{ kind = "codel", limit = "-1 packets" }"#,
            r#"{ kind = "pie", target = "15 packets" }"#,
            r#"{ kind = "pie", update_interval = "0 s" }"#,
            r#"{ kind = "pie", alpha = -0.125 }"#,
            r#"{ kind = "pie", beta = 125 }"#,
            r#"{ kind = "pie", alpha = "0.125" }"#,
            r#"{ kind = "pie", max_burst = "-1 ms" }"#,
            r#"{ kind = "pie", mean_packet_size = "1 MB" }"#,
            r#"{ kind = "pie", delay = "rates" }"#,
            r#"{ kind = "pie", mark_ecnth = 1.1 }"#,
            r#"{ kind = "fq-codel", queues = 0 }"#,
            r#"{ kind = "fq-codel", queues = 100000 }"#,
            r#"{ kind = "fq-codel", quantum = "10 bytes" }"#,
            r#"{ kind = "fq-codel", interval = "4 ms" }"#,
            r#"{ kind = "fq-codel", memory_limit = "32 packets" }"#,
            r#"{ kind = "fq-codel", flows = 1024 }"#,
            r#"{ kind = "drr", quantum = "2 MB" }"#,
            r#"{ kind = "drr", queues = "per-flow" }"#,
            r#"{ kind = "drr", queues = 0 }"#,
            r#"{ kind = "drr", queues = 1.5 }"#,
            r#"{ kind = "ddr" }"#,
        ]
        .map(with),
    );
    insta::with_settings!({ omit_expression => true }, {
        insta::assert_snapshot!("wrong_parameters", text);
    });
}

#[test]
fn valid_parameters_are_accepted() {
    for queue in [
        r#""codel""#,
        r#"{ kind = "codel", target = "100 ms" }"#,
        r#"{ kind = "codel", target = "1 us", interval = "10 us", ce_threshold = "1 ms", ecn = true }"#,
        r#"{ kind = "codel", ce_threshold = "off", limit = "2 bdp", mtu = "9000 bytes" }"#,
        r#""pie""#,
        r#"{ kind = "pie", delay = "rate", alpha = 0, beta = 2, max_burst = "0 s", derandomize = true }"#,
        r#""fq-codel""#,
        r#"{ kind = "fq-codel", queues = 65536, quantum = "300 bytes", memory_limit = "32 MiB" }"#,
        r#"{ kind = "fq-codel", memory_limit = "unlimited", reorder = { kind = "interval", interval = 4 } }"#,
        r#""drr""#,
        r#"{ kind = "drr", queues = 64 }"#,
        r#"{ kind = "drr", queues = "per-connection", limit = "64 KiB" }"#,
    ] {
        read(queue).unwrap_or_else(|error| panic!("{queue}: {error}"));
    }
}

/// A resolved scenario can be run again.
#[test]
fn defaults_are_written_out_and_read_back() {
    for (queue, keys) in [("codel", 6), ("pie", 11), ("fq-codel", 9), ("drr", 3)] {
        let first = read(&format!("{queue:?}")).expect(queue);
        let table = &first.json.value()["link"]["path"]["forward"]["queue"];
        assert_eq!(table["kind"], queue);
        let written = table.as_object().expect("a table").len();
        assert!(written > keys, "{table}");
        let text = toml::to_string(&first.json.value()).expect("a scenario is TOML");
        assert_eq!(resolve(&text).expect(&text).json, first.json, "{text}");
    }
}
