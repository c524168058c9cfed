//! Programs of the user's, run inside a host.

use std::{
    io,
    os::{fd::AsFd, unix::process::CommandExt as _},
    process::{Command, Stdio},
    sync::atomic::Ordering,
    time::{Duration as Pause, Instant},
};

use anabranch_model::scenario::Resolved;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;

use crate::{
    names,
    namespace::Namespace,
    stage::{LOOK, Stage},
    sys::contain::{self, Contained},
};

/// So long a program may take to end once it is asked to.
const GRACE: Pause = Pause::from_millis(500);

/// A program and where it runs.
#[derive(Debug, Clone)]
pub struct Program {
    /// The node.
    pub host: usize,
    /// It and its arguments.
    pub words: Vec<String>,
    /// By which it finds the other hosts (hosts(5)).
    pub names: String,
    /// It has the terminal, and the run ends with it.
    pub is_shell: bool,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ended {
    /// Where it ran.
    pub host: String,
    /// What was run.
    pub command: Vec<String>,
    /// Its exit status; `null` for one that a signal ended.
    pub status: Option<i32>,
    /// The run was over and it was told to end.
    pub stopped: bool,
    /// It had a PID namespace of its own, so that nothing that it started can have stayed behind.
    pub contained: bool,
    /// It could find other hosts by their names.
    pub names: bool,
}

impl Program {
    /// Those of a scenario.
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

    /// Runs it to its end, or to the run's; from the start of the clock on.
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
        if stage.line.wait().is_none() {
            return Ok(None);
        }
        if self.is_shell {
            stage.wait_for_programs();
            if stage.left.load(Ordering::Relaxed) {
                return Ok(None);
            }
        }
        let mut child = self.start()?;
        stage.started.fetch_add(1, Ordering::Relaxed);
        let mut asked: Option<Instant> = None;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if stage.over.load(Ordering::Relaxed) {
                let since = *asked.get_or_insert_with(|| {
                    self.signal(&child, Signal::TERM);
                    Instant::now()
                });
                if since.elapsed() > GRACE {
                    self.signal(&child, Signal::KILL);
                }
            }
            std::thread::sleep(LOOK);
        };
        // What it has started and left.
        self.signal(&child, Signal::KILL);
        if self.is_shell {
            stage.left.store(true, Ordering::Relaxed);
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
            // Standard output is the result's.
            command
                .stdin(Stdio::null())
                .stdout(Stdio::from(io::stderr().as_fd().try_clone_to_owned()?));
            command.process_group(0);
        }
        contain::start(&mut command, self.names.clone())
            .map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", self.words[0])))
    }

    fn signal(&self, Contained { child, .. }: &Contained, signal: Signal) {
        if self.is_shell {
            return;
        }
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = id {
            // A group that is no more needs no signal.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Ended {
    /// Whether it failed by itself.
    #[must_use]
    pub fn failed(&self) -> bool {
        !self.stopped && self.status != Some(0)
    }
}
