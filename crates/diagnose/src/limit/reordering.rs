//! Reordering.

use super::{Meta, Wait};

pub(super) const META: Meta = Meta {
    name: "reordering",
    title: "Reordering",
    meaning: "The sender took reordered or delayed packets for lost ones and reduced its window.",
    evidence: "The interval is a fast recovery of which every retransmission proved spurious.",
    confusion: "Acknowledgments that were lost.",
};

/// Only the verdicts on a recovery's retransmissions tell: the time is moved here from fast recovery.
pub(super) fn holds(_: &Wait) -> bool {
    false
}
