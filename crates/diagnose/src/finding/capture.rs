//! What the capture lacks, or has twice.

use super::{Case, Finding, LEAST_SHARE, counted, percent};

/// Data missing from the capture.
pub(super) fn gap(case: &Case<'_>) -> Option<Finding> {
    let data = case.data;
    let lacking = data.capture_gap_bytes;
    let text = format!(
        "the capture lacks {} in {}, and they were acknowledged: the capture lost them, not the network.",
        counted(lacking, "byte"),
        counted(data.capture_gaps, "hole")
    );
    let share = lacking as f64 / data.bytes.max(lacking).max(1) as f64;
    (data.capture_gaps > 0).then(|| case.finding(share, text))
}

/// A capture of one direction.
pub(super) fn one_sided(case: &Case<'_>) -> Option<Finding> {
    let connection = case.once()?;
    let missing = case.end(connection.not_captured?);
    let [a, b] = connection.directions.all().map(|way| way.packets);
    let lacks = if if missing == connection.a { a } else { b } > 0 {
        "lacks most packets"
    } else {
        "has no packet"
    };
    let text = if missing == case.receiver {
        format!(
            "The capture {lacks} of {missing}: it shows what {} sent, and not what it waited for.",
            case.sender
        )
    } else {
        format!("The capture {lacks} of {missing}: what limited that end cannot be said.")
    };
    Some(Finding::new(1.0, text))
}

/// Packets that were captured more than once.
pub(super) fn copied_packets(case: &Case<'_>) -> Option<Finding> {
    let connection = case.once()?;
    let directions = connection.directions.all();
    let copies: u64 = directions.iter().map(|one| one.duplicated_packets).sum();
    let part = copies as f64 / connection.packets.max(1) as f64;
    let text = format!(
        "{copies} packets ({} of the connection's) are copies that a mirror port, a bridge or a second interface made: \
         they are not counted as retransmissions.",
        percent(part)
    );
    // Copies take no time.
    (copies > 1 && part >= LEAST_SHARE).then(|| Finding::new(0.0, text))
}
