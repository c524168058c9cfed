//! Classes of packets in the gateway's tunnel: the service of an interactive, a pinned and a bulk
//! flow.

use anabranch_core::body::Length;
use anabranch_engine::Simulation;
use proptest::prelude::*;
use serde_json::Value;

use crate::support::resolve;

/// Two paths and a call of a packet per 20 ms, which ends before the end of the run.
const CALL: &str = r#"
seed = SEED
duration = "12 s"
[link.fibre]
between = ["office", "hub"]
rate = "20 Mbit/s"
delay = "10 ms"
queue = { kind = "drop-tail", limit = "100 packets" }
[link.lte]
between = ["office", "hub"]
rate = "20 Mbit/s"
delay = "25 ms"
queue = { kind = "drop-tail", limit = "100 packets" }
[gateway.g]
between = ["office", "hub"]
routes = ["fibre", "lte"]
kind = "tunnel"
CLASSES
[flow.call]
from = "office"
to = "hub"
protocol = "udp"
dscp = "ef"
port = 5004
start = "1 s"
stop = "11 s"
workload = { kind = "paced", rate = "64 kbit/s", payload = "160 bytes" }
"#;

const INTERACTIVE: &str =
    "[gateway.g.class.calls]\nmatch = { dscp = \"ef\" }\nmode = \"interactive\"\n";

/// The call with these classes, and further tables.
fn call(classes: &str, more: &str) -> String {
    CALL.replace("SEED", "1").replace("CLASSES", classes) + more
}

/// The path with the lower delay fails, and recovers three seconds later.
fn outage(at_ms: u64) -> String {
    format!(
        "[[at]]\ntime = \"{at_ms} ms\"\nset = {{ \"link.fibre.up\" = false }}\n\
         [[at]]\ntime = \"{} ms\"\nset = {{ \"link.fibre.up\" = true }}\n",
        at_ms + 3_000
    )
}

fn run(text: &str) -> Value {
    let finished = Simulation::<Length>::new(&resolve(text))
        .run()
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    serde_json::to_value(&finished.summary).expect("plain data")
}

fn number(value: &Value, key: &str) -> f64 {
    let found = value.pointer(key).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("no number `{key}` in {value}"))
}

fn count(value: &Value, key: &str) -> u64 {
    let found = value.pointer(key).and_then(Value::as_u64);
    found.unwrap_or_else(|| panic!("no count `{key}` in {value}"))
}

fn lost_packets(summary: &Value) -> u64 {
    count(summary, "/flows/call/sent_packets") - count(summary, "/flows/call/delivered_bytes") / 160
}

#[test]
fn an_interactive_call_loses_no_packet_at_a_path_failure() {
    for phase in 0..50 {
        let text = |classes: &str| call(classes, &outage(4_000 + 7 * phase));
        let summary = run(&text(INTERACTIVE));
        assert_eq!(lost_packets(&summary), 0, "{}", text(INTERACTIVE));
        let forward = &summary["gateways"]["g"]["forward"];
        assert!(number(forward, "/routes/fibre/deaths") >= 1.0, "{forward}");
        // The next packet to arrive is the copy on the other path.
        assert!(number(forward, "/silent_ms") < 60.0, "{forward}");
        // A call without a class waits until the failure is detected.
        let forward = &run(&text(""))["gateways"]["g"]["forward"];
        assert!(number(forward, "/silent_ms") > 60.0, "{forward}");
    }
}

#[test]
fn classes_match_code_point_port_and_address() {
    let addresses = "[host.hub]\naddresses = [\"2001:db8::7\", \"192.0.2.7\"]\n";
    let sent = |selector: &str| {
        let class = format!(
            "[gateway.g.class.calls]\nmatch = {selector}\nmode = \"pinned\"\npath = \"lte\"\n"
        );
        let summary = run(&call(&class, addresses));
        let classed = count(&summary, "/gateways/g/forward/class_packets/calls");
        (classed, count(&summary, "/flows/call/sent_packets"))
    };
    for (selector, fits) in [
        ("{ dscp = \"ef\" }", true),
        ("{ dscp = [10, 46] }", true),
        ("{ dscp = \"af41\" }", false),
        ("{ port = 5004 }", true),
        ("{ port = \"5000-5010\" }", true),
        ("{ port = 5001 }", false),
        ("{ prefix = \"192.0.2.0/24\" }", true),
        ("{ prefix = \"198.51.100.0/24\" }", false),
        ("{ prefix = \"2001:db8::/32\" }", false),
        (
            "{ dscp = \"ef\", port = 5004, prefix = \"192.0.2.7\" }",
            true,
        ),
        (
            "{ dscp = \"ef\", port = 5005, prefix = \"192.0.2.7\" }",
            false,
        ),
    ] {
        let (classed, sent) = sent(selector);
        assert_eq!(classed, if fits { sent } else { 0 }, "{selector}");
    }
}

#[test]
fn both_directions_of_a_flow_are_of_its_class() {
    let class =
        "[gateway.g.class.web]\nmatch = { port = 443 }\nmode = \"pinned\"\npath = \"lte\"\n";
    let more = "[flow.web]\nfrom = \"hub\"\nto = \"office\"\nport = 443\n\
                workload = { kind = \"file\", size = \"1 MB\" }\n";
    let summary = run(&call(class, more));
    for way in ["forward", "reverse"] {
        let way = &summary["gateways"]["g"][way];
        assert!(number(way, "/class_packets/web") > 100.0, "{way}");
    }
}

/// A pinned bulk transfer in place of the call.
fn pinned(more: &str) -> String {
    let class =
        "[gateway.g.class.copy]\nmatch = { port = 873 }\nmode = \"pinned\"\npath = \"lte\"\n";
    let flow = "[flow.copy]\nfrom = \"office\"\nto = \"hub\"\nport = 873\nstart = \"1 s\"\n\
                workload = { kind = \"file\", size = \"8 MB\" }\n";
    let text = call(class, flow);
    let (network, _) = text.split_once("[flow.call]").expect("it is there");
    format!("{network}{flow}{more}")
}

#[test]
fn a_pinned_flow_uses_only_its_path() {
    let summary = run(&pinned(""));
    let forward = &summary["gateways"]["g"]["forward"];
    assert_eq!(summary["flows"]["copy"]["ended"], "completed", "{summary}");
    assert!(number(forward, "/routes/lte/sent_bytes") > 8e6, "{forward}");
    // Handshakes, probes and reports: 12 s at an interval of at least 10 ms, 200 bytes each.
    assert!(
        number(forward, "/routes/fibre/sent_bytes") < 240e3,
        "{forward}"
    );
}

#[test]
fn a_pinned_flow_becomes_bulk_if_its_path_fails() {
    let dies = "[[at]]\ntime = \"2 s\"\nset = { \"link.lte.up\" = false }\n";
    let summary = run(&pinned(dies));
    let forward = &summary["gateways"]["g"]["forward"];
    assert_eq!(summary["flows"]["copy"]["ended"], "completed", "{summary}");
    assert!(
        number(forward, "/routes/fibre/sent_bytes") > 4e6,
        "{forward}"
    );
}

/// A call waits only in the path's queue, which the tunnel's rate control keeps short: bulk packets
/// wait in the gateway.
#[test]
fn an_interactive_call_waits_for_no_bulk_in_the_gateway() {
    let bulk = "[flow.bulk]\nfrom = \"office\"\nto = \"hub\"\nstart = \"1 s\"\ncount = 4\n";
    let of = |classes: &str, more: &str| {
        let text = call(classes, more).replace("duration", "warmup = \"4 s\"\nduration");
        let summary = run(&text);
        (
            number(&summary, "/flows/call/mean_one_way_delay_ms"),
            number(&summary, "/links/fibre/forward/p95_queue_delay_ms"),
        )
    };
    let (alone, _) = of(INTERACTIVE, "");
    let (beside, queue) = of(INTERACTIVE, bulk);
    assert!(beside < alone + queue, "{alone} {queue} {beside}");
    let (as_bulk, _) = of("", bulk);
    assert!(beside < as_bulk, "{beside} {as_bulk}");
}

#[test]
fn without_classes_ports_change_nothing() {
    let text = call("", "[flow.bulk]\nfrom = \"office\"\nto = \"hub\"\n");
    let digest = |text: &str| run(text)["digest"].clone();
    assert_eq!(digest(&text), digest(&text.replace("port = 5004\n", "")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The first class that fits applies, and each packet has at most one class.
    #[test]
    fn classes_divide_the_packets_that_enter(order in Just(["ef", "all", "port"]).prop_shuffle(), seed in 1_u64..1_000) {
        let mut classes = String::new();
        for name in order {
            let selector = match name {
                "ef" => "{ dscp = \"ef\" }",
                "port" => "{ port = 5004 }",
                _ => "{ port = \"1-65535\" }",
            };
            classes += "[gateway.g.class.";
            classes += name;
            classes += "]\nmatch = ";
            classes += selector;
            classes += "\nmode = \"bulk\"\n";
        }
        let text = call(&classes, "[flow.bulk]\nfrom = \"office\"\nto = \"hub\"\nworkload = { kind = \"file\", size = \"200 kB\" }\n")
            .replace("seed = 1", &format!("seed = {seed}"));
        let summary = run(&text);
        let forward = &summary["gateways"]["g"]["forward"];
        let of = |name: &str| count(forward, &format!("/class_packets/{name}"));
        let calls = count(&summary, "/flows/call/sent_packets");
        prop_assert_eq!(of("ef") + of("all") + of("port"), count(forward, "/entered_packets"));
        prop_assert_eq!(of(order[0]) >= calls, true, "{}", forward);
    }
}
