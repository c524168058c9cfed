//! What the path does other than to lose segments.

use super::{Case, Finding, Role, counted};
use crate::{
    connection::plausibility::are_randomised,
    limit::Limit,
    report::{CapturePoint, OneWay},
};

/// Minimum share of the time in which a queue is full. A queue of one bandwidth-delay product
/// doubles the round-trip time.
const LEAST_QUEUED: f64 = 0.3;

/// A queue that holds more than the path.
pub(super) fn bufferbloat(case: &Case<'_>) -> Option<Finding> {
    let (min, median) = (case.data.rtt_ms.min?, case.data.rtt_ms.median?);
    let share = case.of_time(Limit::Bottleneck);
    let is_long = median >= 3.0 * min && median - min >= 20.0;
    let text = format!("a queue makes the round trip {median:.0} ms, of {min:.0} ms without it.");
    (is_long && share >= LEAST_QUEUED).then(|| case.finding(share, text))
}

/// A route that becomes longer or shorter.
pub(super) fn route_change(case: &Case<'_>) -> Option<Finding> {
    let changes = &case.data.route_changes;
    let first = changes.first()?;
    let end = if first.towards == Role::Sender {
        case.sender
    } else {
        case.receiver
    };
    let times = match changes.len() {
        1 => ":".to_owned(),
        more => format!(" {more} times; first"),
    };
    let text = format!(
        "The route between the capture point and {end} changed{times} its round trip went from {:.1} to {:.1} ms.",
        first.before_ms, first.after_ms
    );
    case.is_main.then(|| Finding::new(0.0, text))
}

pub(super) fn is_randomised(data: &OneWay) -> bool {
    are_randomised(data.wrong_sack_blocks, data.sack_blocks)
}

/// A device that rewrites sequence numbers but not the SACK option.
pub(super) fn sequence_randomiser(case: &Case<'_>) -> Option<Finding> {
    let text = format!(
        "{} of {} cannot be of this data. A firewall that randomises sequence numbers leaves the SACK option as \
         it is, and {} recovers without SACK.",
        counted(case.data.wrong_sack_blocks, "SACK block"),
        case.receiver,
        case.sender
    );
    let share = case.of_time(Limit::RetransmissionTimeout);
    is_randomised(case.data).then(|| case.finding(share, text))
}

/// Minimum number of data packets, and the share that is not ECN-capable: retransmissions never are
/// (RFC 3168 §6.1.5).
const LEAST_DATA: u64 = 10;
const MOST_CAPABLE: f64 = 0.1;

/// Data whose ECN field was cleared before the capture point.
pub(super) fn ecn_cleared(case: &Case<'_>) -> Option<Finding> {
    let ecn = case.data.ecn;
    let near = if case.sender == case.connection.a {
        CapturePoint::NearA
    } else {
        CapturePoint::NearB
    };
    let is_cleared = ecn.negotiated
        && ecn.data_packets >= LEAST_DATA
        && ecn.capable_packets as f64 <= MOST_CAPABLE * ecn.data_packets as f64
        && case.connection.capture_point != near;
    let plain = ecn.data_packets - ecn.capable_packets;
    let text = format!(
        "ECN was negotiated, and {plain} of {} passed the capture point as not ECN-capable: a device before it clears the field.",
        counted(ecn.data_packets, "segment"),
    );
    is_cleared.then(|| case.finding(case.of_segments(plain), text))
}

/// Minimum number of marked packets.
const LEAST_MARKED: u64 = 3;

/// Congestion marks that the receiver's acknowledgments do not report.
pub(super) fn ecn_not_echoed(case: &Case<'_>) -> Option<Finding> {
    let ecn = case.data.ecn;
    let is_ignored = ecn.negotiated && ecn.marked_packets >= LEAST_MARKED && ecn.echoes == 0;
    let text = format!(
        "{} had a congestion mark (CE), and no acknowledgment of {} reported it.",
        counted(ecn.marked_packets, "segment"),
        case.receiver
    );
    is_ignored.then(|| case.finding(case.of_segments(ecn.marked_packets), text))
}
