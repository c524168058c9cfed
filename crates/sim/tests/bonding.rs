//! Is the adaptive pair worth having: `earliest-arrival` with `adaptive` against the study's methods and the best single route, on paths
//! drawn at test time.

mod common;

use std::fmt::Write;

use anabranch_core::rng::{Draw, Stream};
use anabranch_elements::body::Length;
use anabranch_sim::Simulation;
use common::resolve;

/// Length of a run, in seconds; the change comes in the middle.
const SECONDS: u64 = 20;

#[derive(Debug, Clone)]
struct Route {
    kbit_s: u64,
    delay_ms: u64,
    loss: f64,
}

/// Routes, and what changes in mid-run: which, and the keys to set.
#[derive(Debug, Clone)]
struct Path {
    routes: Vec<Route>,
    change: Option<(usize, String)>,
}

fn between(draw: &mut Draw, low: f64, high: f64) -> f64 {
    low + (high - low) * draw.uniform()
}

/// From `low` to `high`, each octave as likely.
fn spread(draw: &mut Draw, low: f64, high: f64) -> f64 {
    low * (high / low).powf(draw.uniform())
}

fn path(number: u64) -> Path {
    let draw = &mut Stream::new(1, "bonding").at(number);
    let count = 2 + (draw.bits() % 3) as usize;
    let route = |draw: &mut Draw| {
        let lossy = draw.uniform() < 0.5;
        Route {
            kbit_s: spread(draw, 1_000.0, 16_000.0) as u64,
            delay_ms: spread(draw, 4.0, 100.0) as u64,
            loss: if lossy { spread(draw, 1e-4, 1e-2) } else { 0.0 },
        }
    };
    let routes: Vec<Route> = (0..count).map(|_| route(draw)).collect();
    let which = draw.bits() as usize % count;
    let change = match draw.bits() % 4 {
        0 => None,
        1 => {
            let factor = between(draw, 0.3, 1.0);
            let rate = (routes[which].kbit_s as f64 * factor) as u64;
            Some((which, format!("rate\" = \"{rate} kbit/s")))
        }
        2 => {
            let delay = spread(draw, 4.0, 100.0) as u64;
            Some((which, format!("delay\" = \"{delay} ms")))
        }
        _ => Some((which, "up\" = false, \"".to_owned())),
    };
    Path { routes, change }
}

/// Over these routes of a path, with this pair if there is more than one.
fn scenario(path: &Path, used: &[usize], pair: Option<[&str; 2]>, seed: u64) -> String {
    let mut text = format!("duration = \"{SECONDS} s\"\nseed = {seed}\n");
    for (name, a, b) in [("lan1", "T1", "GW1"), ("lan2", "GW2", "T2")] {
        let _ = write!(
            text,
            "[link.{name}]\nbetween = [\"{a}\", \"{b}\"]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n"
        );
    }
    for route in used {
        let Route { kbit_s, delay_ms, loss } = &path.routes[*route];
        let bytes = (kbit_s * 20).max(30_000);
        let _ = write!(
            text,
            "[link.isp{route}]\nbetween = [\"GW1\", \"GW2\"]\nrate = \"{kbit_s} kbit/s\"\ndelay = \"{delay_ms} ms\"\n\
             queue = {{ kind = \"drop-tail\", limit = \"{bytes} bytes\" }}\n\
             impair = [{{ kind = \"bernoulli-loss\", rate = {loss} }}]\n"
        );
    }
    if let Some((which, keys)) = &path.change
        && used.contains(which)
    {
        let keys = keys.trim_end_matches(", \"");
        let quote = if keys.ends_with("false") { "" } else { "\"" };
        let _ = write!(
            text,
            "[[at]]\ntime = \"{} s\"\nset = {{ \"link.isp{which}.{keys}{quote} }}\n",
            SECONDS / 2
        );
    }
    if let Some([split, restore]) = pair {
        let names: Vec<String> = used.iter().map(|route| format!("\"isp{route}\"")).collect();
        let _ = write!(
            text,
            "[gateway.pair]\nbetween = [\"GW1\", \"GW2\"]\nroutes = [{}]\nsplit = \"{split}\"\nrestore = \"{restore}\"\n",
            names.join(", ")
        );
    }
    text += "[flow.main]\nfrom = \"T1\"\nto = \"T2\"\nstack = \"linux-6.18\"\ncc = \"cubic\"\n";
    text
}

fn goodput(text: &str) -> f64 {
    let run = Simulation::<Length>::new(&resolve(text))
        .run()
        .expect("no hosts");
    run.summary.flows["main"]["goodput_mbit_s"]
        .as_f64()
        .expect("a figure")
}

fn goodput_of(path: &Path, pair: [&str; 2], seed: u64) -> f64 {
    let all: Vec<usize> = (0..path.routes.len()).collect();
    goodput(&scenario(path, &all, Some(pair), seed))
}

#[test]
#[ignore = "an experiment"]
fn table() {
    let from: u64 = std::env::var("FROM").map_or(0, |t| t.parse().expect("a number"));
    let count: u64 = std::env::var("COUNT").map_or(20, |t| t.parse().expect("a number"));
    let pairs = [
        ["weighted-round-robin", "in-order"],
        ["weighted-round-robin", "none"],
        ["weighted-round-robin", "adaptive"],
        ["earliest-arrival", "none"],
        ["earliest-arrival", "adaptive"],
    ];
    let mut logs = vec![[0.0; 2]; pairs.len()];
    for number in from..from + count {
        let path = path(number);
        let single = (0..path.routes.len())
            .map(|route| goodput(&scenario(&path, &[route], None, number)))
            .fold(0.0, f64::max);
        let all: Vec<f64> = pairs.iter().map(|pair| goodput_of(&path, *pair, number)).collect();
        let best = all[0].max(all[1]);
        for (log, value) in logs.iter_mut().zip(&all) {
            log[0] += (value / best).ln() / count as f64;
            log[1] += (value / single).ln() / count as f64;
        }
        let routes: Vec<String> = path
            .routes
            .iter()
            .map(|r| format!("{}k/{}ms/{:.2}%", r.kbit_s, r.delay_ms, r.loss * 100.0))
            .collect();
        let change = path.change.as_ref().map(|(which, keys)| format!("{which} {keys}"));
        println!(
            "{number:3} single {single:6.2} | {} | {} | {}",
            all.iter().map(|v| format!("{v:6.2}")).collect::<Vec<_>>().join(" "),
            routes.join(" "),
            change.unwrap_or_default()
        );
    }
    for (pair, log) in pairs.iter().zip(&logs) {
        println!("{pair:?}: {:.3} of better of A and B, {:.3} of single", log[0].exp(), log[1].exp());
    }
}
