//! A capture of one direction.

use super::{Case, Finding, Meta};

pub(super) const META: Meta = Meta {
    name: "one-sided-capture",
    title: "Capture of one direction",
    meaning: "The capture has the packets of one end only.",
    evidence: "It has no packet of the other end, although there are acknowledgments of them; or most of the data exceeds the last window that it has of the other end.",
    confusion: "Replies to spoofed packets: there is no other end.",
    next: "capture where the packets of both ends pass: at one of the hosts, or on both of their ways",
    rank: Some(3),
    ..Meta::PLAIN
};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let connection = case.once()?;
    let missing = case.end(connection.not_captured?);
    let ways = &connection.directions;
    let has_some = if missing == connection.a {
        ways.a_to_b.packets
    } else {
        ways.b_to_a.packets
    } > 0;
    let lacks = if has_some {
        "lacks most packets"
    } else {
        "has no packet"
    };
    let text = if missing == case.receiver {
        format!(
            "The capture {lacks} of {missing}: it shows what {} sent, and not what it waited for.",
            case.sender
        )
    } else {
        format!("The capture {lacks} of {missing}: what limited that end cannot be said.")
    };
    Some(Finding {
        share: 1.0,
        text,
        packets: Vec::new(),
    })
}
