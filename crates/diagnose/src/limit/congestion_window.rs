//! Congestion window.

use super::{Meta, Wait};

pub(super) const META: Meta = Meta {
    name: "congestion-window",
    title: "Congestion window",
    meaning: "The congestion window limited the sender; the path had spare capacity.",
    evidence: "Acknowledgments released the segments, and the round trip was near the least one.",
    confusion: "A send buffer that is small.",
};

pub(super) fn holds(wait: &Wait) -> bool {
    wait.is_blocked && !wait.is_unclear && !wait.is_pace_or_buffer
}
