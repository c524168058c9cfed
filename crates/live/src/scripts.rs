//! Behaviour scripts on this machine's kernel: repeated runs, and their common outcome.

use std::thread;

use anabranch_core::units::Duration;
use anabranch_script::{Cause, Error, Script, Target, run};

use crate::KernelTarget;

/// A run is late if the runner waited longer than this for a processor: half of the tolerance of
/// packet times.
const LATE: Duration = Duration::from_millis(5);
/// Added to the sequence numbers of the script's packets.
const OFFSET: u32 = 1_000_000;

/// The outcome of a script on a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelOutcome {
    /// The kernel agrees in every run.
    Agrees,
    /// The kernel differs in every run.
    Differs,
    /// The kernel agrees in some runs.
    Varies,
    /// The machine was too busy for a result.
    Late,
    /// The kernel does not have a setting that the script needs.
    NotApplicable,
    /// The script is wrong.
    Invalid,
    /// There is no result.
    Failed,
}

impl KernelOutcome {
    /// Its name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::Varies => "varies",
            Self::Late => "late",
            Self::NotApplicable => "not-applicable",
            Self::Invalid => "invalid",
            Self::Failed => "failed",
        }
    }
}

/// The result of one run.
#[derive(Debug)]
enum Attempt {
    Agreed,
    Differed(Error),
    Late(Error),
    Ended(KernelOutcome, String, Option<Error>),
}

/// The results of a script's runs.
#[derive(Debug, Default)]
pub struct ScriptRuns {
    /// Runs in which the kernel agreed.
    pub agreed: usize,
    differed: usize,
    late: usize,
    /// The first difference of the kernel; without one, that of a late run.
    error: Option<Error>,
    /// The reason to end the runs, which overrides the other results.
    end: Option<(KernelOutcome, String)>,
}

impl ScriptRuns {
    /// The number of runs with a result.
    #[must_use]
    pub const fn runs(&self) -> usize {
        self.agreed + self.differed
    }

    /// Whether further runs are pointless.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// The first difference, or the error in the script.
    #[must_use]
    pub const fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    /// The reason of an outcome other than agreement.
    #[must_use]
    pub fn message(&self) -> Option<String> {
        match &self.end {
            Some((_, message)) => Some(message.clone()),
            None => self.error.as_ref().map(Error::to_string),
        }
    }

    /// Runs the script until there are `enough` results, or `most` including late ones of this call.
    pub fn run(&mut self, script: &Script, settings: &[(String, i64)], enough: usize, most: usize) {
        self.late = 0;
        while self.end.is_none() && self.runs() < enough && self.runs() + self.late < most {
            // A separate thread, because a thread stays in the namespace that it entered.
            let joined = thread::scope(|scope| scope.spawn(|| attempt(script, settings)).join());
            let panicked = "the runner panicked".to_owned();
            self.add(joined.unwrap_or(Attempt::Ended(KernelOutcome::Failed, panicked, None)));
        }
    }

    fn add(&mut self, attempt: Attempt) {
        match attempt {
            Attempt::Agreed => self.agreed += 1,
            Attempt::Differed(error) => {
                self.differed += 1;
                if self.differed == 1 {
                    self.error = Some(error);
                }
            }
            Attempt::Late(error) => {
                self.late += 1;
                if self.differed == 0 {
                    self.error = Some(error);
                }
            }
            Attempt::Ended(outcome, message, error) => {
                self.end = Some((outcome, message));
                self.error = error;
            }
        }
    }

    /// The outcome; agreement needs this many runs.
    #[must_use]
    pub fn outcome(&self, enough: usize) -> KernelOutcome {
        match (&self.end, self.agreed, self.differed) {
            (Some((outcome, _)), ..) => *outcome,
            (None, agreed, 0) if agreed >= enough && agreed > 0 => KernelOutcome::Agrees,
            (None, _, 0) => KernelOutcome::Late,
            (None, 0, _) => KernelOutcome::Differs,
            (None, ..) => KernelOutcome::Varies,
        }
    }
}

/// Runs a script once, in the calling thread.
fn attempt(script: &Script, settings: &[(String, i64)]) -> Attempt {
    let failed = |message| Attempt::Ended(KernelOutcome::Failed, message, None);
    let mut target = match KernelTarget::new() {
        Ok(target) => target,
        Err(error) => return failed(error.to_string()),
    };
    for (name, value) in settings {
        if let Err(error) = target.sysctl(name, &value.to_string()) {
            return failed(error);
        }
    }
    let Err(error) = run(script, &mut target, OFFSET) else {
        return Attempt::Agreed;
    };
    if let Some(why) = target.hindrance() {
        return Attempt::Ended(KernelOutcome::NotApplicable, why.to_owned(), None);
    }
    if let Some(why) = target.trouble() {
        return failed(why.to_owned());
    }
    match error.cause {
        Cause::Script | Cause::Unsupported => {
            Attempt::Ended(KernelOutcome::Invalid, error.to_string(), Some(error))
        }
        Cause::Target(_) if target.lateness_seen() > LATE => Attempt::Late(error),
        Cause::Target(_) => Attempt::Differed(error),
    }
}
