//! The waiting time of each packet equals its one-way delay minus serialization and propagation,
//! exactly, for all queues and drops.

use std::fmt::Write;

use anabranch_core::{
    packet::Direction,
    rng::{Draw, Stream},
    trace::Fate,
    units::{Duration, Rate, SerializationDelay},
};
use anabranch_engine::{Finished, record::PacketRow};
use anabranch_scenario::Extensions;

use crate::support::logged::{logged, rows};

/// A queue of every kind. Limits are small, so that packets are also dropped.
const QUEUES: [&str; 15] = [
    r#""drop-tail""#,
    r#"{ kind = "drop-tail", limit = "25 packets" }"#,
    r#"{ kind = "drop-tail", limit = "30 kB", reorder = { kind = "interval", interval = 9 } }"#,
    r#"{ kind = "red", limit = "60 packets", min_threshold = "3 packets", max_threshold = "9 packets" }"#,
    r#"{ kind = "preferential-red", limit = "60 packets", min_threshold = "3 packets", max_threshold = "9 packets" }"#,
    r#"{ kind = "share-red", limit = "60 packets" }"#,
    r#"{ kind = "codel", ecn = true }"#,
    r#"{ kind = "pie", ecn = false }"#,
    r#"{ kind = "fq-codel", ecn = false }"#,
    r#"{ kind = "drr", limit = "40 packets" }"#,
    r#"{ kind = "threshold-mark", limit = "40 packets", threshold = "5 packets" }"#,
    r#"{ kind = "dualpi2", limit = "60 packets" }"#,
    r#"{ kind = "cake", limit = "60 packets" }"#,
    r#"{ kind = "cake", limit = "60 packets", rate = "900 kbit/s" }"#,
    r#"{ kind = "codel", limit = "40 packets", target = "1 s", interval = "1 s" }"#,
];

/// Rate and propagation delay of a link, for the packet's serialization time.
#[derive(Debug, Clone, Copy)]
struct Leg {
    rate: Rate,
    delay: Duration,
}

impl Leg {
    fn time(self, size: u32) -> Duration {
        SerializationDelay::at(self.rate).of(size) + self.delay
    }
}

struct Random {
    text: String,
    legs: Vec<Leg>,
}

fn pick(d: &mut Draw, n: u64) -> u64 {
    u64::from(d.bits()) % n
}

/// One to three links or groups in a row, with one to three flows.
fn random(number: u64) -> Random {
    let mut d = Stream::new(number, "queue delay").at(0);
    let mut text = format!("duration = \"1500 ms\"\nseed = {}\n", number + 1);
    let mut legs = Vec::new();
    let links = 1 + pick(&mut d, 3);
    for n in 0..links {
        let (kbit, delay) = (1_000 + pick(&mut d, 9_000), pick(&mut d, 30));
        // All kinds in rotation.
        let queue = QUEUES[usize::try_from(number + n * 4).unwrap_or(0) % QUEUES.len()];
        // A group refuses a discipline that shapes.
        let is_group = d.chance(0.2) && !queue.contains("cake");
        let section = if is_group { "group" } else { "link" };
        let _ = writeln!(
            text,
            "[{section}.l{n}]\nbetween = [\"N{n}\", \"N{}\"]\nrate = \"{kbit} kbit/s\"\ndelay = \"{delay} ms\"\nqueue = {queue}",
            n + 1
        );
        if is_group {
            let _ = writeln!(text, "members = {}", 1 + pick(&mut d, 3));
        }
        if d.chance(0.3) {
            let _ = writeln!(text, "held_limit = \"{} packets\"", 5 + pick(&mut d, 40));
        }
        let mut impair = Vec::new();
        if d.chance(0.4) {
            impair.push("{ kind = \"bernoulli-loss\", rate = 0.01 }");
        }
        if d.chance(0.4) {
            impair.push("{ kind = \"duplicate\", rate = 0.05 }");
        }
        if d.chance(0.2) {
            impair.push("{ kind = \"corrupt\", rate = 0.01 }");
        }
        let _ = writeln!(text, "impair = [{}]", impair.join(", "));
        legs.push(Leg {
            rate: Rate::new(kbit * 1_000).expect("positive"),
            delay: Duration::from_millis(delay),
        });
    }
    for n in 0..=pick(&mut d, 3) {
        let ends = if d.chance(0.3) {
            format!("from = \"N{links}\"\nto = \"N0\"")
        } else {
            format!("from = \"N0\"\nto = \"N{links}\"")
        };
        let what = match pick(&mut d, 3) {
            0 => {
                "protocol = \"udp\"\nworkload = { kind = \"poisson\", rate = \"2 Mbit/s\", sizes = { kind = \"fixed\", size = \"700 bytes\" } }"
            }
            1 => "cc = \"reno\"\nstack = \"rfc\"",
            _ => "cc = \"cubic\"\nstack = \"linux\"",
        };
        let _ = writeln!(text, "[flow.f{n}]\n{ends}\n{what}");
    }
    Random { text, legs }
}

fn delivered(run: &Finished) -> impl Iterator<Item = PacketRow> {
    rows(run).into_iter().filter(|row| row.received.is_some())
}

#[test]
fn one_way_delay_is_queue_delay_serialization_and_propagation() {
    let (mut checked, mut waited, mut dropped) = (0, 0, 0);
    for number in 0..240 {
        let random = random(number);
        let run = logged(&random.text, &Extensions::default());
        for row in rows(&run) {
            let Some(received) = row.received else {
                let is_over = row.lost.is_some();
                assert_eq!(row.queue_delay.is_some(), is_over, "{row:?}");
                dropped += u64::from(is_over);
                continue;
            };
            let queue_delay = row.queue_delay.expect("it has arrived");
            let moving: Duration = random
                .legs
                .iter()
                .map(|leg| leg.time(row.size))
                .fold(Duration::ZERO, |sum, time| sum + time);
            assert_eq!(
                received - row.sent,
                queue_delay + moving,
                "scenario {number}: {row:?}\n{}",
                random.text
            );
            checked += 1;
            waited += u64::from(!queue_delay.is_zero());
        }
    }
    // Otherwise the scenarios would not be meaningful.
    assert!(checked > 50_000, "{checked}");
    assert!(waited > 20_000, "{waited}");
    assert!(dropped > 2_000, "{dropped}");
}

/// The nearest rank (RFC 2330 §11.3) in milliseconds.
fn percentile(sorted: &[Duration], p: usize) -> f64 {
    let rank = (sorted.len() * p).div_ceil(100);
    sorted[rank - 1].as_millis_f64()
}

#[test]
fn percentiles_of_packets_equal_those_of_the_link() {
    for queue in QUEUES {
        // All packets have left at the end of the run. Both directions are full.
        let text = format!(
            r#"
            duration = "20 s"
            [link.path]
            between = ["A", "B"]
            rate = "10 Mbit/s"
            delay = "15 ms"
            queue = {queue}
            [flow.there]
            from = "A"
            to = "B"
            cc = "reno"
            workload = {{ kind = "file", size = "900 kB" }}
            [flow.back]
            from = "B"
            to = "A"
            workload = {{ kind = "file", size = "700 kB" }}
            "#
        );
        let run = logged(&text, &Extensions::default());
        for (flow, first, way) in [
            ("there", Direction::Forward, "forward"),
            ("back", Direction::Reverse, "reverse"),
        ] {
            assert!(run.summary.flows[flow]["flow_completion_time_s"].is_number());
            // The direction of the first flow is the link's.
            let is_of_link = |row: &PacketRow| {
                (row.flow.0 == 0) == (row.direction == first)
                    && row.lost.is_none_or(|(_, fate)| fate != Fate::Dropped)
            };
            let mut waits: Vec<Duration> = rows(&run)
                .iter()
                .filter(|row| is_of_link(row))
                .map(|row| row.queue_delay.expect("nothing is under way"))
                .collect();
            waits.sort_unstable();
            for p in [95, 99] {
                let link = &run.summary.links["path"][way][format!("p{p}_queue_delay_ms")];
                let link = link.as_f64().expect("packets crossed");
                let packets = percentile(&waits, p);
                // Half of a bucket of the link's histogram (`core::histogram`).
                assert!(
                    (link - packets).abs() <= packets / 64.0 + 1e-9,
                    "{queue} {way} p{p}: link {link} ms, packets {packets} ms"
                );
            }
        }
    }
}

/// Two routes of a gateway: each packet has the delay of one of them.
#[test]
fn copies_over_different_routes_have_separate_waits() {
    for (split, overhead) in [("weighted-round-robin", 0), ("redundant", 52)] {
        let text = format!(
            r#"
            duration = "3 s"
            [link.one]
            between = ["G", "H"]
            rate = "3 Mbit/s"
            delay = "10 ms"
            queue = {{ kind = "codel" }}
            [link.two]
            between = ["G", "H"]
            rate = "2 Mbit/s"
            delay = "25 ms"
            [gateway.pair]
            between = ["G", "H"]
            routes = ["one", "two"]
            split = "{split}"
            restore = "none"
            [flow.main]
            from = "G"
            to = "H"
            protocol = "udp"
            workload = {{ kind = "poisson", rate = "1900 kbit/s", sizes = {{ kind = "fixed", size = "1200 bytes" }} }}
            "#
        );
        let run = logged(&text, &Extensions::default());
        let legs = [(3_000_000, 10), (2_000_000, 25)].map(|(rate, delay)| Leg {
            rate: Rate::new(rate).expect("positive"),
            delay: Duration::from_millis(delay),
        });
        let mut of_route = [0; 2];
        for row in delivered(&run) {
            let rest = (row.received.expect("delivered") - row.sent)
                .saturating_sub(row.queue_delay.expect("delivered"));
            let route = legs.map(|leg| leg.time(row.size + overhead) == rest);
            assert!(route.contains(&true), "{split}: {rest:?} {row:?}");
            of_route[usize::from(route[1])] += 1;
        }
        assert!(of_route[0] > 100, "{split}: {of_route:?}");
        assert!(split == "redundant" || of_route[1] > 100, "{of_route:?}");
    }
}

/// The datagrams of a tunnel are queued, not the packets inside.
#[test]
fn the_wait_inside_a_tunnel_is_unknown() {
    let run = logged(
        r#"
        duration = "3 s"
        [link.one]
        between = ["G", "H"]
        rate = "3 Mbit/s"
        delay = "10 ms"
        [gateway.pair]
        between = ["G", "H"]
        routes = ["one"]
        kind = "tunnel"
        [flow.main]
        from = "G"
        to = "H"
        "#,
        &Extensions::default(),
    );
    assert!(delivered(&run).count() > 100);
    assert!(rows(&run).iter().all(|row| row.queue_delay.is_none()));
}

/// Links with a variable rate, a trace, or a shared medium: the wait of a packet does not exceed
/// its time in flight, and on a queue that is always full it is nearly all of that time.
#[test]
fn packets_wait_on_links_without_a_constant_rate() {
    let links = [
        (
            "a rate that changes",
            "rate = \"10 Mbit/s\"",
            "[[at]]\ntime = \"1 s\"\nset = { \"link.path.rate\" = \"4 Mbit/s\" }",
        ),
        (
            "a link that fails",
            "rate = \"10 Mbit/s\"",
            "[[at]]\ntime = \"1 s\"\nset = { \"link.path.up\" = false }\n[[at]]\ntime = \"1500 ms\"\nset = { \"link.path.up\" = true }",
        ),
        (
            "Wi-Fi",
            "rate = \"20 Mbit/s\"\nforward.service = { kind = \"wifi\", stations = 2 }",
            "",
        ),
        (
            "cable",
            "rate = \"10 Mbit/s\"\nforward.service = \"cable\"",
            "",
        ),
        (
            "cellular",
            "rate = \"10 Mbit/s\"\nforward.service = \"cellular\"",
            "",
        ),
        (
            "jitter",
            "rate = \"10 Mbit/s\"\nimpair = [{ kind = \"jitter\", mean = \"3 ms\" }]",
            "",
        ),
    ];
    for (name, link, changes) in links {
        let run = logged(
            &format!(
                r#"
                duration = "3 s"
                {changes}
                [link.path]
                between = ["A", "B"]
                {link}
                delay = "5 ms"
                [flow.main]
                from = "A"
                to = "B"
                cc = "reno"
                stack = "rfc"
                transport = {{ receive_window = "120 kB" }}
                "#
            )
            .replace("                ", ""),
            &Extensions::default(),
        );
        let data: Vec<PacketRow> = delivered(&run).filter(|row| row.payload > 0).collect();
        let mut waits: Vec<Duration> = data
            .iter()
            .map(|row| row.queue_delay.expect("delivered"))
            .collect();
        for row in &data {
            let one_way = row.received.expect("delivered") - row.sent;
            assert!(row.queue_delay <= Some(one_way), "{name}: {row:?}");
        }
        waits.sort_unstable();
        let p95 = run.summary.links["path"]["forward"]["p95_queue_delay_ms"]
            .as_f64()
            .expect("packets crossed");
        assert!(p95 > 10.0, "{name}: {p95}");
        let packets = percentile(&waits, 95);
        // Packets in flight at the end are only in the link's figure.
        assert!(
            (packets - p95).abs() < 0.05 * p95,
            "{name}: {packets} {p95}"
        );
    }
}
