//! Error messages of parameters of queues: file, line, column, the value found and the value
//! expected.

use anabranch_path::queue::{Config, preferential_red::Select};
use serde_json::{Value, json};

use super::{refusals, resolve, scenario};

fn with(queue: &str) -> String {
    let cubic =
        scenario(&format!("queue = {queue}"), "count = 4").replace("flow.main", "flow.cubic");
    cubic + "\n[flow.compound]\nfrom = \"S\"\nto = \"R\"\nstack = \"rfc\"\n"
}

fn read(queue: &str) -> Result<Config, String> {
    resolve(&with(queue)).map(|resolved| resolved.links[0].directions[0].queue.clone())
}

fn snapshot(name: &str, queues: &[&str]) {
    let text = refusals(queues.iter().map(|queue| with(queue)));
    insta::with_settings!({ omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn wrong_parameters_of_red_have_a_place() {
    snapshot(
        "red",
        &[
            r#"{ kind = "red", max_probability = 1.5 }"#,
            r#"{ kind = "red", max_probability = 0 }"#,
            r#"{ kind = "red", weight = 0 }"#,
            r#"{ kind = "red", weight = "0.002" }"#,
            r#"{ kind = "red", min_treshold = "5 packets" }"#,
            r#"{ kind = "red", min_threshold = 5 }"#,
            r#"{ kind = "red", min_threshold = "unlimited" }"#,
            r#"{ kind = "red", min_threshold = "20 packets", max_threshold = "20 packets" }"#,
            r#"{ kind = "red", min_threshold = "20 packets" }"#,
            r#"{ kind = "red", min_threshold = "20 kB", max_threshold = "60 packets" }"#,
            r#"{ kind = "red", min_threshold = "0.1 bdp" }"#,
            r#"{ kind = "red", limit = "10 packets" }"#,
            r#"{ kind = "red", limit = "50 kB", min_threshold = "1 bdp", max_threshold = "5 bdp" }"#,
            r#"{ kind = "red", spacing = "even" }"#,
            r#"{ kind = "red", gentle = 1 }"#,
            r#"{ kind = "red", idle_packet = "0 bytes" }"#,
            r#"{ kind = "red", reference_packet = "64 KiB" }"#,
            r#"{ kind = "red", adaptive = "on" }"#,
            r#"{ kind = "red", adaptive = { intervall = "1 s" } }"#,
            r#"{ kind = "red", adaptive = { interval = "0 s" } }"#,
            r#"{ kind = "red", adaptive = { beta = 0 } }"#,
            r#"{ kind = "red", adaptive = { target = [0.6, 0.4] } }"#,
            r#"{ kind = "red", adaptive = { target = [0.6, 1.4] } }"#,
            r#"{ kind = "red", adaptive = { target = [0.6] } }"#,
            r#"{ kind = "red", adaptive = { floor = 0.6 } }"#,
            r#"{ kind = "red", max_probability = 0.9, adaptive = true }"#,
        ],
    );
}

#[test]
fn wrong_parameters_of_preferential_red_have_a_place() {
    snapshot(
        "preferential_red",
        &[
            r#"{ kind = "preferential-red", weight = 0 }"#,
            r#"{ kind = "preferential-red", max_threshold = "3 packets" }"#,
            r#"{ kind = "preferential-red", multiplier = 0 }"#,
            r#"{ kind = "preferential-red", multiplier = -2.5 }"#,
            r#"{ kind = "preferential-red", multiply = "both" }"#,
            r#"{ kind = "preferential-red", select = "dinamic" }"#,
            r#"{ kind = "preferential-red", select = "static" }"#,
            r#"{ kind = "preferential-red", select = 3 }"#,
            r#"{ kind = "preferential-red", select = { flows = ["cubic"] } }"#,
            r#"{ kind = "preferential-red", select = { kind = "static", flows = [] } }"#,
            r#"{ kind = "preferential-red", select = { kind = "static", flows = ["cubic", "compond"] } }"#,
            r#"{ kind = "preferential-red", select = { kind = "static", flows = ["cubic/3", "cubic/4"] } }"#,
            r#"{ kind = "preferential-red", select = { kind = "static", flows = ["compound/0"] } }"#,
            r#"{ kind = "preferential-red", select = { kind = "dynamic", history_length = 0 } }"#,
            r#"{ kind = "preferential-red", select = { kind = "dynamic", record_interval = 0 } }"#,
            r#"{ kind = "preferential-red", select = { kind = "dynamic", statistics_interval = -1 } }"#,
            r#"{ kind = "preferential-red", select = { kind = "dynamic", statistics_interval = 2.5 } }"#,
            r#"{ kind = "preferential-red", select = { kind = "dynamic", counters = 16 } }"#,
            r#"{ kind = "preferential-red", select = { kind = "space-saving", counters = 0 } }"#,
            r#"{ kind = "preferential-red", select = { kind = "space-saving", half_life = 0 } }"#,
        ],
    );
}

#[test]
fn a_threshold_in_bdp_needs_a_rate() {
    let queue = r#"{ kind = "red", min_threshold = "0.1 bdp", max_threshold = "1 bdp" }"#;
    let unlimited = with(queue).replace("10 Mbit/s", "unlimited");
    let error = resolve(&unlimited).expect_err("there is no bandwidth-delay product");
    assert!(error.contains("test.toml:7:"), "{error}");
    assert!(
        error.contains("a min_threshold in bdp needs a rate"),
        "{error}"
    );
    // 10 Mbit/s times 10 ms.
    let resolved = read(queue).expect("it has a rate");
    let text = serde_json::to_value(&resolved).expect("it can be written");
    assert_eq!(text["red"]["min_threshold"], "1250 bytes");
    assert_eq!(text["red"]["max_threshold"], "12500 bytes");
}

fn selected(select: &str) -> Value {
    let queue = format!(r#"{{ kind = "preferential-red", select = {select} }}"#);
    let Ok(Config::PreferentialRed(params)) = read(&queue) else {
        panic!("{select} is right");
    };
    serde_json::to_value(&params.select).expect("it can be written")
}

#[test]
fn a_selection_is_a_name_or_a_table() {
    let study = json!({
        "kind": "dynamic", "record_interval": 10, "statistics_interval": 100, "history_length": 100
    });
    assert_eq!(selected(r#""dynamic""#), study);
    assert_eq!(selected(r#""history""#), study);
    assert_eq!(
        selected(r#"{ kind = "dynamic", record_interval = 10 }"#),
        study
    );
    let space_saving = selected(r#"{ record_interval = 4, kind = "space-saving", counters = 3 }"#);
    assert_eq!(space_saving["counters"], 3);
    assert_eq!(space_saving["record_interval"], 4);
    assert_eq!(
        selected(r#"{ kind = "static", flows = ["cubic/3", "compound"] }"#),
        json!({ "kind": "static", "flows": ["cubic/3", "compound"] })
    );
    let default = Select::default();
    assert_eq!(
        serde_json::to_value(&default).expect("it can be written"),
        study
    );
}

/// A resolved queue reads back as the same queue.
#[test]
fn a_resolved_queue_reads_back() {
    let resolve = |text: &str| resolve(text).unwrap_or_else(|error| panic!("{error}"));
    for queue in [
        r#"{ kind = "red", adaptive = { target = [0.3, 0.5] }, spacing = "waiting" }"#,
        r#"{ kind = "preferential-red", select = { kind = "space-saving", counters = 3 } }"#,
        r#"{ kind = "preferential-red", select = { kind = "static", flows = ["cubic"] } }"#,
    ] {
        let resolved = resolve(&with(queue));
        let again = resolve(&toml::to_string(&resolved.json.value()).expect("a scenario is TOML"));
        assert_eq!(again.links, resolved.links, "{queue}");
        assert_eq!(again.json, resolved.json, "{queue}");
    }
}
