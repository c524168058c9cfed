//! The kernel's flows in a live run: their connections, their retransmissions, a shell without
//! flows, and refusals.
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex},
    time,
};

use crate::common::{NO_LIMITS, exact, live, may_run};
use anabranch_core::{
    body::Length,
    packet::{Direction, FlowId},
};
use anabranch_engine::topology::{Engine, compile};
use anabranch_live::{Detail, Error, Finished, Live, Refusal, Tracing};
use anabranch_path::{
    queue,
    queue::{Item, QueueContext, QueueDiscipline},
};
use anabranch_scenario::{Extensions, Resolved, Scenario};

fn resolved(text: &str, extensions: &Extensions) -> Resolved {
    let scenario = Scenario::parse(text, "kernel_flows.toml", extensions);
    scenario
        .and_then(|scenario| scenario.resolve(None))
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The flows of each connection that a queue has seen.
type Told = Arc<Mutex<BTreeMap<u32, BTreeSet<FlowId>>>>;

/// A queue that records the flow and connection of its packets.
#[derive(Debug)]
struct Watching {
    told: Told,
    waiting: VecDeque<Item>,
}

impl QueueDiscipline for Watching {
    fn enqueue(&mut self, item: Item, _cx: &mut QueueContext<'_>) {
        let mut told = self.told.lock().expect("nobody panics");
        told.entry(item.connection.0).or_default().insert(item.flow);
        self.waiting.push_back(item);
    }
    fn dequeue(&mut self, _cx: &mut QueueContext<'_>) -> Option<Item> {
        self.waiting.pop_front()
    }
    fn len(&self) -> usize {
        self.waiting.len()
    }
    fn bytes(&self) -> u64 {
        self.waiting.iter().map(|item| u64::from(item.size)).sum()
    }
}

/// Extensions in which `queue = "watching"` is such a queue.
fn watched() -> (Extensions, Told) {
    let told = Told::default();
    let written = Arc::clone(&told);
    let extensions = Extensions::default()
        .live(true)
        .queue("watching", move |_| {
            let told = Arc::clone(&written);
            let make: queue::Factory = Arc::new(move |_| {
                Box::new(Watching {
                    told: Arc::clone(&told),
                    waiting: VecDeque::new(),
                })
            });
            Ok(make)
        });
    (extensions, told)
}

const TRANSFERS: &str = r#"
    duration = "2 s"
    seed = 5
    [link.path]
    between = ["A", "B"]
    rate = "50 Mbit/s"
    delay = "2 ms"
    queue = "watching"
    [flow.short]
    from = "A"
    to = "B"
    workload = { kind = "poisson", rate = "4 Mbit/s", sizes = { kind = "fixed", size = "20 kB" } }
    [flow.other]
    from = "A"
    to = "B"
    workload = { kind = "file", size = "50 kB" }
"#;

/// Detects an engine in which all transfers of a flow are one connection to a queue, or the two
/// directions of a transfer are two.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn queues_see_as_many_connections_as_in_the_simulator() {
    let (extensions, simulated) = watched();
    let scenario = resolved(TRANSFERS, &extensions);
    let mut network = compile::<Length>(&scenario, Engine::default(), Vec::new())
        .expect("no hosts from outside")
        .network;
    network.run_through(network.end());
    let simulated = std::mem::take(&mut *simulated.lock().expect("nobody panics"));

    let (extensions, told) = watched();
    let scenario = resolved(TRANSFERS, &extensions);
    exact(live(&scenario).run()).expect("it runs");
    let told = told.lock().expect("nobody panics").clone();

    assert!(simulated.len() > 30, "{simulated:?}");
    let of_each = |all: &BTreeMap<u32, BTreeSet<FlowId>>| {
        assert!(all.values().all(|flows| flows.len() == 1), "{all:?}");
        [0, 1].map(|flow| all.values().filter(|of| of.contains(&FlowId(flow))).count())
    };
    let ([short, one], [shown, single]) = (of_each(&simulated), of_each(&told));
    assert_eq!((one, single), (1, 1));
    assert_eq!(short, shown);
    // Numbers are consecutive, as in the simulator.
    let numbers: Vec<u32> = told.keys().copied().collect();
    assert_eq!(numbers, (0..).take(numbers.len()).collect::<Vec<u32>>());
}

/// Detects a gateway with one order for segments of different connections: nearly all of them would
/// wait for segments that never arrive.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_gateway_orders_each_connection_separately() {
    let text = r#"
        duration = "2 s"
        seed = 5
        [link.in]
        between = ["A", "P"]
        rate = "50 Mbit/s"
        delay = "0 ms"
        [link.one]
        between = ["P", "Q"]
        rate = "1 Gbit/s"
        delay = "3 ms"
        [link.two]
        between = ["P", "Q"]
        rate = "1 Gbit/s"
        delay = "3 ms"
        [link.out]
        between = ["Q", "B"]
        delay = "0 ms"
        [gateway.tunnel]
        between = ["P", "Q"]
        routes = ["one", "two"]
        split = "weighted-round-robin"
        restore = { kind = "in-order", silence = "1 s" }
        [flow.short]
        from = "A"
        to = "B"
        workload = { kind = "poisson", rate = "8 Mbit/s", sizes = { kind = "fixed", size = "20 kB" } }
    "#;
    let scenario = resolved(text, &Extensions::default().live(true));
    let done = exact(live(&scenario).run()).expect("it runs");
    let summary = serde_json::to_value(&done.summary).expect("plain data");
    let gateway = &summary["gateways"]["tunnel"]["forward"];
    let transfers = &summary["flows"]["short"]["transfers"];
    assert!(transfers["completed"].as_u64() > Some(10), "{summary}");
    // Both routes have the same delay, so no packet overtakes another.
    assert_eq!(gateway["gaps_given_up"], 0, "{gateway}");
    assert_eq!(gateway["held_packets"], 0, "{gateway}");
}

/// Exactly the packets whose sequence number was sent before are marked as retransmissions. The
/// round-trip time is shorter than the difference between the clocks of engine and kernel.
fn check_log(done: &mut Finished) {
    let rows: Vec<_> = done
        .network
        .log_mut()
        .expect("it was asked for")
        .rows_mut()
        .filter(|row| row.direction == Direction::Forward && row.payload > 0)
        .map(|row| (row.sent, row.sequence, row.retransmission))
        .collect();
    let mut seen = BTreeSet::new();
    let wrong: Vec<_> = rows
        .iter()
        .filter(|(_, sequence, again)| seen.insert(*sequence) == *again)
        .collect();
    let again = rows.iter().filter(|(.., again)| *again).count();
    assert!(again > 20, "{again} of {} were retransmitted", rows.len());
    assert!(wrong.is_empty(), "{} of {again}: {wrong:?}", wrong.len());
}

#[test]
fn exactly_the_retransmissions_are_marked() {
    if !may_run() {
        return;
    }
    let text = r#"
        duration = "2 s"
        seed = 5
        [link.path]
        between = ["A", "B"]
        rate = "200 Mbit/s"
        delay = "0.5 ms"
        forward.queue = { kind = "drop-tail", limit = "20 packets" }
        forward.impair = [{ kind = "bernoulli-loss", rate = 0.005 }]
        [flow.main]
        from = "A"
        to = "B"
    "#;
    let scenario = resolved(text, &Extensions::default().live(true));
    let traced = Tracing::Required(Detail::Events);
    let run = Live::new(&scenario).limits(NO_LIMITS);
    match run.trace(traced).packet_log(true).run() {
        Ok(mut done) => check_log(&mut done),
        Err(Error::Untraceable(why)) => eprintln!("SKIPPED: {why}"),
        Err(error) => panic!("{error}"),
    }
}

/// A flow between hosts with our own TCP, and one between hosts with the kernel's.
const OWN: &str = r#"
    duration = "20 s"
    [link.own]
    between = ["C", "D"]
    rate = "10 Mbit/s"
    delay = "2 ms"
    [link.path]
    between = ["A", "B"]
    rate = "10 Mbit/s"
    delay = "2 ms"
    [host.C]
    tcp = "own"
    [host.D]
    tcp = "own"
    [flow.own]
    from = "C"
    to = "D"
    [flow.main]
    from = "A"
    to = "B"
"#;

fn shell(scenario: &Resolved, host: &str) -> Result<Finished, Error> {
    let node = scenario.nodes.iter().position(|node| node == host);
    let words = ["sh", "-c", "sleep 0.3"].map(str::to_owned).to_vec();
    live(scenario)
        .shell(node.expect("there is such a host"), words)
        .run()
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn no_flow_sends_in_a_shell_run() {
    let scenario = resolved(OWN, &Extensions::default().live(true));
    let done = shell(&scenario, "A").expect("it opens");
    let summary = serde_json::to_value(&done.summary).expect("plain data");
    for direction in ["forward", "reverse"] {
        let link = &summary["links"]["own"][direction];
        assert_eq!(link["sent_packets"], 0, "{direction}");
    }
}

fn refusal(done: Result<Finished, Error>) -> Refusal {
    match done {
        Err(Error::Refused(refusal)) => refusal,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it is not refused"),
    }
}

/// Detects a shell that checks only its own host.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_shell_needs_a_valid_network() {
    let extensions = Extensions::default().live(true);
    let flow = "\n[flow.more]\nfrom = \"A\"\nto = \"B\"\ncount = 20_000\n";
    let many = resolved(&format!("{OWN}{flow}"), &extensions);
    assert_eq!(refusal(shell(&many, "A")).path, ["flow"]);
    let text = r#"
        duration = "1 s"
        [link.path]
        between = ["A", "B"]
        delay = "2 ms"
        [host.A]
        attach = "interface:lo"
        [flow.main]
        from = "A"
        to = "B"
    "#;
    let mixed = resolved(text, &extensions);
    assert_eq!(refusal(shell(&mixed, "B")).path, ["host", "A", "attach"]);
    let both = text.replace(
        "[flow.main]",
        "[host.B]\nattach = \"interface:lo\"\n[flow.main]",
    );
    let carried = resolved(&both, &extensions);
    assert_eq!(refusal(shell(&carried, "B")).path, ["host", "B", "attach"]);
}

/// Detects frames that leave an interface and return to the engine: one ping became half a million
/// packets.
#[test]
fn an_interface_is_one_end_and_no_loopback() {
    for (left, right, host, told) in [
        ("e1", "e1", "R", "the interface of `L` already"),
        ("lo", "e1", "L", "a loopback"),
        ("e1", "lo", "R", "a loopback"),
    ] {
        let text = format!(
            "duration = \"1 s\"\n[link.a]\nbetween = [\"L\", \"R\"]\ndelay = \"1 ms\"\n\
             [host.L]\nattach = \"interface:{left}\"\n[host.R]\nattach = \"interface:{right}\"\n\
             [flow.all]\nfrom = \"L\"\nto = \"R\"\n"
        );
        let scenario = resolved(&text, &Extensions::default().live(true));
        let refusal = Live::new(&scenario).check().expect_err("it loops");
        assert_eq!(refusal.path, ["host", host, "attach"]);
        assert!(refusal.message.contains(told), "{refusal}");
    }
}

/// Detects a key of a flow between interfaces that is ignored silently.
#[test]
fn a_flow_between_interfaces_is_only_a_path() {
    for (key, is_refused) in [
        ("route = [\"a\"]", false),
        ("start = \"0 s\"", false),
        ("cc = \"reno\"", true),
        ("stack = \"linux\"", true),
        ("workload = \"bulk\"", true),
        ("transport = { sack = false }", true),
        ("family = 6", true),
        ("start = \"1 s\"", true),
        ("stop = \"1 s\"", true),
    ] {
        let text = format!(
            "duration = \"2 s\"\n[link.a]\nbetween = [\"L\", \"R\"]\ndelay = \"1 ms\"\n\
             [host.L]\nattach = \"interface:e1\"\n[host.R]\nattach = \"interface:e2\"\n\
             [flow.all]\nfrom = \"L\"\nto = \"R\"\n{key}\n"
        );
        let scenario = resolved(&text, &Extensions::default().live(true));
        let checked = Live::new(&scenario).check();
        let name = key.split(' ').next().expect("a word");
        match checked {
            Err(refusal) => assert!(
                is_refused && refusal.path == ["flow", "all", name],
                "{key}: {refusal:?}"
            ),
            Ok(()) => assert!(!is_refused, "{key}"),
        }
    }
}

/// Detects segment sizes that are refused only by the kernel, during the set-up or the run.
#[test]
fn impossible_segment_sizes_are_refused() {
    for (mss, own, is_refused) in [
        ("75 bytes", "", true),
        ("76 bytes", "", false),
        ("32755 bytes", "", false),
        ("32756 bytes", "", true),
        ("75 bytes", "[host.A]\ntcp = \"own\"", true),
        (
            "75 bytes",
            "[host.A]\ntcp = \"own\"\n[host.B]\ntcp = \"own\"",
            false,
        ),
    ] {
        let text = format!(
            "duration = \"1 s\"\n[link.path]\nbetween = [\"A\", \"B\"]\ndelay = \"2 ms\"\n{own}\n\
             [flow.main]\nfrom = \"A\"\nto = \"B\"\ntransport = {{ mss = \"{mss}\" }}\n"
        );
        let scenario = resolved(&text, &Extensions::default().live(true));
        let told = Live::new(&scenario).check();
        let expected = ["flow", "main", "transport", "mss"];
        match told {
            Err(refusal) => assert!(
                is_refused && refusal.path == expected,
                "{mss} {own}: {refusal:?}"
            ),
            Ok(()) => assert!(!is_refused, "{mss} {own}"),
        }
    }
}

/// Detects an engine that continues to the end of the run before the panic does.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_report_that_panics_ends_the_run() {
    let long = OWN.replace("20 s", "1000 s");
    let scenario = resolved(&long, &Extensions::default().live(true));
    let began = time::Instant::now();
    let run = || live(&scenario).run_with(&mut |_| panic!("the report"));
    let ended = catch_unwind(AssertUnwindSafe(run));
    assert!(ended.is_err());
    assert!(began.elapsed().as_secs() < 1, "{:?}", began.elapsed());
}
