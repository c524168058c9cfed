//! A queue that holds more than the path.

use super::{Case, Finding, Meta};
use crate::limit::Limit;

pub(super) const META: Meta = Meta {
    name: "bufferbloat",
    title: "Bufferbloat",
    meaning: "A queue on the path holds more than the path itself.",
    evidence: "The sender filled the path for most of the time, and the median round trip was three times the least one or more.",
    confusion: "Cross traffic that fills the queue; a route that became longer.",
    next: Limit::Bottleneck.meta().next,
    ..Meta::PLAIN
};

/// Minimum share of the time. A queue of one bandwidth-delay product doubles the round-trip time.
const LEAST: f64 = 0.3;

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let (min, median) = (case.data.rtt_ms.min?, case.data.rtt_ms.median?);
    let share = case.of_time(Limit::Bottleneck);
    let is_long = median >= 3.0 * min && median - min >= 20.0;
    let text =
        || format!("a queue makes the round trip {median:.0} ms, of {min:.0} ms without it.");
    (is_long && share >= LEAST).then(|| case.finding(share, &text()))
}
