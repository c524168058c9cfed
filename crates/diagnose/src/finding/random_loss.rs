//! Losses of single segments that no queue explains.

use super::{Case, Finding, Meta};

pub(super) const META: Meta = Meta {
    name: "random-loss",
    title: "Random loss",
    meaning: "The path loses single segments.",
    evidence: "Segments were lost while the queue was not full, seldom two in a row.",
    confusion: "A policer that leaves few tokens; a queue that other traffic fills for moments.",
    ..Meta::PLAIN
};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let runs = case.unexplained_losses()?;
    let losses = runs.concat();
    let is_single = 2 * losses.len() < 3 * runs.len();
    let found = is_single.then(|| case.lost(&losses, "singly while no queue was full"));
    found.flatten()
}
