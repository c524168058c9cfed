//! Full segments that never arrive while small ones do: a path whose MTU is smaller than the sender believes.

use super::{Case, Finding, Meta};
use crate::report::Retransmission;

pub(super) const META: Meta = Meta {
    name: "large-segments-lost",
    title: "MTU black hole",
    meaning: "Large segments never arrive: the path's MTU is smaller than the sender believes, and no ICMP message says so.",
    evidence: "A segment of the largest size was retransmitted three times or more and never acknowledged.",
    confusion: "A path that fails at that moment.",
};

/// Retransmissions of one segment after which it is no accident.
const LEAST: usize = 3;

/// The retransmissions of the segment that never arrived.
fn stuck<'a>(case: &'a Case<'_>) -> Option<Vec<&'a Retransmission>> {
    let largest = case
        .data
        .retransmissions
        .iter()
        .map(|one| one.bytes)
        .max()?;
    let last = case.data.retransmissions.last()?;
    let same = case.data.retransmissions.iter();
    let same: Vec<_> = same.filter(|one| one.seq == last.seq).collect();
    let is_stuck = same.len() >= LEAST
        && last.bytes == largest
        && last.bytes > 500
        && same.iter().all(|one| one.evidence != "acknowledged-before")
        && last.needed != Some(false)
        && last.evidence.ends_with("acknowledged");
    is_stuck.then_some(same)
}

pub(super) fn is_stuck(case: &Case<'_>) -> bool {
    stuck(case).is_some()
}

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let same = stuck(case)?;
    let bytes = same.last()?.bytes;
    Some(Finding {
        cause: META.name,
        share: case.of_time("retransmission-timeout"),
        text: format!(
            "{} to {}: a segment of {bytes} bytes was sent {} times and never acknowledged; if smaller ones arrive, the path's MTU is \
             smaller and the ICMP messages about it are lost.",
            case.sender,
            case.receiver,
            same.len() + 1
        ),
        packets: case.frames(&same),
    })
}
