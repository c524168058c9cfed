//! Whether a path delivers what this end sends on it. Each end decides for its own direction.
//!
//! ```text
//! validating --reported--> active or standby --late--> suspect --silent--> dead
//!                                 ^--------reported-------'                 |
//! validating <--------------------a probe sent since is reported------------'
//! ```
//!
//! A path that returns is used again once it has been reported for a hold time, which doubles each time that it dies within a
//! minute of its return. A path that never was reported is used at the first report.

use anabranch_core::units::{Duration, Instant};

use crate::policy::Role;

/// Between probes of a path that carries nothing else.
const IDLE_PROBE: Duration = Duration::from_millis(250);
/// Between probes of a metered path that delivers, while another does.
const SPARE_PROBE: Duration = Duration::from_secs(1);
/// Between probes of a suspect path.
const SUSPECT_PROBE: Duration = Duration::from_millis(10);
/// Between probes of a path that is validated.
const VALIDATING_PROBE: Duration = Duration::from_millis(50);
/// Between probes of a dead path, and of one that has been dead for [`LONG_DEAD`].
const DEAD_PROBE: Duration = Duration::from_millis(100);
const LONG_DEAD_PROBE: Duration = Duration::from_millis(300);
const LONG_DEAD: Duration = Duration::from_secs(10);
/// How long a returning path must be reported, at first and at most.
const HOLD: Duration = Duration::from_millis(300);
const HOLD_MAX: Duration = Duration::from_secs(30);
/// A path that dies this soon after its return flaps.
const FLAP: Duration = Duration::from_secs(60);

/// The state of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Probed; `reported` since then, if at all.
    Validating {
        /// When the first report came.
        reported: Option<Instant>,
    },
    /// It delivers.
    Active,
    /// It delivers, and is used where no active path is.
    Standby,
    /// Its report is late.
    Suspect,
    /// Nothing was reported for too long.
    Dead {
        /// Since when.
        since: Instant,
    },
}

/// How good it is to use a path; the least is best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Usable {
    /// It is active.
    Active,
    /// It is a backup.
    Standby,
    /// It is metered.
    Metered,
    /// It may have died.
    Suspect,
    /// It returns.
    Returning,
}

/// The state and its timers.
#[derive(Debug, Clone)]
pub struct Liveness {
    state: State,
    role: Role,
    /// It is metered, and another path delivers.
    is_spare: bool,
    /// When the oldest packet was sent that should have been reported since.
    waiting: Option<Instant>,
    probe: Instant,
    hold: Duration,
    returned: Option<Instant>,
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
            ever_reported: false,
            deaths: 0,
        }
    }

    /// The state.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// How often it died.
    #[must_use]
    pub const fn deaths(&self) -> u64 {
        self.deaths
    }

    /// Whether packets may be sent on it, and how good that is.
    #[must_use]
    pub const fn usable(&self) -> Option<Usable> {
        match self.state {
            State::Active => Some(Usable::Active),
            State::Standby if self.is_metered() => Some(Usable::Metered),
            State::Standby => Some(Usable::Standby),
            State::Suspect => Some(Usable::Suspect),
            State::Validating { reported: Some(_) } => Some(Usable::Returning),
            State::Validating { reported: None } | State::Dead { .. } => None,
        }
    }

    /// When the oldest packet was sent that should have been reported since.
    #[must_use]
    pub const fn waiting(&self) -> Option<Instant> {
        self.waiting
    }

    /// Whether it is metered.
    #[must_use]
    pub const fn is_metered(&self) -> bool {
        matches!(self.role, Role::Metered)
    }

    /// Whether it delivers, as far as is known.
    #[must_use]
    pub const fn is_well(&self) -> bool {
        matches!(self.state, State::Active | State::Standby)
    }

    /// Whether it is metered and another path delivers.
    #[must_use]
    pub const fn is_spare(&self) -> bool {
        self.is_spare
    }

    /// Whether another path delivers has changed, or may have.
    pub fn set_spare(&mut self, is_spare: bool, now: Instant) {
        if self.is_spare && !is_spare {
            self.probe = now;
        }
        self.is_spare = is_spare;
    }

    /// The operator's decision has changed.
    pub fn set_role(&mut self, role: Role) {
        self.role = role;
        if self.is_well() {
            self.state = self.working();
        }
    }

    /// Whether it is dead.
    #[must_use]
    pub const fn is_dead(&self) -> bool {
        matches!(self.state, State::Dead { .. })
    }

    /// A packet was sent whose arrival will be reported. A probe follows after `tail`, if any, unless another packet does or all is reported.
    pub fn on_sent(&mut self, now: Instant, tail: Option<Duration>) {
        self.waiting = self.waiting.or(Some(now));
        let interval = self.probe_interval(now);
        self.probe = now + tail.map_or(interval, |tail| tail.min(interval));
    }

    /// A higher number is reported than before, which was sent at `sent`; `waiting` is when the next one was sent.
    pub fn on_report(&mut self, now: Instant, sent: Instant, waiting: Option<Instant>) {
        self.waiting = waiting;
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
    }

    const fn working(&self) -> State {
        match self.role {
            Role::Active => State::Active,
            Role::Backup | Role::Metered => State::Standby,
        }
    }

    /// Time has passed, with reports late and paths dead after these times. Whether packets outstanding should go elsewhere.
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

    /// The path is known to be dead: its interface has lost the carrier.
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

    /// When [`Self::advance`] has something to do, if nothing is reported until then.
    #[must_use]
    pub fn timeout(&self, late: Duration, dead: Duration) -> Option<Instant> {
        let since = self.waiting?;
        match self.state {
            State::Active | State::Standby => Some(since + late),
            State::Suspect | State::Validating { .. } => Some(since + dead),
            State::Dead { .. } => None,
        }
    }

    /// When a probe is due.
    #[must_use]
    pub const fn probe_at(&self) -> Instant {
        self.probe
    }

    /// Probe at once.
    pub fn probe_now(&mut self, now: Instant) {
        self.probe = now;
    }

    fn probe_interval(&self, now: Instant) -> Duration {
        if self.is_spare && self.is_well() {
            return SPARE_PROBE;
        }
        match self.state {
            State::Active | State::Standby => IDLE_PROBE,
            State::Suspect => SUSPECT_PROBE,
            State::Validating { .. } => VALIDATING_PROBE,
            State::Dead { since } if now.saturating_since(since) > LONG_DEAD => LONG_DEAD_PROBE,
            State::Dead { .. } => DEAD_PROBE,
        }
    }
}
