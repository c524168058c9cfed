//! Congestion marks that the receiver's acknowledgments do not report.

use super::{Case, Finding, Meta, counted};

pub(super) const META: Meta = Meta {
    name: "ecn-not-echoed",
    title: "ECN marks not echoed",
    meaning: "Congestion marks (CE) pass, and the sender does not learn of them: it fills the queue until packets are dropped.",
    evidence: "Marked data passed the capture point, and no acknowledgment had ECE, although both ends negotiated it (RFC 3168 §6.1.3).",
    confusion: "A capture that lacks acknowledgments. Ends that negotiated AccECN are not judged.",
    next: "find out whether a device clears the marks or ECE on the way to and from {receiver}: capture there as well",
    ..Meta::PLAIN
};

/// Minimum number of marked packets.
const LEAST: u64 = 3;

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let ecn = case.data.ecn;
    let is_ignored = ecn.negotiated && ecn.marked_packets >= LEAST && ecn.echoes == 0;
    is_ignored.then(|| {
        let text = format!(
            "{} had a congestion mark (CE), and no acknowledgment of {} reported it.",
            counted(ecn.marked_packets, "segment"),
            case.receiver
        );
        let marked = usize::try_from(ecn.marked_packets).unwrap_or(usize::MAX);
        case.finding(case.of_segments(marked), &text)
    })
}
