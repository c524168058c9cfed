//! Pacing.

use super::{Meta, Party, Wait};

pub(super) const META: Meta = Meta {
    name: "pacing",
    title: "Pacing",
    meaning: "The sender spread its segments over time.",
    evidence: "Full segments followed each other without an acknowledgment that released them, and the last one did not end a write.",
    confusion: "An application that writes full segments at an even pace.",
    next: "find the cause of the pacing of {sender}: SO_MAX_PACING_RATE, its congestion control or its program",
    party: Some(Party::Sender),
    ..Meta::PLAIN
};

pub(super) fn holds(wait: &Wait) -> bool {
    wait.is_paced && !wait.is_blocked && !wait.is_refill
}
