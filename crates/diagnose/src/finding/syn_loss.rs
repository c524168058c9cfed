//! A handshake that needed more than one SYN or SYN-ACK.

use super::{Case, Finding, Meta, counted};

pub(super) const META: Meta = Meta {
    name: "syn-loss",
    title: "SYN lost",
    meaning: "A SYN or its answer was lost, or answered too late.",
    evidence: "A SYN or SYN-ACK was retransmitted.",
    confusion: "A server whose queue of connections is full; a SYN that was lost before the capture point shows nowhere.",
};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let connection = case.once()?;
    let again = connection.syn_retransmissions;
    let is_open = !matches!(connection.handshake, "unanswered" | "refused");
    (again > 0 && is_open).then(|| Finding {
        cause: META.name,
        share: case.of_time("handshake"),
        text: format!(
            "The handshake needed {} of a SYN or SYN-ACK.",
            counted(again, "retransmission")
        ),
        packets: Vec::new(),
    })
}
