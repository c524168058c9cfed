//! Switches that a reordering remedy needs.

use super::{Overrides, Problem, Recovery, Settings};
use crate::remedy::Choice;

impl Settings {
    /// Replaces loss detection by a remedy, unless the scenario sets it by name.
    pub(super) fn take_remedy(&mut self, choice: &Choice, over: &Overrides) -> Result<(), Problem> {
        if over.max_dupthresh.is_some() && self.adapts_dupthresh() {
            return Err(Problem {
                field: "reordering",
                message: "contradicts max_dupthresh, which is a remedy itself".to_owned(),
            });
        }
        self.max_dupthresh = self.dupthresh;
        if self.recovery == Recovery::Rack && over.rack.is_none() && over.recovery.is_none() {
            self.recovery = Recovery::Rfc6675;
        }
        if choice.0.needs().undo {
            self.undo = over.undo.unwrap_or(true);
        }
        self.reordering = Some(choice.clone());
        Ok(())
    }

    pub(super) fn check_remedy(&self) -> Result<(), Problem> {
        let Some(choice) = &self.reordering else {
            return Ok(());
        };
        let (name, needs) = (choice.0.name(), choice.0.needs());
        let lacks = [
            (
                self.recovery == Recovery::Rack,
                "contradicts \"rack\", which detects losses by time: needs recovery = \"rfc6675\"",
            ),
            (needs.sack && !self.sack, "needs sack = true"),
            (
                needs.sack && !self.recovery.needs_sack(),
                "needs recovery = \"rfc6675\"",
            ),
            (
                needs.dsack && !self.dsack,
                "needs dsack = true, because it learns from duplicates that the peer reports",
            ),
        ];
        match lacks.into_iter().find(|(lacks, _)| *lacks) {
            Some((_, what)) => Err(Problem {
                field: "reordering",
                message: format!("\"{name}\" {what}"),
            }),
            None => Ok(()),
        }
    }
}
