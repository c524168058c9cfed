//! Runs behaviour scripts on this machine's kernel, several at once, and prints one JSON object per
//! line and script: `cargo run -p anabranch-live --example scripts -- [--set NAME=VALUE]… FILE…`.
//! `--set` changes a setting of the kernel.
//!
//! `outcome` is `agrees` (in every run), `differs` (in every run; `message` describes the first
//! difference), `varies` (agrees in some runs), `late` (the machine was too busy for a result) or
//! `not-applicable` (the kernel has no such setting). `agreed` is the number of runs, out of
//! `runs`, in which the kernel agreed; late runs do not count.

use std::{
    fs,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use anabranch_core::units::Duration;
use anabranch_live::{Favour, KernelTarget};
use anabranch_script::{Script, Target, parse, run};
use serde_json::{Value, json};

/// Concurrent scripts: they sleep most of the time.
const AT_ONCE: usize = 8;
/// Number of runs of each script, and number of further runs of a script that did not agree each
/// time. With late runs there are at most `MOST`.
const RUNS: usize = 3;
const MOST: usize = 12;
/// A run is late if the runner waited longer than this for a processor: half of the tolerance of
/// packet times.
const LATE: Duration = Duration::from_millis(5);
/// Added to the sequence numbers of the script's packets.
const OFFSET: u32 = 1_000_000;

/// A kernel setting.
type Setting = (String, i64);

/// Runs a script once.
fn attempt(script: &Script, settings: &[Setting]) -> (&'static str, Option<String>) {
    let mut target = match KernelTarget::new() {
        Ok(target) => target,
        Err(error) => return ("failed", Some(error.to_string())),
    };
    for (name, value) in settings {
        if let Err(error) = target.sysctl(name, *value) {
            return ("failed", Some(error));
        }
    }
    match run(script, &mut target, OFFSET) {
        Ok(()) => ("agrees", None),
        Err(_) if target.hindrance().is_some() => {
            ("not-applicable", target.hindrance().map(str::to_owned))
        }
        Err(_) if target.trouble().is_some() => ("failed", target.trouble().map(str::to_owned)),
        Err(error) if target.lateness_seen() > LATE => ("late", Some(error.to_string())),
        Err(error) => ("differs", Some(error.to_string())),
    }
}

/// The results of a script's runs.
#[derive(Debug, Default)]
struct Tally {
    stack: String,
    agreed: usize,
    differed: usize,
    late: usize,
    /// The first difference of the kernel; without one, the reason of a late run.
    message: Option<String>,
    /// The reason to end the runs, which overrides the other results.
    end: Option<(&'static str, Option<String>)>,
}

impl Tally {
    fn runs(&self) -> usize {
        self.agreed + self.differed
    }

    /// Runs the script until there are `enough` runs, or `most` including late ones.
    fn run(&mut self, file: &str, settings: &[Setting], enough: usize, most: usize) {
        let script = fs::read_to_string(file)
            .map_err(|error| error.to_string())
            .and_then(|text| parse(&text, file).map_err(|error| error.to_string()));
        let script = match script {
            Ok(script) => script,
            Err(error) => {
                self.end = Some(("failed", Some(error)));
                return;
            }
        };
        script
            .option("stack")
            .unwrap_or("rfc")
            .clone_into(&mut self.stack);
        while self.end.is_none() && self.runs() < enough && self.runs() + self.late < most {
            // A separate thread, because a thread stays in the namespace that it entered.
            let joined = thread::scope(|scope| scope.spawn(|| attempt(&script, settings)).join());
            self.add(joined.unwrap_or(("failed", Some("the runner panicked".to_owned()))));
        }
    }

    fn add(&mut self, (outcome, message): (&'static str, Option<String>)) {
        match outcome {
            "agrees" => self.agreed += 1,
            "differs" => {
                self.differed += 1;
                if self.differed == 1 {
                    self.message = message;
                }
            }
            "late" => {
                self.late += 1;
                if self.differed == 0 {
                    self.message = message;
                }
            }
            _ => self.end = Some((outcome, message)),
        }
    }

    fn outcome(&self) -> &'static str {
        match (&self.end, self.agreed, self.differed) {
            (Some((outcome, _)), ..) => outcome,
            (None, 0, 0) => "late",
            (None, agreed, 0) if agreed >= RUNS => "agrees",
            (None, _, 0) => "late",
            (None, 0, _) => "differs",
            (None, ..) => "varies",
        }
    }

    fn told(&self, file: &str) -> Value {
        let outcome = self.outcome();
        let message = match &self.end {
            Some((_, message)) => message.as_ref(),
            None => self.message.as_ref().filter(|_| outcome != "agrees"),
        };
        json!({
            "script": file,
            "stack": self.stack,
            "outcome": outcome,
            "agreed": self.agreed,
            "runs": self.runs(),
            "message": message,
        })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut files, mut settings) = (Vec::new(), Vec::new());
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--set" {
            let setting = words.next().unwrap_or_default();
            let (name, value) = setting
                .split_once('=')
                .ok_or("`--set` needs NAME=VALUE, for example net.ipv4.tcp_sack=0")?;
            settings.push((name.to_owned(), value.parse()?));
        } else {
            files.push(word);
        }
    }
    if files.is_empty() {
        return Err("files of scripts were expected".into());
    }
    anabranch_live::prepare()?;
    let _favour = Favour::ask();
    let next = AtomicUsize::new(0);
    let again = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut tally = Tally::default();
                    tally.run(file, &settings, RUNS, RUNS);
                    // A script that did not agree, or had late runs, runs again without others in
                    // parallel.
                    if matches!(tally.outcome(), "agrees") && tally.runs() == RUNS
                        || tally.end.is_some()
                    {
                        println!("{}", tally.told(file));
                    } else {
                        again
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push((file, tally));
                    }
                }
            });
        }
    });
    for (file, mut tally) in again.into_inner().unwrap_or_else(PoisonError::into_inner) {
        tally.late = 0;
        let (enough, most) = (tally.runs() + RUNS, tally.runs() + MOST);
        tally.run(file, &settings, enough, most);
        println!("{}", tally.told(file));
    }
    Ok(())
}
