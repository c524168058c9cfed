//! Bottleneck.

use super::{Meta, Party, Wait};

pub(super) const META: Meta = Meta {
    name: "bottleneck",
    title: "Bottleneck",
    meaning: "The sender filled the path, and its data waited in a queue.",
    evidence: "Acknowledgments released the segments, and the round trip was longer than the least one by a quarter.",
    confusion: "Cross traffic that fills the same queue.",
    next: "the path is full: more capacity, or less beside it; CAKE or FQ-CoDel keeps its delay down",
    party: Some(Party::Network),
    ..Meta::PLAIN
};

pub(super) fn holds(wait: &Wait) -> bool {
    wait.is_blocked && wait.is_queued && !wait.is_unclear
}
