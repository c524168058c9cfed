//! Data that is never acknowledged, and requests that are never answered.

use super::{Case, Evidence, Finding, Handshake, MOST_PACKETS, Trigger, counted, frames};
use crate::{limit::Limit, report::Retransmission};

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

/// A peer that does not answer over several timeouts.
pub(super) fn silent_peer(case: &Case<'_>) -> Option<Finding> {
    let timeouts = timeouts(case);
    let [first, .., last] = timeouts.as_slice() else {
        return None;
    };
    // A host is not silent if its packets were not captured.
    let has_spoken = case.connection.handshake == Handshake::Seen;
    // If the segment is acknowledged in the end, the path had an outage.
    let is_answered = !NEVER.contains(&last.evidence);
    if timeouts.len() < LEAST_TIMEOUTS || !has_spoken || is_answered || is_stuck(case) {
        return None;
    }
    let waits = case.data.stalls.iter().filter(|stall| {
        let mut frames = stall.packets.iter();
        stall.cause == Limit::RetransmissionTimeout
            && frames.any(|frame| timeouts.iter().any(|one| one.packet == *frame))
    });
    let share = case.share(waits.map(|stall| stall.duration_s).sum());
    let reason = match first.earlier.and_then(|frame| idle_before(case, frame)) {
        Some(seconds) => format!(
            "The segment followed {seconds:.1} s without data: a NAT or firewall may have forgotten the idle connection, or the host is down."
        ),
        // No smaller segment was tried.
        None if u64::from(first.bytes) >= case.data.largest_acknowledged_bytes.max(1) => {
            "The host or the path to it may have failed, the path's MTU may have become smaller, or a NAT or firewall may have dropped the connection."
                .to_owned()
        }
        None => "The host or the path to it may have failed, or a NAT or firewall may have dropped the connection.".to_owned(),
    };
    let mut packets: Vec<_> = first.earlier.into_iter().collect();
    packets.extend(timeouts.iter().map(|one| one.packet));
    packets.truncate(MOST_PACKETS);
    // A segment without data is a FIN.
    let what = ["a segment", "its FIN"][usize::from(first.bytes == 0)];
    let text = format!(
        "{} fell silent: {} retransmitted {what} in {}, and no copy was acknowledged. {reason}",
        case.receiver,
        case.sender,
        counted(timeouts.len(), "timeout"),
    );
    Some(Finding::new(share, text).at(packets))
}

/// The step if the request was not acknowledged.
pub(crate) const UNACKNOWLEDGED: &str = "find where the request to {receiver} or its acknowledgment is lost: capture at {receiver} as well";

/// A request that was never answered.
pub(super) fn no_response(case: &Case<'_>) -> Option<Finding> {
    let connection = case.connection;
    let request = connection.unanswered_request.as_ref()?;
    if case.sender != connection.a {
        return None;
    }
    let copies = case.data.retransmissions.iter();
    let copies = copies.filter(|one| one.bytes > 0).count();
    let waited = format!("{:.1} s", request.waited_s);
    let until = if request.closed {
        "until the connection was closed"
    } else {
        "until the capture ended"
    };
    let text = if request.acknowledged {
        format!(
            "{} never answered the last request of {}: its TCP acknowledged the request, and its program sent nothing for {waited}, \
             {until}.",
            case.receiver, case.sender
        )
    } else {
        // These report more: the same segment was lost over several timeouts.
        if silent_peer(case).is_some() || is_stuck(case) {
            return None;
        }
        format!(
            "{} acknowledged nothing of the last request of {} for {waited}, {until}, after {}: the path lost the request or the \
             acknowledgments, or drops all packets since then.",
            case.receiver,
            case.sender,
            counted(copies, "retransmission")
        )
    };
    Some(Finding::new(case.share(request.waited_s), text))
}

/// Minimum number of retransmissions of one segment that is too large for the path.
const LEAST_COPIES: usize = 3;
/// Packets of this size pass any path in practice, so that no MTU explains their loss. Every IPv4
/// host accepts 576 octets (RFC 791 §3.1), which links carry in practice; IPv6 links carry 1280
/// (RFC 8200 §5).
const LEAST_MTU: [u64; 2] = [576, 1280];
/// Headers of IP and TCP without options.
const HEADERS: [u64; 2] = [40, 60];

/// Copies of a segment that is larger than any that was acknowledged, and than packets that pass any
/// path.
fn is_too_large(case: &Case<'_>, one: &Retransmission) -> bool {
    let version = usize::from(case.sender.starts_with('['));
    let bytes = u64::from(one.bytes);
    bytes > case.largest_acknowledged && bytes + HEADERS[version] > LEAST_MTU[version]
}

/// The retransmissions of the segment that never arrived.
fn stuck<'a>(case: &'a Case<'_>) -> Option<Vec<&'a Retransmission>> {
    // A segment of the same size may have arrived before the capture began.
    if case.connection.handshake != Handshake::Seen {
        return None;
    }
    let last = case.data.retransmissions.last()?;
    let same = case.data.retransmissions.iter();
    let same: Vec<_> = same.filter(|one| one.seq == last.seq).collect();
    let may_be = |one: &&Retransmission| {
        one.evidence != Evidence::AcknowledgedBefore && is_too_large(case, one)
    };
    let is_stuck = same.len() >= LEAST_COPIES
        && same.iter().all(may_be)
        && last.needed != Some(false)
        && last.evidence == Evidence::NeverAcknowledged;
    is_stuck.then_some(same)
}

/// The large retransmissions of a segment that arrived in the end, in smaller segments: the sender
/// probed the path's MTU (RFC 4821), or learned it late.
fn divided<'a>(case: &'a Case<'_>) -> Option<Vec<&'a Retransmission>> {
    if case.connection.handshake != Handshake::Seen || case.largest_acknowledged == 0 {
        return None;
    }
    let mut sent: Vec<_> = case.data.retransmissions.iter().collect();
    sent.sort_by_key(|one| (one.seq, one.packet));
    let mut segments = sent.chunk_by(|one, other| one.seq == other.seq);
    segments.find_map(|same| {
        let large = same.iter().take_while(|one| is_too_large(case, one));
        let large: Vec<_> = large.copied().collect();
        let is_divided = same
            .get(large.len())
            .is_some_and(|small| small.bytes > 0 && small.needed == Some(true));
        (large.len() >= LEAST_COPIES && is_divided).then_some(large)
    })
}

pub(super) fn is_stuck(case: &Case<'_>) -> bool {
    stuck(case).is_some()
}

/// Full segments that never arrive while small ones do: the path's MTU is smaller than the sender
/// assumes.
pub(super) fn large_segments_lost(case: &Case<'_>) -> Option<Finding> {
    let unanswered = stuck(case);
    let is_divided = unanswered.is_none();
    let same = unanswered.or_else(|| divided(case))?;
    let bytes = same.last()?.bytes;
    let times = counted(same.len() + 1, "time");
    let largest = case.largest_acknowledged;
    let rest = if is_divided {
        format!(
            "its data arrived in segments of up to {largest} bytes: the path's MTU is smaller than the sender believed and the \
             ICMP messages about it were lost."
        )
    } else {
        let carried = if largest == 0 {
            "nothing but the SYN was".to_owned()
        } else {
            format!("segments of up to {largest} bytes were")
        };
        format!(
            "{carried}: the path's MTU is smaller than the sender believes and the ICMP messages about it are lost, or the peer \
             fell silent at that moment."
        )
    };
    let text =
        format!("a segment of {bytes} bytes was sent {times} and never acknowledged, and {rest}");
    let share = case.of_time(Limit::RetransmissionTimeout);
    Some(case.finding(share, text).at(frames(&same)))
}

/// Minimum number of segments lost beyond the window (the threshold for a loss of RFC 5681).
const LEAST_BEYOND: u64 = 3;

/// A device on the path that ignores the scale of the receiver's window and drops data beyond it.
pub(super) fn window_scaling_ignored(case: &Case<'_>) -> Option<Finding> {
    let window = case.data.unscaled_window?;
    let is_seen = case.connection.handshake == Handshake::Seen;
    let is_limit = window.lost_beyond >= LEAST_BEYOND
        && window.arrived_beyond == 0
        && window.arrived_within > 0
        && window.lost_within == 0;
    // Arrivals of smaller segments say nothing about larger ones.
    let lost = case.data.retransmissions.iter();
    let lost: Vec<_> = lost.filter(|one| one.bytes > 0).collect();
    let is_carried = |one: &&Retransmission| u64::from(one.bytes) <= case.largest_acknowledged;
    let text = format!(
        "{} beyond the window of {} as the header has it, without its scale, arrived at none of the first attempts, and {} \
         within it did: a device on the path may not know the window's scale.",
        counted(window.lost_beyond, "segment"),
        case.receiver,
        counted(window.arrived_within, "segment"),
    );
    let share = case.of_time(Limit::RetransmissionTimeout);
    (is_seen && is_limit && lost.iter().any(is_carried))
        .then(|| case.finding(share, text).at(frames(&lost)))
}
