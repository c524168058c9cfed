//! A device on the path that ignores the scale of the receiver's window and drops data beyond it.

use super::{Case, Finding, Handshake, Meta, counted, frames};
use crate::limit::Limit;

pub(super) const META: Meta = Meta {
    name: "window-scaling-ignored",
    title: "Window scaling ignored on the path",
    meaning: "A device on the path takes the receiver's window without its scale and drops segments that end beyond it.",
    evidence: "Every segment beyond the window as the header has it was lost, none of them arrived at once, and segments of that size \
         within it did.",
    confusion: "A host or path that fails between the first flight and the second.",
    next: "look for a firewall between the hosts that ignores window scaling (RFC 7323 §2.3)",
    rank: Some(8),
    is_failure: true,
    ..Meta::PLAIN
};

/// Minimum number of lost segments (the threshold for a loss of RFC 5681).
const LEAST: u64 = 3;

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let window = case.data.unscaled_window?;
    let is_seen = case.connection.handshake == Handshake::Seen;
    let is_limit = window.lost_beyond >= LEAST
        && window.arrived_beyond == 0
        && window.arrived_within > 0
        && window.lost_within == 0;
    // Arrivals of smaller segments say nothing about larger ones.
    let lost = case.data.retransmissions.iter();
    let lost: Vec<_> = lost.filter(|one| one.bytes > 0).collect();
    let has_carried = lost
        .iter()
        .any(|one| u64::from(one.bytes) <= case.largest_acknowledged);
    let text = || {
        format!(
            "{} beyond the window of {} as the header has it, without its scale, arrived at none of the first attempts, and {} \
         within it did: a device on the path may not know the window's scale.",
            counted(window.lost_beyond, "segment"),
            case.receiver,
            counted(window.arrived_within, "segment"),
        )
    };
    (is_seen && is_limit && has_carried).then(|| Finding {
        packets: frames(&lost),
        ..case.finding(case.of_time(Limit::RetransmissionTimeout), &text())
    })
}
