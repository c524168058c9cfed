//! The clock of a run: real time since its start, as the model counts it.

use std::{
    sync::{Condvar, Mutex, PoisonError},
    time,
};

use anabranch_core::units::Instant;

/// Real time since a start. Copies agree.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: time::Instant,
}

impl Clock {
    /// A clock that starts `ahead` from now.
    pub fn starting_in(ahead: time::Duration) -> Self {
        Self {
            start: time::Instant::now() + ahead,
        }
    }

    /// Now; the start, before it.
    pub fn now(self) -> Instant {
        let nanos = self.start.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How long it is until then.
    pub fn until(self, then: Instant) -> time::Duration {
        let start = self.start.saturating_duration_since(time::Instant::now());
        let nanos = then.saturating_since(self.now()).as_nanos();
        start + time::Duration::from_nanos(nanos)
    }

    /// Sleeps until then.
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

/// Where threads wait for the run's clock.
#[derive(Debug, Default)]
pub struct StartingLine {
    clock: Mutex<Option<Option<Clock>>>,
    changed: Condvar,
}

impl StartingLine {
    /// The run begins, or does not (`None`).
    pub fn go(&self, clock: Option<Clock>) {
        *self.clock.lock().unwrap_or_else(PoisonError::into_inner) = Some(clock);
        self.changed.notify_all();
    }

    /// Waits; `None` if there will be no run.
    pub fn wait(&self) -> Option<Clock> {
        let mut clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(clock) = *clock {
                return clock;
            }
            clock = self
                .changed
                .wait(clock)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}
