//! Child processes: this program, alone or under callgrind, and other programs.

use std::{
    ffi::OsStr,
    io,
    num::NonZero,
    process::{Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use anabranch::units::Duration;
use serde::de::DeserializeOwned;

use crate::{
    case::Case,
    child::{Findings, Task},
};

/// Reason why a child has no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It did not start.
    #[error("{program}: {source}")]
    Start {
        /// The program.
        program: String,
        /// The reason.
        source: io::Error,
    },
    /// It failed.
    #[error("{program} failed: {message}")]
    Failed {
        /// The program.
        program: String,
        /// The last line of its output.
        message: String,
    },
    /// Its output has an unexpected form.
    #[error("{program} printed something else: {text}")]
    Output {
        /// The program.
        program: String,
        /// Its output.
        text: String,
    },
}

impl Error {
    /// Whether the program is not installed.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Start { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// One task of this program in a separate process.
#[derive(Debug)]
pub struct Job<'a> {
    case: &'a Case,
    task: Task,
    /// Whether callgrind counts its instructions.
    counted: bool,
}

impl<'a> Job<'a> {
    /// A task without instrumentation.
    pub const fn new(case: &'a Case, task: Task) -> Self {
        Self {
            case,
            task,
            counted: false,
        }
    }

    /// A run up to `end` whose instructions are counted.
    pub const fn counting(case: &'a Case, end: Duration) -> Self {
        Self {
            case,
            task: Task::Count(end),
            counted: true,
        }
    }

    /// Returns its findings and the total number of instructions, 0 without callgrind.
    pub fn run(&self) -> Result<(Findings, u64), Error> {
        let words = ["child".to_owned(), self.case.id(), self.task.argument()];
        if self.counted {
            counted(ourselves(&CALLGRIND)?.args(words))
        } else {
            Ok((run(ourselves(&[])?.args(words))?.0, 0))
        }
    }

    /// Runs jobs, as many at a time as there are processors, in this order. Returns their results
    /// in the same order.
    pub fn run_all(jobs: &[Self]) -> Vec<Result<(Findings, u64), Error>> {
        in_parallel(jobs, Job::run)
    }
}

/// Applies `work` to every item, on as many threads as there are processors.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else {
                return done;
            };
            done.push((index, work(item)));
        }
    };
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let workers: Vec<_> = (0..processors.min(items.len()))
            .map(|_| scope.spawn(worker))
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("a worker does not panic"))
            .collect()
    });
    done.sort_unstable_by_key(|&(index, _)| index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Runs a command of this program under callgrind, with the same result.
pub fn counted_self<T: DeserializeOwned>(
    command: &str,
    words: &[String],
) -> Result<(T, u64), Error> {
    counted(ourselves(&CALLGRIND)?.arg(command).args(words))
}

/// Runs a program whose command begins with [`CALLGRIND`]. Returns its JSON and its instructions.
pub fn counted<T: DeserializeOwned>(command: &mut Command) -> Result<(T, u64), Error> {
    let (found, errors) = run(command)?;
    let instructions = instructions(&errors).ok_or_else(|| Error::Output {
        program: "valgrind".to_owned(),
        text: errors,
    })?;
    Ok((found, instructions))
}

/// Prefix of a command for counting its instructions, without those of child processes.
pub const CALLGRIND: [&str; 3] = [
    "valgrind",
    "--tool=callgrind",
    "--callgrind-out-file=/dev/null",
];

fn ourselves(before: &[&str]) -> Result<Command, Error> {
    let program = std::env::current_exe().map_err(|source| Error::Start {
        program: "this program".to_owned(),
        source,
    })?;
    let words: Vec<&OsStr> = before
        .iter()
        .map(OsStr::new)
        .chain([program.as_os_str()])
        .collect();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    Ok(command)
}

/// Runs a command. Returns the JSON on the last line of its output, and its standard error.
pub fn run<T: DeserializeOwned>(command: &mut Command) -> Result<(T, String), Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|source| Error::Start {
            program: program.clone(),
            source,
        })?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        let message = errors.lines().last().unwrap_or("without a word").to_owned();
        return Err(Error::Failed { program, message });
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_default();
    match serde_json::from_str(last) {
        Ok(found) => Ok((found, errors)),
        Err(_) => Err(Error::Output {
            program,
            text: last.to_owned(),
        }),
    }
}

/// Reads the count from callgrind's closing lines: `==1== Collected : 123`.
fn instructions(errors: &str) -> Option<u64> {
    let line = errors
        .lines()
        .rev()
        .find(|line| line.contains("Collected :"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_count_of_callgrind() {
        let text = "==7== Callgrind\n==7== Events    : Ir\n==7== Collected : 1234567\n==7==\n";
        assert_eq!(instructions(text), Some(1_234_567));
        assert_eq!(instructions("==7== nothing"), None);
    }

    #[test]
    fn results_have_the_order_of_their_jobs() {
        // The first item takes longest.
        let items = [30, 20, 10, 0, 0];
        let done = in_parallel(&items, |&delay| {
            thread::sleep(std::time::Duration::from_millis(delay));
            delay
        });
        assert_eq!(done, items);
        assert!(in_parallel(&[], |&(): &()| 1).is_empty());
    }

    #[test]
    fn a_missing_program_is_distinguished_from_a_failing_one() {
        let missing = run::<u32>(&mut Command::new("no-such-simulator"));
        assert!(missing.is_err_and(|error| error.is_missing()));
        let failing = run::<u32>(&mut Command::new("false"));
        assert!(failing.is_err_and(|error| !error.is_missing()));
        let (number, _) = run::<u32>(Command::new("echo").arg("17")).expect("a number");
        assert_eq!(number, 17);
    }
}
