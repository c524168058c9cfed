//! Runs behaviour scripts on this machine's kernel, several at once, and prints one JSON object per
//! line and script: `cargo run -p anabranch-live --example scripts -- [--set NAME=VALUE]… FILE…`.
//! `--set` changes a setting of the kernel.
//!
//! `outcome` is `agrees` (in every run), `differs` (in every run; `message` describes the first
//! difference), `varies` (agrees in some runs), `late` (the machine was too busy for a result),
//! `not-applicable` (the kernel has no such setting) or `failed` (there is no result). `agreed` is
//! the number of runs, out of `runs`, in which the kernel agreed; late runs do not count.

use std::{
    fs,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use anabranch_live::{Favour, KernelOutcome, ScriptRuns};
use anabranch_script::{Script, parse};
use serde_json::{Value, json};

/// Concurrent scripts: they sleep most of the time.
const AT_ONCE: usize = 8;
/// Number of runs of each script, and number of further runs of a script that did not agree each
/// time. With late runs there are at most `MOST`.
const RUNS: usize = 3;
const MOST: usize = 12;

/// The line of a script.
fn line(file: &str, script: &Script, runs: &ScriptRuns) -> Value {
    let outcome = runs.outcome(RUNS);
    let message = (outcome != KernelOutcome::Agrees).then(|| runs.message());
    json!({
        "script": file,
        "stack": script.option("stack").unwrap_or("rfc"),
        "outcome": outcome.name(),
        "agreed": runs.agreed,
        "runs": runs.runs(),
        "message": message.flatten(),
    })
}

/// The line of a script that cannot be read.
fn unread(file: &str, why: &str) -> Value {
    json!({
        "script": file, "stack": "", "outcome": "failed", "agreed": 0, "runs": 0, "message": why,
    })
}

fn read(file: &str) -> Result<Script, String> {
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    parse(&text, file).map_err(|error| error.to_string())
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
                    let script = match read(file) {
                        Ok(script) => script,
                        Err(error) => {
                            println!("{}", unread(file, &error));
                            continue;
                        }
                    };
                    let mut runs = ScriptRuns::default();
                    runs.run(&script, &settings, RUNS, RUNS);
                    // A script that did not agree, or had late runs, runs again without others in
                    // parallel.
                    if runs.is_over() || runs.agreed == RUNS {
                        println!("{}", line(file, &script, &runs));
                    } else {
                        again
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push((file, script, runs));
                    }
                }
            });
        }
    });
    for (file, script, mut runs) in again.into_inner().unwrap_or_else(PoisonError::into_inner) {
        let known = runs.runs();
        runs.run(&script, &settings, known + RUNS, known + MOST);
        println!("{}", line(file, &script, &runs));
    }
    Ok(())
}
