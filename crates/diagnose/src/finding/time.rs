//! Limits that took a notable share of the time.

use super::{MOST_PACKETS, Way};
use crate::limit::Limit;
use crate::report::Finding;

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
        // Whoever sends the requests has little to send.
        let is_asking = limit == Limit::Application && !way.is_main;
        if share < LEAST || is_asking {
            continue;
        }
        let sides = if limit == Limit::Application {
            sides(way)
        } else {
            String::new()
        };
        let stalls = way.data.stalls.iter();
        let stalls = stalls.filter(|stall| stall.cause == meta.name);
        findings.push(Finding {
            cause: meta.name,
            share,
            text: format!(
                "{} to {}: {}{sides}",
                way.sender, way.receiver, meta.meaning
            ),
            packets: stalls
                .flat_map(|stall| stall.packets.iter().copied())
                .take(MOST_PACKETS)
                .collect(),
        });
    }
    findings
}

/// Whose application it was.
fn sides(way: &Way<'_>) -> String {
    let receiver = way.data.receiver_application_s;
    let all = way.data.limits_s.get(Limit::Application.meta().name);
    let part = receiver / all.copied().unwrap_or(0.0).max(f64::EPSILON);
    if part < 0.01 {
        return String::new();
    }
    format!(
        " In {} of it, it waited for a request of {}.",
        super::percent(part),
        way.receiver
    )
}
