//! Runs behaviour scripts on this machine's kernel, several at once, and prints a JSON object per line and script:
//! `cargo run -p anabranch-live --example scripts -- FILE…`.
//!
//! `outcome` is `agrees`, `differs` (in every try: `message` says where first and how), or `not-applicable` (the kernel has no
//! such setting).

use std::{
    fs,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use anabranch_live::KernelTarget;
use anabranch_script::{Script, parse, run};
use serde_json::{Value, json};

/// Scripts at once: they sleep most of the time.
const AT_ONCE: usize = 8;
/// A script that differs is run so often: on a busy machine an answer may be late.
const TRIES: usize = 3;
/// Added to the sequence numbers of the script's packets.
const OFFSET: u32 = 1_000_000;

/// One script, once.
fn attempt(script: &Script) -> (&'static str, Option<String>) {
    let mut target = match KernelTarget::new() {
        Ok(target) => target,
        Err(error) => return ("failed", Some(error.to_string())),
    };
    match run(script, &mut target, OFFSET) {
        Ok(()) => ("agrees", None),
        Err(_) if target.hindrance().is_some() => {
            ("not-applicable", target.hindrance().map(str::to_owned))
        }
        Err(error) => ("differs", Some(error.to_string())),
    }
}

fn outcome(file: &str) -> Value {
    let script = fs::read_to_string(file)
        .map_err(|error| error.to_string())
        .and_then(|text| parse(&text, file).map_err(|error| error.to_string()));
    let script = match script {
        Ok(script) => script,
        Err(error) => return json!({ "script": file, "outcome": "failed", "message": error }),
    };
    let mut tries = 0;
    let (outcome, message) = loop {
        tries += 1;
        // A thread stays in the namespace that it went into.
        let seen = thread::scope(|scope| scope.spawn(|| attempt(&script)).join());
        let seen = seen.unwrap_or(("failed", Some("the runner panicked".to_owned())));
        if seen.0 != "differs" || tries == TRIES {
            break seen;
        }
    };
    json!({
        "script": file,
        "stack": script.option("stack").unwrap_or("rfc"),
        "outcome": outcome,
        "tries": tries,
        "message": message,
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        return Err("files of scripts were expected".into());
    }
    anabranch_live::prepare()?;
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    println!("{}", outcome(file));
                }
            });
        }
    });
    Ok(())
}
