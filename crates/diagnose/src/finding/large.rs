//! Full segments that never arrive while small ones do: a path whose MTU is smaller than the sender believes.

use super::Way;
use crate::report::Finding;

/// Retransmissions of one segment after which it is no accident.
const LEAST: usize = 3;

pub(super) fn find(way: &Way<'_>) -> Option<Finding> {
    let largest = way.data.retransmissions.iter().map(|one| one.bytes).max()?;
    let last = way.data.retransmissions.last()?;
    let same = way.data.retransmissions.iter();
    let same: Vec<_> = same.filter(|one| one.seq == last.seq).collect();
    let is_stuck = same.len() >= LEAST
        && last.bytes == largest
        && last.bytes > 500
        && same.iter().all(|one| one.evidence != "acknowledged-before")
        && last.needed != Some(false)
        && last.evidence.ends_with("acknowledged");
    is_stuck.then(|| Finding {
        cause: "large-segments-lost",
        share: way.of_segments(same.len() as u64),
        text: format!(
            "{} to {}: a segment of {} bytes was sent {} times and never acknowledged; if smaller ones arrive, the path's MTU is \
             smaller and the ICMP messages about it are lost.",
            way.sender,
            way.receiver,
            last.bytes,
            same.len() + 1
        ),
        packets: way.frames(|one| one.seq == last.seq),
    })
}
