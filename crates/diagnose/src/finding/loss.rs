//! Losses by their pattern and place, and what looks like them.

use super::{
    Case, Finding, LossSide, counted, frames, is_overflow, path::is_randomised, percent, silence,
    were,
};
use crate::limit::Limit;

/// A device that drops traffic above a rate.
pub(super) fn policer(case: &Case<'_>) -> Option<Finding> {
    let rate = case.data.policed_mbit_s?;
    let text = format!(
        "between losses {rate:.3} Mbit/s got through each time, without a queue: a policer."
    );
    Some(case.losing(&case.losses(), text))
}

/// Losses of single segments that no queue explains.
pub(super) fn random(case: &Case<'_>) -> Option<Finding> {
    let runs = case.unexplained_losses()?;
    let losses = runs.concat();
    let is_single = 2 * losses.len() < 3 * runs.len();
    let found = is_single.then(|| case.lost(&losses, "singly while no queue was full"));
    found.flatten()
}

/// Losses of several segments in a row that no queue explains.
pub(super) fn burst(case: &Case<'_>) -> Option<Finding> {
    let runs = case.unexplained_losses()?;
    let losses = runs.concat();
    let text = format!(
        "{} were lost in {} while no queue was full.",
        counted(losses.len(), "segment"),
        counted(runs.len(), "burst")
    );
    (2 * losses.len() >= 3 * runs.len()).then(|| case.losing(&losses, text))
}

/// Losses because a queue was full.
pub(super) fn queue_overflow(case: &Case<'_>) -> Option<Finding> {
    let (_, mut runs) = case.runs();
    runs.retain(|run| is_overflow(run));
    case.lost(&runs.concat(), "while a queue was full")
}

/// Losses of the last segments of a flight.
pub(super) fn tail(case: &Case<'_>) -> Option<Finding> {
    let (runs, _) = case.runs();
    let losses = runs.concat();
    // The sender ignores duplicate acknowledgments with wrong SACK blocks, so that only a timer
    // detects a loss.
    let has_other_cause = silence::is_stuck(case) || is_randomised(case.data);
    if losses.is_empty() || has_other_cause {
        return None;
    }
    let stalls = case.data.stalls.iter();
    let waits = stalls.filter(|stall| stall.cause == Limit::RetransmissionTimeout);
    let share = case.share(waits.map(|stall| stall.duration_s).sum());
    let flights = counted(runs.len(), "flight");
    let text = format!("the last segments of {flights} were lost, and a timer found it.");
    Some(Finding {
        share,
        ..case.losing(&losses, text)
    })
}

/// Standard deviations by which losses without an earlier copy must exceed those whose earlier copy
/// the capture itself lost.
const DEVIATIONS: f64 = 3.0;

/// Losses on the side of the sender.
pub(super) fn before_capture(case: &Case<'_>) -> Option<Finding> {
    let mut losses = case.losses();
    let all = losses.len() as f64;
    losses.retain(|one| one.lost == LossSide::Before);
    // The capture lost packets that the network dropped later as well.
    let lacking = case.data.capture_gap_bytes as f64 / case.data.bytes.max(1) as f64;
    let expected = lacking * all;
    let is_by_capture = losses.len() as f64 <= expected + DEVIATIONS * expected.sqrt();
    let how = format!("between the capture point and {}", case.sender);
    case.lost(&losses, &how).filter(|_| !is_by_capture)
}

/// Losses on the side of the receiver.
pub(super) fn after_capture(case: &Case<'_>) -> Option<Finding> {
    let mut losses = case.losses();
    losses.retain(|one| one.lost == LossSide::After);
    let how = format!("between the capture point and {}", case.receiver);
    case.lost(&losses, &how)
}

/// Retransmissions of data that had arrived.
pub(super) fn spurious_retransmission(case: &Case<'_>) -> Option<Finding> {
    let counts = &case.data.retransmission_counts;
    let spurious = case.data.retransmissions.iter();
    let spurious: Vec<_> = spurious.filter(|one| one.needed == Some(false)).collect();
    let count = counts.spurious;
    let text = format!(
        "of {}, {count} {} spurious: the data had arrived or was only late.",
        counted(counts.all, "retransmission"),
        were(count)
    );
    let share = case.of_segments(count);
    (count > 0).then(|| case.finding(share, text).at(frames(&spurious)))
}

/// Minimum share of the segments. Rarer reordering does no harm: RACK and DUPTHRESH tolerate it.
const LEAST_REORDERED: f64 = 0.0005;

/// Segments that arrive after later ones.
pub(super) fn reordering(case: &Case<'_>) -> Option<Finding> {
    // In a capture with gaps, the retransmission that filled one may be missing.
    let after = case.data.reordered_after_packets;
    let after = if case.data.capture_gaps > 0 { 0 } else { after };
    let before = case.data.reordered_packets;
    let count = before + after;
    let share = case.of_segments(count);
    let place = match (before, after) {
        (_, 0) => "the capture point".to_owned(),
        (0, _) => case.receiver.to_owned(),
        _ => format!(
            "the capture point ({before}) or {} ({after})",
            case.receiver
        ),
    };
    let text = format!(
        "{} ({}) reached {place} after later ones, and they are no retransmissions.",
        counted(count, "segment"),
        percent(share),
    );
    (count > 1 && share >= LEAST_REORDERED).then(|| case.finding(share, text))
}
