//! Scheduling requests while packets move: priority for the engine's session, and no sleep states
//! of idle processors.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
};

use anabranch_core::units::{Duration, Instant};

/// The kernel's latency requests (`Documentation/power/pm_qos_interface.rst`).
const WISHES: &str = "/dev/cpu_dma_latency";

/// A request that no processor sleeps, valid while this value lives. It has an effect if the driver
/// of idle processors has a polling state. The kernel withdraws the request when the file is closed
/// for any reason.
#[derive(Debug)]
pub struct Awake {
    _wish: File,
}

impl Awake {
    /// # Errors
    /// If the kernel accepts no such requests, or not from this process: only root is permitted.
    pub fn ask() -> io::Result<Self> {
        let mut wish = OpenOptions::new().write(true).open(WISHES)?;
        wish.write_all(&0_i32.to_ne_bytes())?;
        Ok(Self { _wish: wish })
    }
}

/// Processors may sleep again after hosts have been silent for this time.
const QUIET: Duration = Duration::from_secs(1);

/// The session's share of the processors (sched(7), autogroup): a thread's own priority counts only
/// within its session. The former share is restored on drop.
#[derive(Debug)]
pub struct Favour {
    before: String,
}

impl Favour {
    const FILE: &'static str = "/proc/self/autogroup";

    /// `None` if the kernel has no autogroups, or if this session's share may not be raised.
    #[must_use]
    pub fn ask() -> Option<Self> {
        let text = fs::read_to_string(Self::FILE).ok()?;
        let before = text.trim().rsplit(' ').next()?.to_owned();
        fs::write(Self::FILE, "-20").ok()?;
        Some(Self { before })
    }
}

impl Drop for Favour {
    fn drop(&mut self) {
        // The kernel limits how often a process other than root changes the share. If it refuses,
        // the share stays raised.
        let _ = fs::write(Self::FILE, &self.before);
    }
}

/// Keeps the processors awake while hosts send. On a virtual machine a sleeping processor notices a
/// timer about 0.1 ms late, so that a packet leaves together with the next one. The cost is the
/// power of processors that never sleep.
#[derive(Debug)]
pub struct Vigil<T> {
    ask: fn() -> io::Result<T>,
    held: Option<T>,
    /// The request was refused; it is not repeated.
    is_refused: bool,
    /// The time of the last packet from a host, or the start.
    last: Instant,
}

impl<T> Vigil<T> {
    pub fn new(ask: fn() -> io::Result<T>) -> Self {
        let held = ask().ok();
        Self {
            ask,
            is_refused: held.is_none(),
            held,
            last: Instant::START,
        }
    }

    /// Whether the request was refused, so that processors may sleep.
    pub const fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Records packets from hosts.
    pub fn keep(&mut self, now: Instant) {
        self.last = now;
        if self.held.is_none() && !self.is_refused {
            self.held = (self.ask)().ok();
            self.is_refused = self.held.is_none();
        }
    }

    /// Ends the request after a long enough silence of the hosts.
    pub fn end_if_quiet(&mut self, now: Instant) {
        if now.saturating_since(self.last) >= QUIET {
            self.held = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    /// Detects processors that are kept awake in an idle interactive run, and processors that stay
    /// asleep when packets move again.
    #[test]
    fn processors_sleep_while_hosts_are_silent() {
        let mut vigil = Vigil::new(|| Ok(()));
        let at = |millis| Instant::START.saturating_add(Duration::from_millis(millis));
        assert!(vigil.held.is_some());
        vigil.keep(at(500));
        vigil.end_if_quiet(at(1499));
        assert!(vigil.held.is_some());
        vigil.end_if_quiet(at(1500));
        assert!(vigil.held.is_none());
        vigil.keep(at(9000));
        assert!(vigil.held.is_some());
        assert!(!vigil.is_refused);
    }

    #[test]
    fn a_refused_request_is_not_repeated() {
        let mut vigil = Vigil::<()>::new(|| Err(io::ErrorKind::PermissionDenied.into()));
        assert!(vigil.is_refused);
        vigil.ask = || panic!("asked again");
        vigil.keep(Instant::START);
        assert!(vigil.held.is_none());
    }

    /// The latency limit in force, in microseconds. It includes the requests of other runs on this
    /// machine.
    fn allowed() -> io::Result<i32> {
        let mut told = [0; 4];
        File::open(WISHES)?.read_exact(&mut told)?;
        Ok(i32::from_ne_bytes(told))
    }

    /// Detects a request that is not written in the kernel's format. It cannot while another run
    /// has a request; `tests/live/test_live.py` tests that the request ends with a run.
    #[test]
    fn processors_stay_awake_while_the_request_lives() {
        if let Err(error) = allowed() {
            eprintln!("SKIPPED: {WISHES}: {error}");
            return;
        }
        let _awake = Awake::ask().expect("who may read it may write it");
        assert_eq!(allowed().expect("as before"), 0);
    }
}
