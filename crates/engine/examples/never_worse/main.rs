//! Whether the tunnel over two random paths is ever worse than over the better one alone.
//!
//! - `never_worse calls SEED FIRST COUNT`: a CUBIC download of 14 s beside a call, over paths with
//!   queues of 200 packets.
//! - `never_worse named SEED 0 3`: the same over three pairs that were once worse.
//! - `never_worse any SEED FIRST COUNT`: any sender, number of flows, queue, loss and jitter.
//!
//! Each line has the goodput over both paths and over the better one, through the tunnel, and their
//! ratio. The last lines have the shares and means by which a set is judged. Draws depend only on
//! the seed and their number. `show` before the set prints the summary of one draw over both paths.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the program reads its arguments"
)]

mod pairs;

use std::{env, process::ExitCode};

use anabranch_core::math::{exp, ln};

const USAGE: &str = "usage: never_worse [show] calls|named|any SEED FIRST COUNT";
/// Ratios that 95 % of the draws and every draw must reach.
const MOSTLY: f64 = 0.97;
const ALWAYS: f64 = 0.9;

fn judge(ratios: &[f64], gains: &[f64]) {
    let count = ratios.len().max(1) as f64;
    let share = |least: f64| ratios.iter().filter(|&&ratio| ratio >= least).count() as f64 / count;
    let worst = ratios.iter().fold(f64::INFINITY, |a, &b| a.min(b));
    let mean =
        |of: &[f64]| exp(of.iter().map(|&one| ln(one)).sum::<f64>() / of.len().max(1) as f64);
    println!(
        "{count} draws: {:.1} % at {MOSTLY} or more, {:.1} % at {ALWAYS} or more, worst {worst:.3}",
        100.0 * share(MOSTLY),
        100.0 * share(ALWAYS)
    );
    println!(
        "geometric means: {:.3} of the better path, {:.3} of the sum of both",
        mean(ratios),
        mean(gains)
    );
}

fn run(set: &str, is_shown: bool, [seed, first, count]: [u64; 3]) -> Result<(), String> {
    let (mut ratios, mut gains) = (Vec::new(), Vec::new());
    for number in first..first + count {
        let pair = pairs::draw(set, seed, number).ok_or(USAGE)?;
        if is_shown {
            let summary = pair.run(&[0, 1], number)?.summary;
            let text = serde_json::to_string(&summary).map_err(|error| error.to_string())?;
            println!("{text}");
            continue;
        }
        let [both, one, other] = pair.goodputs(number)?;
        let ratio = both / one.max(other);
        println!("{number:3}: {ratio:.3} both {both:.2} alone {one:.2} {other:.2} | {pair}");
        ratios.push(ratio);
        gains.push(both / (one + other));
    }
    if !is_shown {
        judge(&ratios, &gains);
    }
    Ok(())
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let is_shown = words.first().is_some_and(|word| word == "show");
    let words = &words[usize::from(is_shown)..];
    let numbers: Vec<u64> = words
        .iter()
        .skip(1)
        .filter_map(|word| word.parse().ok())
        .collect();
    let (Some(set), &[seed, first, count]) = (words.first(), numbers.as_slice()) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(set, is_shown, [seed, first, count]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
