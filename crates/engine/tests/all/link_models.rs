//! TCP over links with models beyond a rate: policers, Wi-Fi stations, cable modems and cells.

#![expect(clippy::float_cmp, reason = "counts are exact")]

use anabranch_core::body::Length;
use anabranch_engine::{Finished, Simulation};
use anabranch_scenario::{Extensions, Scenario};
use serde_json::Value;

/// One flow over a link with these keys.
fn run(keys: &str) -> Finished<Length> {
    let text = format!(
        "duration = \"20 s\"\nwarmup = \"5 s\"\n\
         [link.air]\nbetween = [\"S\", \"D\"]\ndelay = \"10 ms\"\n{keys}\n[flow.f]\nfrom = \"S\"\nto = \"D\"\n"
    );
    let resolved = Scenario::parse(&text, "links.toml", &Extensions::default())
        .and_then(|scenario| scenario.resolve(None))
        .unwrap_or_else(|error| panic!("{error}"));
    Simulation::<Length>::new(&resolved)
        .run()
        .expect("no hosts")
}

fn figure(of: &Value, name: &str) -> f64 {
    of[name].as_f64().unwrap_or_else(|| panic!("{name}: {of}"))
}

/// A policer has no queue: TCP's excess over the rate is lost, and the round trip does not grow
/// (Flach et al. 2016).
#[test]
fn a_policer_drops_instead_of_queueing() {
    let policed = run(
        "rate = \"100 Mbit/s\"\nforward.impair = [{ kind = \"policer\", rate = \"10 Mbit/s\", burst = \"64 kB\" }]",
    );
    let queued = run("rate = \"10 Mbit/s\"\nqueue = { kind = \"drop-tail\", limit = \"64 kB\" }");
    let (policed, queued) = (&policed.summary.flows["f"], &queued.summary.flows["f"]);
    assert!(figure(policed, "throughput_mbit_s") <= 10.2, "{policed}");
    assert!(figure(policed, "goodput_mbit_s") > 5.0, "{policed}");
    assert!(figure(policed, "mean_srtt_ms") < 22.0, "{policed}");
    assert!(figure(queued, "mean_srtt_ms") > 35.0, "{queued}");
    let lost = |of: &Value| figure(of, "retransmitted_packets");
    assert!(lost(policed) > 2.0 * lost(queued), "{policed} {queued}");
}

/// The goodput of a Wi-Fi station follows its aggregation and the number of stations.
#[test]
fn wifi_goodput_follows_aggregation_and_stations() {
    let goodput = |service: &str| {
        let keys = format!(
            "rate = \"65 Mbit/s\"\nforward.service = {service}\nforward.queue = {{ kind = \"drop-tail\", limit = \"300 packets\" }}"
        );
        figure(&run(&keys).summary.flows["f"], "goodput_mbit_s")
    };
    let (fixed, aggregated, single, shared) = (
        goodput("\"fixed\""),
        goodput("{ kind = \"wifi\", aggregate = 32 }"),
        goodput("{ kind = \"wifi\", aggregate = 1 }"),
        goodput("{ kind = \"wifi\", aggregate = 32, stations = 2 }"),
    );
    // 21 frames fit into 4 ms: 4.19 ms for 21 times 1,448 bytes; a single frame takes 376 µs.
    assert!((aggregated - 58.1).abs() < 1.5, "{aggregated}");
    assert!((single - 30.8).abs() < 1.0, "{single}");
    assert!(fixed > aggregated, "{fixed}");
    assert!(
        (shared / aggregated - 0.5).abs() < 0.05,
        "{shared} of {aggregated}"
    );
}

#[test]
fn corrupted_wifi_frames_cause_delay_not_loss() {
    let service = |error: f64| {
        run(&format!(
            "rate = \"65 Mbit/s\"\nforward.service = {{ kind = \"wifi\", frame_error = {error} }}\n\
             forward.queue = {{ kind = \"drop-tail\", limit = \"1000 packets\" }}"
        ))
    };
    let run = service(0.3);
    let flow = &run.summary.flows["f"];
    let link = &run.summary.links["air"]["forward"];
    assert_eq!(figure(link, "lost_packets"), 0.0, "{link}");
    assert!(figure(flow, "goodput_mbit_s") > 0.6 * 58.0, "{flow}");
}

/// Requests overlap, so TCP fills a cable's upstream; each round trip includes the delay of a
/// request and a grant.
#[test]
fn cable_requests_add_delay_without_reducing_the_rate() {
    let run = |service: &str| {
        run(&format!(
            "rate = \"20 Mbit/s\"\nforward.service = {service}\nqueue = {{ kind = \"drop-tail\", limit = \"100 packets\" }}"
        ))
    };
    let (fixed, cable) = (run("\"fixed\""), run("\"cable\""));
    let (fixed, cable) = (&fixed.summary.flows["f"], &cable.summary.flows["f"]);
    let goodput = figure(cable, "goodput_mbit_s") / figure(fixed, "goodput_mbit_s");
    assert!((goodput - 1.0).abs() < 0.02, "{goodput}");
    let least = figure(cable, "min_rtt_ms") - figure(fixed, "min_rtt_ms");
    assert!((1.65..5.7).contains(&least), "{least}");
}

/// The cell retransmits a tenth of the blocks: TCP loses that share of the rate, but no packet, and
/// order is kept.
#[test]
fn block_errors_of_a_cell_cause_delay_not_loss() {
    let run = run(
        "rate = \"20 Mbit/s\"\nforward.service = { kind = \"cellular\", sr_period = \"10 ms\" }\n\
         reverse.service = \"cellular\"\nforward.queue = { kind = \"drop-tail\", limit = \"1000 packets\" }",
    );
    let flow = &run.summary.flows["f"];
    let link = &run.summary.links["air"]["forward"];
    assert_eq!(figure(link, "lost_packets"), 0.0, "{link}");
    assert_eq!(figure(link, "reordered_packets"), 0.0, "{link}");
    let used = figure(link, "utilization");
    assert!((used - 0.9).abs() < 0.01, "{used}");
    // 1,448 of 1,500 bytes, except for data that the queue's losses hold back at the end.
    let goodput = figure(flow, "goodput_mbit_s");
    assert!(goodput > 0.9 * 0.9 * 20.0 * 1448.0 / 1500.0, "{goodput}");
    // 20 ms of delay, at least 12 ms of grant, block and decoding, and 7 ms back.
    assert!(figure(flow, "min_rtt_ms") >= 39.0, "{flow}");
}

/// Packets that arrive while a link is down wait, and no block is lost.
#[test]
fn media_survive_a_link_that_goes_down() {
    for service in [
        "\"cable\"",
        "{ kind = \"cellular\", sr_period = \"5 ms\" }",
        "\"cellular\"",
    ] {
        let run = run(&format!(
            "rate = \"20 Mbit/s\"\nservice = {service}\nqueue = {{ kind = \"drop-tail\", limit = \"100 packets\" }}\n\
             [[at]]\ntime = \"8 s\"\nset = {{ \"link.air.up\" = false }}\n\
             [[at]]\ntime = \"8.2 s\"\nset = {{ \"link.air.up\" = true }}"
        ));
        let flow = &run.summary.flows["f"];
        assert!(figure(flow, "goodput_mbit_s") > 12.0, "{service}: {flow}");
    }
}

/// tc-cake(8): voice has priority up to a quarter of the rate, and gets no more while best effort
/// has packets; bulk gets the remainder.
#[test]
fn cake_distinguishes_flows_by_dscp() {
    let shares = |protocol: &str, dscp: &str| {
        let text = format!(
            "duration = \"20 s\"\nwarmup = \"5 s\"\n[link.wan]\nbetween = [\"S\", \"D\"]\nrate = \"100 Mbit/s\"\ndelay = \"5 ms\"\n\
             queue = {{ kind = \"cake\", rate = \"16 Mbit/s\", diffserv = \"diffserv4\" }}\n\
             [flow.marked]\nfrom = \"S\"\nto = \"D\"\n{protocol}\n{dscp}\n[flow.other]\nfrom = \"S\"\nto = \"D\"\n{protocol}\n"
        );
        let resolved = Scenario::parse(&text, "dscp.toml", &Extensions::default())
            .and_then(|scenario| scenario.resolve(None))
            .unwrap_or_else(|error| panic!("{error}"));
        let run = Simulation::<Length>::new(&resolved)
            .run()
            .expect("no hosts");
        let goodput = |flow: &str| figure(&run.summary.flows[flow], "goodput_mbit_s");
        goodput("marked") / (goodput("marked") + goodput("other"))
    };
    let udp = "protocol = \"udp\"\nworkload = { kind = \"paced\", rate = \"20 Mbit/s\" }";
    for protocol in ["", udp] {
        let alike = shares(protocol, "");
        assert!((alike - 0.5).abs() < 0.05, "{alike}");
        let voice = shares(protocol, "dscp = \"ef\"");
        assert!((voice - 0.25).abs() < 0.03, "{voice}");
        assert!((shares(protocol, "dscp = 46") - voice).abs() < 1e-9);
        assert!(shares(protocol, "dscp = \"cs1\"") < 0.07);
    }
}
