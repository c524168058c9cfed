//! When each flow counts.

use anabranch_core::units::Instant;
use anabranch_scenario::{Resolved, ResolvedFlow};

/// When it would count if nothing ended it.
pub fn asked_window(flow: &ResolvedFlow, resolved: &Resolved) -> (Instant, Instant) {
    let run = Instant::START + resolved.duration;
    let end = flow.stop.unwrap_or(run).min(run);
    (flow.start.max(Instant::START + resolved.warmup), end)
}

/// Where flows begin or end to count.
pub fn edges(resolved: &Resolved) -> Vec<Instant> {
    let windows = resolved
        .flows
        .iter()
        .map(|flow| asked_window(flow, resolved));
    windows.flat_map(|(start, end)| [start, end]).collect()
}
