//! What the machine is asked for while packets move: the engine's session first, and processors that do not sleep.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
};

use anabranch_core::units::{Duration, Instant};

/// The kernel's list of such wishes (`Documentation/power/pm_qos_interface.rst`).
const WISHES: &str = "/dev/cpu_dma_latency";

/// The wish that no processor sleeps, for as long as this lives: it is heard where the driver of idle processors has
/// a state that polls. The kernel takes it back with the file, however that is closed.
#[derive(Debug)]
pub struct Awake {
    _wish: File,
}

impl Awake {
    /// # Errors
    /// If the kernel takes no such wishes, or not from us: only root may.
    pub fn ask() -> io::Result<Self> {
        let mut wish = OpenOptions::new().write(true).open(WISHES)?;
        wish.write_all(&0_i32.to_ne_bytes())?;
        Ok(Self { _wish: wish })
    }
}

/// When hosts have sent nothing for so long, processors may sleep again.
const QUIET: Duration = Duration::from_secs(1);

/// The session's share of the processors (sched(7), autogroup): a thread's own priority counts only among those of
/// its session. It is given back.
#[derive(Debug)]
pub struct Favour {
    before: String,
}

impl Favour {
    const FILE: &'static str = "/proc/self/autogroup";

    /// `None` where sessions are not kept apart, or this one may not be favoured.
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
        // The kernel lets nobody but root change it often; then it stays.
        let _ = fs::write(Self::FILE, &self.before);
    }
}

/// Keeps the processors awake while hosts send. One that sleeps hears of a timer some 0.1 ms late on a virtual machine,
/// and then a packet leaves together with the one after it. It costs the power of processors that never sleep.
#[derive(Debug)]
pub struct Vigil<T> {
    ask: fn() -> io::Result<T>,
    held: Option<T>,
    /// Whoever was refused once does not ask again.
    is_refused: bool,
    /// When a host sent last, or the start.
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

    /// Whether processors sleep all the same.
    pub const fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Hosts have sent.
    pub fn keep(&mut self, now: Instant) {
        self.last = now;
        if self.held.is_none() && !self.is_refused {
            self.held = (self.ask)().ok();
            self.is_refused = self.held.is_none();
        }
    }

    /// Hosts have sent nothing.
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

    /// Fails for processors that are kept awake in an open shell in which nobody does anything, and for those that
    /// sleep when packets move again.
    #[test]
    fn processors_sleep_where_nobody_sends() {
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
    fn who_may_not_keep_them_awake_asks_once() {
        let mut vigil = Vigil::<()>::new(|| Err(io::ErrorKind::PermissionDenied.into()));
        assert!(vigil.is_refused);
        vigil.ask = || panic!("asked again");
        vigil.keep(Instant::START);
        assert!(vigil.held.is_none());
    }

    /// What the kernel goes by, in microseconds; other runs on this machine have their say in it.
    fn allowed() -> io::Result<i32> {
        let mut told = [0; 4];
        File::open(WISHES)?.read_exact(&mut told)?;
        Ok(i32::from_ne_bytes(told))
    }

    /// Fails for a wish that is not written as the kernel reads it. While other runs have one, it cannot; that it ends with
    /// a run is for `tests/live/test_live.py`.
    #[test]
    fn processors_stay_awake_as_long_as_it_lives() {
        if let Err(error) = allowed() {
            eprintln!("SKIPPED: {WISHES}: {error}");
            return;
        }
        let _awake = Awake::ask().expect("who may read it may write it");
        assert_eq!(allowed().expect("as before"), 0);
    }
}
