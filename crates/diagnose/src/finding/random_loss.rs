//! Losses of single segments that no queue explains.

use super::{Case, Finding, Meta, counted, percent, were};

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
    is_single.then(|| Finding {
        share: case.of_segments(losses.len()),
        text: format!(
            "{} to {}: {} ({}) {} lost singly while no queue was full.",
            case.sender,
            case.receiver,
            counted(losses.len(), "segment"),
            percent(case.of_segments(losses.len())),
            were(losses.len())
        ),
        packets: case.frames(&losses),
    })
}
