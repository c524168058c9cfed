//! Limits that took a notable share of the time.

use super::{Finding, MOST_PACKETS, Way};
use crate::limit::Limit;

/// Shares below this one do not stand out.
const LEAST: f64 = 0.05;

pub(super) fn find(way: &Way<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if way.duration_s <= 0.0 {
        return findings;
    }
    for limit in Limit::ALL {
        let meta = limit.meta();
        let time = way.data.limits_s.get(meta.name).copied();
        let share = time.unwrap_or(0.0) / way.duration_s;
        if share < LEAST {
            continue;
        }
        let stalls = way.data.stalls.iter();
        let stalls = stalls.filter(|stall| stall.cause == meta.name);
        findings.push(Finding {
            cause: meta.name,
            share,
            text: format!("{} to {}: {}", way.sender, way.receiver, meta.meaning),
            packets: stalls
                .flat_map(|stall| stall.packets.iter().copied())
                .take(MOST_PACKETS)
                .collect(),
        });
    }
    findings
}
