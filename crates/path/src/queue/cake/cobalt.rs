//! COBALT: the AQM of one flow, a variant of CoDel combined with BLUE.
//!
//! CoDel's schedule runs in both directions. The count rises with each signal while the delay is
//! above the target, and falls without signals while the delay is below it, at the same pace, until
//! it is 0 (Morton, 24 May 2016 and 24 October 2018). There is no state that waits for an interval
//! of standing delay: the first signal is scheduled when the delay rises above the target.

use anabranch_core::units::{Duration, Instant};

use super::blue::Blue;

/// Parameters of a tin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub interval: Duration,
    /// Delay above which signals are sent.
    pub target: Duration,
    /// Minimum time between two steps of BLUE.
    pub blue_spacing: Duration,
}

/// The AQM of one flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cobalt {
    /// Signals, minus the signals taken back while the delay is below the target.
    count: u32,
    dropping: bool,
    next: Instant,
    /// Time between signals as a fraction of the interval: 1 / √count.
    spacing: f64,
    pub blue: Blue,
}

impl Cobalt {
    /// The first schedule of a queue begins without an interval, as in Linux (measured).
    pub const NEW: Self = Self {
        count: 0,
        dropping: false,
        next: Instant::START,
        spacing: 0.0,
        blue: Blue::NEW,
    };

    /// Whether a packet that leaves after this delay carries a signal.
    #[inline]
    pub fn signals(&mut self, settings: &Settings, now: Instant, delay: Duration) -> bool {
        let is_above = delay > settings.target;
        if self.count == 0 && !is_above {
            self.dropping = false;
            return false;
        }
        self.schedule(settings, now, is_above)
    }

    fn schedule(&mut self, settings: &Settings, now: Instant, is_above: bool) -> bool {
        let mut is_due = self.count > 0 && now >= self.next;
        if is_above && !self.dropping {
            self.next = now.saturating_add(settings.interval.mul_f64(self.spacing));
            self.count = self.count.max(1);
        }
        self.dropping = is_above;
        if is_above && is_due {
            self.count = self.count.saturating_add(1);
            self.advance(settings);
            return true;
        }
        while is_due {
            self.count -= 1;
            self.advance(settings);
            is_due = self.count > 0 && now >= self.next;
        }
        false
    }

    /// Notes a mark. Overdue signals are skipped after a mark, but not after a drop (measured with
    /// Linux 6.12).
    pub fn marked(&mut self, now: Instant) {
        self.next = self.next.max(now);
    }

    /// Schedules the next step for the current count.
    fn advance(&mut self, settings: &Settings) {
        self.spacing = 1.0 / f64::from(self.count.max(1)).sqrt();
        let step = settings.interval.mul_f64(self.spacing);
        self.next = self.next.saturating_add(step);
    }
}
