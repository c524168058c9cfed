//! Links that follow traces, and links of the library of ready paths.

use std::path::Path;

use anabranch_core::units::{Duration, Instant, Rate, text::Limit};
use anabranch_scenario::{
    Error, Extensions, Resolved, Scenario, What,
    catalog::catalog,
    types::{impair, queue},
};
use serde_json::Value;

/// The scenario's files.
const FILES: &[(&str, &str)] = &[
    ("delays.csv", "time_s,delay_ms\n0,10\n1,30\n"),
    ("both.csv", "0,8,10\n1,4,30\n"),
    ("rates.txt", "0 8\n0.5 4\n"),
    ("slots", "1\n2\n"),
    ("wrong.csv", "time_s,delay_ms\n0,10\n1,x\n"),
    ("first.csv", "0,1,2,3\n"),
];

fn scenario(link: &str, rest: &str) -> Result<Scenario, Error> {
    let extensions = Extensions::default().files(|path: &Path, _| {
        let name = path.to_string_lossy();
        let file = FILES.iter().find(|(known, _)| *known == name);
        file.map(|(_, text)| text.as_bytes().to_vec())
            .ok_or_else(|| "No such file or directory".to_owned())
    });
    let text = format!(
        "duration = \"10 s\"\n[link.wan]\nbetween = [\"S\", \"C\"]\n{link}\n\
         [flow.main]\nfrom = \"S\"\nto = \"C\"\nstack = \"rfc\"\ncc = \"reno\"\n{rest}\n"
    );
    Scenario::parse(&text, "test.toml", &extensions)
}

#[track_caller]
fn resolve(link: &str, rest: &str) -> Resolved {
    scenario(link, rest)
        .and_then(|scenario| scenario.resolve(None))
        .unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn refused(link: &str, rest: &str) -> String {
    let resolved = scenario(link, rest).and_then(|scenario| scenario.resolve(None));
    resolved.expect_err("it is wrong").to_string()
}

/// The resolved text resolves to the same in any folder.
fn reads_back(resolved: &Resolved) {
    let text = toml::to_string(&resolved.json.value()).expect("it is TOML");
    let extensions = Extensions::default().files(|path: &Path, _| {
        let name = path.to_string_lossy();
        let file = FILES.iter().find(|(known, _)| *known == name);
        file.map(|(_, text)| text.as_bytes().to_vec())
            .ok_or_else(|| "No such file or directory".to_owned())
    });
    let again = Scenario::parse(&text, "again.toml", &extensions)
        .and_then(|scenario| scenario.resolve(None))
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(again.json, resolved.json);
    assert_eq!(again.links, resolved.links);
    assert_eq!(again.changes, resolved.changes);
}

fn wan(resolved: &Resolved, path: &[&str]) -> Value {
    let json = resolved.json.value();
    path.iter()
        .fold(&json["link"]["wan"], |value, key| &value[key])
        .clone()
}

#[test]
fn a_traced_delay_counts_as_its_mean() {
    let resolved = resolve(
        "rate = \"8 Mbit/s\"\ndelay = { kind = \"trace\", file = \"delays.csv\" }\nqueue = { kind = \"drop-tail\", limit = \"1 bdp\" }",
        "",
    );
    let forward = &resolved.links[0].directions[0];
    assert_eq!(forward.delay, Duration::from_millis(20));
    assert_eq!(forward.least_delay(), Duration::from_millis(10));
    // 8 Mbit/s over 40 ms of mean round trip.
    let limit = forward.queue.limit().expect("it has one");
    assert_eq!(limit.to_string(), "40 kB");
    reads_back(&resolved);
}

#[test]
fn a_column_of_delays_applies_without_a_delay() {
    let both = "service = { kind = \"trace\", file = \"both.csv\", repeat = 3 }";
    let resolved = resolve(both, "");
    let forward = &resolved.links[0].directions[0];
    assert_eq!(forward.rate, Some(Rate::from_mbit_per_s(6)));
    assert_eq!(forward.delay, Duration::from_millis(20));
    let written = wan(&resolved, &["forward", "delay"]);
    assert_eq!(
        written,
        serde_json::json!({ "kind": "trace", "file": "both.csv", "repeat": 3 })
    );
    reads_back(&resolved);
    let fixed = resolve(&format!("{both}\ndelay = \"5 ms\""), "");
    let forward = &fixed.links[0].directions[0];
    assert_eq!(
        (forward.delay, &forward.delays),
        (Duration::from_millis(5), &None)
    );
    reads_back(&fixed);
}

#[test]
fn a_trace_in_one_direction_does_not_change_the_other() {
    let resolved = resolve(
        "delay = \"7 ms\"\nreverse.delay = { kind = \"trace\", file = \"delays.csv\", repeat = false }\nforward.service = { kind = \"trace\", file = \"rates.txt\" }",
        "",
    );
    let [forward, reverse] = &resolved.links[0].directions;
    assert_eq!(forward.delay, Duration::from_millis(7));
    assert!(forward.trace.is_some() && forward.delays.is_none());
    assert!(reverse.trace.is_none() && reverse.delays.is_some());
    reads_back(&resolved);
}

#[test]
fn a_wrong_trace_is_shown_with_line_and_column() {
    let error = refused("delay = { kind = \"trace\", file = \"wrong.csv\" }", "");
    assert!(error.contains("wrong.csv:3:3"), "{error}");
    assert!(error.contains("\"x\" is no delay"), "{error}");
    assert!(
        error.contains("expected a number of milliseconds"),
        "{error}"
    );
    for (link, message) in [
        (
            "delay = { kind = \"trace\", file = \"none.csv\" }",
            "cannot be read",
        ),
        (
            "delay = { kind = \"trace\", file = \"slots\" }",
            "this line has 1 fields",
        ),
        (
            "delay = { kind = \"trade\", file = \"delays.csv\" }",
            "trade",
        ),
        (
            "delay = { kind = \"trace\", file = \"delays.csv\", repeat = 0 }",
            "1 to 4294967295",
        ),
        ("delay = 5", "a duration with its unit"),
        (
            "service = { kind = \"trace\", file = \"delays.csv\" }",
            "there is no column `rate_mbit_s`",
        ),
        (
            "delay = { kind = \"trace\", file = \"anabranch:none.csv\" }",
            "is not in the library",
        ),
    ] {
        let error = refused(link, "");
        assert!(error.contains(message), "{link}: {error}");
    }
}

/// The position in the trace is also that of a key of the scenario.
#[test]
fn an_error_in_a_trace_causes_no_other_error() {
    let error = refused("delay = { kind = \"trace\", file = \"first.csv\" }", "");
    assert!(error.starts_with("first.csv:1:1: "), "{error}");
    assert!(!error.contains("errors"), "{error}");
}

#[test]
fn an_error_in_a_trace_hides_no_error_of_the_scenario() {
    let error = refused(
        "delay = { kind = \"trace\", file = \"wrong.csv\" }",
        "[[at]]\ntime = \"1 s\"\nset = { \"link.wam.up\" = false }",
    );
    assert!(error.starts_with("wrong.csv:3:3: "), "{error}");
    assert!(error.contains("there is no link `wam`"), "{error}");
    assert!(error.ends_with("2 errors"), "{error}");
}

#[test]
fn an_unknown_library_file_leads_to_a_suggestion() {
    let error = refused(
        "delay = { kind = \"trace\", file = \"anabranch:starlink-dwn.csv\" }",
        "",
    );
    assert!(
        error.contains("did you mean `anabranch:starlink-down.csv`?"),
        "{error}"
    );
}

#[test]
fn an_invalid_path_or_rate_causes_one_error() {
    for link in ["path = 7", "path = { name = \"geo\" }", "rate = \"fast\""] {
        let error = refused(link, "");
        assert!(error.contains("test.toml:4:"), "{error}");
        assert!(!error.contains("errors"), "{error}");
    }
}

#[test]
fn a_wrong_key_over_both_directions_of_a_path_is_one_error() {
    let error = refused("path = \"starlink\"\nqueue = { limt = \"50 packets\" }", "");
    assert!(error.contains("did you mean `limit`?"), "{error}");
    assert!(!error.contains("errors"), "{error}");
}

#[test]
fn a_delay_cannot_begin_to_follow_a_trace() {
    let at = |set: &str| format!("[[at]]\ntime = \"1 s\"\nset = {{ {set} }}");
    let traced = "delay = { kind = \"trace\", file = \"delays.csv\" }";
    let resolved = resolve(traced, &at("\"link.wan.delay\" = \"3 ms\""));
    assert!(
        resolved
            .changes
            .iter()
            .all(|change| change.what == What::Delay(Duration::from_millis(3)))
    );
    assert_eq!(resolved.changes.len(), 2);
    let error = refused(
        "delay = \"1 ms\"",
        &at(&format!("\"link.wan.delay\" = {}", &traced[8..])),
    );
    assert!(error.contains("cannot begin to follow a trace"), "{error}");
}

#[test]
fn a_change_repeats_until_the_run_ends() {
    let resolved = resolve(
        "rate = \"8 Mbit/s\"\ndelay = \"1 ms\"",
        "[[at]]\ntime = \"2 s\"\nevery = \"4 s\"\nset = { \"link.wan.forward.up\" = false }\n\
         [[at]]\ntime = \"4 s\"\nevery = \"4 s\"\nset = { \"link.wan.forward.up\" = true }",
    );
    let seen: Vec<(Instant, What)> = resolved
        .changes
        .iter()
        .map(|change| (change.time, change.what.clone()))
        .collect();
    let expected: Vec<(Instant, What)> = [2, 4, 6, 8]
        .map(|s| (Instant::from_millis(s * 1_000), What::Up(s % 4 == 0)))
        .into();
    assert_eq!(seen, expected);
    reads_back(&resolved);
    let link = "rate = \"8 Mbit/s\"\ndelay = \"1 ms\"";
    for (every, message) in [("0 s", "every 0 s"), ("1 us", "more than 100000")] {
        let at = format!(
            "[[at]]\ntime = \"2 s\"\nevery = \"{every}\"\nset = {{ \"link.wan.up\" = false }}"
        );
        let error = refused(link, &at);
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn impairments_and_queues_change_in_mid_run() {
    let link = "rate = \"8 Mbit/s\"\ndelay = \"1 ms\"\nqueue = { kind = \"red\", limit = \"90 packets\" }\n\
                forward.impair = [{ kind = \"jitter\", mean = \"2 ms\" }, { kind = \"gilbert-elliott\", loss_rate = 0.01, mean_burst = 4 }]";
    let at = |set: &str| format!("[[at]]\ntime = \"1 s\"\nset = {{ {set} }}");
    let resolved = resolve(
        link,
        &at(
            "\"link.wan.forward.impair.1.loss_rate\" = 0.5, \"link.wan.forward.impair.1.mean_burst\" = 9, \
             \"link.wan.forward.queue.min_threshold\" = \"20 packets\", \"link.wan.forward.queue.max_threshold\" = \"60 packets\"",
        ),
    );
    let [queue, loss] = &resolved.changes[..] else {
        panic!("{:?}", resolved.changes);
    };
    let What::Queue(queue) = &queue.what else {
        panic!("{queue:?}");
    };
    let queue::Config::Red(red) = &**queue else {
        panic!("{queue:?}");
    };
    assert_eq!(red.max_threshold, Limit::Packets(60));
    let What::Impair(1, loss) = &loss.what else {
        panic!("{loss:?}");
    };
    let impair::Config::GilbertElliott(loss) = &**loss else {
        panic!("{loss:?}");
    };
    assert_eq!(
        loss.loss_rate.map(anabranch_core::units::Fraction::get),
        Some(0.5)
    );
    reads_back(&resolved);
    for (set, message) in [
        (
            "\"link.wan.forward.impair.0.reorder\" = true",
            "`impair.0.reorder` cannot change",
        ),
        (
            "\"link.wan.forward.impair.0.kind\" = \"corrupt\"",
            "cannot change in mid-run",
        ),
        ("\"link.wan.forward.impair.2.rate\" = 0.1", "no element 2"),
        (
            "\"link.wan.forward.impair.0.mein\" = \"1 ms\"",
            "did you mean `mean`",
        ),
        (
            "\"link.wan.queue.spacing\" = \"waiting\"",
            "`queue.spacing` cannot change",
        ),
        (
            "\"link.wan.queue.min_threshold\" = \"2 kB\", \"link.wan.queue.max_threshold\" = \"9 kB\"",
            "`queue.min_threshold` cannot change",
        ),
    ] {
        let error = refused(link, &at(set));
        assert!(error.contains(message), "{set}: {error}");
    }
}

#[test]
fn every_path_of_the_library_resolves_and_reads_back() {
    let paths: Vec<_> = catalog()
        .into_iter()
        .filter(|entry| entry.kind == "path")
        .collect();
    assert!(paths.len() >= 10);
    for path in paths {
        assert!(
            !path.title.is_empty() && !path.summary.is_empty(),
            "{}",
            path.name
        );
        assert!(
            path.sources.iter().all(|source| !source.items.is_empty()),
            "{}",
            path.name
        );
        assert!(
            !path.sources.is_empty() && path.details.contains_key("assumed"),
            "{}",
            path.name
        );
        let resolved = resolve(&format!("path = \"{}\"", path.name), "");
        assert_eq!(wan(&resolved, &["path"]), path.name.as_str());
        for way in ["forward", "reverse"] {
            for key in ["rate", "delay", "queue", "service"] {
                assert!(
                    !wan(&resolved, &[way, key]).is_null(),
                    "{} {way}.{key}",
                    path.name
                );
            }
        }
        reads_back(&resolved);
    }
}

#[test]
fn values_of_a_link_override_its_path() {
    let limit = |resolved: &Resolved, way: &str| wan(resolved, &[way, "queue", "limit"]);
    // A whole value, for both directions.
    let resolved = resolve("path = \"adsl\"\nrate = \"3 Mbit/s\"", "");
    assert_eq!(wan(&resolved, &["forward", "rate"]), "3 Mbit/s");
    assert_eq!(wan(&resolved, &["reverse", "rate"]), "3 Mbit/s");
    assert_eq!(limit(&resolved, "forward"), "64 packets");
    // For one direction.
    let resolved = resolve("path = \"adsl\"\nreverse.rate = \"1 Mbit/s\"", "");
    assert_eq!(wan(&resolved, &["forward", "rate"]), "8.4 Mbit/s");
    assert_eq!(wan(&resolved, &["reverse", "rate"]), "1 Mbit/s");
    // A part of a value.
    let resolved = resolve(
        "path = \"data-centre\"\nqueue.threshold = \"9 packets\"",
        "",
    );
    assert_eq!(
        wan(&resolved, &["reverse", "queue", "threshold"]),
        "9 packets"
    );
    assert_eq!(limit(&resolved, "reverse"), "700 kB");
    let resolved = resolve("path = \"adsl\"\nqueue.limit = \"9 packets\"", "");
    assert_eq!(limit(&resolved, "forward"), "9 packets");
    assert_eq!(limit(&resolved, "reverse"), "9 packets");
    // A rate over a trace, a trace over a rate.
    let resolved = resolve(
        "path = \"starlink\"\nforward.rate = \"9 Mbit/s\"\nforward.delay = \"4 ms\"",
        "",
    );
    assert_eq!(wan(&resolved, &["forward", "service", "kind"]), "fixed");
    assert_eq!(wan(&resolved, &["reverse", "service", "kind"]), "trace");
    reads_back(&resolved);
    let resolved = resolve(
        "path = \"geo\"\nservice = { kind = \"trace\", file = \"rates.txt\" }",
        "",
    );
    assert_eq!(wan(&resolved, &["forward", "rate"]), "unlimited");
    assert_eq!(wan(&resolved, &["forward", "delay"]), "314.5 ms");
    reads_back(&resolved);
}

#[test]
fn values_on_the_command_line_override_the_path() {
    let with = |sets: &[&str]| {
        let mut scenario = scenario("path = \"adsl\"", "").expect("it is TOML");
        for set in sets {
            scenario.set(set)?;
        }
        scenario.resolve(None)
    };
    let resolved = with(&["link.wan.queue.limit=9 packets"]).expect("it is right");
    assert_eq!(wan(&resolved, &["forward", "queue", "limit"]), "9 packets");
    let resolved =
        with(&["link.wan.path=geo", "link.wan.forward.delay=9 ms"]).expect("it is right");
    assert_eq!(wan(&resolved, &["forward", "delay"]), "9 ms");
    assert_eq!(wan(&resolved, &["reverse", "delay"]), "314.5 ms");
    let error = with(&["link.wan.path=adls"]).expect_err("there is no such path");
    assert!(
        error.to_string().contains("there is no path `adls`"),
        "{error}"
    );
    assert!(
        error.to_string().contains("did you mean `adsl`?"),
        "{error}"
    );
    let error = with(&["link.wan.path=7"]).expect_err("it is no name");
    assert!(error.to_string().contains("--set"), "{error}");
}

#[test]
fn a_sweep_accepts_paths_and_empty_lists() {
    let scenario = scenario(
        "path = \"adsl\"",
        "[sweep]\n\"link.wan.path\" = [\"adsl\", \"geo\"]\n\"link.wan.queue.limit\" = [\"9 packets\"]\n\
         \"link.wan.impair\" = [[], [{ kind = \"bernoulli-loss\", rate = 0.1 }]]",
    )
    .expect("it is TOML");
    let sweep = scenario.sweep().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(sweep.grid.len(), 3);
    assert_eq!(sweep.grid[2].1[0], serde_json::json!([]));
}

#[test]
fn a_change_of_a_link_overrides_both_directions_of_its_path() {
    let changed = |link: &str, set: &str| {
        let at = format!("[[at]]\ntime = \"1 s\"\nset = {{ {set} }}");
        let resolved = resolve(link, &at);
        reads_back(&resolved);
        resolved.changes.len()
    };
    assert_eq!(
        changed("path = \"adsl\"", "\"link.wan.rate\" = \"1 Mbit/s\""),
        2
    );
    assert_eq!(
        changed(
            "path = \"adsl\"",
            "\"link.wan.queue.limit\" = \"9 packets\""
        ),
        2
    );
    assert_eq!(
        changed(
            "path = \"adsl\"",
            "\"link.wan.forward.queue.limit\" = \"9 packets\""
        ),
        1
    );
    // A value that the link gives for one direction stays.
    let own = "path = \"adsl\"\nreverse.rate = \"2 Mbit/s\"";
    assert_eq!(changed(own, "\"link.wan.rate\" = \"1 Mbit/s\""), 1);
}

#[test]
fn a_group_has_no_traces() {
    let text = |key: &str| {
        format!(
            "duration = \"1 s\"\n[group.wan]\nbetween = [\"S\", \"C\"]\nmembers = 2\nrate = \"1 Mbit/s\"\n{key}\n\
             [flow.main]\nfrom = \"S\"\nto = \"C\"\nstack = \"rfc\"\ncc = \"reno\"\n"
        )
    };
    for (key, message) in [
        (
            "forward.delay = { kind = \"trace\", file = \"anabranch:starlink-up.csv\" }",
            "have a fixed delay",
        ),
        (
            "delay = { kind = \"trace\", file = \"anabranch:starlink-up.csv\" }",
            "a duration with its unit",
        ),
        (
            "service = { kind = \"trace\", file = \"anabranch:starlink-up.csv\" }",
            "send at a fixed rate",
        ),
        ("path = \"geo\"", "unknown key `path`"),
    ] {
        let error = Scenario::parse(&text(key), "test.toml", &Extensions::default())
            .and_then(|scenario| scenario.resolve(None))
            .expect_err(key);
        assert!(error.to_string().contains(message), "{error}");
    }
}
