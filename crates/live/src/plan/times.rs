//! The measured time of each flow.

use anabranch_core::units::Instant;
use anabranch_scenario::{Resolved, ResolvedFlow};

/// The planned measured time of a flow, if no event ends it early.
pub fn asked_window(flow: &ResolvedFlow, resolved: &Resolved) -> (Instant, Instant) {
    let run = Instant::START + resolved.duration;
    let end = flow.stop.unwrap_or(run).min(run);
    (flow.start.max(Instant::START + resolved.warmup), end)
}

/// The start and end of each flow's measured time.
pub fn edges(resolved: &Resolved) -> Vec<Instant> {
    let windows = resolved
        .flows
        .iter()
        .map(|flow| asked_window(flow, resolved));
    windows.flat_map(|(start, end)| [start, end]).collect()
}
