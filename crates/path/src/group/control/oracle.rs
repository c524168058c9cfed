//! Offline optimum: a schedule computed from the arrivals of the whole run.
//!
//! The arrivals of the whole run are first recorded in bins, with all members on. A bin *needs* the
//! number of members that carry its arrivals and the backlog that all members together could not
//! carry before; it is *overloaded* if fewer are on. The schedule has the least time awake, summed
//! over members and including wake-up times, of all schedules that overload at most the share
//! `overloaded` of the bins, rounded down. Bins are counted from the start of the run to the last
//! bin with arrivals. A member is woken early enough (waking up and the exchange of LACPDUs) to
//! carry packets from the start of the bin, and stays on through gaps too short to sleep and wake
//! up again. [`optimum`] describes the search, which is exact for runs of up to two minutes with
//! 0.1 % of eight members' bins.
//!
//! With `bin` 1 ms, no warm-up, and all members together never overloaded, overloaded bins are
//! those counted by `overloaded_ms_share`. With `overloaded = 0.001` this is then the minimum time
//! awake of any controller with 0.1 % overloaded milliseconds: fewest member-milliseconds, changes
//! at whole milliseconds.
//!
//! Arrivals must not depend on the group's actions. With TCP they would, so such a scenario is
//! rejected.
//!
//! Source: the upper bound on savings with which S. Nedevschi et al., "Reducing Network Energy
//! Consumption via Sleeping and Rate-Adaptation", NSDI 2008, compare their algorithms. The bins are
//! specific to this project.

use std::collections::VecDeque;

use anabranch_core::{
    registry::{Meta, Source},
    units::{Duration, Instant},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ControlParams, Controller, Init, Span, params::Share};

pub mod optimum;

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "oracle",
    title: "Offline optimum",
    summary: "Replays a schedule made from the recorded arrivals of the same run: the fewest members that carry them. For \
              traffic that does not react, to compare with.",
    sources: &[Source {
        id: "Nedevschi et al. 2008 (NSDI)",
        items: &["the maximum that any algorithm achieves"],
    }],
};

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Time over which bytes are counted, and between possible changes.
    pub bin: Span,
    /// Share of bins that may have fewer members than they need, 0 to 1.
    pub overloaded: Share,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            bin: Span::from_micros(1_000),
            overloaded: Share::new(0.0),
        }
    }
}

impl ControlParams for Params {}

/// The oracle: it records in the first run and replays in the second.
#[derive(Debug)]
pub struct Oracle {
    bin: Duration,
    members: u32,
    /// Changes: (time, number of members).
    schedule: VecDeque<(Instant, u32)>,
    /// Bytes by bin, if it records.
    recorded: Option<Vec<u64>>,
}

impl Oracle {
    /// Creates the controller with the schedule for [`Init::arrivals`]; without arrivals it
    /// records.
    #[must_use]
    pub fn new(params: &Params, init: &Init<'_>) -> Self {
        let bin = params.bin.get();
        let schedule = init
            .arrivals
            .map(|arrivals| schedule(arrivals, params, init))
            .unwrap_or_default();
        Self {
            bin,
            members: init.members,
            schedule: schedule.into(),
            recorded: init.arrivals.is_none().then(Vec::new),
        }
    }
}

/// Number of members that each bin needs.
#[must_use]
pub fn needs(arrivals: &[u64], bin: Duration, init: &Init<'_>) -> Vec<u32> {
    let one = u128::from(init.rate.bits_per_s()) * u128::from(bin.as_picos());
    let mut backlog = 0_u128;
    arrivals
        .iter()
        .map(|&bytes| {
            // In bits times picoseconds per second, so that nothing is rounded.
            backlog += u128::from(bytes) * 8 * super::PS_PER_S;
            let members = init.members_for(backlog.div_ceil(super::PS_PER_S), bin);
            backlog = backlog.saturating_sub(one * u128::from(members));
            members
        })
        .collect()
}

/// Times of changes, early enough to wake up, and the number of members from then on.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a length, rounded down"
)]
pub fn schedule(arrivals: &[u64], params: &Params, init: &Init<'_>) -> Vec<(Instant, u32)> {
    let bin = params.bin.get();
    let needs = needs(arrivals, bin, init);
    let problem = optimum::Problem {
        needs: &needs,
        members: init.members,
        bin: bin.as_picos(),
        lead: init.lead.as_picos(),
    };
    let most = (params.overloaded.get() * needs.len() as f64).floor() as u64;
    let needs = problem.solve(most).on;
    let start = |k: usize| Instant::START + bin * (k as u64);
    // By member: the times at which it is switched on (early) and off. Member m is on if more than
    // m are needed.
    let mut steps: Vec<(Instant, i64)> = Vec::new();
    for member in 1..init.members {
        // All are on at the start of the run.
        let idle_first = needs.first().is_none_or(|need| *need <= member);
        let mut off = idle_first.then_some(Instant::START);
        for (k, need) in needs.iter().enumerate() {
            match (*need > member, off) {
                (true, Some(since)) => {
                    off = None;
                    let wake = start(k).as_picos().saturating_sub(init.lead.as_picos());
                    let wake = Instant::from_picos(wake);
                    // Otherwise the gap is too short, and it stays on.
                    if wake > since {
                        steps.extend([(since, -1), (wake, 1)]);
                    }
                }
                (false, None) => off = Some(start(k)),
                _ => {}
            }
        }
        if let Some(since) = off {
            steps.push((since, -1));
        }
    }
    steps.sort_unstable();
    let mut on = i64::from(init.members);
    let mut changes: Vec<(Instant, u32)> = Vec::new();
    for (at, step) in steps {
        on += step;
        let now = u32::try_from(on).unwrap_or(1);
        match changes.last_mut().filter(|(last, _)| *last == at) {
            Some((_, members)) => *members = now,
            None => changes.push((at, now)),
        }
    }
    changes
}

impl Controller for Oracle {
    #[inline]
    fn on_arrival(&mut self, now: Instant, bytes: u32) {
        let Some(recorded) = &mut self.recorded else {
            return;
        };
        let bin = usize::try_from(now.as_picos() / self.bin.as_picos())
            .expect("bins of a run are counted in memory");
        if recorded.len() <= bin {
            recorded.resize(bin + 1, 0);
        }
        recorded[bin] += u64::from(bytes);
    }
    fn next_decision(&self) -> Instant {
        self.schedule.front().map_or(Instant::NEVER, |(at, _)| *at)
    }
    fn decide(&mut self, _now: Instant) -> u32 {
        if let Some((_, members)) = self.schedule.pop_front() {
            self.members = members;
        }
        self.members
    }
    fn recorded(&self) -> Option<Vec<u64>> {
        self.recorded.clone()
    }
}
