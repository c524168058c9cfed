//! `status --watch`: prints the state once per second, until a signal or the reader ends it.

use std::{
    io::{self, IsTerminal, Write},
    thread,
    time::{Duration, Instant},
};

use anabranch_core::{shown, system::words};

use crate::{
    config::Config,
    status::{Earlier, Report, report},
};

const INTERVAL: Duration = Duration::from_secs(1);
/// Moves the cursor to the first line and clears the screen (ECMA-48 CUP and ED).
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Prints the state each second; as JSON, one document per line.
///
/// # Errors
/// If there is no gateway at first. A gateway that ends later may come back.
pub fn watch(config: &Config, json: bool) -> Result<(), String> {
    let is_screen = !json && io::stdout().is_terminal();
    let mut before: Option<(Report, Instant)> = None;
    let mut is_first = true;
    loop {
        let now = Instant::now();
        let text = match report(config) {
            Ok((_, answer)) if json => shown::printable_json(&answer) + "\n",
            Ok((report, _)) => {
                let earlier = before.take().map(|(report, at)| Earlier {
                    report,
                    elapsed: now.duration_since(at),
                });
                let text = shown::terminal(&report.text(earlier.as_ref()));
                before = Some((report, now));
                text
            }
            Err(why) if is_first => return Err(why),
            Err(why) => {
                before = None;
                if json {
                    eprintln!("{}", shown::terminal(&why));
                    String::new()
                } else {
                    shown::terminal(&why) + "\n"
                }
            }
        };
        is_first = false;
        match show(&text, is_screen, json) {
            Ok(()) => {}
            // A reader that closes the pipe early is not an error.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(format!("standard output: {}", words(&error))),
        }
        thread::sleep(INTERVAL.saturating_sub(now.elapsed()));
    }
}

fn show(text: &str, is_screen: bool, json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if is_screen {
        out.write_all(CLEAR.as_bytes())?;
    }
    out.write_all(text.as_bytes())?;
    if !is_screen && !json {
        out.write_all(b"\n")?;
    }
    out.flush()
}
