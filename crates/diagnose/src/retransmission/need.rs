//! Decides whether a retransmission was needed, that is, whether no earlier copy of all its data
//! arrived.
//!
//! One of the copies of a piece of data arrived first. Retransmissions up to it were needed, later
//! ones were spurious. Evidence for the first arrival, by weight: an acknowledgment before a copy
//! passed, the time from a copy to the acknowledgment, the timestamp that the acknowledgment echoes
//! (RFC 3522), its reach beyond a gap (RFC 5682), and the number of duplicates that the receiver
//! reported (RFC 2883).

use super::{
    Evidence,
    piece::{Copy, Piece, Room},
};
use crate::time::{MICROSECOND, Nanos};

/// Variation of a host's response time.
const PROMPT: Nanos = 100 * MICROSECOND;

/// The state of the path when a piece is judged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    /// The minimum time from data to its acknowledgment at the capture point.
    pub(crate) floor: Option<Nanos>,
    /// The time in which an acknowledgment returns, almost certainly.
    pub(crate) ceiling: Option<Nanos>,
    /// When the last acknowledgment passed.
    pub(crate) last_ack: Option<Nanos>,
}

/// A verdict on one copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) needed: Option<bool>,
    pub(crate) evidence: Evidence,
}

/// The verdicts on the retransmissions of a piece, in order.
pub(crate) fn judge(piece: &Piece, path: Path) -> Vec<Verdict> {
    let Some(cover) = piece.cover else {
        return unacknowledged(piece, path);
    };
    let Some(floor) = path.floor else {
        let judge = |copy: &Copy| Verdict {
            needed: (cover.time < copy.time).then_some(false),
            evidence: if cover.time < copy.time {
                Evidence::AcknowledgedBefore
            } else {
                Evidence::NoRoundTripKnown
            },
        };
        return piece.again.iter().map(judge).collect();
    };
    // A host sometimes answers sooner than it ever has.
    let floor = floor - floor / 10 - PROMPT;
    let (arrived, evidence) = first_arrival(piece, floor);
    let verdicts = piece.again.iter().enumerate().map(|(k, copy)| {
        let needed = k < arrived;
        let evidence = if cover.time < copy.time {
            Evidence::AcknowledgedBefore
        } else if !needed && cover.time - copy.time < floor {
            Evidence::AcknowledgedTooSoon
        } else {
            evidence
        };
        // The acknowledgment that would have SACKed it may be lost.
        let is_open = piece.room == Room::Exceeded
            && needed
            && matches!(evidence, Evidence::Gap | Evidence::RoundTrip);
        Verdict {
            needed: (!is_open).then_some(needed),
            evidence,
        }
    });
    verdicts.collect()
}

/// Verdicts on unacknowledged data. A retransmission was needed if the last acknowledgment leaves
/// the data out although it came late enough to cover all earlier copies.
fn unacknowledged(piece: &Piece, path: Path) -> Vec<Verdict> {
    let is_answered = |copy: &Copy| {
        let (Some(last), Some(ceiling)) = (path.last_ack, path.ceiling) else {
            return false;
        };
        last - copy.time > ceiling
    };
    let mut are_lost = piece.first.as_ref().is_none_or(is_answered) || piece.overtaken;
    let verdicts = piece.again.iter().map(|copy| {
        let needed = are_lost;
        are_lost &= is_answered(copy);
        Verdict {
            needed: needed.then_some(true),
            evidence: if needed {
                Evidence::LeftOut
            } else {
                Evidence::NeverAcknowledged
            },
        }
    });
    verdicts.collect()
}

/// The first copy to arrive, counted from the original (0), and the evidence.
fn first_arrival(piece: &Piece, floor: Nanos) -> (usize, Evidence) {
    let Some(cover) = piece.cover else {
        return (0, Evidence::NeverAcknowledged);
    };
    let in_time = |copy: &Copy| cover.time - copy.time >= floor;
    // Copies are in order of time.
    let possible = piece.again.partition_point(in_time);
    if possible == 0 {
        return (0, Evidence::AcknowledgedTooSoon);
    }
    if let Some(echoed) = echoed(piece, possible, cover.echo) {
        return (echoed, Evidence::TimestampEcho);
    }
    if cover.is_at_once || (cover.reaches_beyond && !piece.overtaken) {
        return (0, Evidence::AcknowledgmentReachesBeyond);
    }
    // Each duplicate is a copy after the first that arrived.
    let behind = piece.again.len() - possible;
    let unexplained = (piece.duplicates as usize).saturating_sub(behind);
    if unexplained > 0 {
        return (
            possible.saturating_sub(unexplained),
            Evidence::DuplicateSack,
        );
    }
    let evidence = if piece.overtaken {
        Evidence::Gap
    } else {
        Evidence::RoundTrip
    };
    (possible, evidence)
}

/// The copy whose timestamp the acknowledgment echoes, if the timestamps of the copies differ.
fn echoed(piece: &Piece, possible: usize, echo: Option<u32>) -> Option<usize> {
    let echo = echo?;
    let copies = piece.first.iter().chain(&piece.again[..possible]);
    let skipped = usize::from(piece.first.is_none());
    let mut found = None;
    for (k, copy) in copies.enumerate() {
        let stamp = copy.stamp?;
        if stamp == echo {
            // Two copies within a tick of the clock cannot be distinguished.
            if found.is_some() {
                return None;
            }
            found = Some(k + skipped);
        } else if found.is_none() && skipped == 1 && k == 0 && is_before(echo, stamp) {
            // Older than all captured copies: the original.
            return Some(0);
        }
    }
    found
}

/// RFC 7323 §5.2: earlier modulo 2^32.
pub(crate) const fn is_before(one: u32, other: u32) -> bool {
    other.wrapping_sub(one).wrapping_sub(1) < 1 << 31
}
