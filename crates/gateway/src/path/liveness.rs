//! Liveness: whether a path delivers the datagrams of this end. Each end decides for its own
//! direction.
//!
//! ```text
//! validating --reported--> active or standby --late--> suspect --silent--> dead
//!                                 ^--------reported-------'                 |
//! validating <--------------------a probe sent since is reported------------'
//! ```
//!
//! A path that returns is used again after it has been reported for a hold time, which doubles each
//! time that the path dies within a minute of its return. A path that was never reported before is
//! used at the first report.

use anabranch_core::units::Duration;

use crate::{policy::Role, time::Instant};

/// Interval of probes on a path that carries nothing else.
const IDLE_PROBE: Duration = Duration::from_millis(250);
/// Interval of probes on a spare path. With the probes of both ends a path carries less than 50 MB
/// in a month, and an address translator keeps its entry.
const SPARE_PROBE: Duration = Duration::from_secs(10);
/// Interval of probes on a suspect path.
const SUSPECT_PROBE: Duration = Duration::from_millis(10);
/// Interval of probes on a path that is being validated.
const VALIDATING_PROBE: Duration = Duration::from_millis(50);
/// Interval of probes on a dead path, and on one that has been dead for [`LONG_DEAD`].
const DEAD_PROBE: Duration = Duration::from_millis(100);
const LONG_DEAD_PROBE: Duration = Duration::from_millis(300);
const LONG_DEAD: Duration = Duration::from_secs(10);
/// The time for which a returning path must be reported: initial value and maximum.
const HOLD: Duration = Duration::from_millis(300);
const HOLD_MAX: Duration = Duration::from_secs(5);
/// A path that dies within this time of its return flaps.
const FLAP: Duration = Duration::from_secs(60);

/// The state of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Being probed. `reported` is the time of the first report since, if any.
    Validating {
        /// The time of the first report.
        reported: Option<Instant>,
    },
    /// Delivers.
    Active,
    /// Delivers, and is used if no active path does.
    Standby,
    /// A report is late.
    Suspect,
    /// No report arrived for too long.
    Dead {
        /// The time of death.
        since: Instant,
    },
}

impl State {
    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Validating { .. } => "validating",
            Self::Active => "active",
            Self::Standby => "standby",
            Self::Suspect => "suspect",
            Self::Dead { .. } => "dead",
        }
    }
}

/// Preference for a path; the least is best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Usable {
    /// The path is active.
    Active,
    /// The path relieves full active paths.
    Overflow,
    /// The path is a backup.
    Standby,
    /// The path is metered.
    Metered,
    /// The path may have died.
    Suspect,
    /// The path is returning.
    Returning,
}

/// The state and its timers.
#[derive(Debug, Clone)]
pub struct Liveness {
    state: State,
    role: Role,
    /// Whether a path of a better role delivers, so that this one carries nothing.
    is_spare: bool,
    /// The sending time of the oldest packet whose report is awaited.
    waiting: Option<Instant>,
    probe: Instant,
    hold: Duration,
    returned: Option<Instant>,
    /// The time of the first report after the last death.
    restored: Option<Instant>,
    ever_reported: bool,
    deaths: u64,
}

impl Liveness {
    /// A path to be validated.
    #[must_use]
    pub const fn new(role: Role) -> Self {
        Self {
            state: State::Validating { reported: None },
            role,
            is_spare: false,
            waiting: None,
            probe: Instant::START,
            hold: HOLD,
            returned: None,
            restored: None,
            ever_reported: false,
            deaths: 0,
        }
    }

    /// The state.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// The number of deaths.
    #[must_use]
    pub const fn deaths(&self) -> u64 {
        self.deaths
    }

    /// The preference for this path; `None` if packets may not be sent on it.
    #[must_use]
    pub const fn usable(&self) -> Option<Usable> {
        match self.state {
            State::Active => Some(Usable::Active),
            State::Standby => match self.role {
                Role::Overflow => Some(Usable::Overflow),
                Role::Metered => Some(Usable::Metered),
                Role::Active | Role::Backup => Some(Usable::Standby),
            },
            State::Suspect => Some(Usable::Suspect),
            State::Validating { reported: Some(_) } => Some(Usable::Returning),
            State::Validating { reported: None } | State::Dead { .. } => None,
        }
    }

    /// The sending time of the oldest packet whose report is awaited.
    #[must_use]
    pub const fn waiting(&self) -> Option<Instant> {
        self.waiting
    }

    /// Whether a packet was sent before the path was known to deliver again. Its loss is that of
    /// the outage, and its delay may be: a modem stores packets while it has no carrier.
    #[must_use]
    pub fn is_of_outage(&self, sent: Instant) -> bool {
        self.is_dead() || self.restored.is_some_and(|restored| sent < restored)
    }

    /// The role.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Whether the path delivers, as far as is known.
    #[must_use]
    pub const fn is_well(&self) -> bool {
        matches!(self.state, State::Active | State::Standby)
    }

    /// Whether a path of a better role delivers, so that this one carries nothing.
    #[must_use]
    pub const fn is_spare(&self) -> bool {
        self.is_spare
    }

    /// Sets whether a path of a better role delivers. A path that is needed again is probed at once.
    pub fn set_spare(&mut self, is_spare: bool, now: Instant) {
        if self.is_spare && !is_spare {
            self.probe = now;
        }
        self.is_spare = is_spare;
    }

    /// Applies a change of the role.
    pub fn set_role(&mut self, role: Role) {
        self.role = role;
        if self.is_well() {
            self.state = self.working();
        }
    }

    /// Whether the path is dead.
    #[must_use]
    pub const fn is_dead(&self) -> bool {
        matches!(self.state, State::Dead { .. })
    }

    /// Records a packet whose arrival will be reported. A probe follows after `tail`, if given,
    /// unless another packet is sent or everything is reported.
    pub fn on_sent(&mut self, now: Instant, tail: Option<Duration>) {
        self.waiting = self.waiting.or(Some(now));
        let interval = self.probe_interval(now);
        self.probe = now + tail.map_or(interval, |tail| tail.min(interval));
    }

    /// Handles a report with a new highest number, which was sent at `sent`; `waiting` is the
    /// sending time of the next packet. Returns whether the path delivers again after a death.
    pub fn on_report(&mut self, now: Instant, sent: Instant, waiting: Option<Instant>) -> bool {
        self.waiting = waiting;
        let is_restored =
            self.ever_reported && matches!(self.state, State::Dead { since } if sent > since);
        if is_restored {
            self.restored = Some(now);
        }
        self.state = match self.state {
            State::Dead { .. } | State::Validating { .. } if !self.ever_reported => self.working(),
            State::Dead { since } if sent > since => State::Validating {
                reported: Some(now),
            },
            State::Validating { reported: None } => State::Validating {
                reported: Some(now),
            },
            State::Validating {
                reported: Some(first),
            } if now.saturating_since(first) >= self.hold => {
                self.returned = Some(now);
                self.working()
            }
            State::Suspect => self.working(),
            other => other,
        };
        self.ever_reported = true;
        let probe = now + self.probe_interval(now);
        self.probe = if waiting.is_none() {
            probe
        } else {
            self.probe.min(probe)
        };
        is_restored
    }

    const fn working(&self) -> State {
        match self.role {
            Role::Active => State::Active,
            Role::Overflow | Role::Backup | Role::Metered => State::Standby,
        }
    }

    /// Handles the passage of time: reports are late after `late`, and paths dead after `dead`.
    /// Returns whether outstanding packets should be sent on other paths.
    pub fn advance(&mut self, now: Instant, late: Duration, dead: Duration) -> bool {
        let Some(silent) = self.waiting.map(|since| now.saturating_since(since)) else {
            return false;
        };
        match self.state {
            State::Active | State::Standby if silent >= late => {
                self.state = State::Suspect;
                self.probe = now;
                true
            }
            State::Suspect | State::Validating { .. } if silent >= dead => {
                self.die(now);
                true
            }
            _ => false,
        }
    }

    /// Marks the path as dead, for example because its interface has lost the carrier.
    pub fn die(&mut self, now: Instant) {
        if let Some(returned) = self.returned.take() {
            let flaps = now.saturating_since(returned) < FLAP;
            self.hold = if flaps {
                (self.hold * 2).min(HOLD_MAX)
            } else {
                HOLD
            };
        }
        if self.ever_reported {
            self.deaths += 1;
        }
        self.state = State::Dead { since: now };
        self.waiting = None;
        self.probe = now;
    }

    /// The time at which [`Self::advance`] must be called if no report arrives.
    #[must_use]
    pub fn timeout(&self, late: Duration, dead: Duration) -> Option<Instant> {
        let since = self.waiting?;
        match self.state {
            State::Active | State::Standby => Some(since + late),
            State::Suspect | State::Validating { .. } => Some(since + dead),
            State::Dead { .. } => None,
        }
    }

    /// The time at which a probe is due.
    #[must_use]
    pub const fn probe_at(&self) -> Instant {
        self.probe
    }

    /// Makes a probe due now.
    pub fn probe_now(&mut self, now: Instant) {
        self.probe = now;
    }

    fn probe_interval(&self, now: Instant) -> Duration {
        match self.state {
            State::Active | State::Standby if self.is_spare => SPARE_PROBE,
            State::Dead { since } if self.is_spare && now.saturating_since(since) > LONG_DEAD => {
                SPARE_PROBE
            }
            State::Active | State::Standby => IDLE_PROBE,
            State::Suspect => SUSPECT_PROBE,
            State::Validating { .. } => VALIDATING_PROBE,
            State::Dead { since } if now.saturating_since(since) > LONG_DEAD => LONG_DEAD_PROBE,
            State::Dead { .. } => DEAD_PROBE,
        }
    }
}
