//! `anabranch-gateway`: makes keys, checks the configuration of a gateway, and runs it.
#![forbid(unsafe_code)]

mod batch;
mod config;
mod confine;
mod daemon;
mod device;
mod key;
mod links;
mod log;
mod metrics;
mod netlink;
mod peer;
mod peers;
mod report;
mod resolver;
mod socket;
mod status;
mod too_big;
mod watch;
mod ways;

use std::{
    fs::OpenOptions,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anabranch_core::system;
use clap::{Parser, Subcommand};

use crate::log::Log;

/// Why a command fails.
enum Failure {
    /// Bad input.
    Input(String),
    /// The system refuses.
    System(String),
}

impl Failure {
    /// As of every command of the project.
    fn status(&self) -> u8 {
        match self {
            Self::Input(_) => 2,
            Self::System(_) => 1,
        }
    }
}

/// A gateway that bonds several links into one tunnel.
#[derive(Parser)]
#[command(name = "anabranch-gateway", version, max_term_width = 80)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a private key, and print its public key
    ///
    /// Without --out the private key is printed first.
    Keygen {
        /// Write the private key here, readable by its owner alone
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Check a configuration and print what it says; nothing is changed
    Check {
        /// The configuration (TOML)
        file: PathBuf,
    },
    /// Bring the gateway up; SIGTERM and SIGINT end it
    Up {
        /// The configuration (TOML)
        file: PathBuf,
        /// Change to this user once everything is set up
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
        /// How messages are written to standard error
        #[arg(long, value_enum, default_value = "text")]
        log: log::Format,
    },
    /// Print the state of the gateway that is up
    Status {
        /// The configuration that it was brought up with (TOML)
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Print it each second, with what each path carried meanwhile, until Ctrl-C
        #[arg(long)]
        watch: bool,
    },
    /// Have the gateway that is up read its configuration again, as SIGHUP does
    ///
    /// Waits for the resolver where endpoints are names. If anything is wrong, nothing changes.
    Reload {
        /// The configuration that it was brought up with (TOML)
        file: PathBuf,
    },
    /// Print the configuration of another end
    Peer {
        /// The configuration of this end (TOML)
        file: PathBuf,
        /// Which peer; the only one when left out
        name: Option<String>,
        /// Where the other end reaches this one
        #[arg(long, value_name = "HOST:PORT")]
        endpoint: Vec<config::Endpoint>,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(text) => match io::stdout().write_all(text.as_bytes()) {
            // A reader that has seen enough is no error.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
            _ => ExitCode::SUCCESS,
        },
        Err(failure) => {
            let (Failure::Input(message) | Failure::System(message)) = &failure;
            eprintln!("error: {message}");
            ExitCode::from(failure.status())
        }
    }
}

fn load(file: &Path) -> Result<config::Config, Failure> {
    config::load(file).map_err(|failure| Failure::Input(failure.to_string()))
}

fn run(command: Command) -> Result<String, Failure> {
    match command {
        Command::Keygen { out } => keygen(out.as_deref()).map_err(Failure::Input),
        Command::Check { file } => {
            let config = load(&file)?;
            // Where the interfaces cannot be listed there is nothing to remark.
            let links = links::Links::now().ok();
            for remark in links
                .iter()
                .flat_map(|links| report::remarks(&config, links))
            {
                eprintln!("remark: {remark}");
            }
            Ok(report::report(&config))
        }
        Command::Up { file, user, log } => {
            let config = load(&file)?;
            let account = user.as_deref().map(confine::Account::of).transpose();
            let account = account.map_err(Failure::Input)?;
            daemon::up(&file, config, account.as_ref(), Log::new(log)).map_err(Failure::System)?;
            Ok(String::new())
        }
        Command::Reload { file } => {
            let config = load(&file)?;
            match status::ask(&config, status::Request::Reload).map_err(Failure::System)? {
                outcome if outcome == status::RELOADED => Ok(outcome + "\n"),
                why => Err(Failure::System(why)),
            }
        }
        Command::Status { file, json, watch } => {
            let config = load(&file)?;
            if watch {
                watch::watch(&config, json).map_err(Failure::System)?;
                return Ok(String::new());
            }
            let (report, answer) = status::report(&config).map_err(Failure::System)?;
            let text = || report.text(None);
            Ok(if json { answer + "\n" } else { text() })
        }
        Command::Peer {
            file,
            name,
            endpoint,
        } => {
            let config = load(&file)?;
            peer::other_end(&config, name.as_deref(), &endpoint).map_err(Failure::Input)
        }
    }
}

fn keygen(out: Option<&Path>) -> Result<String, String> {
    let private = key::generate().map_err(|error| format!("no randomness: {error}"))?;
    let public = key::public(&private);
    let Some(path) = out else {
        return Ok(format!("private {private}\npublic  {public}\n"));
    };
    let failed = |error: io::Error| format!("{}: {}", path.display(), system::words(&error));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(failed)?;
    writeln!(file, "{private}").map_err(failed)?;
    Ok(format!("public {public}\n"))
}
