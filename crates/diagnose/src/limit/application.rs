//! Application.

use super::{Meta, Party, Wait};

pub(super) const META: Meta = Meta {
    name: "application",
    title: "Application",
    meaning: "The application had nothing to send.",
    evidence: "All data was acknowledged, the last segment was smaller than the MSS, or no acknowledgment released the next one.",
    confusion: "A sender that paces small segments.",
    next: "find out why the program at {sender} had nothing to send",
    party: Some(Party::Sender),
    ..Meta::PLAIN
};

pub(super) fn holds(wait: &Wait) -> bool {
    // If the last segment is full and outstanding, it is unknown whether more data would follow.
    let is_outstanding = wait.is_last && !wait.is_small;
    let is_held = wait.is_blocked && (wait.is_small || wait.is_unfilled);
    let is_late = !wait.is_blocked && !wait.is_paced && !is_outstanding;
    !wait.is_bulk && !wait.is_refill && !wait.is_unclear && (wait.is_idle || is_held || is_late)
}
