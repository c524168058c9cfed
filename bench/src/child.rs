//! Task of a child process: one case, once, so that its memory and instructions are measured
//! separately.

use std::str::FromStr;

use anabranch::units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::{
    case::{Case, Contract, Kind, Span},
    cost,
};

/// Runs of a scenario file per timing, at most.
const TIMED_RUNS: u64 = 50;
/// Part of the timed span: after as much processor time no further run begins.
const TIMED_PART: f64 = 1.0 / 20.0;

/// Task of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Time this part of a run; with a scenario file, whole runs.
    Time(Span),
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
            Self::Time(Span { settled, end }) => {
                format!("time:{}:{}", settled.as_picos(), end.as_picos())
            }
            Self::Count(end) => format!("count:{}", end.as_picos()),
            Self::Observe(end) => format!("observe:{}", end.as_picos()),
        }
    }
}

impl FromStr for Task {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (task, moments) = text.split_once(':').unwrap_or((text, ""));
        let moments: Result<Vec<Duration>, _> = moments
            .split(':')
            .map(|moment| moment.parse().map(Duration::from_picos))
            .collect();
        match (task, moments.as_deref()) {
            ("time", Ok(&[settled, end])) => Ok(Self::Time(Span { settled, end })),
            ("count", Ok(&[end])) => Ok(Self::Count(end)),
            ("observe", Ok(&[end])) => Ok(Self::Observe(end)),
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
    /// Events in the measured span.
    pub events: u64,
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
    let (Task::Time(Span { end, .. }) | Task::Count(end) | Task::Observe(end)) = task;
    let heap_before = cost::heap_bytes();
    let observe = matches!(task, Task::Observe(_));
    let mut network = case.network(end, observe).expect("not a scenario file");
    let mut findings = Findings {
        built_bytes: cost::heap_bytes().saturating_sub(heap_before),
        ..Findings::default()
    };
    match task {
        Task::Time(span) => {
            network.run_through(Instant::START + span.settled);
            let (packets, events, cpu_s) = (
                network.delivered_packets(),
                network.events(),
                cost::thread_cpu_s(),
            );
            network.run_through(Instant::START + end);
            findings.cpu_s = cost::thread_cpu_s() - cpu_s;
            findings.packets = network.delivered_packets() - packets;
            findings.events = network.events() - events;
            findings.peak_rss_bytes = cost::peak_rss_bytes();
        }
        Task::Count(_) => {
            network.run_through(Instant::START + end);
            findings.packets = network.delivered_packets();
            findings.events = network.events();
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
    let seconds = |time: Duration| time.as_picos() as f64 / 1e12;
    let (most, most_cpu_s) = match task {
        Task::Time(span) => (TIMED_RUNS, seconds(span.end - span.settled) * TIMED_PART),
        Task::Count(end) => (end.as_picos() / Duration::from_secs(1).as_picos(), 1.0),
        Task::Observe(_) => (1, 1.0),
    };
    // valgrind 3.19 does not survive the clock, and counting needs none.
    let clock = || match task {
        Task::Time(_) => cost::thread_cpu_s(),
        Task::Count(_) | Task::Observe(_) => 0.0,
    };
    let heap_before = cost::heap_bytes();
    cost::forget_heap_peak();
    let cpu_s = clock();
    let mut runs = 0;
    while runs < most && clock() - cpu_s < most_cpu_s {
        let finished = contract.run(matches!(task, Task::Observe(_)));
        findings.packets += finished.network.delivered_packets();
        findings.events += finished.network.events();
        let digest = finished.network.digest();
        findings.digest = digest.map(|digest| digest.to_string());
        runs += 1;
    }
    findings.cpu_s = clock() - cpu_s;
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
        let span = Span {
            settled: Duration::from_millis(1_200),
            end: second + second,
        };
        for task in [Task::Time(span), Task::Count(second), Task::Observe(second)] {
            assert_eq!(task.argument().parse(), Ok(task));
        }
        for text in ["rest", "time", "time:1", "count", "count:1:2", "observe:x"] {
            assert!(text.parse::<Task>().is_err(), "{text}");
        }
    }

    #[test]
    fn observing_finds_packets_memory_and_a_digest() {
        let task = Task::Observe(Duration::from_millis(500));
        let found = run(&Case::new(Kind::Plain, 10), task).expect("a case");
        assert!(found.packets > 0 && found.in_flight > 100, "{found:?}");
        assert!(found.peak_bytes > found.built_bytes, "{found:?}");
        assert_eq!(found.digest.map(|digest| digest.len()), Some(32));
    }

    /// Detects state that every flow allocates before it needs it.
    #[test]
    fn many_flows_are_small() {
        let case = Case::new(Kind::Many, 20_000);
        let found = run(&case, Task::Observe(Duration::from_millis(200))).expect("a case");
        let per_flow = |bytes: u64| bytes / u64::from(case.flows);
        assert!(per_flow(found.built_bytes) < 4_300, "{found:?}");
        assert!(per_flow(found.peak_bytes) < 6_200, "{found:?}");
    }
}
