//! Fast recovery.

use super::{Meta, Wait};

pub(super) const META: Meta = Meta {
    name: "fast-recovery",
    title: "Fast recovery",
    meaning: "The sender repaired a loss and sent no more than recovery permits.",
    evidence: "The interval lies between the first retransmission of an episode and the acknowledgment of all data sent before it.",
    confusion: "A recovery without a loss is given to reordering.",
};

pub(super) fn holds(wait: &Wait) -> bool {
    wait.is_recovering
}
