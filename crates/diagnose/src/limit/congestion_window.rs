//! Congestion window.

use super::{Meta, Party, Wait};

pub(super) const META: Meta = Meta {
    name: "congestion-window",
    title: "Congestion window",
    meaning: "The congestion window limited the sender; the path had spare capacity.",
    evidence: "Acknowledgments released the segments, and the round trip was near the least one.",
    confusion: "A send buffer that is small.",
    next: "let --advise try other congestion controls of {sender}",
    party: Some(Party::Network),
    ..Meta::PLAIN
};

pub(super) fn holds(wait: &Wait) -> bool {
    wait.is_blocked && !wait.is_unclear && !wait.is_pace_or_buffer
}
