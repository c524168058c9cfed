//! Losses of the last segments of a flight.

use super::{Case, Finding, Meta, counted, large_segments_lost, sequence_randomiser};
use crate::limit::Limit;

pub(super) const META: Meta = Meta {
    name: "tail-loss",
    title: "Tail loss",
    meaning: "The last segments of a flight were lost, so that no acknowledgment showed it.",
    evidence: "A timer or a tail loss probe retransmitted a segment for the first time.",
    confusion: "Acknowledgments that were lost.",
    ..Meta::PLAIN
};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let (runs, _) = case.runs();
    let losses = runs.concat();
    // The sender ignores duplicate acknowledgments with wrong SACK blocks, so that only a timer
    // detects a loss.
    let has_other_cause =
        large_segments_lost::is_stuck(case) || sequence_randomiser::is_found(case.data);
    if losses.is_empty() || has_other_cause {
        return None;
    }
    let stalls = case.data.stalls.iter();
    let waits = stalls.filter(|stall| stall.cause == Limit::RetransmissionTimeout);
    let share = case.share(waits.map(|stall| stall.duration_s).sum());
    let flights = counted(runs.len(), "flight");
    let text = format!("the last segments of {flights} were lost, and a timer found it.");
    Some(Finding {
        share,
        ..case.losing(&losses, &text)
    })
}
