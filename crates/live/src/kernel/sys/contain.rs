//! Programs of the user that must not outlive this process. Each runs in a PID namespace
//! (pid_namespaces(7)) whose first process is ours; the kernel kills all others when that process
//! ends.

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

/// A program and its descendants.
#[derive(Debug)]
pub struct Contained {
    pub child: Child,
    /// Whether the program has its table of host names.
    pub has_names: bool,
    /// A pipe from the first process of the namespace, which writes the exit status to it; `None`
    /// without a namespace.
    status: Option<OwnedFd>,
}

/// Starts a program.
///
/// The program and its descendants are killed when the calling thread ends, even if this process is
/// killed (PR_SET_PDEATHSIG(2)) and even if they are in another session. A thread can start one
/// program. If the kernel permits no PID namespace, descendants in another session survive: see
/// [`Contained::is_apart`].
///
/// `names` replaces `/etc/hosts` for the program, if the kernel permits it. With `passes_on`, the
/// first process of the namespace passes SIGTERM on to the program, which then needs no separate
/// process group.
pub fn start(command: &mut Command, names: String, passes_on: bool) -> io::Result<Contained> {
    // SAFETY: a new PID namespace for the children of this thread touches no descriptor and no
    // memory.
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
        // The program has been executed, so nothing more will be written.
        has_names: rustix::io::read(&heard, &mut [0; 1]) == Ok(1),
        status: is_apart.then_some(reader),
    })
}

impl Contained {
    /// Whether it has a separate PID namespace, so that no descendant survives.
    pub const fn is_apart(&self) -> bool {
        self.status.is_some()
    }

    /// The exit status, if it has ended.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let Some(status) = self.child.try_wait()? else {
            return Ok(None);
        };
        let mut octets = [0; 4];
        let told = self
            .status
            .as_ref()
            .map(|from| rustix::io::read(from, &mut octets));
        // Without a report, the first process was killed, and the program with it.
        Ok(Some(match told {
            Some(Ok(4)) => ExitStatus::from_raw(i32::from_ne_bytes(octets)),
            _ => status,
        }))
    }
}

/// Forks the first process of the namespace: the parent stays, the child becomes the program.
fn divide(report: RawFd, passes_on: bool) -> io::Result<()> {
    // SAFETY: the process has one thread.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(()),
        program => stay(program, report, passes_on),
    }
}

/// The program's process identifier, for [`pass_on`].
static PROGRAM: AtomicI32 = AtomicI32::new(0);

extern "C" fn pass_on(signal: libc::c_int) {
    // SAFETY: a system call on numbers.
    unsafe { libc::kill(PROGRAM.load(Ordering::Relaxed), signal) };
}

/// Waits for the program and for orphans, reports the program's status, and exits.
fn stay(program: libc::pid_t, report: RawFd, passes_on: bool) -> ! {
    PROGRAM.store(program, Ordering::Relaxed);
    // SAFETY: system calls on numbers and on locals.
    unsafe {
        // These signals are meant for the program.
        for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP] {
            libc::signal(signal, libc::SIG_IGN);
        }
        if passes_on {
            let handler: extern "C" fn(libc::c_int) = pass_on;
            libc::signal(libc::SIGTERM, handler as libc::sighandler_t);
        }
        // No inherited descriptor may stay open: readers of the other ends wait until they are
        // closed.
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

/// Whether a call succeeds in a child process. The calling process must have one thread.
pub fn succeeds_elsewhere(call: impl FnOnce() -> io::Result<()>) -> io::Result<bool> {
    // SAFETY: the process has one thread (condition of the caller), so no other thread holds a
    // lock.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let failed = call().is_err();
            // SAFETY: exits without running destructors, which belong to the parent.
            unsafe { libc::_exit(failed.into()) }
        }
        child => {
            let mut status = 0;
            // SAFETY: waits for our child, and writes its status to a local.
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
