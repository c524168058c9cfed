//! Whether a route delivers, from the sender's view.
//!
//! The other end reports the newest arrival of every route, and repeats the report until a newer one replaces it. It reports
//! within [`Timing::step`] of an arrival, with a packet of its own if none travels back. So a sender may count on a report:
//!
//! - A route is **late** when the oldest packet that wants a report should have been reported, by the round trips seen so far
//!   (their mean plus four times their variation, as in RFC 6298, but at least the step and at most half of `silence`), and no
//!   newer one has been. A late route without traffic gets probes, four per `silence`, so that one lost packet or report does not
//!   make it silent. What it carries is copied over routes that are alive and have a backlog below 10 ms.
//! - It is **silent** when it has been late for `silence`. It takes no more traffic, and a probe per `probe`. Those of its packets
//!   that were not reported and are kept are retransmitted over the others, the oldest first, 32 at most, and no more at once than
//!   makes a backlog of a quarter of `silence`. Then a notice says that no more follow.
//! - It **returns** when a packet that was sent since is reported. It gets probes as a late route does, and takes traffic again
//!   once they have been reported for `hold` without two missing in a row.
//! - It was **slow**, not dead, and takes traffic at once, if a packet is reported that was sent before it fell silent and that
//!   left when the route was late already, or whose own delay grew by half of `silence`. Any other report of a packet from before
//!   says nothing of the route: where both directions die, what arrived just before is reported by another route, much later.
//!
//! No rule compares a route with another: it makes no difference what traffic the others carry. If no route is alive, traffic
//! takes one that returns; if none does, or the only route that is alive is late, all, by copies, up to that backlog.

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
    /// Whether a route that was slow takes traffic at once; otherwise it returns.
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
    /// The backlog up to which a route has room for retransmissions and copies: they must not fill the queue that flows need to
    /// recover.
    pub(super) fn room(&self) -> Duration {
        self.silence / 4
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
    /// Since when; the number of the first packet since.
    Silent {
        since: Instant,
        from: u64,
    },
    /// Since when; the departure of the packet that was reported last.
    Returning {
        since: Instant,
        last: Instant,
    },
}

/// A packet that the other end reports.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reported {
    pub(super) number: u64,
    /// When it was sent, and when it was to have left the entrance's backlog.
    pub(super) sent: Instant,
    pub(super) left: Instant,
    /// How much longer than usual it took from then on.
    pub(super) grown: Duration,
}

impl State {
    pub(super) const fn rank(self) -> Rank {
        match self {
            Self::Alive => Rank::Alive,
            Self::Returning { .. } => Rank::Returning,
            Self::Unknown | Self::Silent { .. } => Rank::Silent,
        }
    }

    /// A packet is reported.
    pub(super) fn reported(self, now: Instant, packet: Reported, timing: &Timing) -> Self {
        let returning = |since| Self::Returning {
            since,
            last: packet.sent,
        };
        match self {
            Self::Unknown | Self::Alive => Self::Alive,
            Self::Silent { since, from } if packet.number < from => {
                let left_late = packet.left + timing.silence > since;
                if !left_late && packet.grown < timing.silence / 2 {
                    self
                } else if timing.late_is_alive {
                    Self::Alive
                } else {
                    returning(now)
                }
            }
            Self::Silent { .. } => returning(now),
            Self::Returning { since, last } => {
                let missing = packet.sent.saturating_since(last) > timing.urgent() * 2;
                returning(if missing { now } else { since })
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
    /// What hardly any value exceeds: four deviations above the mean, but no less than the step, by which the other end may put a
    /// report off, and no more than half of `silence`.
    pub(super) fn most(self, timing: &Timing) -> Duration {
        let deviations = Duration::from_secs_f64(4.0 * self.deviation);
        let spread = deviations.max(timing.step()).min(timing.silence / 2);
        Duration::from_secs_f64(self.mean) + spread
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
