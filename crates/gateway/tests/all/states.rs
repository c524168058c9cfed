//! The reference model of a path's states: the permitted transitions, their causes and their
//! conditions. A network checks every transition of every path at both ends against it.

use super::network::End;
use anabranch_core::units::Duration;
use anabranch_gateway::{path::State, time::Instant, tunnel::Stats};
use std::collections::BTreeMap;

const MS: Duration = Duration::from_millis(1);
/// The minimum age of the oldest packet without a report when a path becomes suspect, and dead.
const LATE: Duration = Duration::from_millis(30);
const SILENCE: Duration = Duration::from_millis(150);
/// The minimum time until a returning path is used.
const HOLD: Duration = Duration::from_millis(300);

/// The states by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    Validating,
    Returning,
    Active,
    Standby,
    Suspect,
    Dead,
}

use Name::{Active, Dead, Returning, Standby, Suspect, Validating};

fn name(state: State) -> Name {
    match state {
        State::Validating { reported: None } => Validating,
        State::Validating { reported: Some(_) } => Returning,
        State::Active => Active,
        State::Standby => Standby,
        State::Suspect => Suspect,
        State::Dead { .. } => Dead,
    }
}

/// The cause of a change of state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A datagram arrived.
    Datagram,
    /// Time passed.
    Time,
}

use Cause::{Datagram, Time};

/// The history of a path before a transition.
#[derive(Debug, Clone, Copy)]
pub struct Past {
    name: Name,
    since: Instant,
    /// Whether it has delivered since the end started.
    has_worked: bool,
    /// The sending time of the oldest packet without a report.
    waiting: Option<Instant>,
}

fn silent(past: &Past, now: Instant) -> Duration {
    past.waiting
        .map_or(Duration::ZERO, |since| now.saturating_since(since))
}

type Condition = fn(&Past, Instant) -> bool;

const ALWAYS: Condition = |_, _| true;
const IS_NEW: Condition = |past, _| !past.has_worked;
const IS_KNOWN: Condition = |past, _| past.has_worked;
const HELD: Condition = |past, now| now.saturating_since(past.since) >= HOLD;
const IS_LATE: Condition = |past, now| silent(past, now) >= LATE;
const IS_SILENT: Condition = |past, now| silent(past, now) >= SILENCE;
/// A probe sent since the death has arrived and its report has returned: no delay of these networks
/// is below a millisecond.
const PROBED: Condition = |past, now| past.has_worked && now.saturating_since(past.since) >= MS * 2;

/// All permitted transitions.
const TABLE: &[(Name, Name, Cause, Condition)] = &[
    (Validating, Active, Datagram, IS_NEW),
    (Validating, Standby, Datagram, IS_NEW),
    (Validating, Returning, Datagram, IS_KNOWN),
    (Validating, Dead, Time, IS_SILENT),
    (Returning, Active, Datagram, HELD),
    (Returning, Standby, Datagram, HELD),
    (Returning, Dead, Time, IS_SILENT),
    (Active, Suspect, Time, IS_LATE),
    (Standby, Suspect, Time, IS_LATE),
    // The other end's role has changed, or become known.
    (Active, Standby, Datagram, ALWAYS),
    (Standby, Active, Datagram, ALWAYS),
    (Suspect, Active, Datagram, ALWAYS),
    (Suspect, Standby, Datagram, ALWAYS),
    (Suspect, Dead, Time, IS_SILENT),
    (Dead, Active, Datagram, IS_NEW),
    (Dead, Standby, Datagram, IS_NEW),
    (Dead, Returning, Datagram, PROBED),
];

/// Tracks the states of all paths.
#[derive(Debug, Default)]
pub struct Watch {
    paths: BTreeMap<(End, u8), Past>,
    /// Number of transitions seen.
    pub seen: u64,
}

impl Watch {
    /// Handles a restart of an end.
    pub fn restart(&mut self, end: End) {
        self.paths.retain(|&(of, _), _| of != end);
    }

    /// Handles a removed and re-added path of an end.
    pub fn reload(&mut self, end: End, path: u8) {
        self.paths.remove(&(end, path));
    }

    /// Handles the loss of a carrier, after which the path is dead in any case.
    pub fn lose_carrier(&mut self, end: End, path: u8, now: Instant) {
        let dead = Past {
            name: Dead,
            since: now,
            has_worked: false,
            waiting: None,
        };
        let past = self.paths.entry((end, path)).or_insert(dead);
        *past = Past {
            has_worked: past.has_worked,
            ..dead
        };
    }

    /// Checks the changes since the last call.
    pub fn check(&mut self, end: End, stats: &Stats, cause: Cause, now: Instant) {
        for path in &stats.paths {
            let to = name(path.state);
            let fresh = Past {
                name: Validating,
                since: now,
                has_worked: false,
                waiting: None,
            };
            let past = self.paths.entry((end, path.path.number())).or_insert(fresh);
            if past.name == to {
                past.waiting = path.waiting;
                continue;
            }
            let is_allowed = TABLE.iter().any(|&(before, after, by, condition)| {
                (before, after, by) == (past.name, to, cause) && condition(past, now)
            });
            assert!(
                is_allowed,
                "end {end}, {:?}: {past:?} to {to:?} by {cause:?} at {now:?}",
                path.path
            );
            let has_worked = past.has_worked || !matches!(to, Dead);
            *past = Past {
                name: to,
                since: now,
                has_worked,
                waiting: path.waiting,
            };
            self.seen += 1;
        }
    }
}

#[test]
#[should_panic(expected = "by Time")]
fn the_model_refuses_transitions_that_the_table_lacks() {
    let mut network = super::network::Network::new(1, vec![Default::default()], false);
    network.run(MS * 2_000);
    let stats = network.stats(0);
    Watch::default().check(0, &stats, Time, network.now);
}
