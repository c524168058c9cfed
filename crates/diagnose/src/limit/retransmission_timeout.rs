//! Retransmission timeout.

use super::{LOSSES, Meta, Party, Wait};

pub(super) const META: Meta = Meta {
    name: "retransmission-timeout",
    title: "Retransmission timeout",
    meaning: "The sender waited for its retransmission timer or a tail loss probe.",
    evidence: "The interval ends with a retransmission that no acknowledgment released, or with one full segment of new data after twice the round trip.",
    confusion: "A delay on the path that is longer than the timer looks the same until the acknowledgment arrives.",
    next: LOSSES,
    party: Some(Party::Network),
    costs_time: true,
    ..Meta::PLAIN
};

pub(super) fn holds(wait: &Wait) -> bool {
    wait.ends_with_timer
}
