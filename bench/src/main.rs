//! `anabranch-bench`: speed and memory of the engine, compared with other simulators.
//!
//! Without options it measures everything and prints a table. See `docs/bench.md`.
#![forbid(unsafe_code)]

use std::{
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Parser, Subcommand, ValueEnum as _};

mod benchmark;
mod case;
mod child;
mod codes;
mod cost;
mod detectors;
mod guard;
mod measure;
mod peers;
mod process;
mod report;
mod table;

use benchmark::Choice;
use case::{Case, Kind};
use child::Task;
use guard::{Baseline, Verdict};
use measure::Effort;

/// The compiler and target of this program, from its build script.
const COMPILER: &str = env!("BENCH_COMPILER");

/// Speed and memory of the engine.
#[derive(Debug, Parser)]
#[command(name = "anabranch-bench", version, about)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
struct Options {
    /// One JSON document instead of the table.
    #[arg(long)]
    json: bool,
    /// Only these cases (default: all).
    #[arg(long = "case", value_enum)]
    cases: Vec<Kind>,
    /// Only these numbers of flows (default: each case's own).
    #[arg(long)]
    flows: Vec<u32>,
    /// Run every case for a fraction of a second, to see that it works.
    #[arg(long, conflicts_with_all = ["table", "guard", "record"])]
    brief: bool,
    /// Write the table of packets per processor second beside other simulators into this page.
    #[arg(long, value_name = "PAGE")]
    table: Option<PathBuf>,
    /// Timings per case, of which the best counts.
    #[arg(long, default_value_t = 3)]
    timings: u32,
    /// Leave the other simulators out.
    #[arg(long)]
    no_peers: bool,
    /// Count no instructions.
    #[arg(long)]
    no_instructions: bool,
    /// Measure detectors of heavy flows: precision, delay, cost, memory.
    #[arg(long)]
    detectors: bool,
    /// Measure the processor time of error-correcting codes per byte.
    #[arg(long)]
    codes: bool,
    /// Compare instructions and events per packet and digests with the record instead of measuring.
    #[arg(long)]
    guard: bool,
    /// Record the figures that the guard compares.
    #[arg(long)]
    record: bool,
    /// The record.
    #[arg(long, default_value_os_t = default_baseline())]
    baseline: PathBuf,
    #[command(subcommand)]
    command: Option<Internal>,
}

#[derive(Debug, Subcommand)]
enum Internal {
    /// One task in a separate process.
    #[command(hide = true)]
    Child { case: Case, task: Task },
    /// Feed one detector with packets of a million flows.
    #[command(hide = true)]
    Detector { setting: usize, packets: u32 },
}

fn default_baseline() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("baseline.json")
}

fn main() -> ExitCode {
    let options = Options::parse();
    let done = match &options.command {
        Some(Internal::Child { case, task }) => run_child(case, *task),
        Some(Internal::Detector { setting, packets }) => {
            detectors::hear_a_million(*setting, *packets).map(|bytes| {
                println!("{bytes}");
                ExitCode::SUCCESS
            })
        }
        None if options.detectors => detectors::print().map(|()| ExitCode::SUCCESS),
        None if options.codes => {
            codes::print();
            Ok(ExitCode::SUCCESS)
        }
        None if options.guard || options.record => run_guard(&options),
        None => run_benchmark(&options),
    };
    done.unwrap_or_else(|message| {
        eprintln!("anabranch-bench: {message}");
        ExitCode::FAILURE
    })
}

fn run_child(case: &Case, task: Task) -> Result<ExitCode, String> {
    let findings = child::run(case, task)?;
    println!(
        "{}",
        serde_json::to_string(&findings).map_err(|error| error.to_string())?
    );
    Ok(ExitCode::SUCCESS)
}

fn run_benchmark(options: &Options) -> Result<ExitCode, String> {
    let kinds = match &options.cases[..] {
        [] if options.table.is_some() => &[Kind::Plain],
        [] if options.brief => Kind::value_variants(),
        [] => &Kind::ALL[..],
        chosen => chosen,
    };
    let timings = if options.brief { 1 } else { options.timings };
    let choice = Choice {
        kinds,
        flows: &options.flows,
        effort: Effort {
            timings,
            instructions: !options.no_instructions,
            brief: options.brief,
        },
        peers: !options.no_peers && !options.brief,
    };
    let report = if options.json {
        benchmark::run(&choice, COMPILER, io::stderr())
    } else {
        benchmark::run(&choice, COMPILER, io::stdout())
    };
    if options.json {
        let text = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
        println!("{text}");
    }
    if let Some(page) = &options.table {
        table::write(page, &report, timings).map_err(|error| error.to_string())?;
    }
    Ok(if report.failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn run_guard(options: &Options) -> Result<ExitCode, String> {
    let mut baseline = Baseline::read(&options.baseline).map_err(|error| error.to_string())?;
    let counts = benchmark::valgrind_works();
    if !counts {
        eprintln!(
            "valgrind is not installed: only digests and events are compared (apt-get install \
             valgrind)"
        );
    }
    let measured = guard::measure(&guard::cases(), |guarded| {
        eprintln!("measuring {}", guarded.name);
        guarded.figures(counts)
    });
    let verdicts = guard::compare(&baseline, &measured, COMPILER);
    let (mut unknown, mut bad) = (false, false);
    for verdict in &verdicts {
        match verdict {
            Verdict::Good(text) => println!("good     {text}"),
            Verdict::Unknown(text) => {
                unknown = true;
                println!("unknown  {text}");
            }
            Verdict::Bad(text) => {
                bad = true;
                println!("BAD      {text}");
            }
        }
    }
    if options.record || unknown {
        baseline.take(&measured, COMPILER, options.record);
        baseline
            .write(&options.baseline)
            .map_err(|error| error.to_string())?;
        println!("on record now:");
        print!("{}", baseline.text());
        if unknown && !options.record {
            eprintln!("warning: something was not on record; commit bench/baseline.json");
        }
    }
    if !measured.failed.is_empty() {
        return Err("a case has no result".to_owned());
    }
    if bad && !options.record {
        eprintln!(
            "the engine got slower or its results changed; if that is meant, commit a new record \
             with the reason: anabranch-bench --guard --record"
        );
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}
