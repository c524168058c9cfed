//! The guardian: a second process that brings all members back when the daemon ends or stops.
//!
//! The daemon writes an octet to the guardian's standard input at intervals. If the pipe closes, as
//! it does after SIGKILL, or no octet arrives for [`SILENCE`], the guardian brings the members back.
//! It ignores the signals that end a daemon, and is the leader of a separate session. Its name is
//! another, so that a signal to all processes of the daemon's name does not reach it.

use std::{
    env,
    ffi::CStr,
    fs::File,
    io::{self, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, atomic::AtomicBool},
    thread,
    time::Duration,
};

use anabranch_core::system::words;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::{lock::Lock, log::say, netlink::Netlink, state::State};

/// Interval of the octets.
pub const BEAT: Duration = Duration::from_millis(250);
/// A daemon that is silent for this time has stopped.
const SILENCE: Timespec = Timespec {
    tv_sec: 5,
    tv_nsec: 0,
};
/// Time of the negotiation, in which members that do not send deliver received frames.
const NEGOTIATION: Duration = Duration::from_secs(4);
/// The process's name, as `ps` and `pkill` have it.
const NAME: &CStr = c"bond-guardian";
/// The octet of an orderly end.
const END: u8 = b'e';

/// The daemon's handle of its guardian.
pub struct Guardian {
    child: Child,
    pipe: ChildStdin,
}

impl Guardian {
    /// Starts the guardian.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn start(state: &State, directory: &Path, lock: &Lock) -> io::Result<Self> {
        let mut child = Command::new(env::current_exe()?)
            .args(["guard", &state.bond, &state.nonce, "--state"])
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(lock.share()?)
            .spawn()?;
        let pipe = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { child, pipe })
    }

    /// Reports that the daemon works.
    ///
    /// # Errors
    /// If the guardian has ended.
    pub fn beat(&mut self) -> io::Result<()> {
        match self.child.try_wait()? {
            Some(status) => Err(io::Error::other(format!("the guardian ended: {status}"))),
            None => self.pipe.write_all(b"."),
        }
    }

    /// Ends the guardian, after the daemon has brought the members back.
    pub fn end(mut self) {
        let _ = self.pipe.write_all(&[END]);
        drop(self.pipe);
        let _ = self.child.wait();
    }
}

/// Runs the guardian.
///
/// # Errors
/// The members could not be brought back.
pub fn guard(bond: &str, nonce: &str, directory: &Path) -> Result<(), String> {
    let lock = Lock::inherited(directory, bond).map_err(|error| words(&error))?;
    // Without the name, it is a process like others.
    let _ = rustix::thread::set_name(NAME);
    // Without a separate session, signals of the terminal and to the process group would arrive.
    let _ = rustix::process::setsid();
    let ignored = Arc::new(AtomicBool::new(false));
    for signal in [
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGHUP,
    ] {
        signal_hook::flag::register(signal, Arc::clone(&ignored)).map_err(|error| words(&error))?;
    }
    let end = wait();
    if end == End::Orderly {
        return Ok(());
    }
    // A stopped daemon that continues finds the pipe closed, and ends.
    let null = File::open("/dev/null").map_err(|error| words(&error))?;
    nix::unistd::dup2_stdin(&null).map_err(|error| words(&io::Error::from(error)))?;
    let state = State::read(directory, bond)?.filter(|state| state.nonce == nonce);
    let Some(state) = state else {
        return Ok(());
    };
    say(&format!(
        "the daemon of {bond} has ended or stopped; its members are brought back"
    ));
    let mut netlink = Netlink::new().map_err(|error| words(&error))?;
    state.bring_back(directory, &mut netlink).checked()?;
    thread::sleep(NEGOTIATION);
    state.finish(&mut netlink, directory)?;
    if end == End::Closed {
        lock.delete();
    }
    Ok(())
}

/// How a daemon ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It has brought the members back itself.
    Orderly,
    /// The process has ended.
    Closed,
    /// It is silent, and may continue.
    Silent,
}

/// Waits for the daemon's end.
fn wait() -> End {
    let input = io::stdin();
    let mut octets = [0; 64];
    loop {
        let mut waits = [PollFd::new(&input, PollFlags::IN)];
        match poll(&mut waits, Some(&SILENCE)) {
            Err(rustix::io::Errno::INTR) => continue,
            Ok(0) | Err(_) => return End::Silent,
            Ok(_) => {}
        }
        match rustix::io::read(&input, &mut octets) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(0) | Err(_) => return End::Closed,
            Ok(count) if octets[..count].contains(&END) => return End::Orderly,
            Ok(_) => {}
        }
    }
}
