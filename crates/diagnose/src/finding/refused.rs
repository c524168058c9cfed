//! A SYN answered by a RST.

use super::{Case, Finding, Handshake, Meta};

pub(super) const META: Meta = Meta {
    name: "refused",
    title: "Refused",
    meaning: "A RST answered the SYN.",
    evidence: "The only answer to a SYN is a RST.",
    confusion: "A firewall that refuses in the name of the host.",
    next: "find out whether a program listens at {called}, or a firewall refuses",
    rank: Some(2),
    is_failure: true,
    ..Meta::PLAIN
};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let connection = case.once()?;
    let packets = connection.reset.iter().map(|reset| reset.packet).collect();
    (connection.handshake == Handshake::Refused).then(|| Finding {
        share: 1.0,
        text: format!("{} refused the connection.", connection.b),
        packets,
    })
}
