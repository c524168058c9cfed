//! A host that ended a connection with a RST.

use super::{Case, Finding, Meta};

pub(super) const META: Meta = Meta {
    name: "reset",
    title: "Reset by a host",
    meaning: "One end reset the connection.",
    evidence: "The RST has the hop limit of the end's other packets.",
    confusion: "A middlebox as many hops away as the host, or on the same machine.",
};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let connection = case.once()?;
    let reset = connection.reset.as_ref()?;
    let is_its = reset.origin != "middlebox" && connection.handshake != "refused";
    is_its.then(|| Finding {
        cause: META.name,
        share: 0.0,
        text: format!("{} reset the connection.", case.end(reset.by)),
        packets: vec![reset.packet],
    })
}
