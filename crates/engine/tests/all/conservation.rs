//! Conservation: every byte is delivered once and in order, no packet leaks, and no event is left
//! after the end.

use std::{collections::VecDeque, sync::Arc};

use crate::support::{Copies, Shape, resolve, resolve_counting, text};
use anabranch_core::{
    body::Length,
    packet::{Direction, FlowId},
    trace::Fate,
    units::Instant,
};
use anabranch_engine::Simulation;
use anabranch_engine::{
    network::Census,
    record::PacketRow,
    topology::{Engine, compile},
};
use anabranch_path::{
    queue,
    queue::{Item, QueueContext, QueueDiscipline},
};
use anabranch_scenario::{Extensions, Scenario};

/// 2,000 files over random paths with loss, reordering, duplication and corruption.
#[test]
fn files_arrive_complete_and_no_event_is_left() {
    let shape = Shape {
        files_only: true,
        changes: false,
        mangle: true,
        seconds: 600,
    };
    let (mut files, mut retransmitted, mut reordered, mut timeouts) = (0_u64, 0, 0, 0);
    for number in 0..2_000 {
        let text = text(number, shape);
        let resolved = resolve(&text);
        let run = Simulation::<Length>::new(&resolved)
            .digest(false)
            .run()
            .expect("no hosts");
        for (name, flow) in &run.summary.flows {
            let size = file_size(&text, name);
            assert_eq!(
                flow["delivered_bytes"].as_u64(),
                Some(size),
                "scenario {number}, {name}: {flow}\n{text}"
            );
            assert!(
                flow["flow_completion_time_s"].as_f64().is_some(),
                "scenario {number}, {name}\n{text}"
            );
            files += 1;
            retransmitted += flow["retransmitted_packets"].as_u64().unwrap_or(0);
            timeouts += flow["timeouts"].as_u64().unwrap_or(0);
            reordered += u64::from(flow["reordered_ratio"].as_f64() > Some(0.0));
        }
        // Ten minutes later every connection has closed: no packet is in flight, no timer is set.
        assert_eq!(
            run.network.packets_in_flight(),
            0,
            "scenario {number}\n{text}"
        );
        assert_eq!(
            run.network.next_event(),
            Instant::NEVER,
            "scenario {number}\n{text}"
        );
    }
    // Otherwise the paths would be too good for a meaningful test.
    assert!(files > 4_000 && retransmitted > 2_000 && timeouts > 200 && reordered > 200);
}

fn file_size(text: &str, flow: &str) -> u64 {
    let (_, table) = text
        .split_once(&format!("[flow.{flow}]\n"))
        .expect("the flow stands in the text");
    let (_, size) = table.split_once("size = \"").expect("it is a file");
    size.split(' ')
        .next()
        .and_then(|number| number.parse().ok())
        .expect("a number of bytes")
}

/// Packets sent by the endpoints have been received, were dropped or lost by a link, or are in
/// flight. Each figure is counted by the component concerned, on paths that change, lose,
/// duplicate, delay and corrupt.
///
/// Detects a system that never frees a packet or frees one twice, that omits a drop or a loss from
/// a link's counters, or that counts events after the end of the run.
#[test]
fn packets_are_conserved_at_the_end_of_a_run() {
    let shape = Shape {
        files_only: false,
        changes: true,
        mangle: false,
        seconds: 1,
    };
    let mut seen = Account::default();
    for number in 0..200 {
        for mangle in [false, true] {
            let text = bulk(&text(number, Shape { mangle, ..shape }));
            let account = Account::of(&text);
            assert_eq!(
                account.sent + account.doubled,
                account.received + account.dropped + account.lost + account.on_the_way,
                "scenario {number}: {account:?}\n{text}"
            );
            seen.add(&account);
        }
    }
    // Otherwise the paths would be too good for a meaningful test.
    assert!(
        seen.dropped > 1_000 && seen.lost > 1_000 && seen.doubled > 1_000,
        "{seen:?}"
    );
    assert!(seen.on_the_way > 1_000, "{seen:?}");
}

/// The scenario without the keys that intentionally exclude packets from counters: the time before
/// `warmup` and after `stop`, and everything after the completion of a transfer.
fn bulk(text: &str) -> String {
    let kept = text.lines().filter(|line| {
        !["warmup", "stop", "workload"]
            .iter()
            .any(|key| line.starts_with(key))
    });
    kept.fold(String::new(), |text, line| text + line + "\n")
}

/// Packets at the end of a run.
#[derive(Debug, Default)]
struct Account {
    /// By the endpoints' counters.
    sent: u64,
    /// By the endpoints' counters.
    received: u64,
    /// By the duplicating impairment.
    doubled: u64,
    /// By the links' counters.
    dropped: u64,
    /// By the links' counters.
    lost: u64,
    /// By the packet pool.
    on_the_way: u64,
}

impl Account {
    /// Runs a scenario, and compares the observations of every flow and every link with these
    /// counters.
    fn of(text: &str) -> Self {
        let copies = Copies::default();
        let resolved = resolve_counting(text, &copies);
        let mut run = Simulation::<Length>::new(&resolved)
            .packet_log(true)
            .run()
            .expect("no hosts");
        let end = run.network.end();
        let rows: Vec<_> = run
            .network
            .probe()
            .log()
            .expect("a log is kept")
            .rows()
            .cloned()
            .collect();
        let mut account = Self {
            doubled: copies
                .lock()
                .expect("one thread")
                .iter()
                .filter(|at| **at <= end)
                .count() as u64,
            on_the_way: run.network.packets_in_flight() as u64,
            ..Self::default()
        };
        let count =
            |of: &dyn Fn(&PacketRow) -> bool| rows.iter().filter(|row| of(row)).count() as u64;
        for flow in 0..run.network.flow_count() {
            let id = FlowId(u32::try_from(flow).expect("a few flows"));
            let report = run.network.flow_report(id);
            let (sender, receiver) = (report.sender, report.receiver);
            for (from, to, direction) in [
                (sender, receiver, Direction::Forward),
                (receiver, sender, Direction::Reverse),
            ] {
                let of = |row: &PacketRow| row.flow == id && row.direction == direction;
                let sent = from.sent_packets + from.sent_acks;
                assert_eq!(sent, count(&of), "{} {direction:?}\n{text}", report.name);
                let arrived = count(&|row| of(row) && row.received.is_some());
                // The log has one row for a packet and its copies.
                let copies = to.received_packets.checked_sub(arrived);
                assert!(
                    copies <= Some(account.doubled),
                    "{} {direction:?}\n{text}",
                    report.name
                );
                account.sent += sent;
                account.received += to.received_packets;
            }
        }
        for (name, directions) in &run.links {
            for (&link, way) in directions.iter().zip(["forward", "reverse"]) {
                let counted = run.network.link_statistics(link).statistics;
                account.dropped += counted.dropped_packets;
                account.lost += counted.lost_packets;
                if account.doubled > 0 {
                    // The log keeps one outcome for a packet and its copies.
                    continue;
                }
                let element = format!("link.{name}.{way}");
                let met = |row: &PacketRow, fates: &[Fate]| {
                    row.lost.is_some_and(|(at, fate)| {
                        let at = run.network.element_name(at);
                        let rest = at.strip_prefix(&element);
                        fates.contains(&fate)
                            && rest.is_some_and(|r| r.is_empty() || r.starts_with('.'))
                    })
                };
                let dropped = count(&|row| met(row, &[Fate::Dropped]));
                let lost = count(&|row| met(row, &[Fate::Lost, Fate::Corrupted]));
                assert_eq!(
                    (counted.dropped_packets, counted.lost_packets),
                    (dropped, lost),
                    "{element}\n{text}"
                );
            }
        }
        account
    }

    fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.doubled += other.doubled;
        self.dropped += other.dropped;
        self.lost += other.lost;
        self.on_the_way += other.on_the_way;
    }
}

/// The census that judges live runs. It omits nothing: neither packets before `warmup` or after
/// `stop`, nor packets that gateways hold and discard.
///
/// Detects a census that misses a place in which packets can be.
#[test]
fn the_census_accounts_for_every_packet() {
    let shape = Shape {
        files_only: false,
        changes: true,
        mangle: true,
        seconds: 1,
    };
    let mut seen = Census::default();
    for number in 0..500 {
        // With and without the arithmetic of plain links.
        let engine = Engine {
            fast_path: number % 2 == 0,
            ..Engine::default()
        };
        count(&mut seen, &text(number, shape), engine);
    }
    for text in [
        GATEWAY.to_owned(),
        GATEWAY
            .replace("redundant", "weighted-round-robin")
            .replace("adaptive", "in-order"),
        GROUP.to_owned(),
        GROUP.replace("per-packet", "per-flow"),
    ] {
        for ms in [703, 1_001, 1_507] {
            let text = text.replace("DURATION", &format!("{ms} ms"));
            count(&mut seen, &text, Engine::default());
        }
    }
    // Otherwise the paths would be too good for a meaningful test.
    for (count, least) in [
        (seen.dropped_packets, 1_000),
        (seen.lost_packets, 1_000),
        (seen.made_packets, 1_000),
        (seen.discarded_packets, 100),
        (seen.held_packets, 1),
        (seen.in_flight_packets, 1_000),
    ] {
        assert!(count >= least, "{seen:?}");
    }
}

/// Copies over two routes, one with loss and jitter.
const GATEWAY: &str = r#"
duration = "DURATION"
warmup = "100 ms"
[link.fast]
between = ["g", "h"]
rate = "10 Mbit/s"
delay = "10 ms"
[link.slow]
between = ["g", "h"]
rate = "10 Mbit/s"
delay = "30 ms"
impair = [{ kind = "bernoulli-loss", rate = 0.05 }, { kind = "jitter", mean = "10 ms", reorder = true }]
[gateway.pair]
between = ["g", "h"]
routes = ["fast", "slow"]
split = "redundant"
restore = "adaptive"
[flow.main]
from = "g"
to = "h"
"#;

/// Switched members, with more traffic than they carry.
const GROUP: &str = r#"
duration = "DURATION"
[group.core]
between = ["a", "b"]
members = 3
rate = "10 Mbit/s"
delay = "5 ms"
spread = "per-packet"
queue = { kind = "drop-tail", limit = "20 packets" }
impair = [{ kind = "duplicate", rate = 0.05 }]
[flow.main]
from = "a"
to = "b"
count = 5
[[at]]
time = "400 ms"
set = { "group.core.up" = false }
[[at]]
time = "600 ms"
set = { "group.core.up" = true }
"#;

fn census_of(text: &str, engine: Engine, extensions: &Extensions) -> Census {
    let resolved = Scenario::parse(text, "census.toml", extensions)
        .and_then(|scenario| scenario.resolve(None))
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let engine = Engine {
        digest: false,
        tally: true,
        ..engine
    };
    let compiled = compile::<Length>(&resolved, engine, Vec::new()).expect("no hosts");
    let mut network = compiled.network;
    network.run_through(network.end());
    network.census().expect("fates are counted")
}

fn count(seen: &mut Census, text: &str, engine: Engine) {
    let census = census_of(
        text,
        engine,
        &crate::support::extensions(&Copies::default()),
    );
    assert_eq!(census.missing(), 0, "{census:?}\n{text}");
    assert!(census.sent_packets > 0, "{text}");
    seen.made_packets += census.made_packets;
    seen.dropped_packets += census.dropped_packets;
    seen.lost_packets += census.lost_packets;
    seen.discarded_packets += census.discarded_packets;
    seen.held_packets += census.held_packets;
    seen.in_flight_packets += census.in_flight_packets;
}

/// A wrong system: a queue that silently discards every hundredth packet.
#[test]
fn the_census_detects_a_queue_that_silently_loses_packets() {
    let text = "duration = \"1 s\"\n[link.path]\nbetween = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\ndelay = \"5 ms\"\n\
                queue = \"leaky\"\n[flow.main]\nfrom = \"a\"\nto = \"b\"\n";
    for (leak, is_found) in [(100, true), (u64::MAX, false)] {
        let extensions = Extensions::default().queue("leaky", move |_| {
            let make: queue::Factory = Arc::new(move |_: &queue::Init<'_>| {
                Box::new(Leaky {
                    leak,
                    seen: 0,
                    items: VecDeque::new(),
                })
            });
            Ok(make)
        });
        let census = census_of(text, Engine::default(), &extensions);
        assert!(census.sent_packets > 300, "{census:?}");
        assert_eq!(census.missing() > 0, is_found, "{census:?}");
    }
}

/// An unlimited FIFO from which packets vanish.
#[derive(Debug)]
struct Leaky {
    leak: u64,
    seen: u64,
    items: VecDeque<Item>,
}

impl QueueDiscipline for Leaky {
    fn enqueue(&mut self, item: Item, _cx: &mut QueueContext<'_>) {
        self.seen += 1;
        if !self.seen.is_multiple_of(self.leak) {
            self.items.push_back(item);
        }
    }
    fn dequeue(&mut self, _cx: &mut QueueContext<'_>) -> Option<Item> {
        self.items.pop_front()
    }
    fn len(&self) -> usize {
        self.items.len()
    }
    fn bytes(&self) -> u64 {
        0
    }
}
