//! `loss-adaptive` against every fixed limit of the study, at new random points.
//!
//! ```text
//! cargo test --release -p anabranch-engine --test all fec_adaptive:: -- --ignored --nocapture
//! ```
//!
//! draws loss rate, mean burst and delay of new points in each run, prints the seed
//! (`FEC_POINTS=SEED` repeats the draw, `FEC_COUNT=N` draws fewer points), and prints the asserted
//! figures. Redundancy is not goodput, and all variants meet the same losses, packet by packet.
//! Separate seeds choose the best XOR limit of a point and compare with it. Ratios are averaged by
//! their logarithms; in averages over points, each point counts once. One test has points of every
//! kind and compares with the best limit; the other has only points with bursts and compares with
//! each limit. The small form has one point and few limits.
//!
//! Wrong controllers, which the long forms compare with the best limit and the small form with
//! `loss-adaptive`: one without redundancy, one with the maximum redundancy, and the study's with
//! the same code. A controller that is notified of losses too late is in
//! `redundancy/loss_adaptive/tests.rs`.

use crate::support::runs::{self, Ratio, each};
use anabranch_core::{math, rng::Stream};

const PATH: &str = include_str!("../../../../studies/fec/fec.toml");

/// The configuration under test.
const ADAPTIVE: &str = "{ kind = 'sliding-rlc', redundancy = 'loss-adaptive', release = 'paced' }";

/// Controllers that must be rejected.
const WRONG: [(&str, &str); 3] = [
    ("never any", "'off'"),
    (
        "always the most",
        "{ kind = 'sliding-rlc', redundancy = 'fixed', group = 1, redundant = 16 }",
    ),
    ("the study's", "{ kind = 'sliding-rlc' }"),
];

/// The issue's threshold for intervals.
const THRESHOLD: f64 = 0.95;

const LIMITS: [u32; 11] = [0, 1, 2, 3, 5, 7, 10, 14, 20, 28, 40];

/// Seeds that choose the best limit, and seeds that compare.
const CHOOSE: std::ops::Range<u64> = 101..104;
const COMPARE: std::ops::Range<u64> = 201..206;

/// Seeds for variants far from the best, and for tests in which points matter more than seeds.
const FEW: std::ops::Range<u64> = 201..204;

/// The number of points of every kind. The wrong controller without redundancy is decisive: twice
/// twelve points of earlier runs put it at 0.548 and 0.488 of the best limit, with a standard
/// deviation of 0.87 and 0.94 of the logarithm from point to point. With these figures, twelve
/// points show it to be below 0.95 in 56 runs of a hundred, sixteen in 71, twenty in 81,
/// twenty-four in 88.
const POINTS: usize = 24;

/// The number of points with bursts. From point to point the logarithm of the ratio to a limit has
/// a standard deviation of about 0.8 (eight points of an earlier controller): sixteen distinguish a
/// mean of 1.55 from 1, eight one of 1.95.
const BURSTS: usize = 16;

#[derive(Debug, Clone, Copy)]
struct Point {
    loss: f64,
    burst: f64,
    delay_ms: f64,
}

impl Point {
    /// Uniform on logarithmic scales over the ranges of the study; every third point is without
    /// bursts.
    fn draw(seed: u64, k: usize) -> Self {
        let mut draw = Stream::new(seed, "points").at(k as u64);
        let mut between = |low: f64, high: f64| low * math::powf(high / low, draw.uniform());
        Self {
            loss: between(1e-5, 1e-2),
            burst: if k.is_multiple_of(3) {
                1.0
            } else {
                between(2.0, 16.0)
            },
            delay_ms: between(10.0, 300.0).round(),
        }
    }

    fn goodput(self, duration: &str, fec: &str, seed: u64) -> f64 {
        let Self {
            loss,
            burst,
            delay_ms,
        } = self;
        let impair = if burst > 1.0 {
            format!(
                "[{{ kind = 'gilbert-elliott', loss_rate = {loss:?}, mean_burst = {burst:?} }}]"
            )
        } else {
            format!("[{{ kind = 'bernoulli-loss', rate = {loss:?} }}]")
        };
        let sets = [
            format!("flow.main.fec={fec}"),
            format!("link.middle.forward.impair={impair}"),
            format!("link.middle.delay='{delay_ms} ms'"),
            format!("duration='{duration}'"),
            format!("seed={seed}"),
        ];
        runs::goodput(PATH, "main", &sets)
    }

    fn goodputs(self, fec: &str, seeds: std::ops::Range<u64>) -> Vec<f64> {
        seeds.map(|seed| self.goodput("220 s", fec, seed)).collect()
    }

    /// The index of the limit with the highest goodput over some seeds.
    fn best(self, duration: &str, limits: &[u32], seeds: std::ops::Range<u64>) -> usize {
        let sum = |fmax: u32| -> f64 {
            let runs = seeds
                .clone()
                .map(|seed| self.goodput(duration, &xor(fmax), seed));
            runs.sum()
        };
        let mut best = (f64::MIN, 0);
        for (place, fmax) in limits.iter().enumerate() {
            let sum = sum(*fmax);
            if sum > best.0 {
                best = (sum, place);
            }
        }
        best.1
    }
}

fn xor(fmax: u32) -> String {
    format!("{{ kind = 'xor', fmax = {fmax} }}")
}

/// One point with bursts on a shorter path. Detects each wrong controller.
#[test]
fn ahead_of_the_best_limit_under_bursts() {
    let point = Point {
        loss: 0.005,
        burst: 3.0,
        delay_ms: 60.0,
    };
    let limits = [1, 10, 40];
    let fmax = limits[point.best("40 s", &limits, 1..3)];
    let seeds = 11..16;
    let reference: Vec<f64> = seeds
        .clone()
        .map(|seed| point.goodput("40 s", &xor(fmax), seed))
        .collect();
    let goodputs = |fec: &str| -> Vec<f64> {
        let own = seeds.clone().map(|seed| point.goodput("40 s", fec, seed));
        own.collect()
    };
    let own = goodputs(ADAPTIVE);
    let ratio = Ratio::of(&ratios(&own, &reference));
    assert!(ratio.low > 1.0, "{ratio} of fmax {fmax}");
    for (name, fec) in WRONG {
        // At this point the maximum is better than every limit, too, but not better than an
        // adaptive choice.
        let wrong = Ratio::of(&ratios(&goodputs(fec), &own));
        assert!(wrong.high < 1.0, "the wrong controller, {name}: {wrong}");
    }
}

/// The result of the runs of one point.
struct Outcome {
    point: Point,
    best: usize,
    /// `loss-adaptive` relative to the best limit, a ratio for each seed.
    ratio: Ratio,
    /// The wrong controllers relative to the best limit.
    wrong: Vec<f64>,
}

impl Outcome {
    fn of(point: Point) -> Self {
        let best = point.best("220 s", &LIMITS, CHOOSE);
        let reference = point.goodputs(&xor(LIMITS[best]), COMPARE);
        let ratio = Ratio::of(&ratios(&point.goodputs(ADAPTIVE, COMPARE), &reference));
        let wrong = WRONG
            .iter()
            .map(|(_, fec)| Ratio::of(&ratios(&point.goodputs(fec, FEW), &reference)).middle)
            .collect();
        println!("{point:.6?}: {ratio} of fmax {}", LIMITS[best]);
        Self {
            point,
            best,
            ratio,
            wrong,
        }
    }
}

/// The ratios of some goodputs to others of the same seeds.
fn ratios(own: &[f64], others: &[f64]) -> Vec<f64> {
    own.iter()
        .zip(others)
        .map(|(own, other)| own / other)
        .collect()
}

/// The seed of the points, and their number: as requested by the environment, or a new seed in each
/// run.
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "points that nobody has seen cannot come from what is in this file"
)]
fn asked(usual: usize) -> (u64, usize) {
    use std::{env, time::SystemTime};
    let given = |name: &str| env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = given("FEC_POINTS").unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        now.expect("after 1970").as_secs()
    });
    let count = given("FEC_COUNT").map_or(usual, |count| usize::try_from(count).expect("few"));
    (seed, count)
}

#[test]
#[ignore = "about 1,200 runs of 220 s, in a release build"]
fn reaches_the_best_limit_at_points_of_every_kind() {
    let (seed, count) = asked(POINTS);
    println!("points from FEC_POINTS={seed}");
    let outcomes = each(count, |k| Outcome::of(Point::draw(seed, k)));

    let mut failures = Vec::new();
    let mut say = |ok: bool, what: String| {
        println!("{what}{}", if ok { "" } else { ": no" });
        if !ok {
            failures.push(what);
        }
    };
    let all: Vec<f64> = outcomes.iter().map(|one| one.ratio.middle).collect();
    let all = Ratio::of(&all);
    say(
        all.low >= THRESHOLD,
        format!("all points, each once: {all}"),
    );
    let mut whole = 0;
    for Outcome {
        point, best, ratio, ..
    } in &outcomes
    {
        whole += usize::from(ratio.low >= THRESHOLD);
        if ratio.high < THRESHOLD {
            let limit = LIMITS[*best];
            say(false, format!("{point:.6?}: {ratio} of fmax {limit}"));
        }
    }
    println!("intervals that are above {THRESHOLD} as a whole: {whole} of {count}");
    for (place, (name, _)) in WRONG.iter().enumerate() {
        let ratios: Vec<f64> = outcomes.iter().map(|one| one.wrong[place]).collect();
        let ratio = Ratio::of(&ratios);
        say(
            ratio.high < THRESHOLD,
            format!("the wrong controller, {name}, is behind: {ratio}"),
        );
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Single losses on short paths, where the queue overflows every few seconds: `loss-adaptive` is
/// below the best limit. The bound was set after the first run, whose lowest ratio is 0.805.
#[test]
#[ignore = "192 runs of 100 s, in a release build"]
fn loses_at_most_a_quarter_on_short_paths() {
    let points: Vec<Point> = [12.0, 20.0, 35.0]
        .into_iter()
        .flat_map(|delay_ms| {
            [5e-5, 2e-4, 5e-4, 1e-3].map(|loss| Point {
                loss,
                burst: 1.0,
                delay_ms,
            })
        })
        .collect();
    let limits = [10, 40];
    let outcomes = each(points.len(), |k| {
        let point = points[k];
        let fmax = limits[point.best("100 s", &limits, 301..303)];
        let goodputs = |fec: &str| -> Vec<f64> {
            (303..307)
                .map(|seed| point.goodput("100 s", fec, seed))
                .collect()
        };
        let reference = goodputs(&xor(fmax));
        let of = |fec: &str| Ratio::of(&ratios(&goodputs(fec), &reference));
        let own = of(ADAPTIVE);
        let blocks = of("{ kind = 'xor', redundancy = 'loss-adaptive' }");
        println!("{point:.6?}: {own} of fmax {fmax}; with XOR {blocks}");
        own
    });
    for (point, ratio) in points.iter().zip(&outcomes) {
        assert!(ratio.middle >= 0.75, "{point:.6?}: {ratio}");
    }
}

/// Sixteen other points. Detects a controller that some limit equals, and prints the ratios to the
/// wrong ones.
#[test]
#[ignore = "about 700 runs of 220 s, in a release build"]
fn ahead_of_each_limit_under_bursts() {
    let (seed, count) = asked(BURSTS);
    println!("points from FEC_POINTS={seed}");
    let drawn = (0..).filter(|k: &usize| !k.is_multiple_of(3));
    let drawn: Vec<Point> = drawn.take(count).map(|k| Point::draw(seed, k)).collect();
    let middles = each(count, |k| {
        let point = drawn[k];
        let own = point.goodputs(ADAPTIVE, FEW);
        let against = |fec: &str| Ratio::of(&ratios(&own, &point.goodputs(fec, FEW))).middle;
        let limits: Vec<f64> = LIMITS.iter().map(|fmax| against(&xor(*fmax))).collect();
        let wrong: Vec<f64> = WRONG.iter().map(|(_, fec)| against(fec)).collect();
        let least = limits.iter().copied().fold(f64::INFINITY, f64::min);
        println!("{point:.6?}: {least:.3} of the best limit of these seeds");
        (limits, wrong)
    });

    let mut failures = Vec::new();
    for (place, fmax) in LIMITS.iter().enumerate() {
        let all: Vec<f64> = middles.iter().map(|(limits, _)| limits[place]).collect();
        let ratio = Ratio::of(&all);
        println!("bursts, each point once, to fmax {fmax}: {ratio}");
        if ratio.low <= 1.0 {
            failures.push(format!("fmax {fmax}: {ratio}"));
        }
    }
    for (place, (name, _)) in WRONG.iter().enumerate() {
        let all: Vec<f64> = middles.iter().map(|(_, wrong)| wrong[place]).collect();
        let ratio = Ratio::of(&all);
        println!("to the wrong controller, {name}: {ratio}");
        if ratio.low <= 1.0 {
            failures.push(format!("{name}: {ratio}"));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}
