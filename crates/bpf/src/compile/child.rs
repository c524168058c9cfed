//! A compiler as a child process with bounded time, memory and output.
//!
//! The child leads a separate process group: `cc` starts further programs, and all of them end with
//! the group. The shell's `ulimit` sets the limits, because Rust has no safe way to set them
//! between fork and exec.

use std::{
    io::{self, Read, Write as _},
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anabranch_core::interrupt::Interrupt;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// A control of a few hundred lines compiles in a second; a compilation of this length is stuck.
const TIME: Duration = Duration::from_secs(30);
/// Polling interval of the child, the clock and the interrupt.
const PAUSE: Duration = Duration::from_millis(10);
/// Bytes stored of each of the child's streams; the rest is read and dropped.
const KEPT: u64 = 16 << 20;
/// Limits of each process: KiB of memory, blocks of 512 bytes in a file, seconds of processor time.
/// The last limit ends a child whose parent was killed.
const LIMITS: &str = "ulimit -v 4194304; ulimit -f 262144; ulimit -t 60";
/// The shell's exit status for a missing program.
const NOT_FOUND: i32 = 127;

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Succeeded,
    Failed,
    OutOfTime,
    Interrupted,
}

/// A child that has ended, and its output.
pub(super) struct Done {
    pub end: End,
    /// The program does not exist.
    pub is_missing: bool,
    pub output: Vec<u8>,
    pub errors: Vec<u8>,
}

/// Returns a command for `program` under the limits, with messages in English. Arguments are added
/// as to any command.
pub(super) fn bounded(program: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", &format!("{LIMITS}; exec \"$@\""), "sh", program])
        .env("LC_ALL", "C")
        .process_group(0);
    command
}

/// Runs the command until it ends, until the time limit, or until `interrupt` is raised, and then
/// ends its whole process group.
pub(super) fn finish(
    command: &mut Command,
    input: Option<Vec<u8>>,
    interrupt: &Interrupt,
) -> io::Result<Done> {
    let stdin = if input.is_some() {
        Stdio::piped()
    } else {
        Stdio::null()
    };
    let mut child = command
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let writing = input.zip(child.stdin.take()).map(|(input, mut stdin)| {
        // A compiler that does not read all input reports an error itself.
        thread::spawn(move || drop(stdin.write_all(&input)))
    });
    let output = child.stdout.take().map(collect);
    let errors = child.stderr.take().map(collect);
    let waited = wait(&mut child, interrupt);
    let (end, is_missing) = match waited {
        Ok(ended) => ended,
        Err(error) => {
            drop(child.kill());
            drop(child.wait());
            return Err(error);
        }
    };
    drop(writing.map(JoinHandle::join));
    Ok(Done {
        end,
        is_missing,
        output: output.map(joined).unwrap_or_default(),
        errors: errors.map(joined).unwrap_or_default(),
    })
}

/// The message for a compiler that exceeded the time limit.
pub(super) fn out_of_time(compiler: &str) -> String {
    format!("`{compiler}` was ended after {} s", TIME.as_secs())
}

/// The message for a compiler that was interrupted.
pub(super) fn interrupted(compiler: &str) -> String {
    format!("`{compiler}` was interrupted")
}

fn wait(child: &mut Child, interrupt: &Interrupt) -> io::Result<(End, bool)> {
    let started = Instant::now();
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let group = group.ok_or_else(|| io::Error::other("the child has no number"))?;
    // The child is reaped only after its group has ended: until then no other group can have its
    // number.
    let cut_off = loop {
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if waitid(WaitId::Pid(group), ended)?.is_some() {
            break None;
        }
        if interrupt.is_raised() {
            break Some(End::Interrupted);
        }
        if started.elapsed() >= TIME {
            break Some(End::OutOfTime);
        }
        thread::sleep(PAUSE);
    };
    // Also after success, so that no program that the compiler started keeps the pipes open.
    let _ = kill_process_group(group, Signal::KILL);
    let status = child.wait()?;
    let end = if status.success() {
        End::Succeeded
    } else {
        End::Failed
    };
    Ok((cut_off.unwrap_or(end), status.code() == Some(NOT_FOUND)))
}

fn collect(mut stream: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut kept = Vec::new();
        // A broken pipe counts as the end.
        drop((&mut stream).take(KEPT).read_to_end(&mut kept));
        drop(io::copy(&mut stream, &mut io::sink()));
        kept
    })
}

fn joined(thread: JoinHandle<Vec<u8>>) -> Vec<u8> {
    thread.join().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{End, Interrupt, bounded, finish};

    #[test]
    fn an_interrupt_ends_all_processes_of_the_group() {
        let interrupt = Interrupt::default();
        interrupt.raise();
        // The inner shell is a separate process, and keeps the pipes open.
        let mut command = bounded("sh");
        let done = finish(command.args(["-c", "sleep 600 & wait"]), None, &interrupt);
        assert_eq!(done.expect("there is a shell").end, End::Interrupted);
    }

    #[test]
    fn input_and_output_pass_through() {
        let done = finish(
            &mut bounded("cat"),
            Some(b"text".to_vec()),
            &Interrupt::default(),
        );
        let done = done.expect("there is a shell");
        assert_eq!(
            (done.end, done.output.as_slice()),
            (End::Succeeded, &b"text"[..])
        );
    }

    #[test]
    fn a_program_that_does_not_exist_is_missing() {
        let done = finish(
            &mut bounded("no-such-compiler"),
            None,
            &Interrupt::default(),
        );
        let done = done.expect("there is a shell");
        assert!(done.is_missing && done.end == End::Failed);
    }
}
