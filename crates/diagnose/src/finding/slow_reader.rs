//! A receiver's application that reads more slowly than data arrives.

use super::{Case, Finding, Meta, percent};
use crate::limit::Limit;

pub(super) const META: Meta = Meta {
    name: "slow-reader",
    title: "Slow reader",
    meaning: "The receiver's application read more slowly than data came.",
    evidence: "The window that was full had been more than twice as large.",
    confusion: "A receiver that shrinks its buffer because it lacks memory.",
    next: Limit::ZeroWindow.meta().next,
    ..Meta::PLAIN
};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let seconds = case.data.receiver_unread_s;
    let share = case.share(seconds);
    let text = || {
        format!(
            "in {} of the time the window was full because the application of {} had not read.",
            percent(share),
            case.receiver
        )
    };
    (case.is_notable(seconds)).then(|| Finding {
        packets: case.pauses(Limit::ReceiveWindow, None),
        ..case.finding(share, &text())
    })
}
