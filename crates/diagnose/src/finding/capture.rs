//! Data that the capture lacks.

use super::Way;
use crate::report::Finding;

pub(super) fn find(way: &Way<'_>) -> Option<Finding> {
    let data = way.data;
    (data.capture_gaps > 0).then(|| Finding {
        cause: "capture-gap",
        share: way.of_segments(data.capture_gaps),
        text: format!(
            "{} to {}: the capture lacks {} bytes in {} holes that were acknowledged: the capture lost them, not the network.",
            way.sender, way.receiver, data.capture_gap_bytes, data.capture_gaps
        ),
        packets: Vec::new(),
    })
}
