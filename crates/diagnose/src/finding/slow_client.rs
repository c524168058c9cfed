//! An application that waits for requests from the other end.

use super::{Case, Finding, Meta, Role, percent};
use crate::limit::Limit;

pub(super) const META: Meta = Meta {
    name: "slow-client",
    title: "Slow client",
    meaning: "The sender waited for a request that the other end had not sent.",
    evidence: "All data was acknowledged, the next segment follows data of the other end, and that end had waited longer than a round trip before it sent it.",
    confusion: "A server that computes: its time begins with the request. A path whose delay exceeds its least one.",
    next: "find out why the client at {receiver} sends its requests late",
    ..Meta::PLAIN
};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let seconds = case.data.receiver_application_s;
    let share = case.share(seconds);
    // A server that answers late is reported for the direction of its data.
    let waits_for_client = case.is_main && case.is_answering();
    (waits_for_client && case.is_notable(seconds)).then(|| Finding {
        share,
        text: format!(
            "{} was idle {} of the time, waiting for the next request from {}.",
            case.sender,
            percent(share),
            case.receiver
        ),
        packets: case.pauses(Limit::Application, Some(Role::Receiver)),
    })
}
