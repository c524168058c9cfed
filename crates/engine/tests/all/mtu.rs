//! The MTU of a link: the packets that it drops, the reports of routers, and TCP's reaction (RFC
//! 1191, RFC 4821).

#![expect(clippy::float_cmp, reason = "counts are exact")]

use anabranch_core::{
    body::Length,
    trace::Fate,
    units::{Duration, Instant},
};
use anabranch_engine::{
    Finished, Simulation,
    network::Census,
    topology::{Engine, compile},
};
use anabranch_scenario::{Extensions, Scenario};
use anabranch_tcp::RetransmitCause;

/// A file over a wide link and then a narrow one; `link` and `flow` are further keys.
fn scenario(link: &str, flow: &str) -> String {
    format!(
        r#"
duration = "60 s"
[link.access]
between = ["A", "R"]
rate = "100 Mbit/s"
delay = "10 ms"
[link.narrow]
between = ["R", "B"]
rate = "10 Mbit/s"
delay = "5 ms"
{link}
[flow.f]
from = "A"
to = "B"
workload = {{ kind = "file", size = "1 MB" }}
{flow}
"#
    )
}

fn run(text: &str, fast: bool) -> Finished {
    let resolved = Scenario::parse(text, "mtu.toml", &Extensions::default())
        .and_then(|scenario| scenario.resolve(None))
        .unwrap_or_else(|error| panic!("{error}"));
    Simulation::<Length>::new(&resolved)
        .fast_path(fast)
        .packet_log(true)
        .run()
        .expect("no hosts")
}

/// The census of all packets at the end.
fn census(text: &str) -> Census {
    let resolved = Scenario::parse(text, "mtu.toml", &Extensions::default())
        .and_then(|scenario| scenario.resolve(None))
        .unwrap_or_else(|error| panic!("{error}"));
    let engine = Engine {
        tally: true,
        ..Engine::default()
    };
    let mut network = compile::<Length>(&resolved, engine, Vec::new())
        .expect("no hosts")
        .network;
    network.run_through(network.end());
    let census = network.census().expect("fates are counted");
    assert!(census.too_big_packets > 0, "{census:?}");
    census
}

fn too_big(run: &Finished, link: &str, way: &str) -> Option<u64> {
    run.summary.links[link][way]["too_big_packets"].as_u64()
}

fn figure(run: &Finished, name: &str) -> f64 {
    let value = &run.summary.flows["f"][name];
    value.as_f64().unwrap_or_else(|| panic!("{name}: {value}"))
}

#[test]
fn a_report_lowers_segments_to_the_mtu_without_a_reduction() {
    let run = run(&scenario("mtu = \"1000 bytes\"", ""), true);
    assert_eq!(figure(&run, "delivered_bytes"), 1e6);
    assert_eq!(run.summary.flows["f"]["ended"], "completed");
    // The first window of ten, and no packet after it.
    assert_eq!(too_big(&run, "narrow", "forward"), Some(10));
    assert_eq!(too_big(&run, "narrow", "reverse"), Some(0));
    assert_eq!(too_big(&run, "access", "forward"), None);
    assert_eq!(figure(&run, "timeouts"), 0.0);
    assert_eq!(figure(&run, "fast_recoveries"), 0.0);
    let log = run.network.probe().log().expect("a log is kept");
    let sizes: Vec<u32> = log
        .rows()
        .filter(|row| row.received.is_some())
        .map(|row| row.size)
        .collect();
    assert_eq!(sizes.iter().max(), Some(&1000));
}

#[test]
fn refused_segments_are_resegmented_at_the_report() {
    let run = run(&scenario("mtu = \"1000 bytes\"", ""), true);
    let log = run.network.probe().log().expect("a log is kept");
    let refused: Vec<_> = log
        .rows()
        .filter(|row| matches!(row.lost, Some((_, Fate::TooBig))))
        .collect();
    let first = refused[0].sent;
    let pieces: Vec<_> = log
        .rows()
        .filter(|row| row.cause == Some(RetransmitCause::PathMtu))
        .collect();
    // 1448 octets are split into 948 and 500; with IP, TCP and timestamps a piece has 52 more.
    assert_eq!(pieces.len(), 2 * refused.len());
    assert_eq!((pieces[0].size, pieces[1].size), (1000, 552));
    // There and back over the access link, plus the transmission time after the ACK of the
    // handshake; the narrow link is not crossed.
    let there = Duration::from_millis(10) + Duration::from_nanos(124_160);
    assert_eq!(pieces[0].sent, first + there + Duration::from_millis(10));
}

#[test]
fn a_report_takes_the_delay_of_the_return_path() {
    let text = scenario("mtu = \"1000 bytes\"", "").replace(
        "delay = \"10 ms\"",
        "delay = \"10 ms\"\nreverse.delay = \"30 ms\"",
    );
    let run = run(&text, true);
    let log = run.network.probe().log().expect("a log is kept");
    let mut rows = log.rows();
    let first = rows.find(|row| matches!(row.lost, Some((_, Fate::TooBig))));
    let piece = rows.find(|row| row.cause == Some(RetransmitCause::PathMtu));
    let (Some(first), Some(piece)) = (first, piece) else {
        panic!("neither a refused packet nor its pieces")
    };
    let expected = Duration::from_millis(40) + Duration::from_nanos(124_160);
    assert_eq!(piece.sent - first.sent, expected);
}

#[test]
fn a_black_hole_stops_a_flow_that_waits_for_reports() {
    let run = run(
        &scenario("mtu = \"1000 bytes\"\nmtu_reports = false", ""),
        true,
    );
    assert_eq!(figure(&run, "delivered_bytes"), 0.0);
    assert_eq!(run.summary.flows["f"]["ended"], "running");
    assert!(figure(&run, "timeouts") >= 5.0);
    assert!(too_big(&run, "narrow", "forward") > Some(10));
}

#[test]
fn black_hole_detection_finds_the_largest_segment() {
    let flow = "transport.mtu_discovery = \"black-hole\"";
    let run = run(
        &scenario("mtu = \"1300 bytes\"\nmtu_reports = false", flow),
        true,
    );
    assert_eq!(figure(&run, "delivered_bytes"), 1e6);
    let log = run.network.probe().log().expect("a log is kept");
    let largest = log
        .rows()
        .filter(|row| row.received.is_some())
        .map(|row| row.size)
        .max();
    // The search ends when less than eight octets are left.
    let largest = largest.expect("packets arrive");
    assert!((1293..=1300).contains(&largest), "{largest}");
    // Three timeouts; a lost probe does not count as one.
    assert_eq!(figure(&run, "timeouts"), 3.0);
}

#[test]
fn probing_from_the_start_begins_with_small_segments() {
    let flow = "transport.mtu_discovery = \"probing\"";
    let run = run(
        &scenario("mtu = \"1300 bytes\"\nmtu_reports = false", flow),
        true,
    );
    assert_eq!(figure(&run, "delivered_bytes"), 1e6);
    assert_eq!(figure(&run, "timeouts"), 0.0);
    let log = run.network.probe().log().expect("a log is kept");
    let first = log.rows().find(|row| row.payload > 0);
    assert_eq!(first.map(|row| row.payload), Some(1024));
}

#[test]
fn discovery_that_is_off_ignores_reports() {
    let flow = "transport.mtu_discovery = \"off\"";
    let run = run(&scenario("mtu = \"1000 bytes\"", flow), true);
    assert_eq!(figure(&run, "delivered_bytes"), 0.0);
}

#[test]
fn an_mtu_of_full_segments_has_no_effect() {
    let with = run(&scenario("mtu = \"1500 bytes\"", ""), true);
    let without = run(&scenario("", ""), true);
    assert_eq!(with.summary.digest, without.summary.digest);
    assert_eq!(too_big(&with, "narrow", "forward"), Some(0));
}

#[test]
fn results_do_not_depend_on_the_fast_path() {
    for mtu in [
        "mtu = \"700 bytes\"",
        "forward.mtu = \"700 bytes\"\nmtu_reports = false",
    ] {
        for flow in [
            "",
            "stack = \"rfc\"\ncc = \"reno\"\ntransport.mtu_discovery = \"black-hole\"",
            "cc = \"bbr3\"\ntransport.mtu_discovery = \"probing\"",
            "fec = \"xor\"",
        ] {
            let text = scenario(mtu, flow);
            let (fast, slow) = (run(&text, true), run(&text, false));
            assert_eq!(fast.summary.digest, slow.summary.digest, "{text}");
            let missing = census(&text).missing();
            assert_eq!(missing, 0, "{text}");
        }
    }
}

#[test]
fn every_congestion_control_transfers_a_file_over_a_small_mtu() {
    for cc in [
        "reno",
        "cubic",
        "bic",
        "htcp",
        "westwood-plus",
        "vegas",
        "compound",
        "dctcp",
        "bbr",
        "bbr3",
    ] {
        for stack in ["rfc", "linux", "ns3-2018", "windows-7", "linux-2.6.35"] {
            let flow = format!("cc = \"{cc}\"\nstack = \"{stack}\"");
            let run = run(&scenario("mtu = \"600 bytes\"", &flow), true);
            assert_eq!(figure(&run, "delivered_bytes"), 1e6, "{cc} {stack}");
            assert_eq!(figure(&run, "timeouts"), 0.0, "{cc} {stack}");
        }
    }
}

#[test]
fn datagrams_larger_than_the_mtu_are_dropped() {
    let text = scenario("mtu = \"1000 bytes\"", "protocol = \"udp\"").replace(
        "{ kind = \"file\", size = \"1 MB\" }",
        "{ kind = \"paced\", rate = \"1 Mbit/s\", payload = \"1200 bytes\" }",
    );
    let run = run(&text, true);
    assert_eq!(figure(&run, "delivered_bytes"), 0.0);
    assert!(too_big(&run, "narrow", "forward") > Some(1000));
}

#[test]
fn a_gateway_reports_the_mtu_inside_its_routes() {
    let text = r#"
duration = "20 s"
[link.lan]
between = ["A", "G"]
rate = "100 Mbit/s"
[link.one]
between = ["G", "H"]
rate = "5 Mbit/s"
delay = "10 ms"
mtu = "1000 bytes"
[link.two]
between = ["G", "H"]
rate = "5 Mbit/s"
delay = "10 ms"
mtu = "1000 bytes"
[link.far]
between = ["H", "B"]
rate = "100 Mbit/s"
[gateway.pair]
between = ["G", "H"]
routes = ["one", "two"]
split = "weighted-round-robin"
restore = "none"
overhead = "100 bytes"
[flow.f]
from = "A"
to = "B"
workload = { kind = "file", size = "1 MB" }
"#;
    let run = run(text, true);
    assert_eq!(figure(&run, "delivered_bytes"), 1e6);
    let log = run.network.probe().log().expect("a log is kept");
    let largest = log.rows().filter(|row| row.received.is_some());
    assert_eq!(largest.map(|row| row.size).max(), Some(900));
}

#[test]
fn reports_for_an_ended_transfer_are_discarded() {
    let text = scenario("mtu = \"1000 bytes\"", "").replace(
        "{ kind = \"file\", size = \"1 MB\" }",
        "{ kind = \"poisson\", rate = \"2 Mbit/s\", sizes = { kind = \"fixed\", size = \"20 kB\" } }",
    );
    let run = run(&text, true);
    let transfers = &run.summary.flows["f"]["transfers"];
    assert!(transfers["completed"].as_u64() > Some(500), "{transfers}");
    assert!(run.network.now() >= Instant::from_millis(60_000));
}
