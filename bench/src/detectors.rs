//! Detectors of heavy flows: how often they are right, how soon they notice, what they cost.
//!
//! No network: packets of 1,500 bytes come at random, each of whoever's turn it is by lot, or in bursts as
//! windows make them. Everything printed follows from the seed, but for the nanoseconds.

use std::hint::black_box;

use anabranch::{
    heavy::{Config, HeavyFlows},
    packet::ConnectionId,
    rng::Stream,
};
use serde_json::{Value, json};

use crate::cost;

const SIZE: u32 = 1500;
/// Arrivals before anything counts, and those that count.
const SETTLING: u32 = 50_000;
const COUNTED: u32 = 500_000;

/// Arrivals: one flow with so many times another's packets, in bursts.
#[derive(Debug, Clone, Copy)]
struct Traffic {
    flows: u32,
    /// The heavy one's packets over another's.
    excess: f64,
    /// Packets of one flow in a row, on average.
    burst: f64,
}

/// Draws who sends next.
struct Arrivals {
    traffic: Traffic,
    stream: Stream,
    index: u64,
    current: u32,
    /// Which flow is the heavy one.
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

/// What a detector did.
#[derive(Debug, Clone, Copy)]
struct Found {
    /// The part of the time that the right flow was the heaviest.
    right: f64,
    /// Packets until another flow that had become heavy was noticed; `None` if it was not.
    delay: Option<u32>,
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
    // Ten changes; each is noticed when the new one is taken for the heaviest.
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
        delay: noticed.then_some(delays / 10),
    }
}

/// Nanoseconds per packet with a million flows, the best of three, and bytes.
fn price(config: &Config) -> (f64, usize) {
    const PACKETS: u32 = 5_000_000;
    let mut best = f64::INFINITY;
    let mut memory = 0;
    for _ in 0..3 {
        let mut detector = config.build();
        let before = cost::thread_cpu_s();
        for k in 0..PACKETS {
            // Every flow of a million, in an order without a pattern that ends soon.
            let flow = k.wrapping_mul(2_654_435_761) % 1_000_000;
            detector.on_packet(ConnectionId(flow), SIZE);
            black_box(detector.heaviest());
        }
        best = best.min((cost::thread_cpu_s() - before) * 1e9 / f64::from(PACKETS));
        memory = detector.memory();
    }
    (best, memory)
}

/// Those of the tables: what they are called there, name, parameters.
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

/// The tables, as the documentation has them.
pub fn print() {
    let traffics = [
        (2, 1.5, 1.0),
        (2, 1.5, 20.0),
        (32, 2.0, 1.0),
        (32, 2.0, 20.0),
        (200, 4.0, 20.0),
    ]
    .map(|(flows, excess, burst)| Traffic {
        flows,
        excess,
        burst,
    });
    print!("| detector |");
    for traffic in &traffics {
        print!(
            " {} flows, ×{}, bursts of {} |",
            traffic.flows, traffic.excess, traffic.burst
        );
    }
    println!(" ns per packet | bytes |");
    println!("| --- |{}", " --- |".repeat(traffics.len() + 2));
    for (name, config) in settings() {
        print!("| {name} |");
        for traffic in traffics {
            let found = watch(&config, traffic);
            let delay = found
                .delay
                .map_or("never".to_owned(), |delay| delay.to_string());
            print!(" {:.0} %, {delay} |", found.right * 100.0);
        }
        let (nanoseconds, bytes) = price(&config);
        println!(" {nanoseconds:.1} | {bytes} |");
    }
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
        // Two of 33, in bursts of 20: five standard deviations of the number of bursts.
        let bursts = f64::from(n) / 20.0;
        let share = heavy as f64 / f64::from(n);
        let deviation = (2.0 * 2.0 / 33.0 / bursts).sqrt();
        assert!((share - 2.0 / 33.0).abs() < 5.0 * deviation, "{share}");
    }

    #[test]
    fn a_detector_that_hears_enough_is_right_and_notices() {
        let traffic = Traffic {
            flows: 2,
            excess: 4.0,
            burst: 1.0,
        };
        for (_, config) in settings() {
            let found = watch(&config, traffic);
            assert!(found.right > 0.85, "{config:?}: {found:?}");
            assert!(found.delay.is_some_and(|delay| delay < 50_000), "{found:?}");
        }
    }
}
