//! Runs of a scenario file with some of its values set, and the comparison of their goodputs.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use anabranch_core::{
    body::Length,
    math::{exp, ln},
};
use anabranch_engine::Simulation;
use anabranch_scenario::{Extensions, Scenario};

/// The goodput of a flow of a scenario, in Mbit/s, without redundant packets and retransmissions.
pub fn goodput(text: &str, flow: &str, sets: &[String]) -> f64 {
    let mut scenario =
        Scenario::parse(text, "scenario.toml", &Extensions::default()).expect("it is ours");
    for set in sets {
        scenario.set(set).expect("a path and a value");
    }
    let resolved = scenario
        .resolve(None)
        .unwrap_or_else(|error| panic!("{error}"));
    let finished = Simulation::<Length>::new(&resolved)
        .run()
        .expect("no hosts");
    let goodput = &finished.summary.flows[flow]["goodput_mbit_s"];
    goodput.as_f64().expect("a rate")
}

/// Calls a function for each number below `count`, on as many threads as the machine has
/// processors; the results are in order.
pub fn each<T: Send>(count: usize, one: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let work = || {
        loop {
            let k = next.fetch_add(1, Ordering::Relaxed);
            if k >= count {
                return;
            }
            let result = one(k);
            done.lock().expect("nobody has panicked").push((k, result));
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads.min(count) {
            scope.spawn(work);
        }
    });
    let mut results = done.into_inner().expect("nobody has panicked");
    results.sort_unstable_by_key(|(k, _)| *k);
    results.into_iter().map(|(_, result)| result).collect()
}

/// A ratio and its 95 % interval.
#[derive(Debug, Clone, Copy)]
pub struct Ratio {
    pub low: f64,
    pub middle: f64,
    pub high: f64,
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { low, middle, high } = self;
        write!(f, "{middle:.3} ({low:.3} to {high:.3})")
    }
}

impl Ratio {
    /// The mean of independent ratios, computed by their logarithms: 2 and 1/2 are equally far from
    /// 1.
    pub fn of(ratios: &[f64]) -> Self {
        // 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom; for more, the value for
        // 30, which is wider than necessary.
        const T: [f64; 30] = [
            12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179,
            2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
            2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
        ];
        let logs: Vec<f64> = ratios.iter().map(|ratio| ln(*ratio)).collect();
        let n = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / n;
        let squares: f64 = logs.iter().map(|log| (log - mean) * (log - mean)).sum();
        let error = (squares / (n - 1.0) / n).sqrt();
        let half = error * T[(logs.len() - 2).min(T.len() - 1)];
        Self {
            low: exp(mean - half),
            middle: exp(mean),
            high: exp(mean + half),
        }
    }
}
