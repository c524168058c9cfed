//! Small files with large demands: bounds, and contradicting values.

use anabranch_scenario::{Extensions, Scenario};

use super::{GOOD, check, error, plus};

fn at(set: &str) -> String {
    format!("{GOOD}[[at]]\ntime = \"2 s\"\nset = {{ {set} }}\n")
}

fn refused(set: &str, line: &str) {
    let told = error(&at(set), &[]);
    assert!(told.contains("contradicts"), "{told}");
    assert!(told.starts_with(line), "{told}");
}

#[test]
fn one_change_sets_a_value_once() {
    refused(
        "\"link.access.up\" = false, \"link.access.forward.up\" = true",
        "test.toml:21:",
    );
    refused(
        "\"link.access.forward.up\" = false, \"link.access.up\" = true",
        "test.toml:21:",
    );
    refused(
        "\"link.access.up\" = false, 'link.\"access\".up' = true",
        "test.toml:21:",
    );
    refused(
        "\"link.bottleneck.queue\" = \"drop-tail\", \"link.bottleneck.queue.limit\" = \"3 packets\"",
        "test.toml:21:",
    );
}

#[test]
fn one_change_may_set_independent_values() {
    for set in [
        "\"link.access.forward.up\" = false, \"link.access.reverse.up\" = true",
        "\"link.access.up\" = false, \"link.access.rate\" = \"1 Mbit/s\"",
        "\"link.access.up\" = false, \"link.bottleneck.up\" = true",
        "\"link.access.up\" = false, \"link.access.forward.up\" = false",
    ] {
        assert_eq!(check(&at(set), &[]), Ok(()), "{set}");
    }
}

#[test]
fn the_runs_of_a_sweep_are_counted_before_they_are_listed() {
    let told =
        plus("[sweep]\n\"link.access.rate\" = [\"1 Mbit/s\", \"2 Mbit/s\"]\nrepeat = 1000000000\n");
    assert!(told.contains("the sweep has 2000000000 runs"), "{told}");
    assert!(told.starts_with("test.toml:21:1:"), "{told}");
    assert!(told.contains("expected 1000000 at most"), "{told}");
}

#[test]
fn long_sweep_lists_take_time_in_proportion() {
    // Each value is tried in a copy of the file, which must not contain the list itself.
    let values: Vec<String> = (1..20_000).map(|ms| format!("\"{ms} ms\"")).collect();
    let text = format!("{GOOD}[sweep]\nwarmup = [{}]\n", values.join(", "));
    assert_eq!(check(&text, &[]), Ok(()));
}

#[test]
fn the_oracles_bins_are_bounded() {
    let text = r#"duration = "100 s"
[group.g]
between = ["S", "R"]
members = 2
rate = "10 Mbit/s"
control = { kind = "oracle", bin = "1 us" }
[flow.m]
from = "S"
to = "R"
protocol = "udp"
workload = { kind = "paced", rate = "1 Mbit/s" }
"#;
    let told = error(text, &[]);
    assert!(told.starts_with("test.toml:6:"), "{told}");
    assert!(told.contains("has 100000000 bins"), "{told}");
    assert_eq!(check(text, &["group.g.control.bin=1 ms"]), Ok(()));
}

#[test]
fn depth_is_bounded_in_paths_and_values() {
    let deep = format!("{}=1", vec!["a"; 100_000].join("."));
    assert!(error(GOOD, &[&deep]).contains("at most 32 names"));
    let nested = format!("title={}", "[".repeat(100_000));
    assert!(error(GOOD, &[&nested]).contains("recurs"));
    let keys = format!("{}=1\n{GOOD}", vec!["a"; 100_000].join("."));
    assert!(error(&keys, &[]).contains("recursion limit"));
}

#[test]
fn an_untrusted_scenario_runs_no_program_and_reaches_no_interface() {
    for (key, value) in [
        ("exec", "[\"id\"]"),
        ("attach", "\"interface:eth0\""),
        ("attach", "\"namespace\""),
    ] {
        let text = format!("{GOOD}[host.S]\n{key} = {value}\n");
        for live in [false, true] {
            let extensions = Extensions::default().live(live).untrusted(true);
            let scenario = Scenario::parse(&text, "test.toml", &extensions).expect("it is TOML");
            let told = scenario
                .resolve(None)
                .expect_err("it is refused")
                .to_string();
            assert!(told.starts_with("test.toml:20:"), "{told}");
            assert!(told.contains("--untrusted refuses"), "{told}");
        }
    }
}

#[test]
fn a_program_has_a_name_and_no_nul() {
    for (words, message) in [
        ("[]", "`exec` is not a program with its arguments"),
        ("[\"\"]", "the name of the program in `exec` is empty"),
        (
            "[\"a\", \"b\\u0000\"]",
            "word 2 of `exec` has a NUL character",
        ),
    ] {
        let text = format!("{GOOD}[host.S]\nexec = {words}\n");
        let extensions = Extensions::default().live(true);
        let scenario = Scenario::parse(&text, "test.toml", &extensions).expect("it is TOML");
        let told = scenario.resolve(None).expect_err("it is refused");
        let place = (told.line, told.column, told.message.as_str());
        assert_eq!(place, (Some(20), Some(8), message));
    }
}
