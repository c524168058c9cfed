//! Task of a child process: one case, once, so that its memory and instructions are measured
//! separately.

use std::str::FromStr;

use anabranch::units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::{
    case::{Case, Contract, Kind},
    cost,
};

/// Runs of a scenario file per timing.
const TIMED_RUNS: u64 = 50;
const WARMING_RUNS: u32 = 5;

/// Task of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Time the steady state.
    Time,
    /// Run up to this time; with a scenario file, as many runs as this time has whole seconds. The
    /// parent counts instructions.
    Count(Duration),
    /// Run with the digest up to this time, and measure the heap.
    Observe(Duration),
}

impl Task {
    /// Inverse of [`FromStr`].
    pub fn argument(self) -> String {
        match self {
            Self::Time => "time".to_owned(),
            Self::Count(end) => format!("count:{}", end.as_picos()),
            Self::Observe(end) => format!("observe:{}", end.as_picos()),
        }
    }
}

impl FromStr for Task {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (task, end) = text.split_once(':').unwrap_or((text, "0"));
        match (task, end.parse().map(Duration::from_picos)) {
            ("time", Ok(_)) => Ok(Self::Time),
            ("count", Ok(end)) => Ok(Self::Count(end)),
            ("observe", Ok(end)) => Ok(Self::Observe(end)),
            _ => Err(format!("`{text}` is no task of a child")),
        }
    }
}

/// Result of a child.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// Data packets delivered in the measured span.
    pub packets: u64,
    /// Processor seconds for them.
    pub cpu_s: f64,
    /// Peak memory of the process.
    pub peak_rss_bytes: Option<u64>,
    /// The digest, if it was on.
    pub digest: Option<String>,
    /// Bytes on the heap for the network before its first event.
    pub built_bytes: u64,
    /// Peak of the heap for the network.
    pub peak_bytes: u64,
    /// Maximum number of packets observed in flight.
    pub in_flight: u64,
    /// Events per delivered packet.
    pub events_per_packet: f64,
}

/// Executes the task.
pub fn run(case: &Case, task: Task) -> Result<Findings, String> {
    match &case.scenario {
        Some(scenario) if case.kind == Kind::Contract => {
            let contract = Contract::open(scenario)?;
            Ok(run_scenario(&contract, task))
        }
        _ => Ok(run_network(case, task)),
    }
}

fn run_network(case: &Case, task: Task) -> Findings {
    let span = case.timed();
    let end = match task {
        Task::Time => span.end,
        Task::Count(end) | Task::Observe(end) => end,
    };
    let heap_before = cost::heap_bytes();
    let observe = matches!(task, Task::Observe(_));
    let mut network = case.network(end, observe).expect("not a scenario file");
    let mut findings = Findings {
        built_bytes: cost::heap_bytes().saturating_sub(heap_before),
        ..Findings::default()
    };
    match task {
        Task::Time => {
            network.run_through(Instant::START + span.settled);
            let (packets, events, cpu_s) = (
                network.delivered_packets(),
                network.events(),
                cost::thread_cpu_s(),
            );
            network.run_through(Instant::START + end);
            findings.cpu_s = cost::thread_cpu_s() - cpu_s;
            findings.packets = network.delivered_packets() - packets;
            findings.events_per_packet =
                (network.events() - events) as f64 / findings.packets as f64;
            findings.peak_rss_bytes = cost::peak_rss_bytes();
        }
        Task::Count(_) => {
            network.run_through(Instant::START + end);
            findings.packets = network.delivered_packets();
            findings.digest = network.digest().map(|digest| digest.to_string());
            findings.events_per_packet = network.events() as f64 / findings.packets as f64;
        }
        Task::Observe(_) => {
            cost::forget_heap_peak();
            let step = Duration::from_millis(1);
            let mut now = Instant::START;
            while now < Instant::START + end {
                now = now + step;
                network.run_through(now);
                findings.in_flight = findings.in_flight.max(network.packets_in_flight() as u64);
            }
            findings.peak_bytes = cost::heap_peak_bytes().saturating_sub(heap_before);
            findings.packets = network.delivered_packets();
            findings.digest = network.digest().map(|digest| digest.to_string());
        }
    }
    findings
}

fn run_scenario(contract: &Contract, task: Task) -> Findings {
    let mut findings = Findings::default();
    let runs = match task {
        Task::Time => {
            for _ in 0..WARMING_RUNS {
                contract.run(false);
            }
            TIMED_RUNS
        }
        // One run of the file for each second of a network's run.
        Task::Count(end) => end.as_picos() / Duration::from_secs(1).as_picos(),
        Task::Observe(_) => 1,
    };
    let heap_before = cost::heap_bytes();
    cost::forget_heap_peak();
    let cpu_s = cost::thread_cpu_s();
    for _ in 0..runs {
        let finished = contract.run(matches!(task, Task::Observe(_)));
        findings.packets += finished.network.delivered_packets();
        let digest = finished.network.digest();
        findings.digest = digest.map(|digest| digest.to_string());
        let packets = finished.network.delivered_packets();
        findings.events_per_packet = finished.network.events() as f64 / packets as f64;
    }
    findings.cpu_s = cost::thread_cpu_s() - cpu_s;
    findings.peak_bytes = cost::heap_peak_bytes().saturating_sub(heap_before);
    findings.peak_rss_bytes = cost::peak_rss_bytes();
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Kind;

    #[test]
    fn tasks_read_back() {
        let second = Duration::from_secs(1);
        for task in [Task::Time, Task::Count(second), Task::Observe(second)] {
            assert_eq!(task.argument().parse(), Ok(task));
        }
        assert!("rest".parse::<Task>().is_err());
    }

    #[test]
    fn observing_finds_packets_memory_and_a_digest() {
        let task = Task::Observe(Duration::from_millis(500));
        let found = run(&Case::new(Kind::Plain, 10), task).expect("a case");
        assert!(found.packets > 0 && found.in_flight > 100, "{found:?}");
        assert!(found.peak_bytes > found.built_bytes, "{found:?}");
        assert_eq!(found.digest.map(|digest| digest.len()), Some(32));
    }
}
