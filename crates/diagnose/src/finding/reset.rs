//! A host that ended a connection with a RST.

use super::{Case, Finding, Handshake, Meta, Origin, Sign, reset_by_middlebox::named};

pub(super) const META: Meta = Meta {
    name: "reset",
    title: "Reset by a host",
    meaning: "One end reset the connection.",
    evidence: "No two independent signs show that a device on the path sent the RST.",
    confusion: "A middlebox as many hops away as the host, or on the same machine.",
    is_failure: true,
    ..Meta::PLAIN
};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let connection = case.once()?;
    let reset = connection.reset.as_ref()?;
    let is_its = reset.origin != Origin::Middlebox && connection.handshake != Handshake::Refused;
    is_its.then(|| Finding {
        share: 0.0,
        text: format!(
            "{} reset the connection.{}",
            case.end(reset.by),
            doubt(&reset.signs)
        ),
        packets: vec![reset.packet],
    })
}

/// Names the signs of a device on the path, which are too few to prove one.
fn doubt(signs: &[Sign]) -> String {
    if signs.is_empty() {
        return String::new();
    }
    format!(
        " One sign is for a device on the path, which alone proves nothing: the RST {}.",
        named(signs)
    )
}
