//! A peer that does not answer over several timeouts.

use super::{
    Case, Evidence, Finding, Handshake, MOST_PACKETS, Meta, Trigger, counted, large_segments_lost,
};
use crate::{limit::Limit, report::Retransmission};

pub(super) const META: Meta = Meta {
    name: "silent-peer",
    title: "Silent peer",
    meaning: "A host that had answered before left a segment unanswered over three timeouts or more, to the end of the capture.",
    evidence: "The retransmission timer sent the same segment three times or more, and no copy was acknowledged.",
    confusion: "An outage of the path that outlasts the capture; a capture that lacks the answers.",
    ..Meta::PLAIN
};

/// Minimum number of timeouts of one segment, after which the path may have failed (RFC 1122
/// §4.2.3.5, R1).
pub(crate) const LEAST_TIMEOUTS: usize = 3;
/// Evidence that no copy was acknowledged.
pub(crate) const NEVER: [Evidence; 2] = [Evidence::LeftOut, Evidence::NeverAcknowledged];
/// Minimum idle time: NATs and firewalls keep the state of an idle connection for at least seconds.
const LEAST_IDLE_S: f64 = 1.0;

/// The timeouts of the segment with the most timeouts.
fn timeouts<'a>(case: &Case<'a>) -> Vec<&'a Retransmission> {
    let all = case.data.retransmissions.iter();
    let mut sent: Vec<_> = all
        .filter(|one| one.trigger == Trigger::Rto && one.needed != Some(false) && one.seq >= 0)
        .collect();
    sent.sort_by_key(|one| (one.seq, one.packet));
    let runs = sent.chunk_by(|one, other| one.seq == other.seq);
    let longest = runs.max_by_key(|run| run.len());
    longest.map_or_else(Vec::new, <[_]>::to_vec)
}

/// Time for which the sender had sent no data when it sent a frame.
fn idle_before(case: &Case<'_>, frame: u64) -> Option<f64> {
    let mut stalls = case.data.stalls.iter();
    let stall =
        stalls.find(|one| one.cause == Limit::Application && one.packets.last() == Some(&frame));
    stall
        .map(|one| one.duration_s)
        .filter(|seconds| *seconds >= LEAST_IDLE_S)
}

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let timeouts = timeouts(case);
    let [first, .., last] = timeouts.as_slice() else {
        return None;
    };
    // A host is not silent if its packets were not captured.
    let has_spoken = case.connection.handshake == Handshake::Seen;
    // If the segment is acknowledged in the end, the path had an outage.
    let is_answered = !NEVER.contains(&last.evidence);
    if timeouts.len() < LEAST_TIMEOUTS
        || !has_spoken
        || is_answered
        || large_segments_lost::is_stuck(case)
    {
        return None;
    }
    let waits = case.data.stalls.iter().filter(|stall| {
        let mut frames = stall.packets.iter();
        stall.cause == Limit::RetransmissionTimeout
            && frames.any(|frame| timeouts.iter().any(|one| one.packet == *frame))
    });
    let share = case.share(waits.map(|stall| stall.duration_s).sum());
    let fate = if u64::from(first.bytes) >= case.data.largest_acknowledged_bytes.max(1) {
        // No smaller segment was tried.
        "The host or the path to it may have failed, the path's MTU may have become smaller, or a NAT or firewall may have dropped the connection."
    } else {
        "The host or the path to it may have failed, or a NAT or firewall may have dropped the connection."
    };
    let idle = first
        .earlier
        .and_then(|frame| idle_before(case, frame))
        .map_or_else(
            || fate.to_owned(),
            |seconds| {
                format!(
                    "The segment followed {seconds:.1} s without data: a NAT or firewall may have forgotten the idle connection, or the host is down."
                )
            },
        );
    let mut packets: Vec<_> = first.earlier.into_iter().collect();
    packets.extend(timeouts.iter().map(|one| one.packet));
    packets.truncate(MOST_PACKETS);
    Some(Finding {
        share,
        text: format!(
            "{} fell silent: {} retransmitted {} in {}, and no copy was acknowledged. {idle}",
            case.receiver,
            case.sender,
            // A segment without data is a FIN.
            if first.bytes == 0 {
                "its FIN"
            } else {
                "a segment"
            },
            counted(timeouts.len(), "timeout"),
        ),
        packets,
    })
}
