//! Receive window.

use super::{Meta, Party, Wait};

pub(super) const META: Meta = Meta {
    name: "receive-window",
    title: "Receive window",
    meaning: "The receiver's window was full: more could have been sent into a larger one.",
    evidence: "What was in flight left less than a segment of room in the window, after the last segment or one shortly before.",
    confusion: "A sender that has sent all its data just when the window was full.",
    next: "enlarge the receive buffer of {receiver} (SO_RCVBUF, tcp_rmem); both SYNs must scale windows",
    party: Some(Party::Receiver),
    costs_time: true,
    ..Meta::PLAIN
};

pub(super) fn holds(wait: &Wait) -> bool {
    let is_full = wait
        .room
        .is_some_and(|room| room < wait.mss.max(wait.next_length));
    // Nothing could be sent into a full window, whatever released the segment later.
    (is_full && !wait.is_idle && !wait.is_last)
        || (wait.is_blocked && (wait.was_full || (wait.is_level && wait.fills_window)))
}
