//! An application that waits for requests of the other end.

use super::{Case, Finding, Meta, percent};

pub(super) const META: Meta = Meta {
    name: "slow-client",
    title: "Slow client",
    meaning: "The sender waited for a request of the other end.",
    evidence: "All data was acknowledged, and the next segment follows data of the other end.",
    confusion: "A server that computes: its time begins with the request.",
};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let seconds = case.data.receiver_application_s;
    let share = case.share(seconds);
    (case.is_main && case.is_notable(seconds)).then(|| Finding {
        cause: META.name,
        share,
        text: format!(
            "{} waited in {} of the time for {} to say something.",
            case.sender,
            percent(share),
            case.receiver
        ),
        packets: case.pauses("application", Some("receiver")),
    })
}
