//! A handshake that needed more than one SYN or SYN-ACK.

use super::{Case, Finding, Handshake, Meta, counted, milliseconds};
use crate::limit::Limit;

pub(super) const META: Meta = Meta {
    name: "syn-loss",
    title: "SYN lost",
    meaning: "A SYN or its answer was lost, or answered too late.",
    evidence: "A SYN or SYN-ACK was retransmitted.",
    confusion: "A server whose queue of connections is full; a SYN that was lost before the capture point shows nowhere.",
    next: "find out whether {called} accepts fast enough (`ss -lnt`, ListenOverflows), or the path loses",
    rank: Some(4),
    is_failure: true,
    ..Meta::PLAIN
};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let connection = case.once()?;
    let again = connection.syn_retransmissions;
    let is_open = !matches!(
        connection.handshake,
        Handshake::Unanswered | Handshake::Refused
    );
    (again > 0 && is_open).then(|| Finding {
        share: case.of_time(Limit::Handshake),
        text: format!(
            "The handshake took {}: it needed {} of a SYN or SYN-ACK.",
            milliseconds(case.time(Limit::Handshake) * 1e3),
            counted(again, "retransmission")
        ),
        packets: Vec::new(),
    })
}
