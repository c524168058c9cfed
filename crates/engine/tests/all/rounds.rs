//! Requests of several writes, and synchronized clients.

use anabranch_core::{body::Length, packet::Direction};
use anabranch_engine::{Finished, Simulation};
use anabranch_scenario::{Extensions, Scenario};

fn run(text: &str) -> Finished {
    let resolved = Scenario::parse(text, "rounds.toml", &Extensions::default())
        .and_then(|scenario| scenario.resolve(None))
        .unwrap_or_else(|error| panic!("{error}"));
    Simulation::<Length>::new(&resolved)
        .run()
        .expect("no hosts")
}

/// The median response time in ms of requests of two writes over a path of 2 ms.
fn response(transport: &str, writes: u32) -> f64 {
    let text = format!(
        r#"
duration = "20 s"
[link.path]
between = ["S", "C"]
rate = "100 Mbit/s"
delay = "1 ms"
[flow.f]
from = "S"
to = "C"
{transport}
workload = {{ kind = "request-response", request = "200 bytes", response = "1 kB", writes = {writes}, think = "20 ms" }}
"#
    );
    let run = run(&text);
    let exchanges = &run.summary.flows["f"]["exchanges"];
    assert!(exchanges["completed"].as_u64() > Some(50), "{exchanges}");
    exchanges["p50_response_time_ms"]
        .as_f64()
        .expect("responses")
}

#[test]
fn nagle_waits_for_the_delayed_acknowledgment() {
    // The first write is sent; the second waits until the server acknowledges the first, and the
    // server delays that acknowledgment for more data.
    let linux = response("transport.nagle = true", 2);
    assert!((42.0..46.0).contains(&linux), "{linux}");
    let rfc = response(
        "stack = \"rfc\"\ntransport = { nagle = true, delayed_ack = { segments = 2, timeout = \"200 ms\" } }",
        2,
    );
    assert!((202.0..206.0).contains(&rfc), "{rfc}");
}

#[test]
fn no_write_waits_without_nagle_or_with_one_write() {
    for (transport, writes) in [
        ("transport.nagle = false", 2),
        ("transport.nagle = false", 5),
        ("transport.nagle = true", 1),
        ("transport = { nagle = true, delayed_ack = \"off\" }", 1),
    ] {
        let time = response(transport, writes);
        assert!(time < 3.0, "{transport} {writes}: {time}");
    }
    // Without delayed acknowledgments Nagle costs a round trip.
    let time = response("transport = { nagle = true, delayed_ack = \"off\" }", 2);
    assert!((4.0..5.0).contains(&time), "{time}");
}

/// A header and a body are sent as written, and the time is that of their bytes.
#[test]
fn writes_of_several_sizes_are_sent_in_order() {
    let text = r#"
duration = "1 s"
[link.path]
between = ["S", "C"]
rate = "10 Mbit/s"
delay = "10 ms"
[flow.f]
from = "S"
to = "C"
stack = "rfc"
transport = { nagle = false }
workload = { kind = "request-response", writes = ["100 bytes", "1 kB"], response_writes = ["7 bytes", "2 kB", "30 bytes"] }
"#;
    let resolved = Scenario::parse(text, "writes.toml", &Extensions::default())
        .and_then(|scenario| scenario.resolve(None))
        .unwrap_or_else(|error| panic!("{error}"));
    let run = Simulation::<Length>::new(&resolved)
        .packet_log(true)
        .run()
        .expect("no hosts");
    let payloads = |direction: Direction| -> Vec<u32> {
        let rows = run.network.probe().log().expect("asked for").rows();
        let own = rows.filter(|row| row.direction == direction && row.payload > 0);
        own.map(|row| row.payload).take(10).collect()
    };
    assert_eq!(
        payloads(Direction::Reverse),
        [100, 1_000].repeat(5),
        "the client"
    );
    assert_eq!(
        payloads(Direction::Forward),
        [7, 1_448, 552, 30, 7, 1_448, 552, 30, 7, 1_448],
        "the server"
    );
    let exchanges = &run.summary.flows["f"]["exchanges"];
    assert!(exchanges["completed"].as_u64() > Some(30), "{exchanges}");
    let resolved = serde_json::to_value(&run.summary.resolved_scenario).expect("JSON");
    let resolved = &resolved["flow"]["f"]["workload"];
    assert_eq!(resolved["request"], "1100 bytes");
    assert_eq!(resolved["response"], "2037 bytes");
}

/// Servers that answer simultaneously through a switch with a small buffer, as in Phanishayee et
/// al. (FAST 2008), figure 1: 1 Gbit/s, a round trip of about 100 us, 1 MB striped over the
/// servers. Windows of 16 KiB let two of them share the buffer without loss.
fn goodput(servers: u32, min_rto: &str) -> (f64, f64) {
    let block = 1_000_000 / servers;
    let text = format!(
        r#"
duration = "5 s"
[link.rack]
between = ["S", "switch"]
rate = "10 Gbit/s"
delay = "20 us"
[link.port]
between = ["switch", "C"]
rate = "1 Gbit/s"
delay = "20 us"
queue = {{ kind = "drop-tail", limit = "64 KiB" }}
[flow.f]
from = "S"
to = "C"
count = {servers}
stack = "rfc"
cc = "reno"
transport = {{ min_rto = "{min_rto}", receive_window = "16 KiB" }}
workload = {{ kind = "request-response", request = "100 bytes", response = "{block} bytes", synchronized = true }}
"#
    );
    let run = run(&text);
    let flows = run.summary.flows.values();
    let sum = |key: &str| {
        let values = flows.clone().map(|flow| flow[key].as_f64().unwrap_or(0.0));
        values.sum::<f64>()
    };
    (sum("goodput_mbit_s"), sum("timeouts"))
}

#[test]
fn rounds_of_all_copies_advance_together() {
    let text = r#"
duration = "2 s"
[link.fast]
between = ["S", "switch"]
rate = "100 Mbit/s"
delay = "1 ms"
[link.port]
between = ["switch", "C"]
rate = "100 Mbit/s"
delay = "1 ms"
[flow.f]
from = "S"
to = "C"
count = 5
workload = { kind = "request-response", request = "100 bytes", response = "20 kB", think = "10 ms", synchronized = true }
"#;
    let run = run(text);
    let started: Vec<_> = run
        .summary
        .flows
        .values()
        .map(|flow| flow["exchanges"]["started"].as_u64())
        .collect();
    assert!(started[0] > Some(50), "{started:?}");
    let (least, most) = (started.iter().min(), started.iter().max());
    assert_eq!(least, most, "{started:?}");
}

#[test]
fn goodput_collapses_if_servers_answer_simultaneously() {
    let (few, _) = goodput(2, "200 ms");
    let (many, timeouts) = goodput(32, "200 ms");
    assert!(few > 700.0, "{few}");
    assert!(many < few / 5.0, "{many} of {few}");
    assert!(timeouts > 0.0);
    // A timeout of the order of the round trip prevents it (ibid., §5).
    let (short, _) = goodput(32, "1 ms");
    assert!(short > 3.0 * many, "{short} of {many}");
}
