//! Random pairs of paths, and their scenarios.

use std::fmt::Write as _;

use anabranch_core::{
    body::Length,
    math::powf,
    rng::{Draw, Stream},
};
use anabranch_engine::{Finished, Simulation};
use anabranch_scenario::{Extensions, Scenario};

/// Transfers start at this second, when both paths have been validated.
const START_S: f64 = 1.0;
/// Most octets of a draw: fast paths are measured for less time.
const MOST_MBIT: f64 = 3_000.0;
const SHORTEST_S: f64 = 5.0;

/// A path.
pub struct PathDraw {
    pub mbit_s: f64,
    pub delay_ms: f64,
    queue: String,
    loss: f64,
    /// Mean, and the time for which each delay holds.
    jitter_ms: Option<(f64, f64)>,
}

/// Two paths and their load.
pub struct PairDraw {
    pub paths: [PathDraw; 2],
    pub cc: &'static str,
    pub flows: u32,
    pub seconds: f64,
    has_call: bool,
}

/// From `low` to `high`, with each octave equally likely.
fn spread(draw: &mut Draw, low: f64, high: f64) -> f64 {
    low * powf(high / low, draw.uniform())
}

/// Rate and delay of both paths.
pub const NAMED: [[(f64, f64); 2]; 3] = [
    [(20.0, 35.0), (2.0, 52.0)],
    [(50.0, 11.0), (2.0, 14.0)],
    [(5.0, 23.0), (80.0, 146.0)],
];

/// Rates and delays for a download beside a call.
pub fn random_paths(draw: &mut Draw) -> [(f64, f64); 2] {
    let mut path = || {
        (
            spread(draw, 1.0, 100.0).round(),
            spread(draw, 5.0, 150.0).round(),
        )
    };
    [path(), path()]
}

/// A download beside a call.
pub fn with_call(paths: [(f64, f64); 2]) -> PairDraw {
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

/// Any sender, number of flows, queue, loss and jitter.
pub fn any(draw: &mut Draw) -> PairDraw {
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

/// The draw of a set: `calls`, `named` or `any`. `None` if there is none.
pub fn draw(set: &str, seed: u64, number: u64) -> Option<PairDraw> {
    let draw = &mut Stream::new(seed, "never-worse").at(number);
    let named = || NAMED.get(usize::try_from(number).ok()?);
    match set {
        "calls" => Some(with_call(random_paths(draw))),
        "named" => Some(with_call(*named()?)),
        "any" => Some(any(draw)),
        _ => None,
    }
}

impl PairDraw {
    /// Runs the transfers over some of the paths.
    pub fn run(&self, used: &[usize], seed: u64) -> Result<Finished, String> {
        let text = scenario(self, used, seed);
        let resolved = Scenario::parse(&text, "pair.toml", &Extensions::default())
            .and_then(|scenario| scenario.resolve(None))
            .map_err(|error| format!("{error}\n{text}"))?;
        Simulation::<Length>::new(&resolved)
            .run()
            .map_err(|error| error.to_string())
    }

    /// Goodput in Mbit/s over some of the paths.
    pub fn goodput(&self, used: &[usize], seed: u64) -> Result<f64, String> {
        let run = self.run(used, seed)?;
        let flows = run.summary.flows.iter();
        let transfers = flows.filter(|(name, _)| name.starts_with("main"));
        Ok(transfers
            .filter_map(|(_, flow)| flow["goodput_mbit_s"].as_f64())
            .sum())
    }

    /// Goodput over both paths, and over each alone, through the tunnel.
    pub fn goodputs(&self, seed: u64) -> Result<[f64; 3], String> {
        Ok([
            self.goodput(&[0, 1], seed)?,
            self.goodput(&[0], seed)?,
            self.goodput(&[1], seed)?,
        ])
    }
}

impl std::fmt::Display for PairDraw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [first, second] = self.paths.each_ref().map(PathDraw::describe);
        let (cc, flows, seconds) = (self.cc, self.flows, self.seconds);
        write!(f, "{first} | {second} | {cc} x{flows} {seconds} s")
    }
}
