//! Runs behaviour scripts on this machine's kernel, several at once, and prints a JSON object per line and script:
//! `cargo run -p anabranch-live --example scripts -- [--set NAME=VALUE]… FILE…`. With `--set` the kernel has another setting.
//!
//! `outcome` is `agrees` (in every run), `differs` (in every run; `message` says where first and how), `varies` (agrees in some),
//! `late` (the machine was too busy to tell) or `not-applicable` (the kernel has no such setting). `agreed` is in how many of
//! `runs` the kernel agreed; runs that were late do not count.

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

/// Scripts at once: they sleep most of the time.
const AT_ONCE: usize = 8;
/// Every script is run so often, and as often again where it has not agreed each time; with late runs so often at most.
const RUNS: usize = 3;
const MOST: usize = 12;
/// A run in which the runner waited longer for a processor says nothing of times: half of what a packet may be late.
const LATE: Duration = Duration::from_millis(5);
/// Added to the sequence numbers of the script's packets.
const OFFSET: u32 = 1_000_000;

/// A kernel setting.
type Setting = (String, i64);

/// One script, once.
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

/// What the runs of a script have come to.
#[derive(Debug, Default)]
struct Tally {
    stack: String,
    agreed: usize,
    differed: usize,
    late: usize,
    /// How the kernel first differed; while it has not, why a run was late.
    message: Option<String>,
    /// Why there are no more runs, and nothing else counts.
    end: Option<(&'static str, Option<String>)>,
}

impl Tally {
    fn runs(&self) -> usize {
        self.agreed + self.differed
    }

    /// Runs it until there are `enough` runs, or `most` together with late ones.
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
            // A thread stays in the namespace that it went into.
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
                    // What did not agree, or could not be told, is run again with nobody beside it.
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
