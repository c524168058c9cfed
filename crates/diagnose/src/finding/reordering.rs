//! Segments that arrive after later ones.

use super::{Case, Finding, Meta, percent};

pub(super) const META: Meta = Meta {
    name: "reordering",
    title: "Reordering",
    meaning: "The path delivers segments after later ones.",
    evidence: "Segments came after later ones without being retransmitted, or SACKs named a gap that its own segment filled.",
    confusion: "Several members of a link group, or a retransmission below IP.",
};

/// Below this share of the segments it does no harm: RACK and DUPTHRESH wait for it.
const LEAST: f64 = 0.0005;

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let (before, after) = (
        case.data.reordered_packets,
        case.data.reordered_after_packets,
    );
    let count = before + after;
    let share = case.of_segments(usize::try_from(count).unwrap_or(usize::MAX));
    (count > 1 && share >= LEAST).then(|| Finding {
        cause: META.name,
        share,
        text: format!(
            "{} to {}: {before} segments reached the capture point after later ones, {after} the receiver ({} in all); they are no retransmissions.",
            case.sender,
            case.receiver,
            percent(share)
        ),
        packets: Vec::new(),
    })
}
