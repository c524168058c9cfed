//! Segments that arrive after later ones.

use super::{Case, Finding, Meta, counted, percent};

pub(super) const META: Meta = Meta {
    name: "reordering",
    title: "Reordering",
    meaning: "The path delivers segments after later ones.",
    evidence: "Segments came after later ones and were no retransmissions, or SACKs named a gap that its own segment filled.",
    confusion: "Several members of a link group, or a retransmission below IP.",
    ..Meta::PLAIN
};

/// Minimum share of the segments. Rarer reordering does no harm: RACK and DUPTHRESH tolerate it.
const LEAST: f64 = 0.0005;

/// The point at which segments arrived after later ones.
fn place(before: u64, after: u64, receiver: &str) -> String {
    match (before, after) {
        (_, 0) => "the capture point".to_owned(),
        (0, _) => receiver.to_owned(),
        _ => format!("the capture point ({before}) or {receiver} ({after})"),
    }
}

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    // In a capture with gaps, the retransmission that filled one may be missing.
    let after = case.data.reordered_after_packets;
    let after = if case.data.capture_gaps > 0 { 0 } else { after };
    let before = case.data.reordered_packets;
    let count = before + after;
    let share = case.of_segments(usize::try_from(count).unwrap_or(usize::MAX));
    let text = || {
        format!(
            "{} ({}) reached {} after later ones, and they are no retransmissions.",
            counted(count, "segment"),
            percent(share),
            place(before, after, case.receiver)
        )
    };
    (count > 1 && share >= LEAST).then(|| case.finding(share, &text()))
}
