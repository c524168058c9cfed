//! Losses because a queue was full.

use super::{Case, Finding, Meta, is_overflow};

pub(super) const META: Meta = Meta {
    name: "queue-overflow",
    title: "Full queue",
    meaning: "A queue on the path was full and dropped segments.",
    evidence: "Segments were lost while the round trip was near its longest.",
    confusion: "Random losses on a path whose queue is always full.",
    ..Meta::PLAIN
};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let (_, mut runs) = case.runs();
    runs.retain(|run| is_overflow(run));
    case.lost(&runs.concat(), "while a queue was full")
}
