//! Child processes: this program, alone or under callgrind, and other programs.

use std::{
    ffi::OsStr,
    io,
    process::{Command, Stdio},
};

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

/// Runs this program with one task.
pub fn child(case: &Case, task: Task) -> Result<Findings, Error> {
    Ok(run(ourselves(&[])?.args(arguments(case, task)))?.0)
}

/// Runs a task under callgrind. Returns its findings and the total number of instructions.
pub fn counted_child(case: &Case, task: Task) -> Result<(Findings, u64), Error> {
    let mut command = ourselves(&CALLGRIND)?;
    counted(command.args(arguments(case, task)))
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

fn arguments(case: &Case, task: Task) -> [String; 3] {
    ["child".to_owned(), case.id(), task.argument()]
}

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
    fn a_missing_program_is_distinguished_from_a_failing_one() {
        let missing = run::<u32>(&mut Command::new("no-such-simulator"));
        assert!(missing.is_err_and(|error| error.is_missing()));
        let failing = run::<u32>(&mut Command::new("false"));
        assert!(failing.is_err_and(|error| !error.is_missing()));
        let (number, _) = run::<u32>(Command::new("echo").arg("17")).expect("a number");
        assert_eq!(number, 17);
    }
}
