//! Processes that must not outlive us: programs of the user's in a PID namespace of their own (pid_namespaces(7)), whose
//! first process is ours; the kernel kills all others when that one ends.

use std::{
    io,
    os::{
        fd::{AsRawFd, OwnedFd, RawFd},
        unix::process::{CommandExt, ExitStatusExt},
    },
    process::{Child, Command, ExitStatus},
    sync::atomic::{AtomicI32, Ordering},
};

use rustix::{
    pipe::{PipeFlags, pipe_with},
    process::{Signal, set_parent_process_death_signal},
    thread::{UnshareFlags, unshare_unsafe},
};

use super::names;
use crate::kernel::descriptors;

/// A program, and all that it starts.
#[derive(Debug)]
pub struct Contained {
    pub child: Child,
    /// Whether the program has the table of names that it was to have.
    pub has_names: bool,
    /// How it ended, from the first process of its namespace; none without one.
    status: Option<OwnedFd>,
}

/// Starts a program. It is killed when the calling thread ends, and so is what it has started: even if we are killed
/// (PR_SET_PDEATHSIG(2)), and even if these have put themselves into a session of their own. A thread can start one.
/// Where the kernel permits no PID namespace, what has put itself into a session of its own lives on: [`Contained::is_apart`].
/// `names` is the table that it reads in place of `/etc/hosts`, if the kernel lets it have one. With `passes_on` the first
/// process of the namespace passes SIGTERM on to the program, which then needs no process group of its own.
pub fn start(command: &mut Command, names: String, passes_on: bool) -> io::Result<Contained> {
    // SAFETY: a new PID namespace for the children of this thread touches no descriptor and no memory.
    let is_apart = unsafe { unshare_unsafe(UnshareFlags::NEWPID) }.is_ok();
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    let report = writer.as_raw_fd();
    let (heard, speaks) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    let answer = speaks.as_raw_fd();
    // SAFETY: between fork and exec the closure makes system calls, and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            descriptors::restore()?;
            set_parent_process_death_signal(Some(Signal::KILL))?;
            if names::give(names.as_bytes()).is_ok() {
                libc::write(answer, [1_u8].as_ptr().cast(), 1);
            }
            if is_apart {
                divide(report, passes_on)
            } else {
                Ok(())
            }
        });
    }
    let child = command.spawn()?;
    Ok(Contained {
        child,
        // It has started, so that nothing more will be said.
        has_names: rustix::io::read(&heard, &mut [0; 1]) == Ok(1),
        status: is_apart.then_some(reader),
    })
}

impl Contained {
    /// Whether it has a PID namespace of its own, so that nothing of it can stay behind.
    pub const fn is_apart(&self) -> bool {
        self.status.is_some()
    }

    /// How it ended, if it has.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let Some(status) = self.child.try_wait()? else {
            return Ok(None);
        };
        let mut octets = [0; 4];
        let told = self
            .status
            .as_ref()
            .map(|from| rustix::io::read(from, &mut octets));
        // The first process was killed, and the program with it, where it says nothing.
        Ok(Some(match told {
            Some(Ok(4)) => ExitStatus::from_raw(i32::from_ne_bytes(octets)),
            _ => status,
        }))
    }
}

/// The first process of the namespace becomes two: the one that stays, and the program.
fn divide(report: RawFd, passes_on: bool) -> io::Result<()> {
    // SAFETY: the process has one thread.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(()),
        program => stay(program, report, passes_on),
    }
}

/// The program, for [`pass_on`].
static PROGRAM: AtomicI32 = AtomicI32::new(0);

extern "C" fn pass_on(signal: libc::c_int) {
    // SAFETY: a system call on numbers.
    unsafe { libc::kill(PROGRAM.load(Ordering::Relaxed), signal) };
}

/// Waits for the program and whatever loses its parent, says how the program ended, and ends.
fn stay(program: libc::pid_t, report: RawFd, passes_on: bool) -> ! {
    PROGRAM.store(program, Ordering::Relaxed);
    // SAFETY: system calls on numbers and on locals.
    unsafe {
        // They are the program's.
        for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP] {
            libc::signal(signal, libc::SIG_IGN);
        }
        if passes_on {
            let handler: extern "C" fn(libc::c_int) = pass_on;
            libc::signal(libc::SIGTERM, handler as libc::sighandler_t);
        }
        // Of what was open nothing may be held: whoever reads the other end waits for it to be closed.
        libc::dup2(report, 3);
        libc::syscall(libc::SYS_close_range, 4, libc::c_uint::MAX, 0);
        loop {
            let mut status = 0;
            let ended = libc::waitpid(-1, &raw mut status, 0);
            if ended == program {
                libc::write(3, (&raw const status).cast(), size_of_val(&status));
                libc::_exit(0);
            }
            if ended < 0 && *libc::__errno_location() != libc::EINTR {
                libc::_exit(1);
            }
        }
    }
}

/// Whether a call succeeds in a process of its own, which then ends. The calling process must have one thread.
pub fn succeeds_elsewhere(call: impl FnOnce() -> io::Result<()>) -> io::Result<bool> {
    // SAFETY: the process has one thread, as the caller says, so that nothing is held by another.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let failed = call().is_err();
            // SAFETY: nothing of ours is to be cleaned up twice.
            unsafe { libc::_exit(failed.into()) }
        }
        child => {
            let mut status = 0;
            // SAFETY: it waits for our own child, and writes its status to a local.
            while unsafe { libc::waitpid(child, &raw mut status, 0) } < 0 {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            Ok(ExitStatus::from_raw(status).success())
        }
    }
}
