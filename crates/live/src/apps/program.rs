//! Programs of the user, run inside a host.

use std::{
    env, fs, io,
    os::{fd::AsFd, unix::process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::Ordering,
    time::{self, Duration as Pause},
};

use anabranch_core::{system, units::Instant};
use anabranch_scenario::{Resolved, nearest};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    apps::stage::{LOOK, Stage},
    kernel::{
        namespace::Namespace,
        sys::contain::{self, Contained},
    },
    plan::{names, refusal::Refusal},
};

/// Time that a program has to exit after SIGTERM.
const GRACE: Pause = Pause::from_millis(500);

/// A program and its host.
#[derive(Debug, Clone)]
pub struct Program {
    /// The index of the node.
    pub host: usize,
    /// The program and its arguments.
    pub words: Vec<String>,
    /// The table of host names (hosts(5)).
    pub names: String,
    /// Whether it is a shell: it has the terminal, and the run ends with it.
    pub is_shell: bool,
}

/// The outcome of a program of the user's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "LiveProgram", extend("engine" = "live"))]
pub struct Ended {
    /// The host where it ran.
    pub host: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its exit status; null if a signal ended it.
    #[schemars(extend("unit" = ""))]
    pub status: Option<i32>,
    /// Whether it was stopped because the run was over.
    pub stopped: bool,
    /// Whether it had a separate PID namespace, so that no descendant survives.
    pub contained: bool,
    /// Whether it could resolve the names of other hosts.
    pub names: bool,
}

impl Program {
    /// The programs of a scenario.
    pub fn all(resolved: &Resolved) -> Vec<Self> {
        let hosts = resolved.attached.iter().enumerate();
        let given = hosts.filter_map(|(host, attached)| Some((host, attached.exec.as_ref()?)));
        given
            .map(|(host, words)| Self {
                host,
                words: words
                    .iter()
                    .map(|word| names::addressed(word, resolved, host))
                    .collect(),
                names: names::table(resolved, host),
                is_shell: false,
            })
            .collect()
    }

    /// Runs it from the start of the clock until it exits or the run ends.
    ///
    /// # Errors
    /// If there is no such program.
    pub fn run(
        &self,
        namespace: &Namespace,
        stage: &Stage,
        name: &str,
    ) -> io::Result<Option<Ended>> {
        namespace.enter()?;
        let Some(clock) = stage.line.wait() else {
            return Ok(None);
        };
        // No packet moves before the clock starts; an earlier packet would be late.
        clock.sleep_until(Instant::START);
        if self.is_shell {
            stage.wait_for_programs();
            if stage.left.load(Ordering::Relaxed) {
                return Ok(None);
            }
        }
        let mut child = self.start()?;
        stage.started.fetch_add(1, Ordering::Relaxed);
        let mut asked: Option<time::Instant> = None;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if stage.over.load(Ordering::Relaxed) {
                let since = *asked.get_or_insert_with(|| {
                    self.signal(&child, Signal::TERM);
                    time::Instant::now()
                });
                if since.elapsed() > GRACE {
                    self.signal(&child, Signal::KILL);
                }
            }
            std::thread::sleep(LOOK);
        };
        if self.is_shell {
            stage.left.store(true, Ordering::Relaxed);
        } else {
            // Kills descendants that are still in its process group.
            self.signal(&child, Signal::KILL);
        }
        Ok(Some(Ended {
            host: name.to_owned(),
            command: self.words.clone(),
            status: status.code(),
            stopped: asked.is_some(),
            contained: child.is_apart(),
            names: child.has_names,
        }))
    }

    fn start(&self) -> io::Result<Contained> {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]);
        if !self.is_shell {
            // Standard output is reserved for the result.
            command
                .stdin(Stdio::null())
                .stdout(Stdio::from(io::stderr().as_fd().try_clone_to_owned()?));
            command.process_group(0);
        }
        contain::start(&mut command, self.names.clone(), self.is_shell)
            .map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", self.words[0])))
    }

    /// A shell is in our process group, which is the terminal's.
    fn signal(&self, Contained { child, .. }: &Contained, signal: Signal) {
        let send = if self.is_shell {
            kill_process
        } else {
            kill_process_group
        };
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        // A process that has ended needs no signal.
        let _ = id.map(|id| send(id, signal));
    }
}

/// Search path in an environment without `PATH` (execvp(3)).
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The reason why a program cannot be started, and the remedy, as far as they are known in advance:
/// only the start shows whether the kernel can execute the file.
#[must_use]
pub fn hindrance(words: &[String]) -> Option<(String, String)> {
    let expected = |what: &str| format!("expected {what}");
    let Some(name) = words.first().filter(|name| !name.is_empty()) else {
        return Some((
            "the name of the program is empty".to_owned(),
            expected("a name that PATH leads to, or a path"),
        ));
    };
    if name.contains('/') {
        let why = unfit(Path::new(name))?;
        return Some((
            format!("the program `{name}` cannot be started: {why}"),
            expected("the path of an executable file, or a name that PATH leads to"),
        ));
    }
    let path = env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    let found: Vec<_> = folders
        .iter()
        .map(|folder| folder.join(name))
        .filter(|file| file.is_file())
        .collect();
    if found.iter().any(|file| unfit(file).is_none()) {
        return None;
    }
    if let Some(file) = found.first() {
        let file = file.display();
        return Some((
            format!("the program `{name}` cannot be started: {file} is not executable"),
            expected("an executable file"),
        ));
    }
    let names = programs(&folders);
    let near = nearest(name, &names).map(|near| format!("; did you mean `{near}`?"));
    Some((
        format!("there is no program `{name}` in PATH"),
        expected("a name that PATH leads to, or a path") + &near.unwrap_or_default(),
    ))
}

/// The reason why a file is not a program; `None` if it may be one.
fn unfit(file: &Path) -> Option<String> {
    match fs::metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Some("there is no such file".to_owned())
        }
        Err(error) => Some(system::words(&error)),
        Ok(found) if found.is_dir() => Some("it is a directory".to_owned()),
        Ok(found) if !found.is_file() => Some("it is no regular file".to_owned()),
        Ok(_) => accessat(CWD, file, Access::EXEC_OK, AtFlags::EACCESS)
            .is_err()
            .then(|| "it is not executable".to_owned()),
    }
}

/// The names of files in these folders.
fn programs(folders: &[PathBuf]) -> Vec<String> {
    let entries = folders
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok());
    let names = entries
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Checks whether the programs of hosts can be started, as far as that is known in advance.
///
/// # Errors
/// With the first program that cannot be started.
pub fn check<'a>(
    programs: impl IntoIterator<Item = &'a Program>,
    nodes: &[String],
) -> Result<(), Refusal> {
    let mut programs = programs.into_iter();
    let found = programs.find_map(|program| Some((program, hindrance(&program.words)?)));
    let Some((program, (message, help))) = found else {
        return Ok(());
    };
    let host = &nodes[program.host];
    // A shell has no position in a file.
    let path: &[&str] = if program.is_shell {
        &[]
    } else {
        &["host", host, "exec"]
    };
    Err(Refusal::new(path, message, help))
}

impl Ended {
    /// Whether it failed without being stopped.
    #[must_use]
    pub fn failed(&self) -> bool {
        !self.stopped && self.status != Some(0)
    }
}
