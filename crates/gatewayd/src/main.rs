//! `anabranch-gateway`: generates keys, checks the configuration of a gateway, and runs it.
#![forbid(unsafe_code)]

mod answers;
mod batch;
mod bypass;
mod calendar;
mod config;
mod confine;
mod daemon;
mod device;
mod directory;
mod dns;
mod endpoints;
mod failure;
mod history;
mod init;
mod key;
mod links;
mod log;
mod metrics;
mod netlink;
mod page;
mod peer;
mod peers;
mod prefixes;
mod protect;
mod reach;
mod reason;
mod remarks;
mod report;
mod resolver;
mod servers;
mod socket;
mod status;
mod store;
mod strangers;
mod too_big;
mod usage;
mod watch;
mod ways;

use std::{
    io::{self, IsTerminal, Write},
    net::SocketAddr,
    panic,
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use anabranch_core::shown;
use anabranch_files::write_new;
use clap::{Parser, Subcommand};

use crate::log::Log;

/// The reason why a command fails.
enum Failure {
    /// Bad input.
    Input(String),
    /// The system refuses.
    System(String),
}

/// The exit status of bad input, the same for every command of the project.
const BAD_INPUT: u8 = 2;

impl Failure {
    /// The exit status, the same for every command of the project.
    fn status(&self) -> u8 {
        match self {
            Self::Input(_) => BAD_INPUT,
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
    /// Make the files of both ends from a few facts
    ///
    /// Run it first at the end that the other one reaches. It asks for what no option gives, writes
    /// the files of both ends with new keys, and prints a line for the other end, where
    /// `init --from -` takes it and makes the same. It never overwrites a file.
    Init(init::Options),
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
    /// Serve a page with the state and history of the gateway that is up
    ///
    /// It shows rates, delay, loss and repair of the last hour, day and month, and the log's
    /// messages. Without --token it listens at a loopback address only.
    Page {
        /// The configuration that it was brought up with (TOML)
        file: PathBuf,
        /// The address and port
        #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9470")]
        listen: SocketAddr,
        /// Clients must give the token in this file as password of any user; made if there is no file
        #[arg(long, value_name = "FILE")]
        token: Option<PathBuf>,
        /// Change to this user, which should not be the gateway's; as root the user 65534 when left out
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
    },
    /// Have the gateway that is up read its configuration again, as SIGHUP does
    ///
    /// Waits for the resolver where endpoints are names. If anything is wrong, nothing changes.
    Reload {
        /// The configuration that it was brought up with (TOML)
        file: PathBuf,
    },
    /// End the gateway if it is up, and the protection of `protect = true`
    ///
    /// Packets to the peers take the system's other routes again. Without `protect` this is the
    /// same as SIGTERM.
    Down {
        /// The configuration that it was brought up with (TOML)
        file: PathBuf,
        /// End the protection of all gateways of this host, also of earlier configurations
        #[arg(long)]
        all: bool,
    },
    /// Set the protection of `protect = true` without bringing the gateway up
    ///
    /// For the time at boot before `up`. Changes nothing without `protect`.
    Protect {
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
    // A message may quote a name, whose control characters must not reach a terminal.
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
        Ok(text) => match write(&text) {
            // A reader that closes the pipe early is not an error.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
            _ => ExitCode::SUCCESS,
        },
        Err(failure) => {
            let (Failure::Input(message) | Failure::System(message)) = &failure;
            complain(message);
            ExitCode::from(failure.status())
        }
    }
}

fn complain(message: &str) {
    eprintln!("error: {}", shown::terminal(message));
}

/// Writes to standard output, without control characters if it is a terminal.
fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout();
    if out.is_terminal() {
        out.write_all(shown::terminal(text).as_bytes())
    } else {
        out.write_all(text.as_bytes())
    }
}

fn load(file: &Path) -> Result<config::Config, Failure> {
    config::load(file).map_err(|failure| Failure::Input(failure.to_string()))
}

fn run(command: Command) -> Result<String, Failure> {
    match command {
        Command::Init(options) => init::init(&options, io::stdout().is_terminal()),
        Command::Keygen { out } => keygen(out.as_deref()).map_err(Failure::Input),
        Command::Check { file } => {
            let config = load(&file)?;
            // If the interfaces cannot be listed, there are no remarks.
            let links = links::Links::now().ok();
            let of_links = links
                .iter()
                .flat_map(|links| remarks::remarks(&config, links));
            let of_domains = remarks::of_domains(&config);
            let all = of_links.chain(of_domains);
            for remark in all.chain(config.counts_caps(&file).err()) {
                eprintln!("remark: {}", shown::terminal(&remark));
            }
            Ok(shown::terminal(&report::report(&config)))
        }
        Command::Up { file, user, log } => {
            let config = load(&file)?;
            config.counts_caps(&file).map_err(Failure::Input)?;
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
        Command::Down { file, all } => down(&load(&file)?, all).map_err(Failure::System),
        Command::Protect { file } => {
            let config = load(&file)?;
            let mut protection = protect::Protection::of(&config).map_err(Failure::System)?;
            protection.add(&config).map_err(Failure::System)?;
            if config.gateway.protect {
                let wanted = bypass::selectors(&config, &bypass::Domains::default());
                let rules = bypass::Rules::of(&config);
                let set = rules.and_then(|mut rules| rules.set(&wanted));
                set.map_err(Failure::System)?;
            }
            let count = protect::nets(&config).len();
            Ok(match count {
                0 => "the configuration has no `protect = true`; nothing was changed\n".to_owned(),
                1 => "1 prefix is protected\n".to_owned(),
                _ => format!("{count} prefixes are protected\n"),
            })
        }
        Command::Status { file, json, watch } => {
            let config = load(&file)?;
            if watch {
                watch::watch(&config, json).map_err(Failure::System)?;
                return Ok(String::new());
            }
            let (report, answer) = status::report(&config).map_err(Failure::System)?;
            Ok(if json {
                shown::printable_json(&answer) + "\n"
            } else {
                shown::terminal(&report.text(None))
            })
        }
        Command::Page {
            file,
            listen,
            token,
            user,
        } => {
            let account = user.as_deref().map(confine::Account::of).transpose();
            let account = account.map_err(Failure::Input)?;
            // The process of the page has no need of the private key.
            let config = config::load_without_keys(&file);
            let config = config.map_err(|failure| Failure::Input(failure.to_string()))?;
            let options = page::Options {
                socket: status::view_of(&config),
                listen,
                token: token.as_deref(),
                account: account.as_ref(),
            };
            page::serve(&options)?;
            Ok(String::new())
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

/// Ends the gateway if it is up, and its protection, or the protection of all gateways.
fn down(config: &config::Config, all: bool) -> Result<String, String> {
    let is_up = match status::ask_if_up(config, status::Request::Down)? {
        Some(answer) if answer == status::ENDED => {
            wait_for_end(&config.gateway.interface.0)?;
            true
        }
        Some(why) => return Err(why),
        None => false,
    };
    let mut rules = bypass::Rules::of(config)?;
    let mut protection = protect::Protection::of(config)?;
    let was_set = if all {
        rules.end_all()? | protection.end_all()?
    } else {
        rules.end()? | protection.end()?
    };
    // A gateway that is up ends its protection itself, before it answers.
    let mut said = match (is_up, was_set || config.gateway.protect) {
        (true, true) => "the gateway is down; its protection has ended\n",
        (true, false) => "the gateway is down\n",
        (false, _) if was_set => "no gateway is up; its protection has ended\n",
        (false, _) => "no gateway is up, and nothing was protected\n",
    }
    .to_owned();
    let others: Vec<String> = protection
        .others()?
        .iter()
        .map(ToString::to_string)
        .collect();
    if !others.is_empty() {
        said.push_str("still protected by another gateway, or by an earlier `interface`: ");
        said.push_str(&others.join(", "));
        said.push_str("; --all ends it\n");
    }
    Ok(said)
}

/// The time within which a gateway that ends removes its interface.
const END: Duration = Duration::from_secs(5);

fn wait_for_end(interface: &str) -> Result<(), String> {
    let start = Instant::now();
    while links::Links::now().is_ok_and(|links| links.0.contains_key(interface)) {
        if start.elapsed() > END {
            return Err(format!(
                "the gateway's interface {interface} is still there; see its log"
            ));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn keygen(out: Option<&Path>) -> Result<String, String> {
    let private = key::generate().map_err(|error| format!("no randomness: {error}"))?;
    let public = key::public(&private);
    let Some(path) = out else {
        return Ok(format!("private {private}\npublic  {public}\n"));
    };
    write_new(path, format!("{private}\n").as_bytes(), 0o600)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(format!("public {public}\n"))
}

#[cfg(test)]
mod tests {
    use std::{any::TypeId, path::PathBuf};

    use clap::CommandFactory;

    use super::Arguments;

    /// A new argument that names a file must be added to this list, and to `tests/all/outputs.rs`
    /// if the file is written.
    #[test]
    fn every_argument_that_names_a_file_is_known() {
        let mut found = Vec::new();
        for command in Arguments::command().get_subcommands() {
            for argument in command.get_arguments() {
                if argument.get_value_parser().type_id() == TypeId::of::<PathBuf>() {
                    found.push(format!("{} {}", command.get_name(), argument.get_id()));
                }
            }
        }
        let written = ["init folder", "keygen out"];
        let read = [
            "check file",
            "up file",
            "status file",
            "page file",
            "page token",
            "reload file",
            "down file",
            "protect file",
            "peer file",
        ];
        assert_eq!(found, [&written[..], &read[..]].concat());
    }
}
