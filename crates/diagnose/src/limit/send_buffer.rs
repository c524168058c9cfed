//! Send buffer.

use super::{Meta, Party, Wait};

pub(super) const META: Meta = Meta {
    name: "send-buffer",
    title: "Send buffer",
    meaning: "The sender's socket buffer held no more data.",
    evidence: "The amount in flight stayed the same over many round trips without a loss, below the receiver's window, no queue built up, and the sender's waits were not where writes ended; or half of it had been acknowledged before an acknowledgment released more, again and again.",
    confusion: "A congestion window that does not grow; an application whose large writes come once per round trip.",
    next: "enlarge the send buffer of {sender} (SO_SNDBUF, tcp_wmem)",
    party: Some(Party::Sender),
    costs_time: true,
    ..Meta::PLAIN
};

pub(super) fn holds(wait: &Wait) -> bool {
    // A small segment waits for Nagle's algorithm. With a queue on the path, more data in the
    // buffer would only wait in that queue.
    let is_held = wait.is_level && !wait.ends_writes && !wait.is_queued && !wait.is_next_small;
    wait.is_refill || (wait.is_blocked && is_held && !wait.is_pace_or_buffer)
}
