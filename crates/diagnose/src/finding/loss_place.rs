//! The side of the capture point on which segments were lost.

use super::{Case, Finding, LossSide, Meta};

/// Losses between the capture point and the host on one side.
fn find(case: &Case<'_>, side: LossSide, host: &str) -> Option<Finding> {
    let mut losses = case.losses();
    losses.retain(|one| one.lost == side);
    case.lost(&losses, &format!("between the capture point and {host}"))
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
