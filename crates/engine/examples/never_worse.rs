//! Whether the tunnel over two random paths is ever worse than over the better one alone.
//!
//! - `never_worse calls SEED FIRST COUNT`: a CUBIC download of 14 s beside a call, over paths with
//!   queues of 200 packets.
//! - `never_worse named SEED 0 3`: the same over three pairs that were once worse.
//! - `never_worse any SEED FIRST COUNT`: any sender, number of flows, queue, loss and jitter.
//!
//! Each line has the goodput over both paths and over the better one, through the tunnel, and their
//! ratio. The last lines have the shares and means by which a set is judged. Draws depend only on
//! the seed and their number.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the program reads its arguments"
)]

use std::{env, fmt::Write as _, process::ExitCode};

use anabranch_core::{
    body::Length,
    math::{exp, ln, powf},
    rng::{Draw, Stream},
};
use anabranch_engine::Simulation;
use anabranch_scenario::{Extensions, Scenario};

const USAGE: &str = "usage: never_worse calls|named|any SEED FIRST COUNT";
/// Ratios that 95 % of the draws and every draw must reach.
const MOSTLY: f64 = 0.97;
const ALWAYS: f64 = 0.9;
/// Transfers start at this second, when both paths have been validated.
const START_S: f64 = 1.0;
/// Most octets of a draw: fast paths are measured for less time.
const MOST_MBIT: f64 = 3_000.0;
const SHORTEST_S: f64 = 5.0;

struct PathDraw {
    mbit_s: f64,
    delay_ms: f64,
    queue: String,
    loss: f64,
    /// Mean, and the time for which each delay holds.
    jitter_ms: Option<(f64, f64)>,
}

struct PairDraw {
    paths: [PathDraw; 2],
    cc: &'static str,
    flows: u32,
    seconds: f64,
    has_call: bool,
}

/// From `low` to `high`, with each octave equally likely.
fn spread(draw: &mut Draw, low: f64, high: f64) -> f64 {
    low * powf(high / low, draw.uniform())
}

/// Rate and delay of both paths.
const NAMED: [[(f64, f64); 2]; 3] = [
    [(20.0, 35.0), (2.0, 52.0)],
    [(50.0, 11.0), (2.0, 14.0)],
    [(5.0, 23.0), (80.0, 146.0)],
];

fn random_paths(draw: &mut Draw) -> [(f64, f64); 2] {
    let mut path = || {
        (
            spread(draw, 1.0, 100.0).round(),
            spread(draw, 5.0, 150.0).round(),
        )
    };
    [path(), path()]
}

fn with_call(paths: [(f64, f64); 2]) -> PairDraw {
    let path = |(mbit_s, delay_ms)| PathDraw {
        mbit_s,
        delay_ms,
        queue: "200 packets".to_owned(),
        loss: 0.0,
        jitter_ms: None,
    };
    PairDraw {
        paths: paths.map(path),
        cc: "cubic",
        flows: 1,
        seconds: 14.0,
        has_call: true,
    }
}

fn any(draw: &mut Draw) -> PairDraw {
    let mut path = || {
        let mbit_s = spread(draw, 1.0, 300.0);
        let delay_ms = spread(draw, 1.0, 300.0);
        let bdp = mbit_s * 125.0 * 2.0 * delay_ms;
        let queue = (bdp * spread(draw, 0.25, 4.0)).max(6_000.0);
        let is_lossy = draw.uniform() < 0.5;
        let loss = spread(draw, 1e-4, 2e-2);
        let is_jittery = draw.uniform() < 0.5;
        let mean = spread(draw, 0.2, 20.0);
        let every = spread(draw, 5.0, 1_000.0);
        PathDraw {
            mbit_s: (mbit_s * 100.0).round() / 100.0,
            delay_ms: (delay_ms * 10.0).round() / 10.0,
            queue: format!("{queue:.0} bytes"),
            loss: if is_lossy { loss } else { 0.0 },
            jitter_ms: is_jittery.then_some((mean, every)),
        }
    };
    let paths = [path(), path()];
    let cc = ["cubic", "bbr", "reno"][(draw.bits() % 3) as usize];
    let flows = if draw.uniform() < 0.5 {
        1
    } else {
        2 + draw.bits() % 15
    };
    let most_s = MOST_MBIT / (paths[0].mbit_s + paths[1].mbit_s);
    let seconds = spread(draw, SHORTEST_S, 60.0).min(most_s).max(SHORTEST_S);
    PairDraw {
        paths,
        cc,
        flows,
        seconds: seconds.round(),
        has_call: false,
    }
}

impl PathDraw {
    fn describe(&self) -> String {
        let mut text = format!("{}/{}", self.mbit_s, self.delay_ms);
        if self.loss > 0.0 {
            let _ = write!(text, " {:.2}%", self.loss * 100.0);
        }
        if let Some((mean, every)) = self.jitter_ms {
            let _ = write!(text, " ~{mean:.1}/{every:.0}");
        }
        let _ = write!(text, " q {}", self.queue);
        text
    }
}

/// The scenario of a pair over some of its paths.
fn scenario(pair: &PairDraw, used: &[usize], seed: u64) -> String {
    let end = START_S + pair.seconds;
    let mut text = format!("duration = \"{end} s\"\nseed = {seed}\n");
    for (name, a, b) in [("lan1", "T1", "GW1"), ("lan2", "GW2", "T2")] {
        let _ = write!(
            text,
            "[link.{name}]\nbetween = [\"{a}\", \"{b}\"]\nrate = \"10 Gbit/s\"\ndelay = \"0 ms\"\n"
        );
    }
    for &number in used {
        let path = &pair.paths[number];
        let mut impair = Vec::new();
        if path.loss > 0.0 {
            let rate = path.loss;
            impair.push(format!("{{ kind = \"bernoulli-loss\", rate = {rate} }}"));
        }
        if let Some((mean, every)) = path.jitter_ms {
            impair.push(format!(
                "{{ kind = \"jitter\", distribution = \"exponential\", mean = \"{mean:.3} ms\", every = \"{every:.3} ms\" }}"
            ));
        }
        let _ = write!(
            text,
            "[link.isp{number}]\nbetween = [\"GW1\", \"GW2\"]\nrate = \"{} kbit/s\"\ndelay = \"{} us\"\n\
             queue = {{ kind = \"drop-tail\", limit = \"{}\" }}\nimpair = [{}]\n",
            (path.mbit_s * 1_000.0).round(),
            (path.delay_ms * 1_000.0).round(),
            path.queue,
            impair.join(", ")
        );
    }
    let names: Vec<String> = used.iter().map(|path| format!("\"isp{path}\"")).collect();
    let _ = write!(
        text,
        "[gateway.pair]\nkind = \"tunnel\"\nbetween = [\"GW1\", \"GW2\"]\nroutes = [{}]\n",
        names.join(", ")
    );
    if pair.has_call {
        text += "[gateway.pair.class.calls]\nmatch = { dscp = \"ef\" }\nmode = \"interactive\"\n\
                 [flow.call]\nfrom = \"T1\"\nto = \"T2\"\nprotocol = \"udp\"\ndscp = \"ef\"\nport = 5004\n\
                 start = \"1 s\"\nworkload = { kind = \"paced\", rate = \"64 kbit/s\", payload = \"160 bytes\" }\n";
    }
    let _ = write!(
        text,
        "[flow.main]\nfrom = \"T1\"\nto = \"T2\"\nstart = \"{START_S} s\"\ncc = \"{}\"\ncount = {}\n",
        pair.cc, pair.flows
    );
    text
}

/// Goodput in Mbit/s of the transfers.
fn goodput(text: &str) -> Result<f64, String> {
    let resolved = Scenario::parse(text, "pair.toml", &Extensions::default())
        .and_then(|scenario| scenario.resolve(None))
        .map_err(|error| format!("{error}\n{text}"))?;
    let run = Simulation::<Length>::new(&resolved)
        .run()
        .map_err(|error| error.to_string())?;
    let flows = run.summary.flows.iter();
    let transfers = flows.filter(|(name, _)| name.starts_with("main"));
    Ok(transfers
        .filter_map(|(_, flow)| flow["goodput_mbit_s"].as_f64())
        .sum())
}

fn judge(ratios: &[f64], gains: &[f64]) {
    let count = ratios.len().max(1) as f64;
    let share = |least: f64| ratios.iter().filter(|&&ratio| ratio >= least).count() as f64 / count;
    let worst = ratios.iter().fold(f64::INFINITY, |a, &b| a.min(b));
    let mean =
        |of: &[f64]| exp(of.iter().map(|&one| ln(one)).sum::<f64>() / of.len().max(1) as f64);
    println!(
        "{count} draws: {:.1} % at {MOSTLY} or more, {:.1} % at {ALWAYS} or more, worst {worst:.3}",
        100.0 * share(MOSTLY),
        100.0 * share(ALWAYS)
    );
    println!(
        "geometric means: {:.3} of the better path, {:.3} of the sum of both",
        mean(ratios),
        mean(gains)
    );
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let numbers: Vec<u64> = words
        .iter()
        .skip(1)
        .filter_map(|w| w.parse().ok())
        .collect();
    let (Some(set), &[seed, first, count]) = (words.first(), numbers.as_slice()) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let (mut ratios, mut gains) = (Vec::new(), Vec::new());
    for number in first..first + count {
        let draw = &mut Stream::new(seed, "never-worse").at(number);
        let pair = match (
            set.as_str(),
            usize::try_from(number).ok().and_then(|at| NAMED.get(at)),
        ) {
            ("calls", _) => with_call(random_paths(draw)),
            ("named", Some(&paths)) => with_call(paths),
            ("any", _) => any(draw),
            _ => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
        };
        let of = |used: &[usize]| goodput(&scenario(&pair, used, number));
        let (both, first, second) = match (of(&[0, 1]), of(&[0]), of(&[1])) {
            (Ok(both), Ok(first), Ok(second)) => (both, first, second),
            (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        };
        let ratio = both / first.max(second);
        println!(
            "{number:3}: {ratio:.3} both {both:.2} alone {first:.2} {second:.2} | {} | {} | {} x{} {} s",
            pair.paths[0].describe(),
            pair.paths[1].describe(),
            pair.cc,
            pair.flows,
            pair.seconds
        );
        ratios.push(ratio);
        gains.push(both / (first + second));
    }
    judge(&ratios, &gains);
    ExitCode::SUCCESS
}
