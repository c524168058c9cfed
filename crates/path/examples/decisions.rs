//! Decisions of queues over recorded arrivals: reads a JSON list of cases from standard input and
//! writes their decisions to standard output.
//!
//! `validation/kernel/queues.py` compares them with the decisions of the kernel's queues.

#[path = "../tests/all/queue/decisions.rs"]
mod decisions;

use std::{error::Error, io};

#[expect(
    clippy::disallowed_methods,
    reason = "the program, not the engine, reads"
)]
fn main() -> Result<(), Box<dyn Error>> {
    let cases: Vec<decisions::Case> = serde_json::from_reader(io::stdin().lock())?;
    let decided: Vec<_> = cases.iter().map(decisions::decide).collect();
    serde_json::to_writer(io::stdout().lock(), &decided)?;
    Ok(())
}
