//! Capture gap.

use super::{Meta, Wait};

pub(super) const META: Meta = Meta {
    name: "capture-gap",
    title: "Capture gap",
    meaning: "The capture lacks packets of this interval.",
    evidence: "Acknowledgments cover data that the capture does not have.",
    confusion: "Packets that took another path look the same.",
    next: "capture again, headers alone and with a larger buffer (`tcpdump -s 96 -B 65536`)",
    ..Meta::PLAIN
};

pub(super) fn holds(wait: &Wait) -> bool {
    wait.has_gap
}
