//! What stands out in a connection, in a sentence.

use serde::Serialize;

use crate::{limit::Limit, report::Connection};

/// A cause, the share of the connection's time that it took, and what shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Its name.
    pub cause: &'static str,
    /// Of the connection's time.
    pub share: f64,
    /// A sentence.
    pub text: String,
    /// Frames that show it.
    pub packets: Vec<u64>,
}

/// Shares of time below this one do not stand out.
const LEAST: f64 = 0.05;
/// Frames that are named, at most.
const MOST_PACKETS: usize = 8;

/// What stands out in a connection, the largest share first.
pub(crate) fn all(connection: &Connection) -> Vec<Finding> {
    let mut findings = Vec::new();
    let sides = [
        (&connection.a, &connection.b),
        (&connection.b, &connection.a),
    ];
    for (direction, (sender, receiver)) in connection.directions.all().into_iter().zip(sides) {
        if direction.data_packets == 0 || connection.duration_s <= 0.0 {
            continue;
        }
        for limit in Limit::ALL {
            let time = direction.limits_s.get(limit.meta().name).copied();
            let share = time.unwrap_or(0.0) / connection.duration_s;
            if share < LEAST {
                continue;
            }
            let meta = limit.meta();
            let stalls = direction
                .stalls
                .iter()
                .filter(|stall| stall.cause == meta.name);
            findings.push(Finding {
                cause: meta.name,
                share,
                text: format!("{sender} to {receiver}: {}", meta.meaning),
                packets: stalls
                    .flat_map(|stall| stall.packets.iter().copied())
                    .take(MOST_PACKETS)
                    .collect(),
            });
        }
    }
    findings.sort_by(|one, other| other.share.total_cmp(&one.share));
    findings
}
