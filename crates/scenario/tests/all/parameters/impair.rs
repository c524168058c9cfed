//! Error messages of parameters of impairments: file, line, column, the value found and the value
//! expected.

use anabranch_path::link::Properties;
use anabranch_scenario::{Extensions, Resolved, Scenario};

use super::{refusals, resolve, scenario};

fn with(impair: &str) -> String {
    scenario(&format!("impair = [{impair}]"), "")
}

#[test]
fn wrong_parameters_have_a_place() {
    let text = refusals(
        [
            r#""gilbert-elliott""#,
            r#"{ kind = "gilbert-elliott", loss_rate = 0.1 }"#,
            r#"{ kind = "gilbert-elliott", loss_rate = 1.1, mean_burst = 2 }"#,
            r#"{ kind = "gilbert-elliott", loss_rate = 0.1, mean_burst = 0.5 }"#,
            r#"{ kind = "gilbert-elliott", loss_rate = 0.9, mean_burst = 2 }"#,
            r#"{ kind = "gilbert-elliott", p = 0.1, r = 0.5, loss_rate = 0.1 }"#,
            r#"{ kind = "gilbert-elliott", loss_rate = 0.1, mean_burst = 2, h = 0.1 }"#,
            r#"{ kind = "gilbert-eliot" }"#,
            r#"{ kind = "four-state-loss", p13 = 0.7, p14 = 0.7 }"#,
            r#"{ kind = "four-state-loss", p13 = 0.1, p31 = 0.7, p32 = 0.7 }"#,
            r#"{ kind = "four-state-loss", p41 = 0.7 }"#,
            r#""loss-list""#,
            r#"{ kind = "loss-list", packets = [4, 4] }"#,
            r#"{ kind = "loss-list", packets = [-1] }"#,
            r#"{ kind = "loss-list", data_packets = [4, 4] }"#,
            r#"{ kind = "loss-list", times = [2.5] }"#,
            r#""jitter""#,
            r#"{ kind = "jitter", distribution = "gaussian", mean = "5 ms" }"#,
            r#"{ kind = "jitter", mean = 5 }"#,
            r#"{ kind = "jitter", distribution = "normal", mean = "5 ms", deviation = "3 ms" }"#,
            r#"{ kind = "jitter", mean = "5 ms", deviation = "1 ms" }"#,
            r#"{ kind = "jitter", distribution = "pareto", mean = "5 ms", shape = 1 }"#,
            r#"{ kind = "jitter", distribution = "table" }"#,
            r#"{ kind = "jitter", mean = "5 ms", table = ["1 ms"] }"#,
            r#"{ kind = "jitter", mean = "5 ms", every = "1 packets" }"#,
            r#"{ kind = "jitter", mean = "5 ms", reorder = "yes" }"#,
            r#"{ kind = "duplicate", rate = 2 }"#,
            r#"{ kind = "corrupt", rate = 0.1, bit_error_rate = 1e-6 }"#,
        ]
        .map(with),
    );
    insta::with_settings!({ omit_expression => true }, {
        insta::assert_snapshot!("wrong_parameters", text);
    });
}

/// Resolves with a side file of this content.
fn read_file(impair: &str, content: &str) -> Result<Resolved, String> {
    let content = content.to_owned();
    let extensions = Extensions::default().files(move |_, _| Ok(content.clone().into_bytes()));
    let read = Scenario::parse(&with(impair), "test.toml", &extensions);
    let resolved = read.and_then(|scenario| scenario.resolve(None));
    resolved.map_err(|error| error.to_string())
}

const LOSS_LIST: &str = r#"{ kind = "loss-list", file = "list.txt" }"#;
const JITTER: &str = r#"{ kind = "jitter", distribution = "table", file = "list.txt" }"#;

#[test]
fn errors_in_a_list_name_its_line() {
    for (impair, content, expected) in [
        (
            LOSS_LIST,
            "1\n 1\n",
            "list.txt:2:2: packet 1 is to be lost twice\n  |\n2 |  1\n  |  ^\n  = expected each number once",
        ),
        (
            r#"{ kind = "loss-list", packets = [7], file = "list.txt" }"#,
            "# none\n7\n",
            "list.txt:2:1: packet 7 is to be lost twice",
        ),
        (
            LOSS_LIST,
            "",
            "list.txt:1:1: the list has no packet and no time",
        ),
        (
            LOSS_LIST,
            "\u{feff}# nothing\n",
            "the list has no packet and no time",
        ),
        (
            LOSS_LIST,
            "\u{feff}x\n",
            "list.txt:1:1: \"x\" is neither a packet's number nor a time",
        ),
    ] {
        let error = read_file(impair, content).expect_err(content);
        assert!(error.contains(expected), "{error} without {expected}");
        assert!(!error.contains("test.toml"), "{error}");
    }
    let beside = r#"{ kind = "loss-list", packets = [7], file = "list.txt" }"#;
    assert!(read_file(beside, "").is_ok());
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_file() {
    for (impair, content) in [(LOSS_LIST, "1\n2 s\n"), (JITTER, "1 ms\n2 ms\n")] {
        let plain = read_file(impair, content).unwrap_or_else(|error| panic!("{error}"));
        let marked = read_file(impair, &format!("\u{feff}{content}"));
        let marked = marked.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(marked.links, plain.links);
        // After the first character it is part of the content.
        let error = read_file(impair, &format!("\n\u{feff}{content}")).expect_err(content);
        assert!(error.contains("list.txt:2:1"), "{error}");
    }
    let trace = with("").replace(
        "rate = \"10 Mbit/s\"",
        "service = { kind = \"trace\", file = \"t\" }",
    );
    let extensions = Extensions::default().files(|_, _| Ok("\u{feff}1\n5\n".into()));
    let read = Scenario::parse(&trace, "test.toml", &extensions);
    let resolved = read.and_then(|scenario| scenario.resolve(None));
    assert!(resolved.is_ok(), "{resolved:?}");
}

#[test]
fn valid_parameters_are_accepted_and_read_back() {
    for impair in [
        r#"{ kind = "gilbert-elliott", loss_rate = 0, mean_burst = 1 }"#,
        r#"{ kind = "gilbert-elliott", p = 0.1, r = 1, h = 0.5, k = 0.9 }"#,
        r#"{ kind = "four-state-loss", p13 = 0.1, p31 = 0.5, p32 = 0.2, p23 = 0.9, p14 = 0.01 }"#,
        r#"{ kind = "loss-list", packets = [10], times = ["1 s", "2 s"] }"#,
        r#"{ kind = "jitter", mean = "0 s" }"#,
        r#"{ kind = "jitter", distribution = "normal", mean = "6 ms", deviation = "2 ms", reorder = true }"#,
        r#"{ kind = "jitter", distribution = "pareto", mean = "6 ms", shape = 1.5, every = "100 ms" }"#,
        r#"{ kind = "jitter", distribution = "table", table = ["0 s", "1.5 ms"] }"#,
        r#"{ kind = "duplicate", rate = 1 }, { kind = "corrupt", bit_error_rate = 1e-9 }"#,
    ] {
        let resolved = resolve(&with(impair)).unwrap_or_else(|error| panic!("{error}"));
        // The resolved scenario resolves to the same.
        let mut again = with("");
        let list = &resolved.json.value()["link"]["path"]["forward"]["impair"];
        again = again.replace("impair = []", &format!("impair = {}", toml(list)));
        let again = Scenario::parse(&again, "again.toml", &Extensions::default())
            .and_then(|scenario| scenario.resolve(None))
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.links, resolved.links, "{impair}");
    }
}

/// A list of flat tables as TOML.
fn toml(list: &serde_json::Value) -> String {
    let tables = list.as_array().expect("a list").iter().map(|table| {
        let keys = table.as_object().expect("a table").iter();
        let keys: Vec<_> = keys
            .map(|(key, value)| format!("{key} = {value}"))
            .collect();
        format!("{{ {} }}", keys.join(", "))
    });
    format!("[{}]", tables.collect::<Vec<_>>().join(", "))
}

/// Each direction of both routes of the multi-route study has a separate random stream of jitter.
#[test]
fn the_jitter_of_the_multi_route_contract() {
    let text = include_str!("../../contract/multipath.toml");
    let mut scenario =
        Scenario::parse(text, "multipath.toml", &Extensions::default()).expect("TOML");
    for set in ["gateway.tunnel.restore=none", "flow.main.stack=rfc"] {
        scenario.set(set).expect("a path and a value");
    }
    let resolved = scenario
        .resolve(None)
        .unwrap_or_else(|error| panic!("{error}"));
    let has_jitter = |way: &Properties| way.impair.iter().any(|one| one.name() == "jitter");
    let links = resolved.links.iter();
    let jittered = links.filter(|link| link.directions.iter().all(has_jitter));
    let names: Vec<&str> = jittered.map(|link| link.name.as_str()).collect();
    assert_eq!(names, ["isp1", "isp2"]);
}
