//! Impairments without a link, and the statistics that judge them.
#![allow(dead_code, reason = "each test file uses its part")]

use anabranch_core::{
    math,
    packet::Ecn,
    rng::Stream,
    units::{Duration, Instant},
};
use anabranch_path::impair::{AnyImpairment, Config, Impairment, Verdict, View};

/// Standard normal quantile of the level: a right system fails a test with probability 1 in 1,000.
/// Seeds are fixed, so a test that passes always passes.
const NORMAL_QUANTILE: f64 = 3.0902;

/// An impairment and its random stream.
pub struct Bench {
    pub impairment: AnyImpairment,
    stream: Stream,
    index: u64,
}

impl Bench {
    pub fn new(config: &Config, seed: u64) -> Self {
        assert_eq!(config.check(), Ok(()));
        Self {
            impairment: config.build(),
            stream: Stream::new(seed, "link.a.forward.impair.0"),
            index: 0,
        }
    }
    /// Judges the next packet, of 1,500 bytes.
    pub fn packet(&mut self, now: Instant) -> Verdict {
        self.sized(now, 1_500)
    }
    pub fn sized(&mut self, now: Instant, size: u32) -> Verdict {
        self.judge(now, size, true)
    }
    /// Judges the next packet, of 1,500 bytes at the start of the run, with or without data.
    pub fn with_data(&mut self, has_data: bool) -> Verdict {
        self.judge(Instant::START, 1_500, has_data)
    }
    fn judge(&mut self, now: Instant, size: u32, has_data: bool) -> Verdict {
        let view = View {
            size,
            ecn: Ecn::NotEct,
            index: self.index,
            has_data,
        };
        let mut draw = self.stream.at(self.index);
        self.index += 1;
        self.impairment.judge(now, view, &mut draw)
    }
}

/// Parses a configuration from JSON, as a scenario file's table.
pub fn config(kind: &str, params: serde_json::Value) -> Config {
    let table = std::iter::once((kind.to_owned(), params)).collect();
    serde_json::from_value(serde_json::Value::Object(table)).expect("it is one")
}

/// Verdicts for `n` packets at intervals of 1 ms.
pub fn verdicts(config: &Config, seed: u64, n: usize) -> Vec<Verdict> {
    let mut bench = Bench::new(config, seed);
    (0..n)
        .map(|k| bench.packet(Instant::START + Duration::from_millis(1) * k as u64))
        .collect()
}

/// Whether each of `n` packets is lost.
pub fn losses(config: &Config, seed: u64, n: usize) -> Vec<bool> {
    verdicts(config, seed, n)
        .into_iter()
        .map(|verdict| verdict == Verdict::Lose)
        .collect()
}

/// The delays of `n` packets.
pub fn delays(config: &Config, seed: u64, n: usize) -> Vec<Duration> {
    verdicts(config, seed, n).into_iter().map(late).collect()
}

/// Delay of a verdict.
pub fn late(verdict: Verdict) -> Duration {
    match verdict {
        Verdict::Pass => Duration::ZERO,
        Verdict::Delay { by, .. } => by,
        other => panic!("{other:?}"),
    }
}

/// Lengths of the complete runs of equal values: of `true`, then of `false`.
pub fn runs(values: &[bool]) -> [Vec<usize>; 2] {
    let mut runs = [Vec::new(), Vec::new()];
    let chunks: Vec<_> = values.chunk_by(|a, b| a == b).collect();
    for run in chunks.iter().take(chunks.len() - 1).skip(1) {
        runs[usize::from(!run[0])].push(run.len());
    }
    runs
}

/// Pearson's chi-square test: returns whether the counts fit the probabilities.
///
/// # Panics
/// If a cell's expectation is below 5, because the test does not hold then.
pub fn fits(observed: &[usize], probabilities: &[f64]) -> bool {
    assert_eq!(observed.len(), probabilities.len());
    let total: f64 = probabilities.iter().sum();
    assert!((total - 1.0).abs() < 1e-9, "{total}");
    let n: usize = observed.iter().sum();
    let statistic: f64 = observed
        .iter()
        .zip(probabilities)
        .map(|(&observed, p)| {
            let expected = n as f64 * p;
            assert!(expected >= 5.0, "{expected} expected in a cell");
            let off = observed as f64 - expected;
            off * off / expected
        })
        .sum();
    // Wilson and Hilferty (1931): the cube root of chi-square over its degrees of freedom is
    // normal.
    let freedom = (observed.len() - 1) as f64;
    let spread = 2.0 / (9.0 * freedom);
    statistic <= freedom * math::cube(1.0 - spread + NORMAL_QUANTILE * spread.sqrt())
}

/// Whether positive lengths are geometric: each length ends with probability `end`.
pub fn are_geometric(lengths: &[usize], end: f64) -> bool {
    let n = lengths.len() as f64;
    // Cells with at least ten expected values; the last takes all longer lengths.
    let mut probabilities = Vec::new();
    let mut rest = 1.0;
    while rest * end * n >= 10.0 && rest * (1.0 - end) * n >= 10.0 && probabilities.len() < 40 {
        probabilities.push(rest * end);
        rest *= 1.0 - end;
    }
    probabilities.push(rest);
    let mut observed = vec![0; probabilities.len()];
    for &length in lengths {
        observed[(length - 1).min(probabilities.len() - 1)] += 1;
    }
    fits(&observed, &probabilities)
}

/// Whether delays follow a distribution, given by its quantile function in seconds: 20 cells of
/// equal probability.
pub fn follow(delays: &[Duration], quantile: impl Fn(f64) -> f64) -> bool {
    const CELLS: usize = 20;
    let mut observed = [0; CELLS];
    let edges: Vec<f64> = (1..CELLS)
        .map(|k| quantile(k as f64 / CELLS as f64))
        .collect();
    for delay in delays {
        observed[edges.partition_point(|edge| *edge <= delay.as_secs_f64())] += 1;
    }
    fits(&observed, &[1.0 / CELLS as f64; CELLS])
}

/// Whether a count is within the number of standard deviations of its expectation that a right
/// system keeps.
pub fn is_near(count: f64, expected: f64, variance: f64) -> bool {
    // Two-sided: the quantile of half the level is 3.2905.
    (count - expected).abs() <= 3.2905 * variance.sqrt()
}
