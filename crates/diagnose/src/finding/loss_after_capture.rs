//! Segments that were lost after the capture point.

use super::{Case, Finding, Meta, percent};

pub(super) const META: Meta = Meta {
    name: "loss-after-capture",
    title: "Loss after the capture point",
    meaning: "Segments were lost between the capture point and the receiver.",
    evidence: "The capture has an earlier copy of what was retransmitted, and it did not arrive.",
    confusion: "A capture behind the place of the loss that sees a copy on another way.",
};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let mut losses = case.losses();
    losses.retain(|one| one.lost == "after");
    let share = case.of_segments(losses.len());
    (!losses.is_empty()).then(|| Finding {
        cause: META.name,
        share,
        text: format!(
            "{} to {}: {} segments ({}) were lost between the capture point and {}.",
            case.sender,
            case.receiver,
            losses.len(),
            percent(share),
            case.receiver
        ),
        packets: case.frames(&losses),
    })
}
