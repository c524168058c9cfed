//! `anabranch-gateway`: makes keys, and checks the configuration of a gateway.
#![forbid(unsafe_code)]

mod config;
mod key;
mod peer;
mod report;

use std::{
    fs::OpenOptions,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anabranch_core::system;
use clap::{Parser, Subcommand};

/// Bad input, as of every command of the project.
const BAD_INPUT: u8 = 2;

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
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(BAD_INPUT)
        }
    }
}

fn run(command: Command) -> Result<String, String> {
    match command {
        Command::Keygen { out } => keygen(out.as_deref()),
        Command::Check { file } => {
            let config = config::load(&file).map_err(|failure| failure.to_string())?;
            Ok(report::report(&config))
        }
        Command::Peer {
            file,
            name,
            endpoint,
        } => {
            let config = config::load(&file).map_err(|failure| failure.to_string())?;
            peer::other_end(&config, name.as_deref(), &endpoint)
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
