//! Gateways: flows whose packets take several routes.

use std::{
    fmt::Write,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::support::{Shape, resolve, text};
use anabranch_core::body::{Body, Length};
use anabranch_engine::{Finished, Simulation};
use serde_json::Value;

fn run(text: &str, fast: bool) -> Finished {
    Simulation::<Length>::new(&resolve(text))
        .fast_path(fast)
        .run()
        .expect("no hosts")
}

/// The tables of a scenario file.
fn blocks(text: &str) -> Vec<String> {
    let mut blocks = vec![String::new()];
    for line in text.split_inclusive('\n') {
        if line.starts_with('[') {
            blocks.push(String::new());
        }
        let last = blocks.last_mut().expect("there is one from the start");
        last.push_str(line);
    }
    blocks
}

/// A random scenario in which each link between routers is one of two routes, with this splitter
/// and restorer.
fn pair(number: u64, shape: Shape, [split, restore]: [&str; 2]) -> String {
    let (text, _) = self::split(number, shape);
    let text = text.replace("\"weighted-round-robin\"", &format!("\"{split}\""));
    // The overhead in these scenarios may be less than the header.
    let lines = text.lines().filter(|line| !line.starts_with("overhead"));
    let lines: Vec<&str> = lines.collect();
    lines
        .join("\n")
        .replace("restore = \"none\"", &format!("restore = \"{restore}\""))
}

/// Every splitter with every restorer.
fn pairs() -> Vec<[&'static str; 2]> {
    let splitters = [
        "weighted-round-robin",
        "deficit",
        "earliest-arrival",
        "redundant",
    ];
    let restorers = ["none", "in-order", "timed", "adaptive"];
    let pairs = splitters.map(|split| restorers.map(|restore| [split, restore]));
    pairs.concat()
}

/// A random scenario in which each link between routers is one of two routes.
fn split(number: u64, shape: Shape) -> (String, usize) {
    let mut out = String::new();
    let mut gateways = 0;
    for block in blocks(&text(number, shape)) {
        out += &block;
        let Some(name) = block
            .strip_prefix("[link.core")
            .and_then(|rest| rest.split(']').next())
        else {
            continue;
        };
        if !block.contains("\nrate") {
            out += "rate = \"3000 kbit/s\"\n";
        }
        let between = block.lines().nth(1).expect("its ends");
        let routers: Vec<_> = between.split('"').collect();
        let (a, b) = (routers[1], routers[3]);
        let turned = number % 2 == 1;
        let (from, to) = if turned { (b, a) } else { (a, b) };
        let (rate, delay) = (1_000 + 700 * (number % 9), 3 * (number % 7));
        let overhead = 20 * (number % 3);
        let _ = write!(
            out,
            "[link.twin{name}]\nbetween = [\"{b}\", \"{a}\"]\nrate = \"{rate} kbit/s\"\ndelay = \"{delay} ms\"\n\
             queue = {{ kind = \"drop-tail\", limit = \"30 packets\" }}\n\
             [gateway.g{name}]\nbetween = [\"{from}\", \"{to}\"]\nroutes = [\"core{name}\", \"twin{name}\"]\n\
             split = \"weighted-round-robin\"\nrestore = \"none\"\noverhead = \"{overhead} bytes\"\n"
        );
        gateways += 1;
    }
    (out, gateways)
}

/// Includes several gateways in sequence, duplicates and changes of routes.
#[test]
fn the_fast_path_changes_nothing() {
    let mut crossed = 0;
    for number in 0..300 {
        let shape = Shape {
            files_only: false,
            changes: true,
            mangle: true,
            seconds: 1,
        };
        let (text, _) = split(number, shape);
        let (fast, slow) = (run(&text, true), run(&text, false));
        assert_eq!(
            fast.summary.digest, slow.summary.digest,
            "scenario {number}\n{text}"
        );
        let names = fast.summary.links.iter();
        crossed += usize::from(
            names
                .filter(|(name, _)| name.starts_with("twin"))
                .any(|(_, link)| link["forward"]["sent_packets"].as_u64() > Some(0)),
        );
    }
    assert!(crossed > 150, "only {crossed} of 300 crossed a gateway");
}

#[test]
fn threads_change_nothing() {
    let shape = Shape {
        files_only: false,
        changes: true,
        mangle: true,
        seconds: 2,
    };
    let text = (0..100)
        .map(|number| split(number, shape))
        .find(|(_, gateways)| *gateways > 2)
        .map(|(text, _)| text)
        .expect("there are long chains");
    let alone = run(&text, true).summary.digest;
    std::thread::scope(|scope| {
        let runs = [(); 4].map(|()| scope.spawn(|| run(&text, true).summary.digest));
        for run in runs {
            assert_eq!(run.join().expect("no panic"), alone);
        }
    });
}

/// Files cross gateways completely, and no packet is left in them.
#[test]
fn files_arrive_complete_and_no_packet_is_left() {
    let (mut reordered, mut retransmitted) = (0, 0);
    for number in 0..500 {
        let shape = Shape {
            files_only: true,
            changes: false,
            mangle: true,
            seconds: 600,
        };
        let (text, _) = split(number, shape);
        let run = run(&text, true);
        for (name, flow) in &run.summary.flows {
            assert!(
                flow["flow_completion_time_s"].as_f64().is_some(),
                "scenario {number}, {name}\n{text}"
            );
            reordered += u64::from(flow["reordered_ratio"].as_f64() > Some(0.0));
            retransmitted += flow["retransmitted_packets"].as_u64().unwrap_or(0);
        }
        assert_eq!(
            run.network.packets_in_flight(),
            0,
            "scenario {number}\n{text}"
        );
    }
    assert!(reordered > 250, "{reordered}");
    assert!(retransmitted > 1_000, "{retransmitted}");
}

/// Two unequal routes between fast access links; packets of several sizes in both directions.
fn unequal(rates: [u64; 2], delays: [u64; 2], overhead: u64, flows: &str) -> String {
    let mut text = String::from("duration = \"60 s\"\n");
    for (name, a, b) in [("lan1", "T1", "GW1"), ("lan2", "GW2", "T2")] {
        let _ = write!(
            text,
            "[link.{name}]\nbetween = [\"{a}\", \"{b}\"]\nrate = \"100 Mbit/s\"\n"
        );
    }
    for (k, (rate, delay)) in rates.iter().zip(delays).enumerate() {
        let _ = write!(
            text,
            "[link.isp{k}]\nbetween = [\"GW1\", \"GW2\"]\nrate = \"{rate} kbit/s\"\ndelay = \"{delay} ms\"\n"
        );
    }
    let _ = write!(
        text,
        "[gateway.tunnel]\nbetween = [\"GW1\", \"GW2\"]\nroutes = [\"isp0\", \"isp1\"]\n\
         split = \"weighted-round-robin\"\nrestore = \"none\"\noverhead = \"{overhead} bytes\"\n{flows}"
    );
    text
}

const BOTH_WAYS: &str = r#"
[flow.large]
from = "T1"
to = "T2"
cc = "reno"
stack = "rfc"
transport = { receive_window = "64 KiB" }
[flow.small]
from = "T1"
to = "T2"
cc = "reno"
stack = "rfc"
transport = { mss = "300 bytes", receive_window = "32 KiB" }
[flow.other-way]
from = "T2"
to = "T1"
cc = "reno"
stack = "rfc"
transport = { mss = "900 bytes", receive_window = "64 KiB" }
"#;

fn number(run: &Finished, link: &str, direction: &str, key: &str) -> f64 {
    run.summary.links[link][direction][key]
        .as_f64()
        .unwrap_or_else(|| panic!("{link}.{direction}.{key}"))
}

/// The traffic of each route is proportional to its line rate: the utilizations are equal, in both
/// directions.
#[test]
fn shares_follow_line_rates_in_both_directions() {
    for rates in [[5_000, 5_000], [2_000, 8_000], [9_000, 1_300]] {
        let run = run(&unequal(rates, [5, 45], 0, BOTH_WAYS), true);
        for direction in ["forward", "reverse"] {
            let [a, b] = ["isp0", "isp1"].map(|link| number(&run, link, direction, "utilization"));
            // Enough traffic that two of the largest packets, the largest error of a share, are
            // below 1 %.
            let bytes = a.min(b) * rates[0].min(rates[1]) as f64 * 1e3 * 60.0 / 8.0;
            assert!(
                bytes > 2.0 * 1_500.0 * 100.0,
                "{rates:?} {direction}: {bytes}"
            );
            assert!((a / b - 1.0).abs() < 0.01, "{rates:?} {direction}: {a} {b}");
        }
    }
}

/// A route with a longer delay makes packets of a flow overtake each other.
#[test]
fn unequal_delays_reorder() {
    let reordered = |delays| {
        let run = run(&unequal([5_000, 5_000], delays, 0, BOTH_WAYS), true);
        run.summary.flows["large"]["reordered_ratio"]
            .as_f64()
            .expect("a ratio")
    };
    let [near, far] = [[5, 5], [5, 45]].map(reordered);
    assert!(far > 0.2 && far > 5.0 * near, "{near} {far}");
}

/// The tunnel's overhead counts on the routes, and only there.
#[test]
fn overhead_counts_on_the_routes() {
    let file = r#"
[flow.file]
from = "T1"
to = "T2"
cc = "reno"
stack = "rfc"
transport = { mss = "1000 bytes" }
workload = { kind = "file", size = "1 MB" }
"#;
    for overhead in [0, 60] {
        let run = run(&unequal([5_000, 3_000], [5, 15], overhead, file), true);
        let bytes = |link: &str, rate: f64| {
            number(&run, link, "forward", "utilization") * rate * 60.0 / 8.0
        };
        let packets = ["isp0", "isp1"]
            .map(|link| number(&run, link, "forward", "sent_packets"))
            .iter()
            .sum::<f64>();
        let on_routes = bytes("isp0", 5e6) + bytes("isp1", 3e6);
        let behind = bytes("lan2", 1e8);
        let before = bytes("lan1", 1e8);
        assert!(packets >= 1_000.0, "{packets}");
        assert!((before - behind).abs() < 0.5, "{before} {behind}");
        let added = on_routes - behind;
        assert!((added - overhead as f64 * packets).abs() < 0.5, "{added}");
        let flow: &Value = &run.summary.flows["file"];
        assert_eq!(flow["delivered_bytes"].as_u64(), Some(1_000_000));
    }
}

/// For every pair: the fast path changes nothing, files arrive complete, no packet is left, and the
/// gateway's figures are consistent.
#[test]
fn every_pair_delivers_every_file() {
    let (mut held, mut copies) = (0, 0);
    for (k, pair) in (0..).zip(pairs()) {
        for number in (0..12).map(|n| 12 * k + n) {
            let shape = Shape {
                files_only: true,
                changes: false,
                mangle: true,
                seconds: 600,
            };
            let text = self::pair(number, shape, pair);
            let (fast, slow) = (run(&text, true), run(&text, false));
            assert_eq!(
                fast.summary.digest, slow.summary.digest,
                "{pair:?}, scenario {number}\n{text}"
            );
            for (name, flow) in &fast.summary.flows {
                assert!(
                    flow["flow_completion_time_s"].as_f64().is_some(),
                    "{pair:?}, scenario {number}, {name}\n{text}"
                );
            }
            assert_eq!(
                fast.network.packets_in_flight(),
                0,
                "{pair:?}, scenario {number}\n{text}"
            );
            for (name, gateway) in &fast.summary.gateways {
                let (mut entered, mut crossed) = (0, 0);
                for direction in ["forward", "reverse"] {
                    let figure = |key: &str| gateway[direction][key].as_u64().expect("a count");
                    assert!(figure("held_packets") <= figure("released_packets"));
                    assert!(figure("released_by_timer") <= figure("held_packets"));
                    held += figure("held_packets");
                    copies += figure("duplicates_dropped");
                    for (link, sent) in gateway[direction]["routes"].as_object().expect("routes") {
                        entered += sent["sent_packets"].as_u64().expect("a count");
                        let link = &fast.summary.links[link][direction];
                        let count = |key: &str| link[key].as_u64().expect("a count");
                        crossed += count("sent_packets") + count("dropped_packets");
                    }
                }
                assert_eq!(
                    entered, crossed,
                    "{pair:?}, scenario {number}, {name}\n{text}"
                );
            }
        }
    }
    assert!(held > 500, "{held}");
    assert!(copies > 500, "{copies}");
}

/// The contract's file runs unchanged, and with every other restorer; the number of held packets is
/// bounded.
#[test]
fn the_contract_runs() {
    let text = include_str!("../../../scenario/tests/contract/multipath.toml");
    assert!(text.contains("kind = \"in-order\""));
    for restore in ["in-order", "none", "timed", "adaptive"] {
        let text = text.replace("kind = \"in-order\"", &format!("kind = \"{restore}\""));
        let run = run(&text, true);
        let flow = &run.summary.flows["main"];
        assert_eq!(
            flow["delivered_bytes"].as_u64(),
            Some(2_000_000),
            "{restore}"
        );
        let seconds = flow["flow_completion_time_s"]
            .as_f64()
            .expect("it is whole");
        // Both routes together need 62.5 s for the data, one of them 125 s.
        assert!((62.5..250.0).contains(&seconds), "{restore}: {seconds}");
        let forward = &run.summary.gateways["tunnel"]["forward"];
        let held = forward["held_packets"].as_u64().expect("a count");
        assert_eq!(held > 0, restore != "none", "{restore}: {held}");
        assert!(forward["max_held_packets"].as_u64() <= Some(4_096));
    }
}

/// A length that counts its copies: octets would be allocated for each copy.
#[derive(Debug, Default, PartialEq)]
struct Counted(u32);

static COPIES: AtomicU64 = AtomicU64::new(0);

impl Clone for Counted {
    fn clone(&self) -> Self {
        COPIES.fetch_add(1, Ordering::Relaxed);
        Self(self.0)
    }
}

impl Body for Counted {
    fn len(&self) -> u32 {
        self.0
    }
    fn slice(&self, _start: u32, len: u32) -> Self {
        Self(len)
    }
    fn filler(len: u32) -> Self {
        Self(len)
    }
    fn from_octets(_octets: &[u8], len: u32) -> Self {
        Self(len)
    }
    fn append(&mut self, next: &Self) {
        self.0 += next.0;
    }
}

/// Payloads pass both ends of a gateway without a copy.
#[test]
fn a_gateway_copies_no_payload() {
    let text = r#"
duration = "2 s"
[link.in]
between = ["S", "A"]
rate = "100 Mbit/s"
[link.one]
between = ["A", "B"]
rate = "5 Mbit/s"
delay = "5 ms"
[link.two]
between = ["A", "B"]
rate = "5 Mbit/s"
delay = "9 ms"
[link.out]
between = ["B", "T"]
rate = "100 Mbit/s"
[gateway.tunnel]
between = ["A", "B"]
routes = ["one", "two"]
split = "weighted-round-robin"
restore = "timed"
[flow.main]
from = "S"
to = "T"
protocol = "udp"
workload = { kind = "paced", rate = "8 Mbit/s" }
"#;
    let finished = Simulation::<Counted>::new(&resolve(text))
        .run()
        .expect("no hosts");
    let received = finished.summary.flows["main"]["goodput_mbit_s"].as_f64();
    assert!(received > Some(7.0), "{received:?} Mbit/s");
    assert_eq!(COPIES.load(Ordering::Relaxed), 0);
}
