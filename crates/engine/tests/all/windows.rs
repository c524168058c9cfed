//! The measured time: warm-up, stop, the end of a file, transfers of a workload.

use anabranch_core::body::Length;
use anabranch_engine::{Finished, Simulation};
use anabranch_scenario::{Extensions, Scenario};

fn run(rest: &str) -> Finished {
    let text = format!(
        r#"
        duration = "10 s"
        {rest}
        [link.a]
        between = ["S", "R"]
        rate = "10 Mbit/s"
        delay = "10 ms"
        queue = {{ kind = "drop-tail", limit = "100 packets" }}
        "#
    );
    let scenario =
        Scenario::parse(&text, "windows.toml", &Extensions::default()).expect("it is TOML");
    let resolved = scenario
        .resolve(None)
        .unwrap_or_else(|error| panic!("{error}"));
    let run = Simulation::<Length>::new(&resolved)
        .samples(Some(anabranch_core::units::Duration::from_millis(1)));
    run.run().expect("no hosts")
}

fn figure(run: &Finished, name: &str) -> f64 {
    run.summary.flows["main"][name]
        .as_f64()
        .unwrap_or_else(|| panic!("{name}: {}", run.summary.flows["main"]))
}

fn flow(more: &str) -> String {
    // Dotted keys, so that the scenario's own tables may follow.
    format!("flow.main = {{ from = \"S\", to = \"R\", stack = \"rfc\", cc = \"reno\", {more} }}")
}

#[test]
fn throughput_after_the_warmup_is_below_the_link_rate() {
    let main = flow("");
    let run = run(&format!("warmup = \"5 s\"\n{main}"));
    let (throughput, goodput) = (
        figure(&run, "throughput_mbit_s"),
        figure(&run, "goodput_mbit_s"),
    );
    assert!(throughput <= 10.0 && throughput > 9.9, "{throughput}");
    assert!(
        (goodput / throughput - 1448.0 / 1500.0).abs() < 1e-3,
        "{goodput}"
    );
    // A transmission counts as a whole at its end: at most one packet too many.
    let most = 1.0 + 1500.0 * 8.0 / (5.0 * 10e6);
    assert!(run.summary.links["a"]["forward"]["utilization"].as_f64() <= Some(most));
}

#[test]
fn a_stopped_file_is_measured_until_the_stop() {
    let run = run(&flow(
        r#"stop = "1 s", workload = { kind = "file", size = "5 MB" }"#,
    ));
    // One second of a path that carries 9.65 Mbit/s of payload, minus the handshake and slow start.
    let goodput = figure(&run, "goodput_mbit_s");
    assert!(goodput > 7.0 && goodput < 9.66, "{goodput}");
    assert!(run.summary.flows["main"]["flow_completion_time_s"].is_null());
}

#[test]
fn a_completed_file_is_measured_until_its_last_delivery() {
    let run = run(&flow(r#"workload = { kind = "file", size = "20 KiB" }"#));
    let time = figure(&run, "flow_completion_time_s");
    assert!((figure(&run, "goodput_mbit_s") - 20_480.0 * 8.0 / time / 1e6).abs() < 1e-9);
    // The mean of 1 ms samples over the same time.
    let cwnd: Vec<f64> = run
        .samples
        .flows
        .iter()
        .filter(|sample| sample.at.as_secs_f64() <= time)
        .map(|sample| sample.snapshot.cwnd.get() as f64 / 1448.0)
        .collect();
    let mean = cwnd.iter().sum::<f64>() / cwnd.len() as f64;
    assert!(
        (figure(&run, "mean_cwnd_packets") / mean - 1.0).abs() < 0.05,
        "{mean}"
    );
}

#[test]
fn a_stopped_workload_is_measured_until_the_stop() {
    let workload =
        r#"{ kind = "poisson", rate = "5 Mbit/s", sizes = { kind = "fixed", size = "1 MB" } }"#;
    let run = run(&flow(&format!(r#"stop = "1 s", workload = {workload}"#)));
    let (throughput, goodput) = (
        figure(&run, "throughput_mbit_s"),
        figure(&run, "goodput_mbit_s"),
    );
    assert!(
        goodput <= throughput && throughput <= 10.0,
        "{goodput} {throughput}"
    );
}

#[test]
fn transfers_count_as_completed_when_their_last_octet_arrives() {
    let workload =
        r#"{ kind = "poisson", rate = "2 Mbit/s", sizes = { kind = "fixed", size = "10 kB" } }"#;
    let main = flow(&format!("workload = {workload}"));
    let run = run(&format!("{main}\nlink.b = {{ between = [\"R\", \"X\"] }}"));
    let flow = &run.summary.flows["main"];
    let completed = flow["transfers"]["completed"]
        .as_u64()
        .expect("a workload of many");
    let delivered = flow["delivered_bytes"].as_u64().expect("octets");
    assert!(completed > 100);
    assert!(
        delivered - completed * 10_000 < 5 * 10_000,
        "{delivered} octets, {completed} transfers"
    );
    assert_eq!(
        delivered / 10_000,
        completed + (delivered - completed * 10_000) / 10_000
    );
}
