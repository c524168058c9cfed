//! A device that drops traffic above a rate.

use super::{Case, Finding, Meta};

pub(super) const META: Meta = Meta {
    name: "policer",
    title: "Policer",
    meaning: "A device drops what exceeds a rate, instead of queuing it.",
    evidence: "Between losses as much data got through as one rate permits, the path carries more at once, and no queue built up before them.",
    confusion: "A bottleneck whose queue holds a few packets.",
    next: "ask for the contract's rate; a sender that shapes to it loses nothing",
    rank: Some(9),
    ..Meta::PLAIN
};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let rate = case.data.policed_mbit_s?;
    let text = format!(
        "between losses {rate:.3} Mbit/s got through each time, without a queue: a policer."
    );
    Some(case.losing(&case.losses(), &text))
}
