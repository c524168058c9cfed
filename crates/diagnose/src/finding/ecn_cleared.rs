//! Data whose ECN field was cleared before the capture point.

use super::{Case, Finding, Meta, counted};
use crate::report::CapturePoint;

pub(super) const META: Meta = Meta {
    name: "ecn-cleared",
    title: "ECN field cleared",
    meaning: "A device clears the ECN field, so that no queue can mark packets instead of dropping them.",
    evidence: "Both ends negotiated ECN, and the data passed the capture point as not ECN-capable, far from its sender.",
    confusion: "A sender that negotiates ECN and does not use it: captures at two points show the difference.",
    next: "find the device between {sender} and the capture point that clears the ECN field (the lowest two bits of the traffic class)",
    ..Meta::PLAIN
};

/// Minimum number of data packets, and the share that is not ECN-capable: retransmissions never are
/// (RFC 3168 §6.1.5).
const LEAST: u64 = 10;
const MOST_CAPABLE: f64 = 0.1;

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let ecn = case.data.ecn;
    let near = if case.sender == case.connection.a {
        CapturePoint::NearA
    } else {
        CapturePoint::NearB
    };
    let is_cleared = ecn.negotiated
        && ecn.data_packets >= LEAST
        && ecn.capable_packets as f64 <= MOST_CAPABLE * ecn.data_packets as f64
        && case.connection.capture_point != near;
    let plain = ecn.data_packets - ecn.capable_packets;
    is_cleared.then(|| {
        let text = format!(
            "ECN was negotiated, and {} of {} passed the capture point as not ECN-capable: a device before it clears the field.",
            plain,
            counted(ecn.data_packets, "segment"),
        );
        case.finding(case.of_segments(usize::try_from(plain).unwrap_or(usize::MAX)), &text)
    })
}
