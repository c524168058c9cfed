//! Segments that were lost before the capture point.

use super::{Case, Finding, Meta, percent};

pub(super) const META: Meta = Meta {
    name: "loss-before-capture",
    title: "Loss before the capture point",
    meaning: "Segments were lost between the capture point and the sender.",
    evidence: "The capture has no earlier copy of what was retransmitted.",
    confusion: "A capture that drops packets, if the acknowledgment comes before the retransmission can.",
};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let mut losses = case.losses();
    losses.retain(|one| one.lost == "before");
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
            case.sender
        ),
        packets: case.frames(&losses),
    })
}
