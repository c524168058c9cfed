//! Delayed acknowledgment with Nagle.

use super::{Meta, Wait};

pub(super) const META: Meta = Meta {
    name: "delayed-ack-nagle",
    title: "Delayed acknowledgment with Nagle",
    meaning: "A small segment waited for an acknowledgment that the receiver delayed.",
    evidence: "The acknowledgment came later than the path explains and released a segment that was smaller than the MSS.",
    confusion: "An application that writes at the same pace.",
    next: "set TCP_NODELAY at {sender}, or let its program write whole messages",
    costs_time: true,
    ..Meta::PLAIN
};

pub(super) fn holds(wait: &Wait) -> bool {
    wait.is_blocked && wait.is_ack_delayed && (wait.is_small || wait.is_next_small)
}
