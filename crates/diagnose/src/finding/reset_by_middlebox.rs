//! A device on the path that ended a connection in the name of a host.

use super::{Case, Finding, Meta};

pub(super) const META: Meta = Meta {
    name: "reset-by-middlebox",
    title: "Reset by a middlebox",
    meaning: "A device on the path reset the connection in the name of an end.",
    evidence: "The RST's hop limit is none that the end's other packets have.",
    confusion: "A host that gives RSTs another initial hop limit than other packets.",
};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let connection = case.once()?;
    let reset = connection.reset.as_ref()?;
    (reset.origin == "middlebox").then(|| Finding {
        cause: META.name,
        share: 0.0,
        text: format!(
            "A RST in the name of {} came over another number of hops than its other packets: a device on the path sent it.",
            case.end(reset.by)
        ),
        packets: vec![reset.packet],
    })
}
