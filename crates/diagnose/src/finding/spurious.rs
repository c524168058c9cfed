//! Retransmissions of data that had arrived.

use super::Way;
use crate::report::Finding;

pub(super) fn find(way: &Way<'_>) -> Option<Finding> {
    let counts = &way.data.retransmission_counts;
    if counts.spurious == 0 {
        return None;
    }
    Some(Finding {
        cause: "spurious-retransmission",
        share: way.of_segments(counts.spurious),
        text: format!(
            "{} to {}: {} of {} retransmissions were spurious, because the data had arrived or was only late.",
            way.sender, way.receiver, counts.spurious, counts.all
        ),
        packets: way.frames(|one| one.needed == Some(false)),
    })
}
