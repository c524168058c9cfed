//! Segments that came after later ones and were not retransmitted.

use super::{Way, percent};
use crate::report::Finding;

pub(super) fn find(way: &Way<'_>) -> Option<Finding> {
    let count = way.data.reordered_packets;
    let share = way.of_segments(count);
    (count > 0).then(|| Finding {
        cause: "reordered-before-capture",
        share,
        text: format!(
            "{} to {}: {count} segments ({}) reached the capture point after later ones; they are no retransmissions.",
            way.sender,
            way.receiver,
            percent(share)
        ),
        packets: Vec::new(),
    })
}
