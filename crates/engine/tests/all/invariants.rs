//! Invariants of every summary: parts do not exceed their sums, rates stay below capacities, times
//! lie within the run, and recording has no effect.

mod scenario;

use anabranch_core::{body::Length, packet::Direction, units::Duration};
use anabranch_engine::{Finished, Simulation};
use anabranch_engine::{
    record::Tapping,
    topology::{Engine, compile},
};
use anabranch_scenario::{Extensions, Resolved, Scenario};
use serde_json::{Value, json};

use self::scenario::{Flow, Random, random};
use crate::support::outputs::first_difference;

const SCENARIOS: u64 = 350;
const LASTING: u64 = 50;
/// Rounding of figures that are divided and multiplied again.
const EXACT: f64 = 1.0 + 1e-9;

fn resolve(random: &Random) -> Result<Resolved, String> {
    Scenario::parse(&random.text, "random.toml", &Extensions::default())
        .and_then(|scenario| scenario.resolve(None))
        .map_err(|error| error.to_string())
}

/// The first violated invariant.
type Check = Result<(), String>;

macro_rules! hold {
    ($condition:expr, $($what:tt)*) => {
        {
            let holds: bool = $condition;
            if !holds {
                return Err(format!("{}: {}", stringify!($condition), format!($($what)*)));
            }
        }
    };
}

#[test]
fn invariants_hold_for_every_summary() {
    let mut seen = Seen::default();
    let mut broken = Vec::new();
    for number in 0..SCENARIOS {
        let random = random(number);
        if let Err(wrong) = try_scenario(number, &random, &mut seen) {
            broken.push(format!("scenario {number}: {wrong}\n{}", random.text));
        }
    }
    assert!(
        broken.is_empty(),
        "{} scenarios break an invariant:\n{}",
        broken.len(),
        broken.join("\n\n")
    );
    seen.is_enough();
}

fn try_scenario(number: u64, random: &Random, seen: &mut Seen) -> Check {
    let resolved = resolve(random)?;
    let mut run = Simulation::<Length>::new(&resolved)
        .run()
        .expect("no hosts");
    seen.note(&run);
    check(random, &mut run)?;
    conserves_packets(&resolved, number)?;
    recording_changes_nothing(&resolved, &run, number)
}

/// Events observed in the scenarios; without enough of them the test would not be meaningful.
#[derive(Debug, Default)]
struct Seen {
    retransmitted: u64,
    spurious: u64,
    completed: u64,
    reordered: u64,
    recovered: u64,
    marked: u64,
}

impl Seen {
    fn note(&mut self, run: &Finished) {
        for flow in run.summary.flows.values() {
            let count = |key: &str| flow[key].as_u64().unwrap_or(0);
            self.retransmitted += count("retransmitted_packets");
            self.spurious += count("spurious_retransmissions");
            self.completed += u64::from(!flow["flow_completion_time_s"].is_null());
            self.reordered += u64::from(flow["reordered_ratio"].as_f64() > Some(0.0));
            self.recovered += flow["fec"]["recovered_packets"].as_u64().unwrap_or(0);
        }
        for link in run.summary.links.values() {
            self.marked += link["forward"]["marked_packets"].as_u64().unwrap_or(0);
        }
    }
    fn is_enough(&self) {
        let enough = self.retransmitted > 1_700
            && self.spurious > 170
            && self.completed > 17
            && self.reordered > 35
            && self.recovered > 35
            && self.marked > 35;
        assert!(enough, "{self:?}");
    }
}

fn check(random: &Random, run: &mut Finished) -> Check {
    links_send_no_more_than_they_carry(run)?;
    let summary = &run.summary;
    for part in [
        &summary.flows,
        &summary.links,
        &summary.groups,
        &summary.gateways,
    ] {
        for (name, value) in part {
            numbers_are_in_range(name, value)?;
        }
    }
    hold!(summary.flows.len() == random.flows.len(), "flows");
    for flow in &random.flows {
        let figures = &summary.flows[&flow.name];
        check_flow(random, flow, figures)
            .map_err(|wrong| format!("{}: {wrong}\n{figures}", flow.name))?;
    }
    for (name, link) in &summary.links {
        for direction in ["forward", "reverse"] {
            check_link(random, &link[direction])
                .map_err(|wrong| format!("{name}: {wrong}\n{link}"))?;
        }
    }
    for (name, group) in &summary.groups {
        check_group(random, group).map_err(|wrong| format!("{name}: {wrong}\n{group}"))?;
    }
    let goodputs: f64 = summary
        .flows
        .values()
        .filter_map(|flow| flow["goodput_mbit_s"].as_f64())
        .sum();
    match summary.fairness.jain_index {
        None => hold!(goodputs == 0.0, "{goodputs}"),
        Some(jain) => {
            let least = 1.0 / summary.flows.len() as f64;
            hold!(jain >= least / EXACT && jain <= EXACT, "{jain}");
        }
    }
    Ok(())
}

/// Checks that no number is negative or NaN, and that shares are at most 1.
fn numbers_are_in_range(key: &str, value: &Value) -> Check {
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            hold!(number.is_finite() && number >= 0.0, "{key} is {number}");
            let share = [
                "_share",
                "_ratio",
                "redundancy_rate",
                "recovery_rate",
                "utilization",
                "jain_index",
            ];
            if share.iter().any(|end| key.ends_with(end)) {
                hold!(number <= EXACT, "{key} is {number}");
            }
        }
        Value::Object(table) => {
            for (key, value) in table {
                numbers_are_in_range(key, value)?;
            }
        }
        Value::Array(values) => {
            for value in values {
                numbers_are_in_range(key, value)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Checks that the numbers under these keys never decrease; null values are skipped.
fn ascend(of: &Value, keys: &[&str]) -> Check {
    let values: Vec<f64> = keys.iter().filter_map(|key| of[*key].as_f64()).collect();
    hold!(
        values.windows(2).all(|pair| pair[0] <= pair[1] * EXACT),
        "{keys:?} are {values:?}"
    );
    Ok(())
}

fn check_flow(random: &Random, flow: &Flow, figures: &Value) -> Check {
    let count = |key: &str| figures[key].as_u64();
    let number = |key: &str| figures[key].as_f64();
    ascend(
        figures,
        &[
            "spurious_retransmissions",
            "retransmitted_packets",
            "sent_packets",
        ],
    )?;
    hold!(
        figures["spurious_retransmissions"].is_null() == flow.udp,
        "spurious"
    );
    hold!(
        figures["retransmitted_packets"].is_null() == flow.udp,
        "retransmitted"
    );
    hold!(
        figures["mean_one_way_delay_ms"].is_null() || flow.udp,
        "one-way delay"
    );
    hold!(
        figures["fec"].is_null() || !flow.udp,
        "error correction of UDP"
    );

    // Rates over the flow's own time.
    let start = flow.start.max(random.warmup);
    let end = flow.stop.unwrap_or(random.duration).min(random.duration);
    let completed = number("flow_completion_time_s");
    if let (Some(goodput), Some(throughput)) =
        (number("goodput_mbit_s"), number("throughput_mbit_s"))
    {
        let time = match completed {
            Some(time) => flow.start + time - start,
            None => end - start,
        };
        let most = random.capacity * (time.max(0.0) + random.slack) + 2.0 * 12_000.0;
        let copies = if random.duplicates { 2.2 } else { 1.0 };
        let bits = throughput * 1e6 * time.max(0.0);
        hold!(bits <= most * copies, "{bits} bits arrived, {most} fit");
        // Data from before the measured time may be delivered in it.
        if random.warmup == 0.0 && figures["fec"].is_null() {
            hold!(goodput <= throughput * EXACT, "{goodput} {throughput}");
        }
    }
    if let Some(size) = flow.file {
        let delivered = count("delivered_bytes").unwrap_or(u64::MAX);
        hold!(delivered <= size, "{delivered} of {size}");
        if random.warmup == 0.0 {
            let whole = delivered == size;
            hold!(
                completed.is_some() == whole,
                "{completed:?}, {delivered} of {size}"
            );
        }
        if let Some(time) = completed {
            // SYN, SYN-ACK and data cross the path; the file has its transmission time.
            let least = 3.0 * random.delay + size as f64 * 8.0 / random.capacity;
            hold!(time >= least / EXACT, "{time} of {least}");
            hold!(
                flow.start + time <= end.max(random.duration) * EXACT,
                "{time}"
            );
        }
    } else {
        hold!(completed.is_none(), "{completed:?}");
    }
    if let Some(rtt) = number("min_rtt_ms") {
        // Coarse clocks may miss a tick.
        hold!(rtt + 1.0 >= 2e3 * random.delay, "{rtt}");
    }
    ascend(figures, &["mean_one_way_delay_ms"])?;
    let transfers = &figures["transfers"];
    ascend(
        transfers,
        &[
            "p50_completion_time_s",
            "p95_completion_time_s",
            "p99_completion_time_s",
        ],
    )?;
    let exchanges = &figures["exchanges"];
    ascend(
        exchanges,
        &[
            "p50_response_time_ms",
            "p95_response_time_ms",
            "p99_response_time_ms",
        ],
    )?;
    for longest in [
        &transfers["p99_completion_time_s"],
        &transfers["mean_completion_time_s"],
    ] {
        hold!(
            longest.as_f64().unwrap_or(0.0) <= random.duration,
            "{longest}"
        );
    }
    check_reordering(figures)
}

fn check_reordering(figures: &Value) -> Check {
    let details = &figures["reordering"];
    if details.is_null() {
        return Ok(());
    }
    ascend(details, &["reordered_packets", "arrived_packets"])?;
    let extents = [
        &figures["reordering_extent_p95_packets"],
        &details["extent_max_packets"],
    ];
    hold!(extents[0].as_u64() <= extents[1].as_u64(), "{extents:?}");
    let shares = |key: &str| -> Vec<f64> {
        let table = details[key].as_object().into_iter().flatten();
        table.filter_map(|(_, share)| share.as_f64()).collect()
    };
    for share in shares("n_reordering") {
        hold!((0.0..=EXACT).contains(&share), "{share}");
    }
    let density: f64 = shares("density").iter().sum();
    hold!(
        shares("density").is_empty() || (density - 1.0).abs() < 1e-6,
        "{density}"
    );
    Ok(())
}

fn check_link(random: &Random, figures: &Value) -> Check {
    ascend(figures, &["mean_queue_packets", "max_queue_packets"])?;
    ascend(figures, &["p95_queue_delay_ms", "p99_queue_delay_ms"])?;
    let delay = figures["p99_queue_delay_ms"].as_f64().unwrap_or(0.0);
    hold!(delay <= random.duration * 1e3 * 1.01, "{delay}");
    // Packets in flight at the beginning of the measured time may arrive reordered in it, but were
    // sent before.
    let count = |key: &str| figures[key].as_u64().unwrap_or(0);
    let (reordered, sent) = (count("reordered_packets"), count("sent_packets"));
    hold!(reordered <= sent + 64, "{reordered} of {sent}");
    Ok(())
}

/// Except for the transmission of each member that began before the measured time.
fn links_send_no_more_than_they_carry(run: &mut Finished) -> Check {
    for (name, directions) in &run.links {
        for &link in directions {
            let report = run.network.link_statistics(link);
            let bits = report.statistics.sent_bytes as f64 * 8.0;
            let most = report.capacity_bits.unwrap_or(f64::INFINITY);
            hold!(bits <= most + 64.0 * 12_000.0, "{name}: {bits} of {most}");
        }
    }
    Ok(())
}

fn check_group(random: &Random, figures: &Value) -> Check {
    let number = |of: &Value| of.as_f64().unwrap_or(0.0);
    let (members, time) = (random.members as f64, random.duration - random.warmup);
    let active = number(&figures["mean_active_members"]);
    hold!(active <= members * EXACT, "{active} of {members}");
    let off = number(&figures["member_seconds_off"]);
    hold!(off <= members * time * EXACT, "{off}");
    let ports = &figures["port_seconds"];
    let sum: f64 = ["active", "idle", "sleeping", "waking"]
        .iter()
        .map(|state| number(&ports[*state]))
        .sum();
    hold!((sum - 2.0 * members * time).abs() < 1e-6, "{sum}");
    Ok(())
}

/// Checks that every packet sent was received, dropped or lost, or is in the network.
fn conserves_packets(resolved: &Resolved, number: u64) -> Check {
    let engine = Engine {
        tally: true,
        fast_path: number.is_multiple_of(2),
        ..Engine::default()
    };
    let mut network = compile::<Length>(resolved, engine, Vec::new())
        .expect("no hosts")
        .network;
    network.run_through(network.end());
    let census = network.census().expect("fates are counted");
    hold!(census.missing() == 0, "{census:?}");
    Ok(())
}

/// The figures, without the engine's statistics about itself.
fn figures(run: &Finished) -> Value {
    let summary = &run.summary;
    let jain = summary.fairness.jain_index;
    json!([
        summary.digest,
        summary.flows,
        summary.links,
        summary.groups,
        summary.gateways,
        jain
    ])
}

fn recording_changes_nothing(resolved: &Resolved, run: &Finished, number: u64) -> Check {
    let expected = figures(run);
    let places = (0..resolved.links.len()).flat_map(|link| Direction::BOTH.map(|way| (link, way)));
    let tapping = Tapping {
        places: places.collect(),
        snap_length: 96,
        addresses: None,
    };
    let plain = || Simulation::<Length>::new(resolved);
    // One or two of them for each scenario; all of them over all scenarios.
    let ways = [
        ("packet log", plain().packet_log(true)),
        ("samples", plain().samples(Some(Duration::from_millis(7)))),
        ("captures", plain().tap(Some(tapping.clone()))),
        (
            "everything",
            plain()
                .packet_log(true)
                .samples(Some(Duration::from_millis(3)))
                .tap(Some(tapping)),
        ),
    ];
    if number.is_multiple_of(5) {
        return fast_path_changes_no_output(resolved);
    }
    let turn = usize::try_from(number % 4).unwrap_or(0);
    for (way, simulation) in ways.into_iter().cycle_from(turn).take(2) {
        let found = figures(&simulation.run().expect("no hosts"));
        hold!(
            found == expected,
            "with {way}: {found}\nwithout: {expected}"
        );
    }
    Ok(())
}

/// Compares the packets, the samples and every figure with a run that processes every step of each
/// packet.
fn fast_path_changes_no_output(resolved: &Resolved) -> Check {
    let run = |fast_path| {
        Simulation::<Length>::new(resolved)
            .fast_path(fast_path)
            .packet_log(true)
            .samples(Some(Duration::from_millis(7)))
            .run()
            .expect("no hosts")
    };
    match first_difference(&run(true), &run(false)) {
        None => Ok(()),
        Some(difference) => Err(difference),
    }
}

/// Iterates from the `n`-th element on, and then from the first.
trait CycleFrom: Iterator + Sized {
    fn cycle_from(self, n: usize) -> std::vec::IntoIter<Self::Item> {
        let mut all: Vec<Self::Item> = self.collect();
        all.rotate_left(n);
        all.into_iter()
    }
}
impl<I: Iterator> CycleFrom for I {}

/// A bulk transfer over a path that is up makes progress, for every configuration of the path.
#[test]
fn bulk_transfers_make_progress_while_the_path_is_up() {
    for number in 0..LASTING {
        let random = random(number);
        let text = lasting(&random.text);
        // A burst of losses that only further packets end may last longer than every
        // retransmission.
        if text.contains("up\" = false") || text.contains("gilbert") {
            continue;
        }
        let resolved = Scenario::parse(&text, "lasting.toml", &Extensions::default())
            .and_then(|scenario| scenario.resolve(None))
            .unwrap_or_else(|error| panic!("{error}"));
        let run = Simulation::<Length>::new(&resolved)
            .run()
            .expect("no hosts");
        let figures = &run.summary.flows["f0"];
        let delivered = figures["delivered_bytes"].as_u64();
        assert!(delivered > Some(0), "{number}: {figures}\n{text}");
    }
}

/// The scenario with only its first flow, a bulk transfer, for two minutes, of which the second
/// counts. Keys that may stall it are removed: a black hole may stop it, and hidden losses (`fec`)
/// may cost minutes of recovery.
fn lasting(text: &str) -> String {
    let gone = [
        "duration", "warmup", "mtu", "protocol", "workload", "stop", "fec",
    ];
    let first = text.split("[flow.f1]").next().unwrap_or_default();
    let rest: Vec<&str> = first
        .lines()
        .filter(|line| !gone.iter().any(|key| line.starts_with(key)))
        .collect();
    format!(
        "duration = \"120 s\"\nwarmup = \"60 s\"\n{}\n",
        rest.join("\n")
    )
}

/// RFC 6298 (5.5): if the retransmission of the first segment is lost, its timeout occurs even if
/// later losses never end.
#[test]
fn a_lost_retransmission_times_out_despite_later_losses() {
    let text = "duration = \"120 s\"\nwarmup = \"100 s\"\nseed = 4494\n\
        [link.core]\nbetween = [\"g\", \"h\"]\nrate = \"11 Mbit/s\"\ndelay = \"17 ms\"\n\
        queue = { kind = \"share-red\", limit = \"78 packets\" }\nimpair = [{ kind = \"duplicate\", rate = 0.095 }]\n\
        [flow.f0]\nfrom = \"g\"\nto = \"h\"\nstart = \"50 ms\"\nstack = \"ns2-sack1\"\ncc = \"compound\"\n\
        [flow.f1]\nfrom = \"h\"\nto = \"g\"\nstart = \"300 ms\"\nstop = \"499 ms\"\nstack = \"windows-7\"\ncc = \"vegas\"\n\
        transport = { ecn = \"l4s\", delayed_ack = \"off\" }\n";
    let resolved = Scenario::parse(text, "lost.toml", &Extensions::default())
        .and_then(|scenario| scenario.resolve(None))
        .unwrap_or_else(|error| panic!("{error}"));
    let run = Simulation::<Length>::new(&resolved)
        .run()
        .expect("no hosts");
    let figures = &run.summary.flows["f0"];
    assert!(figures["delivered_bytes"].as_u64() > Some(0), "{figures}");
}

/// Duplicates by the network, and octets rebuilt by error correction, are not retransmissions.
#[test]
fn spurious_retransmissions_are_a_part_of_the_retransmissions() {
    let duplicates = "impair = [{ kind = \"duplicate\", rate = 0.1 }]";
    let reordering = "impair = [{ kind = \"jitter\", mean = \"8 ms\", reorder = true }, { kind = \"bernoulli-loss\", rate = 0.01 }]";
    for (impair, flow) in [
        (duplicates, "stack = \"ns2-sack1\""),
        (duplicates, "stack = \"bsd44-lite\""),
        (
            reordering,
            "stack = \"rfc\"\nfec = { kind = \"xor\", fmax = 10 }",
        ),
        (
            reordering,
            "stack = \"linux\"\nfec = { kind = \"reed-solomon\", redundancy = \"fixed\" }",
        ),
    ] {
        let random = Random {
            text: format!(
                "duration = \"2 s\"\n[link.a]\nbetween = [\"S\", \"R\"]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n{impair}\n\
                 [flow.main]\nfrom = \"S\"\nto = \"R\"\n{flow}\n"
            ),
            ..Random::default()
        };
        let run = Simulation::<Length>::new(&resolve(&random).expect("valid"))
            .run()
            .expect("no hosts");
        let main = &run.summary.flows["main"];
        ascend(main, &["spurious_retransmissions", "retransmitted_packets"])
            .unwrap_or_else(|wrong| panic!("{wrong}\n{main}"));
    }
}

/// A queue that is full at the beginning of the measured time, without arrivals in it. Detects a
/// maximum that is updated only at arrivals.
#[test]
fn the_longest_queue_includes_packets_queued_before_the_measured_time() {
    for queue in ["drop-tail", "drr"] {
        for fast in [true, false] {
            let text = format!(
                "duration = \"1 s\"\nwarmup = \"300 ms\"\n[link.path]\nbetween = [\"a\", \"b\"]\nrate = \"100 kbit/s\"\n\
                 delay = \"5 ms\"\nqueue = \"{queue}\"\n[flow.main]\nfrom = \"a\"\nto = \"b\"\nprotocol = \"udp\"\n\
                 stop = \"200 ms\"\nworkload = {{ kind = \"paced\", rate = \"400 kbit/s\", payload = \"1000 bytes\" }}\n"
            );
            let random = Random {
                text,
                ..Random::default()
            };
            let resolved = resolve(&random).expect("valid");
            let run = Simulation::<Length>::new(&resolved)
                .fast_path(fast)
                .run()
                .expect("no hosts");
            let link = &run.summary.links["path"]["forward"];
            // Ten datagrams of 82.24 ms each arrived by 200 ms; at 300 ms the fourth is in
            // transmission.
            assert_eq!(link["max_queue_packets"], 6, "{queue}, {fast}: {link}");
        }
    }
}
