//! Links that go down and recover, alone and as a gateway's route.

use anabranch_core::{body::Length, packet::FlowId, trace::Fate, units::Duration};
use anabranch_engine::{Finished, Simulation};
use anabranch_scenario::{Extensions, Scenario};

/// Datagrams of 1,500 bytes over two routes, at more than the capacity of both; the first is down
/// from 2 s to 4 s.
const SCENARIO: &str = r#"
duration = "8 s"
[[at]]
time = "2 s"
set = { "link.isp1.up" = false }
[[at]]
time = "4 s"
set = { "link.isp1.up" = true }
[link.lan1]
between = ["T1", "GW1"]
rate = "100 Mbit/s"
[link.isp1]
between = ["GW1", "GW2"]
rate = "1 Mbit/s"
delay = "50 ms"
queue = { kind = "drop-tail", limit = "20 packets" }
[link.isp2]
between = ["GW1", "GW2"]
rate = "1 Mbit/s"
delay = "50 ms"
queue = { kind = "drop-tail", limit = "20 packets" }
[link.lan2]
between = ["GW2", "T2"]
rate = "100 Mbit/s"
[gateway.pair]
between = ["GW1", "GW2"]
routes = ["isp1", "isp2"]
split = "weighted-round-robin"
restore = "none"
[flow.f]
from = "T1"
to = "T2"
protocol = "udp"
workload = { kind = "paced", rate = "3 Mbit/s" }
"#;

fn run(text: &str, fast: bool) -> Finished {
    let resolved = Scenario::parse(text, "down.toml", &Extensions::default())
        .and_then(|scenario| scenario.resolve(None))
        .unwrap_or_else(|error| panic!("{error}"));
    Simulation::<Length>::new(&resolved)
        .fast_path(fast)
        .packet_log(true)
        .run()
        .expect("no hosts")
}

fn forward(run: &Finished, link: &str, figure: &str) -> u64 {
    let value = &run.summary.links[link]["forward"][figure];
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn a_down_link_keeps_its_queue_and_drops_arrivals() {
    let mut run = run(SCENARIO, true);
    let rows: Vec<_> = run
        .network
        .probe()
        .log()
        .expect("a log is kept")
        .rows()
        .cloned()
        .collect();
    // The 20 queued packets and the one in transmission continue after two seconds.
    let two_seconds = Duration::from_secs(2);
    let kept = rows
        .iter()
        .filter(|row| row.received.is_some_and(|at| at - row.sent > two_seconds))
        .count();
    assert_eq!(kept, 21);
    // Packets sent before the link went down arrive: 50 ms at a packet per 12 ms, on both routes
    // until then.
    let ms = |n| anabranch_core::units::Instant::from_millis(n);
    let within = |from: u64, to: u64| {
        let arrived = rows.iter().filter_map(|row| row.received);
        arrived.filter(|at| (ms(from)..ms(to)).contains(at)).count()
    };
    assert!(
        (7..=9).contains(&within(2_000, 2_050)),
        "{}",
        within(2_000, 2_050)
    );
    // One route only, then two again.
    assert!(
        (82..=84).contains(&within(2_500, 3_500)),
        "{}",
        within(2_500, 3_500)
    );
    assert!(
        (165..=168).contains(&within(5_000, 6_000)),
        "{}",
        within(5_000, 6_000)
    );
    // The gateway is not notified: it continues to give the route its half, 125 packets per second.
    let lost_while_down = rows
        .iter()
        .filter(|row| {
            row.lost.is_some_and(|(at, fate)| {
                fate == Fate::Dropped && run.network.element_name(at) == "link.isp1.forward"
            }) && (ms(2_010)..ms(3_990)).contains(&row.sent)
        })
        .count();
    let share = 3e6 / (1_472.0 * 8.0) / 2.0 * 1.98;
    assert!(
        (lost_while_down as f64 - share).abs() < 3.0,
        "{lost_while_down} {share}"
    );
    // There are no other losses, and all packets are accounted for.
    let report = run.network.flow_report(FlowId(0));
    let dropped =
        forward(&run, "isp1", "dropped_packets") + forward(&run, "isp2", "dropped_packets");
    let on_the_way = run.network.packets_in_flight() as u64;
    assert_eq!(
        report.sender.sent_packets,
        report.receiver.received_packets + dropped + on_the_way
    );
}

#[test]
fn the_fast_path_changes_nothing() {
    let tcp = SCENARIO.replace(
        "protocol = \"udp\"\nworkload = { kind = \"paced\", rate = \"3 Mbit/s\" }",
        "stack = \"rfc\"",
    );
    assert_ne!(tcp, SCENARIO);
    for text in [SCENARIO, &tcp] {
        let (fast, slow) = (run(text, true), run(text, false));
        assert_eq!(fast.summary.digest, slow.summary.digest);
        assert_eq!(fast.summary.links, slow.summary.links);
    }
}

/// A transfer continues when its route recovers.
#[test]
fn tcp_survives_a_route_that_fails_and_returns() {
    let tcp = SCENARIO.replace(
        "protocol = \"udp\"\nworkload = { kind = \"paced\", rate = \"3 Mbit/s\" }",
        "stack = \"rfc\"\nworkload = { kind = \"file\", size = \"400 kB\" }",
    );
    let run = run(
        &tcp.replace("duration = \"8 s\"", "duration = \"120 s\""),
        true,
    );
    let time = &run.summary.flows["f"]["flow_completion_time_s"];
    assert!(time.as_f64().is_some(), "{time}");
}
