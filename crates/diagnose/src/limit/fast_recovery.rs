//! Fast recovery.

use super::{LOSSES, Meta, Party, Wait};

pub(super) const META: Meta = Meta {
    name: "fast-recovery",
    title: "Fast recovery",
    meaning: "The sender repaired a loss and sent no more than recovery permits.",
    evidence: "The interval lies between the first retransmission of an episode and the acknowledgment of all data sent before it.",
    confusion: "A recovery without a loss is given to reordering.",
    next: LOSSES,
    party: Some(Party::Network),
    costs_time: true,
    ..Meta::PLAIN
};

pub(super) fn holds(wait: &Wait) -> bool {
    wait.is_recovering
}
