//! The outcome of a flow, and its time.

use anabranch_core::units::Instant;
use anabranch_tcp::Ending;
use serde::Serialize;

/// The outcome of a flow with one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// All of a file has arrived, or the application stopped as scheduled.
    Completed,
    /// It was still running at the end of the run.
    Running,
    /// A reset aborted it.
    Reset,
    /// An end gave up: it received no answer for too long, or until the application stopped.
    GaveUp,
    /// The other end answered the SYN with a reset.
    Refused,
}

impl From<Ending> for Ended {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Reset | Ending::Aborted => Self::Reset,
            Ending::Refused => Self::Refused,
            Ending::TimedOut | Ending::Abandoned => Self::GaveUp,
        }
    }
}

/// The observed ends of a flow.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ends {
    /// The time at which all of a file had arrived.
    pub completed: Option<Instant>,
    /// The abort of the connection at either end.
    pub broken: [Option<(Ended, Instant)>; 2],
    /// The time at which the application stopped, if that was before the end of the run, data had
    /// arrived, and it was not transferring a file.
    pub stopped: Option<Instant>,
}

impl Ends {
    /// The outcome of the flow and its time: the earliest end counts.
    #[must_use]
    pub fn first(&self) -> (Ended, Option<Instant>) {
        let whole = self.completed.or(self.stopped);
        let whole = whole.map(|at| (Ended::Completed, at));
        let all = [whole, self.broken[0], self.broken[1]];
        let first = all.into_iter().flatten().min_by_key(|(_, at)| *at);
        first.map_or((Ended::Running, None), |(ended, at)| (ended, Some(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn the_earliest_end_counts() {
        assert_eq!(Ends::default().first(), (Ended::Running, None));
        let ends = Ends {
            completed: None,
            broken: [Some((Ended::GaveUp, at(30))), Some((Ended::Reset, at(40)))],
            stopped: Some(at(50)),
        };
        assert_eq!(ends.first(), (Ended::GaveUp, Some(at(30))));
        let stopped = Ends {
            stopped: Some(at(20)),
            ..ends
        };
        assert_eq!(stopped.first(), (Ended::Completed, Some(at(20))));
        // A file that has arrived is complete, regardless of the later state of its connection.
        let file = Ends {
            completed: Some(at(10)),
            ..ends
        };
        assert_eq!(file.first(), (Ended::Completed, Some(at(10))));
    }

    #[test]
    fn outcome_names_match_the_contract() {
        let name = |ended: Ended| serde_json::to_value(ended).expect("plain data");
        assert_eq!(name(Ended::GaveUp), "gave-up");
        assert_eq!(name(Ended::Completed), "completed");
        assert_eq!(name(Ended::Running), "running");
        assert_eq!(name(Ended::Reset), "reset");
        assert_eq!(name(Ended::Refused), "refused");
    }
}
