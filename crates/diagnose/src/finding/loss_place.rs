//! The side of the capture point on which segments were lost.

use super::{Case, Finding, LossSide, Meta};

/// Standard deviations by which losses without an earlier copy must exceed those whose earlier copy
/// the capture itself lost.
const DEVIATIONS: f64 = 3.0;

/// Losses between the capture point and the host on one side.
fn find(case: &Case<'_>, side: LossSide, host: &str) -> Option<Finding> {
    let mut losses = case.losses();
    let all = losses.len();
    losses.retain(|one| one.lost == side);
    if side == LossSide::Before && is_by_capture(case, losses.len(), all) {
        return None;
    }
    case.lost(&losses, &format!("between the capture point and {host}"))
}

/// Whether the share of the data that the capture lost explains the missing copies: it lost packets
/// that the network dropped later as well.
fn is_by_capture(case: &Case<'_>, missing: usize, all: usize) -> bool {
    let lacking = case.data.capture_gap_bytes as f64 / case.data.bytes.max(1) as f64;
    let expected = lacking * all as f64;
    missing as f64 <= expected + DEVIATIONS * expected.sqrt()
}

/// Losses on the side of the sender.
pub(super) mod before {
    use super::{Case, Finding, LossSide, Meta};

    pub(in super::super) const META: Meta = Meta {
        name: "loss-before-capture",
        title: "Loss before the capture point",
        meaning: "Segments were lost between the capture point and the sender.",
        evidence: "The capture has no earlier copy of what was retransmitted.",
        confusion: "A capture that drops packets, if the acknowledgment comes before the retransmission can.",
        ..Meta::PLAIN
    };

    pub(in super::super) fn find(case: &Case<'_>) -> Option<Finding> {
        super::find(case, LossSide::Before, case.sender)
    }
}

/// Losses on the side of the receiver.
pub(super) mod after {
    use super::{Case, Finding, LossSide, Meta};

    pub(in super::super) const META: Meta = Meta {
        name: "loss-after-capture",
        title: "Loss after the capture point",
        meaning: "Segments were lost between the capture point and the receiver.",
        evidence: "The capture has an earlier copy of what was retransmitted, and it did not arrive.",
        confusion: "A capture behind the place of the loss that sees a copy on another way.",
        ..Meta::PLAIN
    };

    pub(in super::super) fn find(case: &Case<'_>) -> Option<Finding> {
        super::find(case, LossSide::After, case.receiver)
    }
}
