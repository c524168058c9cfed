//! Wrap of counters: runs whose counters start just below their limits agree with runs whose
//! counters start at 0.

use anabranch_core::body::Length;
use anabranch_engine::{
    record::Resent,
    summary::{About, Summary},
    topology::{Compiled, Engine, compile},
};
use anabranch_scenario::{Extensions, Resolved, Scenario};
use anabranch_wire::Seq;
use serde_json::{Value, json};

/// Start values such that packets arrive before and after the wrap of each width in use, and
/// beyond.
const STARTS: [u64; 4] = [
    (1 << 31) - 150,
    (1 << 32) - 150,
    (1 << 33) - 150,
    (1 << 48) - 150,
];

/// TCP and UDP over paths that lose, duplicate, reorder and jitter, with queues that distinguish
/// connections.
const PATHS: &str = r#"
duration = "3 s"
warmup = "200 ms"
[link.a]
between = ["S", "R"]
rate = "4 Mbit/s"
delay = "10 ms"
queue = { kind = "drop-tail", limit = "30 packets", reorder = { kind = "interval", interval = 7 } }
impair = [{ kind = "duplicate", rate = 0.02 }, { kind = "bernoulli-loss", rate = 0.01 }]
[link.b]
between = ["R", "T"]
rate = "3 Mbit/s"
delay = "5 ms"
queue = { kind = "red", limit = "50 packets" }
impair = [{ kind = "jitter", mean = "3 ms", reorder = true }]
[flow.tcp]
from = "S"
to = "T"
count = 2
[flow.file]
from = "S"
to = "T"
stack = "ns3-2018"
workload = { kind = "file", size = "300 kB" }
[flow.video]
from = "S"
to = "T"
protocol = "udp"
workload = { kind = "paced", rate = "1 Mbit/s", payload = "500 bytes" }
[flow.protected]
from = "S"
to = "T"
fec = { kind = "xor", fmax = 10 }
"#;

/// Two routes; the splitter and the restorer number packets.
const GATEWAY: &str = r#"
duration = "3 s"
[link.a]
between = ["g", "h"]
rate = "4 Mbit/s"
delay = "10 ms"
impair = [{ kind = "bernoulli-loss", rate = 0.01 }]
[link.b]
between = ["g", "h"]
rate = "4 Mbit/s"
delay = "25 ms"
[gateway.pair]
between = ["g", "h"]
routes = ["a", "b"]
split = "redundant"
restore = "timed"
[flow.main]
from = "g"
to = "h"
[flow.call]
from = "h"
to = "g"
protocol = "udp"
workload = { kind = "paced", rate = "1 Mbit/s", payload = "500 bytes" }
"#;

fn resolve(text: &str) -> Resolved {
    Scenario::parse(text, "counters.toml", &Extensions::default())
        .and_then(|scenario| scenario.resolve(None))
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The figures of flows and links of a run whose packets are numbered from `first` on.
fn figures(text: &str, first: u64, engine: Engine) -> Value {
    let resolved = resolve(text);
    let Compiled {
        mut network,
        links,
        groups,
        gateways,
    } = compile::<Length>(&resolved, engine, Vec::new()).expect("no hosts");
    network.number_packets_from(first);
    network.run_through(network.end());
    let about = About {
        scenario: String::new(),
        seed: 1,
        resolved_scenario: resolved.json.clone(),
        platform: String::new(),
        captures: serde_json::Map::new(),
    };
    let summary = Summary::of(
        &mut network,
        about,
        &links,
        &groups,
        &gateways,
        |_, flow| Some(flow),
    );
    json!([summary.flows, summary.links, summary.gateways])
}

/// Detects packet indices of 31 or 32 bits: no packet arrives after 2^31 packets, or all are
/// reordered.
#[test]
fn packet_numbers_may_exceed_every_power_of_two() {
    for text in [PATHS, GATEWAY] {
        for packet_log in [false, true] {
            let engine = Engine {
                packet_log,
                ..Engine::default()
            };
            let expected = figures(text, 0, engine);
            assert!(expected[0]["video"]["delivered_bytes"] != 0, "{expected}");
            for first in STARTS {
                let found = figures(text, first, engine);
                assert_eq!(found, expected, "from {first}");
            }
        }
    }
}

/// A place used by successive transfers: late packets of the preceding one are recognized by their
/// numbers.
#[test]
fn transfers_in_one_place_may_exceed_the_wrap() {
    let text = r#"
        duration = "4 s"
        [link.a]
        between = ["S", "R"]
        rate = "10 Mbit/s"
        delay = "10 ms"
        impair = [{ kind = "duplicate", rate = 0.05 }, { kind = "jitter", mean = "10 ms", reorder = true }]
        [flow.web]
        from = "S"
        to = "R"
        workload = { kind = "poisson", rate = "3 Mbit/s", sizes = { kind = "fixed", size = "20 kB" } }
    "#;
    let run = |first| {
        let resolved = resolve(text);
        let compiled = compile::<Length>(&resolved, Engine::default(), Vec::new());
        let mut network = compiled.expect("no hosts").network;
        // The places of transfers are created when they begin.
        network.run_through(anabranch_core::units::Instant::from_millis(1_500));
        if first > 0 {
            network.renumber_idle_places(first);
        }
        network.run_through(network.end());
        network.flow_report(anabranch_core::packet::FlowId(0))
    };
    let expected = run(0);
    let times = |report: &anabranch_engine::network::FlowReport| {
        report
            .completions
            .as_ref()
            .expect("transfers")
            .times
            .clone()
    };
    assert!(times(&expected).len() > 30);
    for first in STARTS {
        assert_eq!(times(&run(first)), times(&expected), "from {first}");
    }
}

/// A stream longer than 4 GiB: the octets of a retransmission are identified in any period of 32
/// bits.
#[test]
fn octets_are_distinguished_beyond_four_gibibytes() {
    let mut resent = Resent::default();
    let first = Seq::first(0) + (5 << 32);
    resent.sent(first..first + 1_000, 1, first);
    assert_eq!(resent.compare(|octets| vec![octets]), 0);
    let turn_before = Seq::first(0) + (4 << 32);
    assert_eq!(resent.arrived(&(turn_before..turn_before + 1_000), 0), 0);
    assert_eq!(resent.arrived(&(first..first + 1_000), 0), 1);
}
