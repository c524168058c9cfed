//! Round trips of requests.

use super::{Meta, Party, Wait};

pub(super) const META: Meta = Meta {
    name: "round-trips",
    title: "Round trips of requests",
    meaning: "The sender waited for a request that was on its way, or for the data that the request answers.",
    evidence: "The next segment follows data of the other end, and that end sent it as soon as it had the data before.",
    confusion: "A program that takes the same time before each message, from the first one on: the path seems that much longer.",
    next: "send requests together or without waiting for each answer (batch, pipeline), keep connections open, or move the programs closer to each other",
    party: Some(Party::Network),
    ..Meta::PLAIN
};

pub(super) fn holds(wait: &Wait) -> bool {
    wait.is_turn
}
