//! Packets that were captured more than once.

use super::{Case, Finding, LEAST_SHARE, Meta, percent};

pub(super) const META: Meta = Meta {
    name: "copied-packets",
    title: "Copied packets",
    meaning: "The capture has packets more than once: a mirror port (SPAN) of both sides of a switch, a bridge, or a capture on \
              several interfaces. Copies are counted as neither retransmissions nor duplicate acknowledgments.",
    evidence: "Equal packets, or the same data in other segments, follow sooner than any sender retransmits. Equal packets have \
               the same IP identification if the sender counts its packets.",
    confusion: "A link that duplicates packets: the receiver then reports duplicate SACKs.",
    ..Meta::PLAIN
};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let connection = case.once()?;
    let directions = connection.directions.all();
    let copies: u64 = directions.iter().map(|one| one.duplicated_packets).sum();
    let part = copies as f64 / connection.packets.max(1) as f64;
    (copies > 1 && part >= LEAST_SHARE).then(|| Finding {
        // Copies take no time.
        share: 0.0,
        text: format!(
            "{copies} packets ({} of the connection's) are copies that a mirror port, a bridge or a second interface made: \
             they are not counted as retransmissions.",
            percent(part)
        ),
        packets: Vec::new(),
    })
}
