//! Data missing from the capture.

use super::{Case, Finding, Meta, counted};
use crate::limit::Limit;

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
    let lacking = data.capture_gap_bytes;
    let text = || {
        format!(
            "the capture lacks {} in {}, and they were acknowledged: the capture lost them, not the network.",
            counted(lacking, "byte"),
            counted(data.capture_gaps, "hole")
        )
    };
    let share = lacking as f64 / data.bytes.max(lacking).max(1) as f64;
    (data.capture_gaps > 0).then(|| case.finding(share, &text()))
}
