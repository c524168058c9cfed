//! Segments that were lost, and on which side of the capture point.

use super::{Way, percent};
use crate::report::Finding;

pub(super) fn find(way: &Way<'_>) -> Vec<Finding> {
    let places = [
        ("before", "loss-before-capture", way.sender),
        ("after", "loss-after-capture", way.receiver),
    ];
    let mut findings = Vec::new();
    for (place, cause, end) in places {
        let count = way.data.retransmissions.iter();
        let count = count.filter(|one| one.lost == place).count() as u64;
        if count == 0 {
            continue;
        }
        let share = way.of_segments(count);
        findings.push(Finding {
            cause,
            share,
            text: format!(
                "{} to {}: {count} segments ({}) were lost between the capture point and {end}.",
                way.sender,
                way.receiver,
                percent(share)
            ),
            packets: way.frames(|one| one.lost == place),
        });
    }
    findings
}
