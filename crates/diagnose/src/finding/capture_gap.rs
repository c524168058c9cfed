//! Data missing from the capture.

use super::{Case, Finding, Meta, counted};
use crate::{limit::Limit, report::OneWay};

pub(super) const META: Meta = Meta {
    name: "capture-gap",
    title: "Capture gap",
    meaning: "The capture lost packets that the network delivered.",
    evidence: "Acknowledgments cover data that the capture does not have.",
    confusion: "Packets that took another way.",
    next: Limit::CaptureGap.meta().next,
    rank: Some(10),
    ..Meta::PLAIN
};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let data = case.data;
    (data.capture_gaps > 0).then(|| Finding {
        share: share(data),
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

/// Octets that were not captured, as a share of all octets.
fn share(data: &OneWay) -> f64 {
    data.capture_gap_bytes as f64 / data.bytes.max(data.capture_gap_bytes).max(1) as f64
}
