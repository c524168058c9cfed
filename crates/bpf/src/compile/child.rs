//! A compiler as a child process whose time, memory and output are bounded.
//!
//! The child leads a process group of its own: `cc` starts further programs, and all of them end with it. The shell's
//! `ulimit` sets the limits, because Rust offers no safe way to set them between fork and exec.

use std::{
    io::{self, Read, Write as _},
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anabranch_core::interrupt::Interrupt;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// A control of a few hundred lines compiles in a second; one that takes this long never ends.
const TIME: Duration = Duration::from_secs(30);
/// How often the child, the clock and the interrupt are looked at.
const PAUSE: Duration = Duration::from_millis(10);
/// Bytes kept of each of the child's streams; the rest is read and dropped.
const KEPT: u64 = 16 << 20;
/// Limits of each process: KiB of memory, blocks of 512 bytes in a file, seconds of processor time. A child that
/// outlives a killed parent ends by the last.
const LIMITS: &str = "ulimit -v 4194304; ulimit -f 262144; ulimit -t 60";
/// The shell's exit status where there is no such program.
const NOT_FOUND: i32 = 127;

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Succeeded,
    Failed,
    OutOfTime,
    Interrupted,
}

/// A child that has ended, and what it wrote.
pub(super) struct Done {
    pub end: End,
    /// There is no such program.
    pub is_missing: bool,
    pub output: Vec<u8>,
    pub errors: Vec<u8>,
}

/// `program` under the limits, with messages in English. Arguments are added as to any command.
pub(super) fn bounded(program: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", &format!("{LIMITS}; exec \"$@\""), "sh", program])
        .env("LC_ALL", "C")
        .process_group(0);
    command
}

/// Runs the command to its end, to the limit of time or until `interrupt` is raised, and then ends its whole group.
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
        // A compiler that does not read all of it says itself what is wrong.
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

/// What to say of a compiler that ran out of time.
pub(super) fn out_of_time(compiler: &str) -> String {
    format!("`{compiler}` was ended after {} s", TIME.as_secs())
}

/// What to say of a compiler that was interrupted.
pub(super) fn interrupted(compiler: &str) -> String {
    format!("`{compiler}` was interrupted")
}

fn wait(child: &mut Child, interrupt: &Interrupt) -> io::Result<(End, bool)> {
    let started = Instant::now();
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let group = group.ok_or_else(|| io::Error::other("the child has no number"))?;
    // The child is reaped only after its group has been ended: until then no other group can have its number.
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
    // Also after success: nothing that the compiler started may hold the pipes open.
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
        // A pipe that breaks is one that ends.
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
        // The inner shell is a process of its own, and holds the pipes.
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
    fn a_program_that_is_not_there_is_missing() {
        let done = finish(
            &mut bounded("no-such-compiler"),
            None,
            &Interrupt::default(),
        );
        let done = done.expect("there is a shell");
        assert!(done.is_missing && done.end == End::Failed);
    }
}
