//! Detectors of heavy flows: precision, detection delay and cost.
//!
//! Two workloads: packets of 1,500 bytes of randomly chosen flows, singly or in bursts; and the
//! arrivals at a bottleneck in the simulator ([`bottleneck`]). All output is determined by seeds,
//! except the instruction counts, which also depend on the compiler.

use std::hint::black_box;

mod bottleneck;

use anabranch::{
    heavy::{Config, HeavyFlows},
    packet::ConnectionId,
    rng::Stream,
};
use serde_json::{Value, json};

use crate::process::{self, Error};

const SIZE: u32 = 1500;
/// Arrivals before the measurement, and arrivals measured.
const SETTLING: u32 = 50_000;
const COUNTED: u32 = 500_000;

/// Arrivals in bursts; one flow sends `excess` times the packets of another.
#[derive(Debug, Clone, Copy)]
struct Traffic {
    flows: u32,
    /// Ratio of the heavy flow's packets to another flow's.
    excess: f64,
    /// Mean number of consecutive packets of one flow in the random workload.
    burst: f64,
}

impl Traffic {
    const fn new(flows: u32, excess: f64, burst: f64) -> Self {
        Self {
            flows,
            excess,
            burst,
        }
    }
}

/// Generates the sequence of senders.
struct Arrivals {
    traffic: Traffic,
    stream: Stream,
    index: u64,
    current: u32,
    /// The current heavy flow.
    heavy: u32,
}

impl Arrivals {
    fn new(traffic: Traffic) -> Self {
        Self {
            traffic,
            stream: Stream::new(1, "detectors"),
            index: 0,
            current: 0,
            heavy: 0,
        }
    }
    fn next(&mut self) -> u32 {
        let mut draw = self.stream.at(self.index);
        self.index += 1;
        if self.index == 1 || draw.chance(1.0 / self.traffic.burst) {
            let others = self.traffic.flows - 1;
            let heavy =
                draw.chance(self.traffic.excess / (self.traffic.excess + f64::from(others)));
            self.current = if heavy {
                self.heavy
            } else {
                let other = draw.bits() % others;
                (self.heavy + 1 + other) % self.traffic.flows
            };
        }
        self.current
    }
}

/// Performance of a detector.
#[derive(Debug, Clone, Copy)]
struct Found {
    /// Share of the time in which the heavy flow was detected as the heaviest.
    right: f64,
    /// Packets, or milliseconds at a bottleneck, from the start of a heavy flow to its detection;
    /// `None` if it was not detected.
    delay: Option<f64>,
}

fn build(name: &str, params: &Value) -> Config {
    serde_json::from_value(json!({ name: params })).expect("they are right")
}

fn watch(config: &Config, traffic: Traffic) -> Found {
    let mut arrivals = Arrivals::new(traffic);
    let mut detector = config.build();
    let mut hear = |arrivals: &mut Arrivals| {
        detector.on_packet(ConnectionId(arrivals.next()), SIZE);
        detector.heaviest() == Some(ConnectionId(arrivals.heavy))
    };
    for _ in 0..SETTLING {
        hear(&mut arrivals);
    }
    let mut right = 0_u32;
    for _ in 0..COUNTED {
        right += u32::from(hear(&mut arrivals));
    }
    // Ten changes of the heavy flow; each is detected when the new one becomes the heaviest.
    let mut delays = 0_u32;
    let mut noticed = true;
    for _ in 0..10 {
        arrivals.heavy = (arrivals.heavy + traffic.flows / 2).max(1) % traffic.flows;
        let delay = (1..=COUNTED).find(|_| hear(&mut arrivals));
        noticed &= delay.is_some();
        delays += delay.unwrap_or(0);
        for _ in 0..SETTLING {
            hear(&mut arrivals);
        }
    }
    Found {
        right: f64::from(right) / f64::from(COUNTED),
        delay: noticed.then_some(f64::from(delays) / 10.0),
    }
}

/// Packets of the shorter run for counting instructions; the longer run has twice this number.
const PRICED: u32 = 200_000;

/// Feeds a detector with packets of a million flows in turn. Returns the bytes that it then
/// occupies.
pub fn hear_a_million(setting: usize, packets: u32) -> Result<usize, String> {
    let settings = settings();
    let (_, config) = settings.get(setting).ok_or("no such detector")?;
    let mut detector = config.build();
    for k in 0..packets {
        // An order without a short-period pattern.
        let flow = k.wrapping_mul(2_654_435_761) % 1_000_000;
        detector.on_packet(ConnectionId(flow), SIZE);
        black_box(detector.heaviest());
    }
    Ok(detector.memory())
}

/// Instructions per packet with a million flows; `None` without valgrind.
fn instructions_per_packet(setting: usize) -> Result<Option<f64>, Error> {
    let count = |packets: u32| {
        let words = [setting.to_string(), packets.to_string()];
        process::counted_self::<usize>("detector", &words).map(|(_, instructions)| instructions)
    };
    let fewer = match count(PRICED) {
        Err(error) if error.is_missing() => return Ok(None),
        counted => counted?,
    };
    let more = count(2 * PRICED)?;
    Ok(Some((more - fewer) as f64 / f64::from(PRICED)))
}

/// The detectors of the tables: title, name and parameters.
fn settings() -> Vec<(String, Config)> {
    let mut settings = Vec::new();
    for (record, statistics, length) in [
        (1, 100, 100),
        (10, 100, 10),
        (10, 100, 100),
        (10, 100, 1_000),
        (10, 1_000, 100),
        (100, 100, 100),
    ] {
        let params = json!({
            "record_interval": record,
            "statistics_interval": statistics,
            "history_length": length,
        });
        settings.push((
            format!("`history` {record} / {statistics} / {length}"),
            build("history", &params),
        ));
    }
    for (counters, half_life) in [
        (4, 1_000),
        (16, 100),
        (16, 1_000),
        (16, 10_000),
        (64, 1_000),
    ] {
        let params = json!({ "counters": counters, "half_life": half_life });
        settings.push((
            format!("`space-saving` {counters} / {half_life}"),
            build("space-saving", &params),
        ));
    }
    settings
}

/// Workloads of both tables.
const TRAFFICS: [Traffic; 5] = [
    Traffic::new(2, 1.5, 1.0),
    Traffic::new(2, 1.5, 20.0),
    Traffic::new(32, 2.0, 1.0),
    Traffic::new(32, 2.0, 20.0),
    Traffic::new(200, 4.0, 20.0),
];

/// The same workloads without generated bursts.
const SHARERS: [Traffic; 3] = [TRAFFICS[0], TRAFFICS[2], TRAFFICS[4]];

/// Runs of the bottleneck per mean.
const SEEDS: u64 = 3;

/// A row of the first table without costs.
fn by_lot((name, config): &(String, Config)) -> String {
    let cells: String = TRAFFICS
        .map(|traffic| {
            let found = watch(config, traffic);
            let delay = found.delay.map(|packets| format!("{packets:.0}"));
            format!(" {} |", cell(found.right, delay))
        })
        .concat();
    format!("| {name} |{cells}")
}

fn cell(right: f64, delay: Option<String>) -> String {
    let delay = delay.unwrap_or_else(|| "never".to_owned());
    format!("{:.0} %, {delay}", right * 100.0)
}

/// Arrivals at a bottleneck, by run.
struct Bottleneck {
    traffic: Traffic,
    runs: Vec<Vec<bottleneck::Arrival>>,
}

impl Bottleneck {
    fn new(traffic: Traffic, rtt_ms: u64) -> Self {
        let runs = (1..=SEEDS)
            .map(|seed| bottleneck::arrivals(traffic, rtt_ms, seed))
            .collect();
        Self { traffic, runs }
    }
    fn cell(&self, config: &Config) -> String {
        let heavy = bottleneck::heavy(self.traffic);
        let found: Vec<Found> = self
            .runs
            .iter()
            .map(|run| bottleneck::watch(config, run, heavy))
            .collect();
        let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / SEEDS as f64;
        let right = mean(&mut found.iter().map(|found| found.right));
        let delays: Option<Vec<f64>> = found.iter().map(|found| found.delay).collect();
        let delay = delays.map(|delays| format!("{:.0}", mean(&mut delays.into_iter())));
        cell(right, delay)
    }
}

/// The tables as the documentation has them.
pub fn print() -> Result<(), String> {
    let settings = settings();
    print!("| detector |");
    for traffic in &TRAFFICS {
        print!(
            " {} flows, ×{}, bursts of {} |",
            traffic.flows, traffic.excess, traffic.burst
        );
    }
    println!(" instructions per packet | bytes |");
    println!("| --- |{}", " --- |".repeat(TRAFFICS.len() + 2));
    for (index, setting) in settings.iter().enumerate() {
        let instructions = instructions_per_packet(index).map_err(|error| error.to_string())?;
        let instructions = instructions.map_or(String::new(), |count| format!("{count:.0}"));
        let bytes = hear_a_million(index, 2_000_000)?;
        println!("{} {instructions} | {bytes} |", by_lot(setting));
    }
    println!();
    let mut bottlenecks = Vec::new();
    print!("| detector |");
    for traffic in SHARERS {
        for rtt_ms in bottleneck::RTT_MS {
            print!(
                " {} flows, ×{}, {rtt_ms} ms |",
                traffic.flows, traffic.excess
            );
            bottlenecks.push(Bottleneck::new(traffic, rtt_ms));
        }
    }
    println!();
    println!("| --- |{}", " --- |".repeat(bottlenecks.len()));
    for (name, config) in &settings {
        let cells = bottlenecks.iter().map(|there| there.cell(config));
        println!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heavy_flow_has_its_excess() {
        let traffic = Traffic {
            flows: 32,
            excess: 2.0,
            burst: 20.0,
        };
        let mut arrivals = Arrivals::new(traffic);
        let n = 1_000_000;
        let heavy = (0..n).filter(|_| arrivals.next() == 0).count();
        // Two of 33 in bursts of 20: five standard deviations of the number of bursts.
        let bursts = f64::from(n) / 20.0;
        let share = heavy as f64 / f64::from(n);
        let deviation = (2.0 * 2.0 / 33.0 / bursts).sqrt();
        assert!((share - 2.0 / 33.0).abs() < 5.0 * deviation, "{share}");
    }

    #[test]
    fn a_detector_with_enough_packets_detects_the_heavy_flow() {
        let traffic = Traffic {
            flows: 2,
            excess: 4.0,
            burst: 1.0,
        };
        for (_, config) in settings() {
            let found = watch(&config, traffic);
            assert!(found.right > 0.85, "{config:?}: {found:?}");
            assert!(
                found.delay.is_some_and(|delay| delay < 50_000.0),
                "{found:?}"
            );
        }
    }

    const PAGE: &str = include_str!("../../docs/concepts/queues.md");

    #[test]
    fn the_page_has_the_rows_of_the_command() {
        let settings = settings();
        for (name, _) in &settings {
            let rows = PAGE
                .lines()
                .filter(|line| line.starts_with(&format!("| {name} |")));
            assert_eq!(rows.count(), 2, "{name}: run anabranch-bench --detectors");
        }
        // One detector of each kind; all would take a minute.
        for index in [0, 8] {
            let row = by_lot(&settings[index]);
            assert!(
                PAGE.contains(&row),
                "run anabranch-bench --detectors: {row}"
            );
        }
        let there = Bottleneck::new(SHARERS[0], 20);
        for (name, config) in &settings {
            let row = PAGE
                .lines()
                .rfind(|line| line.starts_with(&format!("| {name} |")))
                .expect("counted above");
            let cell = there.cell(config);
            assert_eq!(row.split(" | ").nth(2), Some(cell.as_str()), "{name}");
        }
    }

    #[test]
    fn the_heavy_flow_at_the_bottleneck_has_its_excess() {
        let traffic = SHARERS[1];
        let heavy = bottleneck::heavy(traffic);
        let share = bottleneck::share(&bottleneck::arrivals(traffic, 20, 1), heavy);
        assert!((share - 2.0 / 33.0).abs() < 0.003, "{share}");
    }
}
