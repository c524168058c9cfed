//! Full segments that never arrive while small ones do: the path's MTU is smaller than the sender
//! assumes.

use super::{Case, Evidence, Finding, Handshake, Meta, counted, frames};
use crate::{limit::Limit, report::Retransmission};

pub(super) const META: Meta = Meta {
    name: "large-segments-lost",
    title: "MTU black hole",
    meaning: "Large segments never arrive: the path's MTU is smaller than the sender believes, and no ICMP message says so.",
    evidence: "A segment was retransmitted three times or more and never acknowledged, or only in smaller segments; smaller ones \
         were, from the handshake on, and none as large was in any connection between the hosts.",
    confusion: "A host or path that fails when the first large segment is sent.",
    next: "let ICMP pass, or clamp the MSS to the path's MTU",
    rank: Some(7),
    is_failure: true,
    ..Meta::PLAIN
};

/// Minimum number of retransmissions of one segment.
const LEAST: usize = 3;
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
    let is_stuck = same.len() >= LEAST
        && same
            .iter()
            .all(|one| one.evidence != Evidence::AcknowledgedBefore)
        && last.needed != Some(false)
        && last.evidence == Evidence::NeverAcknowledged;
    (is_stuck && same.iter().all(|one| is_too_large(case, one))).then_some(same)
}

/// The large retransmissions of a segment that arrived in the end, in smaller segments: the sender
/// probed the path's MTU (RFC 4821), or was told of it late.
fn divided<'a>(case: &'a Case<'_>) -> Option<Vec<&'a Retransmission>> {
    if case.connection.handshake != Handshake::Seen || case.largest_acknowledged == 0 {
        return None;
    }
    let mut sent: Vec<_> = case.data.retransmissions.iter().collect();
    sent.sort_by_key(|one| (one.seq, one.packet));
    sent.chunk_by(|one, other| one.seq == other.seq)
        .find_map(|same| {
            let large = same.iter().take_while(|one| is_too_large(case, one));
            let large: Vec<_> = large.copied().collect();
            let is_divided = same
                .get(large.len())
                .is_some_and(|small| small.bytes > 0 && small.needed == Some(true));
            (large.len() >= LEAST && is_divided).then_some(large)
        })
}

pub(super) fn is_stuck(case: &Case<'_>) -> bool {
    stuck(case).is_some()
}

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
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
    Some(Finding {
        packets: frames(&same),
        ..case.finding(case.of_time(Limit::RetransmissionTimeout), &text)
    })
}
