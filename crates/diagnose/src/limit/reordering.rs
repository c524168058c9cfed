//! Reordering.

use super::{Meta, Party, Wait};

pub(super) const META: Meta = Meta {
    name: "reordering",
    title: "Reordering",
    meaning: "The sender took reordered or delayed packets for lost ones and reduced its window.",
    evidence: "The interval is a fast recovery of which every retransmission proved spurious.",
    confusion: "Acknowledgments that were lost.",
    next: "look for links that packets are spread over; RACK at {sender} waits for late segments",
    party: Some(Party::Network),
    costs_time: true,
    ..Meta::PLAIN
};

/// Never holds during the account: the verdicts on a recovery's retransmissions move its time here
/// from fast recovery.
pub(super) fn holds(_: &Wait) -> bool {
    false
}
