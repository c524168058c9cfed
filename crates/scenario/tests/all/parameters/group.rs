//! Groups: the resolution of valid ones, and the error messages of invalid ones: file, line,
//! column, the value found and the value expected.

use std::fmt::Write;

use anabranch_core::units::text::Limit;
use anabranch_scenario::{Extensions, Resolved, Scenario};

const GOOD: &str = r#"duration = "10 s"

[link.left]
between = ["S", "A"]
rate = "1 Gbit/s"
delay = "5 ms"

[group.core]
between = ["A", "B"]
members = 8
rate = "100 Mbit/s"
queue = { kind = "drop-tail", limit = "1 bdp" }
control = "peak-percentile"

[link.right]
between = ["B", "R"]
rate = "1 Gbit/s"
delay = "5 ms"

[flow.main]
from = "S"
to = "R"
stack = "rfc"
"#;

fn read(text: &str) -> Result<Resolved, String> {
    let read = Scenario::parse(text, "test.toml", &Extensions::default());
    let resolved = read.and_then(|scenario| scenario.resolve(None));
    resolved.map_err(|error| error.to_string())
}

fn with(part: &str, instead: &str) -> String {
    assert!(GOOD.contains(part), "{part}");
    GOOD.replacen(part, instead, 1)
}

fn control(control: &str) -> String {
    with("\"peak-percentile\"", control)
}

fn per_flow(queue: &str) -> String {
    let old = "queue = { kind = \"drop-tail\", limit = \"1 bdp\" }";
    with(old, &format!("queue = {queue}\nspread = \"per-flow\""))
}

/// Detects a check that also refuses queues that decide at enqueue, or groups that spread packets.
#[test]
fn queues_that_decide_at_enqueue_suit_every_group() {
    let red = "{ kind = \"red\", min_threshold = \"9 packets\", max_threshold = \"20 packets\", weight = 0.01 }";
    for queue in ["\"drop-tail\"", red] {
        read(&per_flow(queue)).unwrap_or_else(|error| panic!("{error}"));
    }
    for queue in ["codel", "pie", "fq-codel", "drr"] {
        let text = per_flow(&format!("\"{queue}\"")).replace("per-flow", "per-packet");
        read(&text).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn wrong_groups_have_a_place() {
    let udp = |text: &str| {
        text.replace(
            "stack = \"rfc\"",
            "protocol = \"udp\"\nworkload = { kind = \"paced\", rate = \"1 Mbit/s\" }",
        )
    };
    let second = "[group.twin]\nbetween = [\"B\", \"C\"]\nmembers = 2\nrate = \"1 Mbit/s\"\ncontrol = \"oracle\"\n";
    let cases = [
        with("members = 8", "members = 0"),
        with("members = 8", "members = 65"),
        with("members = 8", "members = -1"),
        with("members = 8", "members = \"8\""),
        with("members = 8\n", ""),
        with("rate = \"100 Mbit/s\"\n", ""),
        with("rate = \"100 Mbit/s\"", "rate = \"unlimited\""),
        with(
            "rate = \"100 Mbit/s\"",
            "rate = \"100 Mbit/s\"\nreverse.rate = \"unlimited\"",
        ),
        with("members = 8", "members = 8\nspread = \"per-bit\""),
        with("members = 8", "members = 8\nmember = 8"),
        with("members = 8", "members = 8\nlacp_rate = \"often\""),
        with("members = 8", "members = 8\npower = { active = \"1 V\" }"),
        with("members = 8", "members = 8\npower = { active = 1 }"),
        with("members = 8", "members = 8\npower = { asleep = \"1 W\" }"),
        with("members = 8", "members = 8\nwake_time = \"2 s\""),
        with("members = 8", "members = 8\nwake_time = \"-1 ms\""),
        with("between = [\"A\", \"B\"]", "between = [\"A\", \"A\"]"),
        with("[group.core]", "[group.left]"),
        with("[group.core]", "[group.\"a.b\"]"),
        per_flow("\"codel\""),
        per_flow("{ kind = \"pie\", limit = \"9 packets\" }"),
        per_flow("\"drop-tail\"\nreverse.queue = \"fq-codel\""),
        per_flow("{ limit = \"9 packets\", kind = \"drr\" }"),
        control("\"peak-percentil\""),
        control("{ kind = \"peak-percentile\", percentile = 101 }"),
        control("{ kind = \"peak-percentile\", percentile = -1 }"),
        control("{ kind = \"peak-percentile\", percentile = \"90\" }"),
        control("{ kind = \"peak-percentile\", interval = \"50 ms\" }"),
        control("{ kind = \"peak-percentile\", section = \"500 us\" }"),
        control("{ kind = \"peak-percentile\", section = \"150 ms\" }"),
        control("{ kind = \"peak-percentile\", bin = \"0 ms\" }"),
        control("{ kind = \"peak-percentile\", bins = \"1 ms\" }"),
        control("{ kind = \"moving-average\", window = 0 }"),
        control("{ kind = \"moving-average\", utilization = 0 }"),
        control("{ kind = \"ewma-hysteresis\", low = 0.9 }"),
        control("{ kind = \"ewma-hysteresis\", weight = 2 }"),
        control("{ kind = \"lpi\", wake_time = \"2 s\" }"),
        control("{ kind = \"always-on\", interval = \"1 s\" }"),
        control("\"oracle\""),
        udp(&control("\"oracle\"")) + second,
        with(
            "[flow.main]",
            "[[at]]\ntime = \"1 s\"\nset = { \"group.core.rate\" = \"1 Mbit/s\" }\n[flow.main]",
        ),
        with(
            "[flow.main]",
            "[[at]]\ntime = \"1 s\"\nset = { \"group.cor.up\" = false }\n[flow.main]",
        ),
        with(
            "[flow.main]",
            "[[at]]\ntime = \"1 s\"\nset = { \"group.core.members\" = 4 }\n[flow.main]",
        ),
        with(
            "[flow.main]",
            "[link.beside]\nbetween = [\"B\", \"A\"]\n[flow.main]",
        ),
    ];
    let mut text = String::new();
    for case in &cases {
        let different = case.lines().filter(|line| !GOOD.contains(line));
        for line in different {
            let _ = writeln!(text, "> {line}");
        }
        let _ = writeln!(text, "{}\n", read(case).expect_err(case));
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("wrong_groups", text));
}

#[test]
fn a_bandwidth_delay_product_is_of_all_members() {
    let resolved = read(GOOD).expect("it is right");
    let names: Vec<_> = resolved
        .links
        .iter()
        .map(|link| link.name.as_str())
        .collect();
    assert_eq!(names, ["left", "core", "right"], "in the order of the file");
    let core = &resolved.links[1];
    // 800 Mbit/s for 20 ms.
    let limit = core.directions[0].queue.limit();
    assert_eq!(
        limit,
        Some(Limit::Bytes(anabranch_core::units::Bytes::new(2_000_000)))
    );
    assert_eq!(core.members(), 8);
}

#[test]
fn every_default_is_written_out_and_reads_back() {
    let changes = "[[at]]\ntime = \"1 s\"\nset = { \"group.core.up\" = false, \"group.core.delay\" = \"1 ms\", \"group.core.queue.limit\" = \"7 packets\" }\n";
    for control_text in [
        "\"always-on\"",
        "\"peak-percentile\"",
        "\"moving-average\"",
        "{ kind = \"ewma-hysteresis\", low = 0.2 }",
        "{ kind = \"lpi\", sleep_time = \"3 us\" }",
    ] {
        let text = control(control_text) + changes;
        let first = read(&text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(first.changes.len(), 6);
        let toml = toml::to_string(&first.json.value()).expect("a scenario is TOML");
        let again = read(&toml).unwrap_or_else(|error| panic!("{error}\n{toml}"));
        assert_eq!(again.json, first.json, "{toml}");
        let by_name = |resolved: &Resolved| {
            let mut links = resolved.links.clone();
            links.sort_by(|a, b| a.name.cmp(&b.name));
            links
        };
        assert_eq!(by_name(&again), by_name(&first));
    }
    insta::assert_snapshot!(
        serde_json::to_string_pretty(&read(GOOD).expect("right").json.value()["group"])
            .expect("JSON")
    );
}

#[test]
fn the_example_of_the_contract() {
    let text = include_str!("../../../../../scenarios/link-aggregation.toml");
    let resolved = read(text).expect("it is right");
    let control =
        serde_json::to_value(&resolved.json.value()["group"]["core"]["control"]).expect("JSON");
    assert_eq!(control["kind"], "peak-percentile");
    assert_eq!(control["percentile"], 90.0);
    assert_eq!(control["section"], "100 ms");
}
