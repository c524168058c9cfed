//! How a flow ended, and when.

use anabranch_core::units::Instant;
use anabranch_tcp::Ending;
use serde::Serialize;

/// How a flow of one connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// All of a file has arrived, or the application stopped when it was to.
    Completed,
    /// It had not ended when the run did.
    Running,
    /// A reset broke it off.
    Reset,
    /// An end gave up: nothing answered for too long, or by the time at which the application stopped.
    GaveUp,
    /// The other end answered the SYN by a reset.
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

/// What is known of a flow's end.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ends {
    /// When all of a file had arrived.
    pub completed: Option<Instant>,
    /// What broke the connection off, at either end.
    pub broken: [Option<(Ended, Instant)>; 2],
    /// When the application stopped, if that was before the end of the run, something had arrived, and it was not to
    /// transfer a file.
    pub stopped: Option<Instant>,
}

impl Ends {
    /// How the flow ended, and when: whatever came first.
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
    fn the_first_end_counts() {
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
        // A file that arrived is whole, whatever became of its connection since.
        let file = Ends {
            completed: Some(at(10)),
            ..ends
        };
        assert_eq!(file.first(), (Ended::Completed, Some(at(10))));
    }

    #[test]
    fn names_are_those_of_the_contract() {
        let name = |ended: Ended| serde_json::to_value(ended).expect("plain data");
        assert_eq!(name(Ended::GaveUp), "gave-up");
        assert_eq!(name(Ended::Completed), "completed");
        assert_eq!(name(Ended::Running), "running");
        assert_eq!(name(Ended::Reset), "reset");
        assert_eq!(name(Ended::Refused), "refused");
    }
}
