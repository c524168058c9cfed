//! Runs behaviour scripts on this machine's kernel, several at once, and prints a JSON object per line and script:
//! `cargo run -p anabranch-live --example scripts -- [--set NAME=VALUE]… FILE…`. With `--set` the kernel has another setting.
//!
//! `outcome` is `agrees`, `differs` (in two runs, `message` says where first and how), `late` (the machine was too busy to
//! tell) or `not-applicable` (the kernel has no such setting).

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
/// A script that differs is run again, alone: so often at most, until it has differed twice in runs that were not late.
const AGAIN: usize = 12;
const TWICE: usize = 2;
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
        Err(error) if target.lateness_seen() > LATE => ("late", Some(error.to_string())),
        Err(error) => ("differs", Some(error.to_string())),
    }
}

fn outcome(file: &str, most: usize, settings: &[Setting]) -> Value {
    let script = fs::read_to_string(file)
        .map_err(|error| error.to_string())
        .and_then(|text| parse(&text, file).map_err(|error| error.to_string()));
    let script = match script {
        Ok(script) => script,
        Err(error) => return json!({ "script": file, "outcome": "failed", "message": error }),
    };
    let mut seen = ("failed", None);
    let mut differed = 0;
    for _ in 0..most {
        // A thread stays in the namespace that it went into.
        let joined = thread::scope(|scope| scope.spawn(|| attempt(&script, settings)).join());
        seen = joined.unwrap_or(("failed", Some("the runner panicked".to_owned())));
        differed += usize::from(seen.0 == "differs");
        if differed == TWICE || !matches!(seen.0, "differs" | "late") {
            break;
        }
    }
    let (outcome, message) = seen;
    json!({
        "script": file,
        "stack": script.option("stack").unwrap_or("rfc"),
        "outcome": outcome,
        "message": message,
    })
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
                    let seen = outcome(file, 1, &settings);
                    if seen["outcome"] == "differs" || seen["outcome"] == "late" {
                        again
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push(file);
                    } else {
                        println!("{seen}");
                    }
                }
            });
        }
    });
    for file in again.into_inner().unwrap_or_else(PoisonError::into_inner) {
        println!("{}", outcome(file, AGAIN, &settings));
    }
    Ok(())
}
