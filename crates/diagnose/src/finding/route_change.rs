//! A route that becomes longer or shorter.

use super::{Case, Finding, Meta, Role};

pub(super) const META: Meta = Meta {
    name: "route-change",
    title: "Route change",
    meaning: "The route became longer or shorter.",
    evidence: "The least round trip to one end stepped and stayed, while no more was in flight.",
    confusion: "A link that changes its coding or its scheduling, as radio links do.",
    ..Meta::PLAIN
};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let changes = &case.data.route_changes;
    let first = changes.first()?;
    let end = if first.towards == Role::Sender {
        case.sender
    } else {
        case.receiver
    };
    case.is_main.then(|| Finding {
        share: 0.0,
        text: format!(
            "The route between the capture point and {end} changed{} its round trip went from {:.1} to {:.1} ms.",
            match changes.len() {
                1 => ":".to_owned(),
                more => format!(" {more} times; first"),
            },
            first.before_ms,
            first.after_ms
        ),
        packets: Vec::new(),
    })
}
