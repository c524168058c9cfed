//! The check of a prediction: whether the throughput rises when a slower path is used for it.
//!
//! A flow in order waits for its last packet, so a path that is added delays all of them. If the
//! window of the inner sender does not cover that delay, the faster paths run empty, and the
//! throughput falls although the added path adds its rate.

use anabranch_core::units::Duration;

use crate::time::Instant;

/// Measurement begins after this number of round trips of the path, and takes [`LENGTH`] of them.
const SETTLING: u64 = 1;
const LENGTH: u64 = 3;
/// The path is not used for this time after the throughput has not risen, and for twice as long
/// each time that follows.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MOST: Duration = Duration::from_secs(32);

/// The trials of a path.
#[derive(Debug, Clone)]
pub struct Worth {
    /// The begin of the present trial, and the last use of the path in it.
    begun: Option<(Instant, Instant)>,
    /// The begin of the measurement, and the octets that all paths had delivered then.
    from: Option<(Instant, u64)>,
    /// The time before which no trial begins.
    not_before: Instant,
    pause: Duration,
}

impl Default for Worth {
    fn default() -> Self {
        Self {
            begun: None,
            from: None,
            not_before: Instant::START,
            pause: PAUSE,
        }
    }
}

impl Worth {
    /// Whether the path may be used for throughput.
    #[must_use]
    pub fn may_try(&self, now: Instant) -> bool {
        now >= self.not_before
    }

    /// Whether a trial is under way.
    #[must_use]
    pub const fn is_on_trial(&self) -> bool {
        self.begun.is_some()
    }

    /// Records a packet that takes the path for throughput alone.
    pub fn on_used(&mut self, now: Instant) {
        match &mut self.begun {
            Some((_, used)) => *used = now,
            None => self.begun = Some((now, now)),
        }
    }

    /// Judges the trial, if it is over. `delivered` octets have arrived on all paths, which deliver
    /// `faster` octets per second without this one, and `round_trip` is that of this path.
    pub fn judge(&mut self, delivered: u64, faster: f64, round_trip: Duration, now: Instant) {
        let Some((begun, used)) = self.begun else {
            return;
        };
        if now.saturating_since(begun) < round_trip * SETTLING {
            return;
        }
        let (since, octets) = match self.from {
            Some(from) if from.1 <= delivered => from,
            _ => *self.from.insert((now, delivered)),
        };
        let past = now.saturating_since(since);
        let is_unused = now.saturating_since(used) > round_trip;
        if past < round_trip * LENGTH && !is_unused || past < round_trip {
            return;
        }
        let rate = delivered.saturating_sub(octets) as f64 / past.as_secs_f64();
        self.from = None;
        if rate >= faster {
            self.pause = PAUSE;
            // The trial goes on.
            self.begun = (!is_unused).then_some((begun, used));
        } else {
            self.begun = None;
            self.not_before = now + self.pause;
            self.pause = (self.pause * 2).min(PAUSE_MOST);
        }
    }
}
