//! A queue with a controlled average, and tests of random results.
//!
//! Every accepted packet is dequeued at once, and the backlog consists of packets held elsewhere:
//! with a weight of 1 the average equals the held packets exactly.

use anabranch_core::{
    packet::{ConnectionId, Direction, Ecn, FlowId, PacketId},
    rng::Stream,
    units::{Instant, Rate},
};
use anabranch_path::queue::{
    Config, Discipline, Init, Item, Outcome, QueueContext, QueueDiscipline,
};
use serde_json::{Value, json};

use super::flow_names;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Passed,
    Marked,
    Dropped,
}

/// One arrival.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    pub at: Instant,
    pub size: u32,
    /// Number of the flow and of the connection.
    pub flow: u32,
    pub ecn: Ecn,
    pub held_packets: u32,
    pub held_bytes: u64,
}

impl Arrival {
    /// A full packet of the first flow, with `held_packets` packets held.
    pub fn at_length(held_packets: u32) -> Self {
        Self {
            at: Instant::START,
            size: 1500,
            flow: 0,
            ecn: Ecn::NotEct,
            held_packets,
            held_bytes: u64::from(held_packets) * 1500,
        }
    }
    pub fn of(self, flow: u32) -> Self {
        Self { flow, ..self }
    }
    pub fn at(self, at: Instant) -> Self {
        Self { at, ..self }
    }
    pub fn sized(self, size: u32) -> Self {
        Self { size, ..self }
    }
    pub fn capable(self) -> Self {
        Self {
            ecn: Ecn::Ect0,
            ..self
        }
    }
}

#[derive(Debug)]
pub struct Scripted {
    pub queue: Discipline,
    pub stream: Stream,
    arrivals: u32,
}

impl Scripted {
    /// Creates the queue for a link of this rate.
    pub fn behind(config: &Config, rate: Option<Rate>) -> Self {
        let flows = flow_names();
        let mut scripted = Self {
            queue: config.build(&Init {
                rate,
                flows: &flows,
                hosts: &[],
            }),
            stream: Stream::new(1, "link.test.forward"),
            arrivals: 0,
        };
        // The link is busy from here on.
        scripted.offer(Arrival::at_length(0));
        scripted
    }
    pub fn new(config: &Config) -> Self {
        Self::behind(config, Some(Rate::from_mbit_per_s(10)))
    }

    pub fn offer(&mut self, arrival: Arrival) -> Fate {
        let item = Item {
            packet: PacketId(self.arrivals),
            size: arrival.size,
            flow: FlowId(arrival.flow),
            connection: ConnectionId(arrival.flow),
            arrived: arrival.at,
            ecn: arrival.ecn,
            dscp: 0,
            has_data: true,
            direction: Direction::Forward,
            order: self.arrivals,
        };
        self.arrivals += 1;
        let mut outcomes = Vec::new();
        let mut cx = QueueContext {
            now: arrival.at,
            held_packets: arrival.held_packets,
            held_bytes: arrival.held_bytes,
            stream: self.stream,
            outcomes: &mut outcomes,
        };
        self.queue.enqueue(item, &mut cx);
        let left = self.queue.dequeue(&mut cx);
        match (left, &outcomes[..]) {
            (Some(_), []) => Fate::Passed,
            (Some(left), [Outcome::Marked(marked)]) if left == *marked => Fate::Marked,
            (None, [Outcome::Dropped(_)]) => Fate::Dropped,
            other => panic!("{other:?}"),
        }
    }

    pub fn ran_out(&mut self, at: Instant) {
        let mut cx = QueueContext {
            now: at,
            held_packets: 0,
            held_bytes: 0,
            stream: self.stream,
            outcomes: &mut Vec::new(),
        };
        self.queue.ran_out(&mut cx);
    }

    pub fn queue_rate(&mut self, rate: Rate) {
        self.queue.set_rate(Some(rate));
    }

    pub fn average(&self) -> f64 {
        match &self.queue {
            Discipline::Red(red) => red.average(),
            Discipline::PreferentialRed(red) => red.average(),
            other => panic!("{other:?} has no average"),
        }
    }

    /// Number of drops among `n` such arrivals.
    pub fn drops(&mut self, n: u32, arrival: Arrival) -> u32 {
        let mut dropped = 0;
        for _ in 0..n {
            dropped += u32::from(self.offer(arrival) == Fate::Dropped);
        }
        dropped
    }

    /// Numbers of arrivals from one drop to the next, `n` times.
    pub fn gaps(&mut self, n: usize, arrival: Arrival) -> Vec<u32> {
        let mut gaps = Vec::with_capacity(n);
        let mut gap = 0;
        while gaps.len() < n {
            gap += 1;
            if self.offer(arrival) == Fate::Dropped {
                gaps.push(gap);
                gap = 0;
            }
        }
        gaps
    }
}

/// RED with these parameters, whose average is the current length.
pub fn config(name: &str, mut params: Value) -> Config {
    let mut all = json!({ "weight": 1.0 });
    let table = all.as_object_mut().expect("it is one");
    table.append(params.as_object_mut().expect("a table"));
    let config: Config = serde_json::from_value(json!({ name: all })).expect("they can be read");
    assert_eq!(config.check(), Ok(()));
    config
}

pub fn red(params: Value) -> Scripted {
    Scripted::new(&config("red", params))
}

/// Whether `k` of `n` are plausible with probability `p` each: within five standard deviations,
/// which one in 1.7 million right systems exceeds.
pub fn binomial(k: u32, n: u32, p: f64) -> Result<(), String> {
    let mean = f64::from(n) * p;
    let deviation = (mean * (1.0 - p)).sqrt();
    if (f64::from(k) - mean).abs() <= 5.0 * deviation {
        Ok(())
    } else {
        Err(format!(
            "{k} of {n}, and {mean:.1} ± {deviation:.1} expected"
        ))
    }
}

/// Whether gaps fit this distribution, where `shares[k]` is the probability of k + 1: Pearson's χ²,
/// with a bound that one in a million right systems exceeds (Wilson and Hilferty's approximation).
pub fn chi_square(gaps: &[u32], shares: &[f64]) -> Result<(), String> {
    let mut counts = vec![0_u32; shares.len()];
    for &gap in gaps {
        match counts.get_mut(gap as usize - 1) {
            Some(count) => *count += 1,
            None => {
                return Err(format!(
                    "a gap of {gap}, and {} at most expected",
                    shares.len()
                ));
            }
        }
    }
    let n = gaps.len() as f64;
    let mut statistic = 0.0;
    let mut cells = 0_u32;
    for (&count, &share) in counts.iter().zip(shares) {
        if share == 0.0 {
            if count > 0 {
                return Err("a gap that cannot be".to_owned());
            }
            continue;
        }
        let expected = n * share;
        assert!(expected >= 5.0, "too few gaps for Pearson's test");
        statistic += (f64::from(count) - expected) * (f64::from(count) - expected) / expected;
        cells += 1;
    }
    let freedom = f64::from(cells - 1);
    let part = 2.0 / (9.0 * freedom);
    let root = 1.0 - part + 4.753 * part.sqrt();
    let bound = freedom * root * root * root;
    if statistic <= bound {
        Ok(())
    } else {
        Err(format!(
            "χ² is {statistic:.1}, and {bound:.1} at most expected"
        ))
    }
}
