//! Whether a route delivers, from the sender's view.
//!
//! The other end reports the newest arrival of every route, and repeats the report until a newer one replaces it. It reports
//! within [`Timing::step`] of an arrival, with a packet of its own if none travels back. So a sender may count on a report:
//!
//! - A route is **late** when the oldest packet that wants a report should have been reported, by the round trips seen so far
//!   (their mean plus four times their variation, as in RFC 6298, but at most half of `silence`), and no newer one has been. A late route without traffic
//!   gets probes, four per `silence`, so that one lost packet or report does not make it silent. What it carries is copied over
//!   routes that are alive and have nothing else to carry, a packet every 10 ms at most.
//! - It is **silent** when it has been late for `silence`. It takes no more traffic, and a probe per `probe`. Those of its packets
//!   that were not reported and are kept are retransmitted over the others, the oldest first and 32 at once.
//! - It **returns** when a packet that was sent since is reported. It gets probes as a late route does, and takes traffic again
//!   once they have been reported for `hold` without two missing in a row. If a packet that was sent before it fell silent is
//!   reported, the route was slow, not dead, and takes traffic at once.
//!
//! No rule compares a route with another: it makes no difference what traffic the others carry. If no route is alive, traffic
//! takes any that returns, or else all, by copies.

use anabranch_core::units::{Duration, Instant};

/// The shortest step.
const LEAST_STEP: Duration = Duration::from_millis(5);
/// The longest step: with a long `silence` the reports are still fresh.
const MOST_STEP: Duration = Duration::from_millis(100);
/// How long after the last packet the routes are looked after, at least.
const ATTENTION: Duration = Duration::from_millis(1_000);

/// The times that liveness is judged by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timing {
    /// See `silence` of the splitters.
    pub(super) silence: Duration,
    /// See `probe` of the splitters.
    pub(super) probe: Duration,
    /// How long a route that returns is watched before it takes traffic.
    pub(super) hold: Duration,
    /// Whether a packet of before the silence brings the route back at once.
    pub(super) late_is_alive: bool,
}

impl Timing {
    /// How often routes are looked at, and how soon an arrival is reported.
    pub(super) fn step(&self) -> Duration {
        (self.silence / 8).clamp(LEAST_STEP, MOST_STEP)
    }
    /// The pause between probes of a route of which something is to be learnt soon.
    pub(super) fn urgent(&self) -> Duration {
        self.step() * 2
    }
    /// How long after the last packet the routes are looked after.
    pub(super) fn attention(&self) -> Duration {
        ATTENTION.max(self.probe * 2).max(self.silence * 2)
    }
}

/// How much a route is worth: the lower the better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// It delivers.
    Alive,
    /// It has begun to deliver again.
    Returning,
    /// It does not deliver, or nothing is known of it.
    Silent,
}

/// What is known of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing has been reported yet.
    Unknown,
    Alive,
    /// The number of the first packet since.
    Silent {
        from: u64,
    },
    /// Since when; the departure of the packet that was reported last.
    Returning {
        since: Instant,
        last: Instant,
    },
}

impl State {
    pub(super) const fn rank(self) -> Rank {
        match self {
            Self::Alive => Rank::Alive,
            Self::Returning { .. } => Rank::Returning,
            Self::Unknown | Self::Silent { .. } => Rank::Silent,
        }
    }

    /// A packet with this number that left at `sent` is reported.
    pub(super) fn reported(
        self,
        now: Instant,
        (number, sent): (u64, Instant),
        timing: &Timing,
    ) -> Self {
        match self {
            Self::Unknown | Self::Alive => Self::Alive,
            Self::Silent { from } if number < from && timing.late_is_alive => Self::Alive,
            Self::Silent { .. } => Self::Returning {
                since: now,
                last: sent,
            },
            Self::Returning { since, last } => {
                let missing = sent.saturating_since(last) > timing.urgent() * 2;
                Self::Returning {
                    since: if missing { now } else { since },
                    last: sent,
                }
            }
        }
    }

    /// Time passes; `progress` is when something was last reported.
    pub(super) fn held(self, now: Instant, progress: Instant, timing: &Timing) -> Self {
        match self {
            Self::Returning { since, .. }
                if now.saturating_since(since) >= timing.hold
                    && now.saturating_since(progress) < timing.silence =>
            {
                Self::Alive
            }
            other => other,
        }
    }
}

/// A mean and a mean deviation (RFC 6298 §2).
#[derive(Debug, Clone, Copy)]
pub(super) struct Smoothed {
    mean: f64,
    deviation: f64,
}

impl Smoothed {
    pub(super) fn first(seconds: f64) -> Self {
        Self {
            mean: seconds,
            deviation: seconds / 2.0,
        }
    }
    pub(super) fn next(self, seconds: f64) -> Self {
        let away = (seconds - self.mean).abs();
        Self {
            mean: self.mean + (seconds - self.mean) / 8.0,
            deviation: self.deviation + (away - self.deviation) / 4.0,
        }
    }
    /// What hardly any value exceeds: four deviations above the mean, but no more than `limit`.
    pub(super) fn most(self, limit: Duration) -> Duration {
        Duration::from_secs_f64(self.mean)
            + Duration::from_secs_f64(4.0 * self.deviation).min(limit)
    }
}

/// What is to be done for the routes now.
#[derive(Debug, Default)]
pub struct Due {
    /// Routes to probe.
    pub probes: Vec<u16>,
    /// Routes that have fallen silent.
    pub silent: Vec<Fallen>,
}

/// A route that has fallen silent, and the packets on it that were not reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fallen {
    /// The route.
    pub route: u16,
    /// [`Header::route_number`](anabranch_core::tunnel::Header::route_number) of the first.
    pub first: u16,
    /// How many there are.
    pub packets: u16,
}
