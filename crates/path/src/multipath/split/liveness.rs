//! Liveness of routes from the sender's point of view.
//!
//! The other end reports the newest arrival of every route and repeats the report until a newer one
//! replaces it. It reports within [`Timing::step`] of an arrival, if necessary in a packet of the
//! tunnel. A sender can therefore rely on reports:
//!
//! - A route is **late** if the report of the oldest packet that requires one is overdue and no
//!   newer packet has been reported. The deadline is the mean of past round trips plus four times
//!   their variation (as in RFC 6298), where the variation term is at least the step and at most
//!   half of `silence`. A late route without traffic gets four probes per `silence`, so that a
//!   single lost packet or report does not make it silent. Its packets are copied over routes that
//!   are alive and have a backlog below 10 ms.
//! - It is **silent** after being late for `silence`. It takes no more traffic, and one probe per
//!   `probe`. Its unreported packets that are stored are retransmitted over the other routes,
//!   oldest first: at most 32, and at once at most a backlog of a quarter of `silence`. A notice
//!   then announces that no more will follow.
//! - It **returns** when a packet sent since it fell silent is reported. It gets probes like a late
//!   route, and takes traffic again once probes have been reported for `silence` without
//!   two consecutive ones missing.
//! - It was **slow**, not dead, and takes traffic at once, if a packet sent before it fell silent
//!   is reported and either left when the route was already late, or had its own delay grow by half
//!   of `silence`. Other reports of earlier packets are no evidence: if both directions fail,
//!   another route reports the last arrivals much later.
//!
//! No rule compares routes with each other, so the traffic on other routes makes no difference. If
//! no route is alive, traffic takes a returning one. If none is returning either, or the only alive
//! route is late, copies take all routes up to that backlog.

use anabranch_core::units::{Duration, Instant};

/// Minimum step.
const LEAST_STEP: Duration = Duration::from_millis(5);
/// Maximum step: reports stay recent even if `silence` is long.
const MOST_STEP: Duration = Duration::from_millis(100);
/// Minimum time after the last packet during which routes are checked.
const ATTENTION: Duration = Duration::from_millis(1_000);

/// Time constants of the liveness rules.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timing {
    /// `silence` of the splitter's parameters.
    pub(super) silence: Duration,
    /// `probe` of the splitter's parameters.
    pub(super) probe: Duration,
}

impl Timing {
    /// Interval between checks of the routes, and maximum delay of a report.
    pub(super) fn step(&self) -> Duration {
        (self.silence / 8).clamp(LEAST_STEP, MOST_STEP)
    }
    /// Interval between probes of a route whose state must be known soon.
    pub(super) fn urgent(&self) -> Duration {
        self.step() * 2
    }
    /// Backlog up to which a route has room for retransmissions and copies, which must not fill the
    /// queue that flows need to recover.
    pub(super) fn room(&self) -> Duration {
        self.silence / 4
    }
    /// Time after the last packet during which routes are checked.
    pub(super) fn attention(&self) -> Duration {
        ATTENTION.max(self.probe * 2).max(self.silence * 2)
    }
}

/// Suitability of a route for traffic; lower is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// It delivers.
    Alive,
    /// It has begun to deliver again.
    Returning,
    /// It does not deliver, or its state is unknown.
    Silent,
}

/// State of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// No packet has been reported yet.
    Unknown,
    Alive,
    /// Begin of the silence, and the number of the first packet after it.
    Silent {
        since: Instant,
        from: u64,
    },
    /// Begin of the return, and the departure of the last packet reported.
    Returning {
        since: Instant,
        last: Instant,
    },
}

/// A packet that the other end reports.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reported {
    pub(super) number: u64,
    /// Time it was sent, and predicted time at which it left the entrance's backlog.
    pub(super) sent: Instant,
    pub(super) left: Instant,
    /// Increase of its delay after that over the usual delay.
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

    /// Returns the state after a packet is reported.
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
                } else {
                    Self::Alive
                }
            }
            Self::Silent { .. } => returning(now),
            Self::Returning { since, last } => {
                let missing = packet.sent.saturating_since(last) > timing.urgent() * 2;
                returning(if missing { now } else { since })
            }
        }
    }

    /// Returns the state at `now`. `progress` is the time of the last report.
    pub(super) fn held(self, now: Instant, progress: Instant, timing: &Timing) -> Self {
        match self {
            Self::Returning { since, .. }
                if now.saturating_since(since) >= timing.silence
                    && now.saturating_since(progress) < timing.silence =>
            {
                Self::Alive
            }
            other => other,
        }
    }
}

/// Smoothed mean and mean deviation (RFC 6298 §2).
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
    /// Upper bound that few values exceed: the mean plus four deviations. The deviation term is at
    /// least the step, by which the other end may delay a report, and at most half of `silence`.
    pub(super) fn most(self, timing: &Timing) -> Duration {
        let deviations = Duration::from_secs_f64(4.0 * self.deviation);
        let spread = deviations.max(timing.step()).min(timing.silence / 2);
        Duration::from_secs_f64(self.mean) + spread
    }
}

/// Actions due for the routes.
#[derive(Debug, Default)]
pub struct Due {
    /// Routes to probe.
    pub probes: Vec<u16>,
    /// Routes that have fallen silent.
    pub silent: Vec<Fallen>,
}

/// A route that has fallen silent, and its unreported packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fallen {
    /// The route.
    pub route: u16,
    /// [`Header::route_number`](anabranch_core::tunnel::Header::route_number) of the first.
    pub first: u16,
    /// Number of packets.
    pub packets: u16,
}
