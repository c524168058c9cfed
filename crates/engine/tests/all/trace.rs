//! Links whose capacity follows a trace: their throughput, and the errors of an invalid trace.

use std::path::Path;

use anabranch_core::body::Length;
use anabranch_engine::{Finished, Simulation};
use anabranch_scenario::{Extensions, Resolved, Scenario};

/// A link with a 10-packet queue whose forward direction follows `cell.trace`.
const SCENARIO: &str = r#"
duration = "20 s"
[link.cell]
between = ["S", "R"]
delay = "10 ms"
forward.service = { kind = "trace", file = "traces/cell.trace" }
forward.queue = { kind = "drop-tail", limit = "10 packets" }
reverse.rate = "10 Mbit/s"
[flow.f]
from = "S"
to = "R"
stack = "rfc"
"#;

fn read(text: &str, trace: &'static str) -> Result<Resolved, String> {
    let files = move |path: &Path, _| {
        // Relative to the scenario's file.
        if path == Path::new("some/where/traces/cell.trace") {
            Ok(trace.as_bytes().to_vec())
        } else {
            Err("no such file".to_owned())
        }
    };
    Scenario::parse(
        text,
        "some/where/cell.toml",
        &Extensions::default().files(files),
    )
    .and_then(|scenario| scenario.resolve(None))
    .map_err(|error| error.to_string())
}

fn run(text: &str, trace: &'static str, fast: bool) -> Finished {
    let resolved = read(text, trace).unwrap_or_else(|error| panic!("{error}"));
    Simulation::<Length>::new(&resolved)
        .fast_path(fast)
        .run()
        .expect("no hosts")
}

fn figure(run: &Finished, name: &str) -> f64 {
    let value = &run.summary.links["cell"]["forward"][name];
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{name} is {value}"))
}

#[test]
fn a_transfer_fills_a_steady_trace() {
    // One opportunity per 3 ms: 4 Mbit/s.
    let run = run(SCENARIO, "3\n", true);
    let utilization = figure(&run, "utilization");
    assert!((0.9..=1.0).contains(&utilization), "{utilization}");
    let goodput = run.summary.flows["f"]["goodput_mbit_s"]
        .as_f64()
        .expect("a number");
    assert!((3.4..4.0).contains(&goodput), "{goodput}");
    assert!(figure(&run, "dropped_packets") > 0.0);
}

/// Half of the time without opportunities: capacity is the trace's, not that of a fixed rate.
#[test]
fn utilization_is_relative_to_the_trace() {
    let bursts: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n20\n";
    let run = run(SCENARIO, bursts, true);
    // 20 s with 11 opportunities per 20 ms, in packets of 1,500 bytes.
    let sent = figure(&run, "sent_packets");
    let utilization = figure(&run, "utilization");
    assert!(
        (utilization - sent / 11_000.0).abs() < 0.01,
        "{utilization} {sent}"
    );
    assert!(utilization < 1.0);
}

#[test]
fn the_fast_path_changes_nothing() {
    for trace in ["3\n", "0\n1\n40\n", "7\n7\n7\n30\n"] {
        for text in [
            SCENARIO.to_owned(),
            SCENARIO.replace("duration = \"20 s\"", "duration = \"20 s\"\n[[at]]\ntime = \"3 s\"\nset = { \"link.cell.up\" = false }\n[[at]]\ntime = \"5.5 s\"\nset = { \"link.cell.up\" = true }"),
        ] {
            let (fast, slow) = (run(&text, trace, true), run(&text, trace, false));
            assert_eq!(fast.summary.digest, slow.summary.digest, "{trace}");
            assert_eq!(fast.summary.links, slow.summary.links);
        }
    }
}

/// A link that is down has no capacity: utilization excludes that time.
#[test]
fn a_down_link_has_no_capacity() {
    let text = SCENARIO.replace(
        "duration = \"20 s\"",
        "duration = \"20 s\"\n[[at]]\ntime = \"4 s\"\nset = { \"link.cell.forward.up\" = false }\n[[at]]\ntime = \"12 s\"\nset = { \"link.cell.forward.up\" = true }",
    );
    let run = run(&text, "3\n", true);
    let (sent, utilization) = (figure(&run, "sent_packets"), figure(&run, "utilization"));
    // 12 s of the run at one opportunity per 3 ms.
    assert!(
        (utilization - sent / 4_000.0).abs() < 0.01,
        "{utilization} {sent}"
    );
}

#[test]
fn invalid_traces_are_refused_with_their_position() {
    for (trace, said) in [
        (
            "1\n5\n3\n",
            "some/where/traces/cell.trace:3:1: the trace goes back in time: 3 ms after 5 ms",
        ),
        (
            "# empty\n",
            "some/where/traces/cell.trace:2:1: the trace has no opportunity to send",
        ),
        (
            "0\n",
            "some/where/traces/cell.trace:1:1: the trace takes no time",
        ),
        (
            "1\n  two\n",
            "some/where/traces/cell.trace:2:3: \"two\" is no time",
        ),
    ] {
        let error = read(SCENARIO, trace).expect_err(trace);
        assert!(error.starts_with(said), "{error}");
    }
    for (from, to, said) in [
        (
            "cell.trace",
            "tell.trace",
            "some/where/cell.toml:6:44: `some/where/traces/tell.trace` cannot be read: ",
        ),
        (
            "delay",
            "rate = \"1 Mbit/s\"\ndelay",
            "some/where/cell.toml:5:8: this rate is beside a trace",
        ),
        (
            ", file = \"traces/cell.trace\"",
            "",
            "some/where/cell.toml:6:19: the key `file` is missing",
        ),
        (
            "duration",
            "at = [{ time = \"1 s\", set = { \"link.cell.forward.rate\" = \"1 Mbit/s\" } }]\nduration",
            "some/where/cell.toml:2:",
        ),
    ] {
        let text = SCENARIO.replace(from, to);
        assert_ne!(text, SCENARIO);
        let error = read(&text, "1\n").expect_err(said);
        assert!(error.starts_with(said), "{error}");
    }
    // Without a reader, no files are available.
    let alone = Scenario::parse(SCENARIO, "cell.toml", &Extensions::default());
    let error = alone
        .and_then(|scenario| scenario.resolve(None))
        .expect_err("no files");
    assert!(error.to_string().contains("reads no files"), "{error}");
}

/// Delays from a file are in the resolved scenario, which no longer needs the file.
#[test]
fn jitter_takes_its_table_from_a_file() {
    let jitter = "forward.impair = [{ kind = \"jitter\", distribution = \"table\", file = \"traces/cell.trace\" }]";
    let text = SCENARIO.replace(
        "forward.service = { kind = \"trace\", file = \"traces/cell.trace\" }",
        jitter,
    );
    let resolved = read(&text, "1 ms\n# long\n250 ms\n").unwrap_or_else(|error| panic!("{error}"));
    let table = &resolved.json.value()["link"]["cell"]["forward"]["impair"][0];
    assert_eq!(table["table"], serde_json::json!(["1 ms", "250 ms"]));
    assert!(table["file"].is_null());
    let error = read(&text, "1 ms\n2 packets\n").expect_err("no delay");
    assert!(
        error.starts_with("some/where/traces/cell.trace:2:1: \"2 packets\" is not a duration"),
        "{error}"
    );
}

/// The resolved scenario names the trace, and resolves to the same.
#[test]
fn the_resolved_scenario_keeps_the_trace() {
    let resolved = read(SCENARIO, "3\n").unwrap_or_else(|error| panic!("{error}"));
    let forward = &resolved.json.value()["link"]["cell"]["forward"];
    assert_eq!(forward["rate"], "unlimited");
    assert_eq!(forward["service"]["kind"], "trace");
    assert_eq!(forward["service"]["file"], "traces/cell.trace");
    // Limits in bdp and splitters use its mean.
    let rate = resolved.links[0].directions[0].rate.expect("it has one");
    assert_eq!(rate.bits_per_s(), 4_000_000);
}
