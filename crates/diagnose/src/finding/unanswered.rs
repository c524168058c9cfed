//! A SYN without an answer.

use super::{Case, Finding, Handshake, Meta};

pub(super) const META: Meta = Meta {
    name: "unanswered",
    title: "No answer",
    meaning: "Nothing answered the SYN.",
    evidence: "The capture has SYNs and no packet of the other end.",
    confusion: "Answers that take a way past the capture point.",
    next: "find out whether {called} is up and a firewall lets the SYN through; capture there",
    rank: Some(1),
    is_failure: true,
    ..Meta::PLAIN
};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let connection = case.once()?;
    (connection.handshake == Handshake::Unanswered).then(|| Finding {
        share: 1.0,
        text: format!("{} did not answer the SYN.", connection.b),
        packets: Vec::new(),
    })
}
