//! Losses of several segments in a row that no queue explains.

use super::{Case, Finding, Meta, counted};

pub(super) const META: Meta = Meta {
    name: "burst-loss",
    title: "Burst loss",
    meaning: "The path loses several segments in a row.",
    evidence: "Segments were lost while the queue was not full, half as many again as there were gaps, or more.",
    confusion: "A queue that other traffic fills for moments; a handover.",
    ..Meta::PLAIN
};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let runs = case.unexplained_losses()?;
    let losses = runs.concat();
    let text = || {
        format!(
            "{} were lost in {} while no queue was full.",
            counted(losses.len(), "segment"),
            counted(runs.len(), "burst")
        )
    };
    (2 * losses.len() >= 3 * runs.len()).then(|| case.losing(&losses, &text()))
}
