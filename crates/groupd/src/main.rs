//! `anabranch-group`: takes members of a bond out during low load, and brings them back.
#![deny(unsafe_code)]

mod bond;
mod core;
mod daemon;
mod failure;
mod guardian;
mod lock;
mod log;
mod method;
mod netlink;
mod packet;
mod state;
mod status;

use std::{
    io::{self, Write},
    panic,
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use anabranch_core::{shown, system::words};
use clap::{Parser, Subcommand};

use crate::{
    failure::Failure, lock::Lock, method::Control, netlink::Netlink, state::State, status::Request,
};

/// The exit status of bad input, the same for every command of the project.
const BAD_INPUT: u8 = 2;

/// Takes members of a bond out during low load, and brings them back.
#[derive(Parser)]
#[command(name = "anabranch-group", version, max_term_width = 80)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Control a bond in mode 802.3ad; SIGTERM and SIGINT end it, and all members return
    Control(Control),
    /// Print the state of a bond that is controlled
    Status {
        /// The bond
        bond: String,
        /// Print JSON
        #[arg(long, conflicts_with = "prometheus")]
        json: bool,
        /// Print the text format of Prometheus
        #[arg(long)]
        prometheus: bool,
        /// The directory of the daemon's state
        #[arg(long, value_name = "DIR", default_value = state::DIRECTORY)]
        state: PathBuf,
    },
    /// End the control of a bond: all members return, and nothing remains
    ///
    /// Also after the daemon was killed.
    #[command(alias = "remove")]
    Release {
        /// The bond
        bond: String,
        /// The directory of the daemon's state
        #[arg(long, value_name = "DIR", default_value = state::DIRECTORY)]
        state: PathBuf,
    },
    /// Check whether a bond can be controlled; nothing is changed
    Check {
        /// The bond
        bond: String,
    },
    #[command(hide = true)]
    Guard {
        bond: String,
        nonce: String,
        #[arg(long)]
        state: PathBuf,
    },
}

fn main() -> ExitCode {
    panic::set_hook(Box::new(|panic| complain(&panic.to_string())));
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        // The error quotes the arguments.
        Err(error) if error.use_stderr() => {
            eprint!("{}", shown::terminal(&error.render().to_string()));
            return ExitCode::from(BAD_INPUT);
        }
        Err(help) => help.exit(),
    };
    match run(arguments.command) {
        Ok(text) => match io::stdout().write_all(text.as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
            _ => ExitCode::SUCCESS,
        },
        Err(Failure::Input(message)) => {
            complain(&message);
            ExitCode::from(BAD_INPUT)
        }
        Err(Failure::System(message)) => {
            complain(&message);
            ExitCode::FAILURE
        }
    }
}

fn complain(message: &str) {
    eprintln!("error: {}", shown::terminal(message));
}

fn run(command: Command) -> Result<String, Failure> {
    match command {
        Command::Control(control) => {
            let options = control.options().map_err(Failure::Input)?;
            daemon::control(options)?;
            Ok(String::new())
        }
        Command::Status {
            bond,
            json,
            prometheus,
            state,
        } => {
            let report = status::ask(&state, &bond, Request::Status)?;
            let Some(report) = report else {
                return Err(Failure::Input(not_controlled(&bond)));
            };
            Ok(if json {
                let text = serde_json::to_string_pretty(&report);
                shown::printable_json(&text.unwrap_or_default()) + "\n"
            } else if prometheus {
                report.prometheus()
            } else {
                shown::terminal(&report.text())
            })
        }
        Command::Release { bond, state } => release(&state, &bond),
        Command::Check { bond } => check(&bond),
        Command::Guard { bond, nonce, state } => {
            guardian::guard(&bond, &nonce, &state).map_err(Failure::System)?;
            Ok(String::new())
        }
    }
}

/// Says that a bond has no daemon, or that there is no such bond.
fn not_controlled(name: &str) -> String {
    let found = Netlink::new()
        .ok()
        .map(|mut netlink| bond::find(&mut netlink, name));
    match found {
        Some(Err(why)) => why,
        _ => format!("{name} is not controlled: type `anabranch-group control {name}`"),
    }
}

/// The longest wait for a daemon that ends: its members negotiate.
const END: Duration = Duration::from_secs(15);

fn release(directory: &Path, bond: &str) -> Result<String, Failure> {
    let read = || State::read(directory, bond).map_err(Failure::System);
    let asked = status::ask(directory, bond, Request::Release)?;
    if asked.is_some() {
        let start = Instant::now();
        while read()?.is_some() {
            if start.elapsed() > END {
                return Err(Failure::System(format!(
                    "the daemon of {bond} has not ended; see its log"
                )));
            }
            thread::sleep(Duration::from_millis(20));
        }
        return Ok(format!(
            "{bond} is no longer controlled; all members are back\n"
        ));
    }
    if read()?.is_none() {
        return Err(Failure::Input(not_controlled(bond)));
    }
    let failed = |error| Failure::System(words(&error));
    let Some(lock) = Lock::wait(directory, bond, failed, || Ok(()))? else {
        return Err(daemon::stuck(directory, bond));
    };
    // A guardian may have done the work meanwhile.
    if let Some(state) = read()? {
        let mut netlink = Netlink::new().map_err(failed)?;
        let trouble = state.bring_back(directory, &mut netlink);
        trouble.checked().map_err(Failure::System)?;
        let done = state.finish(&mut netlink, directory);
        done.map_err(Failure::System)?;
    }
    lock.delete();
    Ok(format!(
        "the daemon of {bond} was gone; all members are back\n"
    ))
}

fn check(name: &str) -> Result<String, Failure> {
    let mut netlink = Netlink::new().map_err(|error| Failure::System(words(&error)))?;
    let bond = bond::find(&mut netlink, name).map_err(Failure::Input)?;
    bond::check(&bond)?;
    let members: Vec<&str> = bond
        .members
        .iter()
        .map(|member| member.name.as_str())
        .collect();
    let mut lines = vec![
        format!("{name} can be controlled"),
        format!("  members: {}", members.join(", ")),
    ];
    let ports = bond::ports(name).map_err(|error| words(&error));
    lines.push(match ports.and_then(|ports| bond::rate(&ports, name)) {
        Ok(rate) => format!("  rate of a member: {rate}"),
        Err(why) => format!("  {why}"),
    });
    if bond.partner.is_none() {
        let line = "  no partner answers by LACP, so no member would be taken out";
        lines.push(line.to_owned());
    }
    if !bond.options.is_fast {
        lines.push(format!(
            "  LACPDUs are slow: a lost one delays a member by 30 s; type `ip link set {name} type bond \
             lacp_rate fast` while the bond is down"
        ));
    }
    lines.push(String::new());
    Ok(lines.join("\n"))
}
