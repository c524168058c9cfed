//! Data that the capture lacks.

use super::{Case, Finding, Meta, counted};

pub(super) const META: Meta = Meta {
    name: "capture-gap",
    title: "Capture gap",
    meaning: "The capture lost packets that the network delivered.",
    evidence: "Acknowledgments cover data that the capture does not have.",
    confusion: "Packets that took another way.",
};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let data = case.data;
    (data.capture_gaps > 0).then(|| Finding {
        cause: META.name,
        share: case.of_segments(usize::try_from(data.capture_gaps).unwrap_or(usize::MAX)),
        text: format!(
            "{} to {}: the capture lacks {} in {}, and they were acknowledged: the capture lost them, not the network.",
            case.sender,
            case.receiver,
            counted(data.capture_gap_bytes, "byte"),
            counted(data.capture_gaps, "hole")
        ),
        packets: Vec::new(),
    })
}
