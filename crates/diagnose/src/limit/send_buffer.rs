//! Send buffer.

use super::{Meta, Wait};

pub(super) const META: Meta = Meta {
    name: "send-buffer",
    title: "Send buffer",
    meaning: "The sender's socket buffer held no more data.",
    evidence: "The amount in flight stayed the same over many round trips without a loss, below the receiver's window, and no queue built up.",
    confusion: "A congestion window that does not grow.",
};

pub(super) fn holds(wait: &Wait) -> bool {
    // With a queue on the path more in the buffer would only wait there.
    wait.is_blocked && wait.is_level && !wait.is_queued
}
