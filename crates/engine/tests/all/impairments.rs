//! Impairments on links: their effect on each packet is independent of folding and recording.

use crate::support::{Shape, resolve, text};
use anabranch_core::{
    body::Length,
    packet::Direction,
    rng::{Draw, Stream},
    trace::Fate,
    units::Duration,
};
use anabranch_engine::{Finished, Simulation};
use serde_json::Value;

fn run(text: &str) -> Finished {
    Simulation::<Length>::new(&resolve(text))
        .packet_log(true)
        .run()
        .expect("no hosts")
}

/// A random list of impairments with random parameters.
fn impairments(d: &mut Draw) -> String {
    let mut list = Vec::new();
    for _ in 0..=d.bits() % 3 {
        let small = f64::from(d.bits() % 40) / 1000.0;
        let ms = d.bits() % 20;
        let every = ["0 s", "70 ms", "1 s"][d.bits() as usize % 3];
        let reorder = d.chance(0.5);
        list.push(match d.bits() % 9 {
            0 => format!("{{ kind = \"gilbert-elliott\", loss_rate = {small}, mean_burst = 2.5 }}"),
            1 => format!("{{ kind = \"gilbert-elliott\", p = {small}, r = 0.4, h = 0.3, k = 0.999 }}"),
            2 => format!("{{ kind = \"four-state-loss\", p13 = {small}, p31 = 0.5, p32 = 0.2, p23 = 0.7, p14 = 0.01 }}"),
            3 => format!("{{ kind = \"loss-list\", packets = [{ms}, 40], times = [\"0.5 s\"] }}"),
            4 => format!("{{ kind = \"duplicate\", rate = {small} }}"),
            5 => format!("{{ kind = \"corrupt\", bit_error_rate = {} }}", small / 1e4),
            6 => format!("{{ kind = \"jitter\", mean = \"{ms} ms\", every = \"{every}\", reorder = {reorder} }}"),
            7 => format!("{{ kind = \"jitter\", distribution = \"pareto\", mean = \"{ms} ms\", every = \"{every}\", reorder = {reorder} }}"),
            _ => format!("{{ kind = \"jitter\", distribution = \"table\", table = [\"0 s\", \"{ms} ms\"], every = \"{every}\", reorder = {reorder} }}"),
        });
    }
    format!("impair = [{}]\n", list.join(", "))
}

/// A random scenario with impairments on half of its links.
fn impaired(number: u64) -> String {
    let shape = Shape {
        files_only: false,
        changes: true,
        mangle: false,
        seconds: 1,
    };
    let mut d = Stream::new(number, "impaired").at(0);
    let mut out = String::new();
    for line in text(number, shape).split_inclusive('\n') {
        if line.starts_with("impair") {
            continue;
        }
        out += line;
        if line.starts_with("between") && d.chance(0.5) {
            out += &impairments(&mut d);
        }
    }
    out
}

/// Detects an impairment whose state depends on the time of its evaluation, and one that draws from
/// a shared stream.
#[test]
fn fast_path_folding_and_sampling_change_nothing() {
    let mut met = std::collections::BTreeMap::new();
    for number in 0..300 {
        let text = impaired(number);
        let resolved = resolve(&text);
        let plain = |fast| {
            let run = Simulation::<Length>::new(&resolved).fast_path(fast).run();
            run.expect("no hosts").summary
        };
        let fast = plain(true);
        assert_eq!(
            fast.digest,
            plain(false).digest,
            "scenario {number}\n{text}"
        );
        if number % 5 == 0 {
            let watched = Simulation::<Length>::new(&resolved)
                .samples(Some(Duration::from_millis(7)))
                .packet_log(true)
                .run()
                .expect("no hosts");
            assert_eq!(
                fast.digest, watched.summary.digest,
                "scenario {number}\n{text}"
            );
            for row in watched.network.probe().log().expect("a log is kept").rows() {
                if let Some((element, fate)) = row.lost {
                    let name = watched.network.element_name(element);
                    let kind = name.split(".impair.").nth(1).unwrap_or("queue");
                    *met.entry((kind.to_owned(), fate)).or_insert(0) += 1;
                }
            }
        }
    }
    // Otherwise there would be nothing to compare.
    for (kind, fate) in [
        ("gilbert-elliott.0", Fate::Lost),
        ("four-state-loss.0", Fate::Lost),
        ("loss-list.0", Fate::Lost),
        ("corrupt.0", Fate::Corrupted),
    ] {
        let count = met.get(&(kind.to_owned(), fate)).copied().unwrap_or(0);
        assert!(count > 20, "{kind}: {count} of {met:?}");
    }
}

/// Datagrams of 1,500 bytes, one every millisecond, over a link of ten times that rate.
fn datagrams(impair: &str, seconds: u64) -> Finished {
    run(&format!(
        r#"duration = "{seconds} s"
[link.path]
between = ["S", "R"]
rate = "120 Mbit/s"
delay = "10 ms"
forward.impair = {impair}
[flow.f]
from = "S"
to = "R"
protocol = "udp"
workload = {{ kind = "paced", rate = "11776 kbit/s" }}
"#
    ))
}

fn forward<'a>(run: &'a Finished, figure: &str) -> &'a Value {
    &run.summary.links["path"]["forward"][figure]
}

fn flow<'a>(run: &'a Finished, figure: &str) -> &'a Value {
    &run.summary.flows["f"][figure]
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// 10.1 ms without jitter. The tolerance is five standard errors of the mean of 60,000 exponential
/// delays.
#[test]
fn jitter_adds_its_mean_and_reorders_if_permitted() {
    let bound = 5.0 * 8.0 / 60_000_f64.sqrt();
    let free = datagrams(
        "[{ kind = \"jitter\", mean = \"8 ms\", reorder = true }]",
        60,
    );
    let mean = number(flow(&free, "mean_one_way_delay_ms"));
    assert!((mean - 18.1).abs() < bound, "{mean}");
    let ratio = number(flow(&free, "reordered_ratio"));
    assert!(ratio > 0.5, "{ratio}");
    // In order, each packet waits for the latest of its predecessors.
    let fifo = datagrams("[{ kind = \"jitter\", mean = \"8 ms\" }]", 60);
    let mean = number(flow(&fifo, "mean_one_way_delay_ms"));
    assert!(mean > 18.1 + bound, "{mean}");
    assert!(number(flow(&fifo, "reordered_ratio")) <= 0.0);
    assert_eq!(forward(&fifo, "reordered_packets").as_u64(), Some(0));
}

#[test]
fn impairments_have_independent_random_streams() {
    let lost = |impair: &str| -> Vec<u32> {
        let run = datagrams(impair, 4);
        let log = run.network.probe().log().expect("a log is kept");
        log.rows()
            .filter(|row| {
                row.lost
                    .is_some_and(|(at, _)| run.network.element_name(at).contains("gilbert-elliott"))
            })
            .map(|row| row.index)
            .collect()
    };
    let bursts = "{ kind = \"gilbert-elliott\", loss_rate = 0.1, mean_burst = 3 }";
    let alone = lost(&format!("[{bursts}]"));
    assert!(alone.len() > 100, "{}", alone.len());
    assert_eq!(
        alone,
        lost(&format!(
            "[{{ kind = \"jitter\", mean = \"5 ms\" }}, {bursts}]"
        ))
    );
    assert_eq!(
        alone,
        lost(&format!(
            "[{bursts}, {{ kind = \"duplicate\", rate = 0.5 }}]"
        ))
    );
    // An impairment before it that removes packets does: the stream counts arriving packets.
    assert_ne!(
        alone,
        lost(&format!(
            "[{{ kind = \"loss-list\", packets = [0] }}, {bursts}]"
        ))
    );
}

#[test]
fn corrupted_packets_count_as_lost_with_a_separate_outcome() {
    let run = datagrams("[{ kind = \"corrupt\", bit_error_rate = 1e-5 }]", 20);
    let log = run.network.probe().log().expect("a log is kept");
    let damaged = log
        .rows()
        .filter(|row| row.lost.is_some_and(|(_, fate)| fate == Fate::Corrupted))
        .count();
    assert_eq!(forward(&run, "lost_packets").as_u64(), Some(damaged as u64));
    assert!(
        log.rows()
            .all(|row| row.lost.is_none() || row.received.is_none())
    );
    // Of 20,000 packets of 12,000 bits, 0.113 are corrupted: five standard deviations.
    assert!(
        (damaged as f64 - 20_000.0 * 0.113).abs() < 5.0 * 45.0,
        "{damaged}"
    );
}

#[test]
fn copies_arrive_and_count_once() {
    let mut run = datagrams("[{ kind = \"duplicate\", rate = 0.25 }]", 4);
    let report = run.network.flow_report(anabranch_core::packet::FlowId(0));
    let (sent, received) = (report.sender.sent_packets, report.receiver.received_packets);
    let copies = received - sent.min(received);
    // Five standard deviations of 4,000 trials, and the packets in flight at the end.
    assert!(
        (copies as f64 - 1_000.0).abs() < 5.0 * 27.4 + 11.0,
        "{copies}"
    );
    let once = report.receiver.delivered_bytes / 1_472;
    assert!(once <= sent && once + 12 >= sent, "{once} of {sent}");
}

/// The third packet with data is lost with every stack, independent of the packets of its
/// handshake.
#[test]
fn a_list_of_data_packets_does_not_depend_on_the_stack() {
    for (stack, first) in [("rfc", 1), ("linux", 2), ("windows-7", 1), ("ns3-2018", 1)] {
        let text = format!(
            "duration = \"2 s\"\n[link.p]\nbetween = [\"A\", \"B\"]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
             forward.impair = [{{ kind = \"loss-list\", data_packets = [2] }}]\n[flow.f]\nfrom = \"A\"\nto = \"B\"\nstack = \"{stack}\"\n"
        );
        let run = run(&text);
        let rows: Vec<_> = run
            .network
            .probe()
            .log()
            .expect("asked for")
            .rows()
            .collect();
        let forward = rows
            .iter()
            .filter(|row| row.direction == Direction::Forward);
        let data: Vec<_> = forward.filter(|row| row.payload > 0).collect();
        let lost: Vec<_> = (0..data.len())
            .filter(|n| data[*n].lost.is_some())
            .collect();
        assert_eq!(lost, [2], "{stack}");
        assert_eq!(data[0].index, first, "{stack}: the first packet with data");
    }
}
