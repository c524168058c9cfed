//! Random scenarios: topologies, losses, reordering, duplication, changes, mixes of flows.

pub mod logged;
pub mod outputs;
pub mod runs;
pub mod simulate;

use std::{
    fmt::Write,
    sync::{Arc, Mutex},
};

use anabranch_core::{
    rng::{Draw, Stream},
    units::{Duration, Instant},
};
use anabranch_path::{
    impair,
    impair::{Impairment, Verdict, View},
};
use anabranch_scenario::{Extensions, Resolved, Scenario};

/// Duplicates, delays past others, or corrupts packets with given probabilities, and records the
/// duplicates.
#[derive(Debug)]
struct Mangle {
    duplicate: f64,
    late: f64,
    corrupt: f64,
    by: Duration,
    copies: Copies,
}

/// The times at which packets were duplicated, recorded by the impairment.
pub type Copies = Arc<Mutex<Vec<Instant>>>;

impl Impairment for Mangle {
    fn judge(&mut self, now: Instant, _packet: View, draw: &mut Draw) -> Verdict {
        let u = draw.uniform();
        if u < self.duplicate {
            self.copies.lock().expect("one thread").push(now);
            Verdict::Duplicate
        } else if u < self.duplicate + self.late {
            Verdict::Delay {
                by: self.by,
                may_overtake: true,
            }
        } else if u < self.duplicate + self.late + self.corrupt {
            Verdict::Corrupt
        } else {
            Verdict::Pass
        }
    }
    fn reorders(&self) -> bool {
        true
    }
}

/// The built-in components and `mangle`.
pub fn extensions(copies: &Copies) -> Extensions {
    let copies = Arc::clone(copies);
    Extensions::default().impairment("mangle", move |params| {
        let number = |key: &str| {
            params[key]
                .as_f64()
                .ok_or_else(|| format!("`{key}` is missing"))
        };
        let (duplicate, late, corrupt) =
            (number("duplicate")?, number("late")?, number("corrupt")?);
        let by = Duration::from_secs_f64(number("by_ms")? / 1e3);
        let copies = Arc::clone(&copies);
        let make: impair::Factory = Arc::new(move || {
            Box::new(Mangle {
                duplicate,
                late,
                corrupt,
                by,
                copies: Arc::clone(&copies),
            })
        });
        Ok(make)
    })
}

/// The kind of a random scenario.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Whether all flows carry files, on paths on which these arrive.
    pub files_only: bool,
    /// Whether links may go down, up, faster and slower.
    pub changes: bool,
    /// Whether packets are duplicated, delayed and corrupted.
    pub mangle: bool,
    /// Length of the run in seconds.
    pub seconds: u64,
}

/// The `number`-th random scenario of a shape, as the text of a file.
pub fn text(number: u64, shape: Shape) -> String {
    let mut d = Stream::new(number, "random scenario").at(0);
    let mut out = format!(
        "duration = \"{} s\"\nseed = {}\n",
        shape.seconds,
        1 + number
    );
    if !shape.files_only && d.chance(0.3) {
        out += "warmup = \"400 ms\"\n";
    }
    let routers = 1 + pick(&mut d, 4);
    let flows = 1 + pick(&mut d, 4);
    let mut names = Vec::new();
    // A chain of routers, and sometimes a ring, in which the routes of the two directions may
    // differ.
    for i in 1..routers {
        link(
            &mut out,
            &mut d,
            &format!("core{i}"),
            &format!("R{}", i - 1),
            &format!("R{i}"),
            shape,
            true,
        );
        names.push(format!("core{i}"));
    }
    if routers > 2 && d.chance(0.3) {
        link(
            &mut out,
            &mut d,
            "ring",
            &format!("R{}", routers - 1),
            "R0",
            shape,
            true,
        );
    }
    for i in 0..flows {
        let (a, b) = (pick(&mut d, routers), pick(&mut d, routers));
        for (name, host, router) in [("s", format!("S{i}"), a), ("d", format!("D{i}"), b)] {
            link(
                &mut out,
                &mut d,
                &format!("{name}{i}"),
                &host,
                &format!("R{router}"),
                shape,
                false,
            );
            names.push(format!("{name}{i}"));
        }
    }
    for i in 0..flows {
        flow(&mut out, &mut d, i, shape);
    }
    if shape.changes {
        for _ in 0..pick(&mut d, 4) {
            let name = &names[choose(&mut d, names.len())];
            let at = 100 + pick(&mut d, shape.seconds * 1000 - 200);
            let (key, value) = match pick(&mut d, 4) {
                0 => ("rate", format!("\"{} kbit/s\"", 200 + pick(&mut d, 20_000))),
                1 => ("delay", format!("\"{} us\"", pick(&mut d, 20_000))),
                2 => ("up", "false".to_owned()),
                _ => ("up", "true".to_owned()),
            };
            let _ = writeln!(
                out,
                "[[at]]\ntime = \"{at} ms\"\nset = {{ \"link.{name}.{key}\" = {value} }}"
            );
        }
    }
    out
}

fn pick(d: &mut Draw, n: u64) -> u64 {
    u64::from(d.bits()) % n
}

/// One of `n` choices.
fn choose(d: &mut Draw, n: usize) -> usize {
    d.bits() as usize % n
}

fn link(
    out: &mut String,
    d: &mut Draw,
    name: &str,
    from: &str,
    to: &str,
    shape: Shape,
    core: bool,
) {
    let _ = writeln!(out, "[link.{name}]\nbetween = [\"{from}\", \"{to}\"]");
    // Some links take no time, but every flow has one that does: the sender's.
    if !core || d.chance(0.9) {
        let _ = writeln!(
            out,
            "rate = \"{} kbit/s\"",
            500 + pick(d, if core { 10_000 } else { 50_000 })
        );
    }
    // Equal delays cause events at the same instant, which test the order of events.
    if d.chance(0.9) {
        let _ = writeln!(out, "delay = \"{} ms\"", pick(d, 12));
    }
    if d.chance(0.7) {
        let limit = match pick(d, 3) {
            0 => format!("{} packets", 2 + pick(d, 40)),
            1 => format!("{} KiB", 8 + pick(d, 60)),
            _ => "1 bdp".to_owned(),
        };
        let limit = if limit == "1 bdp" {
            "64 KiB".to_owned()
        } else {
            limit
        };
        let reorder = if d.chance(0.2) {
            format!(
                ", reorder = {{ kind = \"interval\", interval = {} }}",
                1 + pick(d, 20)
            )
        } else {
            String::new()
        };
        let _ = writeln!(
            out,
            "queue = {{ kind = \"drop-tail\", limit = \"{limit}\"{reorder} }}"
        );
    }
    let mut impair = Vec::new();
    if d.chance(0.25) {
        impair.push(format!(
            "{{ kind = \"bernoulli-loss\", rate = {} }}",
            f64::from(d.bits() % 50) / 1000.0
        ));
    }
    if shape.mangle && d.chance(0.3) {
        let chance = |d: &mut Draw| f64::from(d.bits() % 30) / 1000.0;
        impair.push(format!(
            "{{ kind = \"mangle\", duplicate = {}, late = {}, corrupt = {}, by_ms = {} }}",
            chance(d),
            chance(d),
            chance(d),
            1 + pick(d, 40)
        ));
    }
    if !impair.is_empty() {
        let _ = writeln!(out, "impair = [{}]", impair.join(", "));
    }
}

fn flow(out: &mut String, d: &mut Draw, i: u64, shape: Shape) {
    let cc = ["reno", "cubic", "cubic-plus"][choose(d, 3)];
    let stack = ["rfc", "ns3-2018", "linux"][choose(d, 3)];
    let (from, to) = if d.chance(0.5) {
        ("S", "D")
    } else {
        ("D", "S")
    };
    let _ = writeln!(
        out,
        "[flow.f{i}]\nfrom = \"{from}{i}\"\nto = \"{to}{i}\"\ncc = \"{cc}\"\nstack = \"{stack}\""
    );
    let _ = writeln!(out, "start = \"{} ms\"", pick(d, 20) * 10);
    let mut switches = vec!["min_rto = \"200 ms\"".to_owned()];
    if d.chance(0.4) {
        switches.push("delayed_ack = \"off\"".to_owned());
    }
    if d.chance(0.3) {
        switches.push(format!("mss = \"{} bytes\"", 100 + pick(d, 1360)));
    }
    if d.chance(0.3) {
        switches.push(format!("receive_window = \"{} KiB\"", 4 + pick(d, 60)));
    }
    let _ = writeln!(out, "transport = {{ {} }}", switches.join(", "));
    match pick(d, if shape.files_only { 1 } else { 3 }) {
        0 => {
            let _ = writeln!(
                out,
                "workload = {{ kind = \"file\", size = \"{} bytes\" }}",
                1 + pick(d, 40_000)
            );
        }
        1 if d.chance(0.5) => {
            let sizes = "{ kind = \"exponential\", mean = \"20 kB\" }";
            let _ = writeln!(
                out,
                "workload = {{ kind = \"poisson\", rate = \"500 kbit/s\", sizes = {sizes} }}"
            );
        }
        _ => {
            if d.chance(0.3) {
                let _ = writeln!(out, "count = 3\nstart_spread = \"100 ms\"");
            }
            if d.chance(0.3) {
                let _ = writeln!(
                    out,
                    "stop = \"{} ms\"",
                    300 + pick(d, shape.seconds * 1000 - 400)
                );
            }
        }
    }
}

/// Parses and resolves; a refused scenario is a mistake of the generator.
pub fn resolve(text: &str) -> Resolved {
    resolve_counting(text, &Copies::default())
}

/// The same, with a record of the packets that `mangle` duplicates.
pub fn resolve_counting(text: &str, copies: &Copies) -> Resolved {
    Scenario::parse(text, "random.toml", &extensions(copies))
        .and_then(|scenario| scenario.resolve(None))
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}
