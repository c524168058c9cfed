//! The clock of a run: real time since its start, in the units of the model.

use std::{
    sync::{Condvar, Mutex, PoisonError},
    time,
};

use anabranch_core::units::Instant;
use rustix::time::{ClockId, clock_gettime};

/// Real time since a start. Copies agree.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// On the monotonic clock, in nanoseconds.
    start_ns: u64,
}

impl Clock {
    /// A clock that starts `ahead` from now.
    pub fn starting_in(ahead: time::Duration) -> Self {
        Self {
            start_ns: monotonic_ns().saturating_add(nanos_of(ahead)),
        }
    }

    /// A clock that starts at a multiple of `of` on the monotonic clock, at least `ahead` from now.
    pub fn starting_at_multiple(of: time::Duration, ahead: time::Duration) -> Self {
        let earliest = monotonic_ns().saturating_add(nanos_of(ahead));
        Self {
            start_ns: earliest.next_multiple_of(nanos_of(of)),
        }
    }

    /// The start as `CLOCK_MONOTONIC` has it, in nanoseconds (clock_gettime(2)).
    pub const fn start_ns(self) -> u64 {
        self.start_ns
    }

    /// The time since the start; zero before the start.
    pub fn now(self) -> Instant {
        Instant::from_nanos(monotonic_ns().saturating_sub(self.start_ns))
    }

    /// The time until `then`.
    pub fn until(self, then: Instant) -> time::Duration {
        let nanos = then.saturating_since(Instant::START).as_nanos();
        let at = self.start_ns.saturating_add(nanos);
        time::Duration::from_nanos(at.saturating_sub(monotonic_ns()))
    }

    /// Sleeps until `then`.
    pub fn sleep_until(self, then: Instant) {
        loop {
            let pause = self.until(then);
            if pause.is_zero() {
                return;
            }
            std::thread::sleep(pause);
        }
    }
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

fn nanos_of(span: time::Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// A latch at which threads wait for the run's clock.
#[derive(Debug, Default)]
pub struct StartingLine {
    start: Mutex<Start>,
    changed: Condvar,
}

#[derive(Debug, Clone, Copy, Default)]
enum Start {
    #[default]
    ToCome,
    At(Clock),
    Never,
}

impl StartingLine {
    /// Starts the run, or cancels it (`None`).
    pub fn go(&self, clock: Option<Clock>) {
        *self.start.lock().unwrap_or_else(PoisonError::into_inner) =
            clock.map_or(Start::Never, Start::At);
        self.changed.notify_all();
    }

    /// Waits for the start; `None` if the run is cancelled.
    pub fn wait(&self) -> Option<Clock> {
        let mut start = self.start.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *start {
                Start::At(clock) => return Some(clock),
                Start::Never => return None,
                Start::ToCome => {}
            }
            start = self
                .changed
                .wait(start)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}
