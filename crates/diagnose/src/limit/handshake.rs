//! Handshake.

use super::{Meta, Wait};

pub(super) const META: Meta = Meta {
    name: "handshake",
    title: "Handshake",
    meaning: "The connection was not open yet.",
    evidence: "The interval lies before the first segment that carries data or completes the handshake.",
    confusion: "A server that accepts late looks like a long path.",
    next: "capture at {receiver} as well: is the SYN late, or the answer?",
    costs_time: true,
    ..Meta::PLAIN
};

pub(super) fn holds(wait: &Wait) -> bool {
    wait.is_opening
}
