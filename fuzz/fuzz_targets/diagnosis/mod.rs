//! Invariants of the diagnosis of any capture.

use anabranch_diagnose::{Bounds, diagnose};

/// Diagnoses a capture: the limits of each direction sum to its duration, and each packet is
/// counted once.
pub fn check(capture: &[u8]) {
    let bounds = Bounds {
        open_connections: 8,
        connections: 4,
        retransmissions: 16,
    };
    let report = match diagnose(capture, "fuzzed", bounds, || false) {
        Ok(report) => report,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let listed: u64 = report.connections.iter().map(|one| one.packets).sum();
    let passed: u64 = report.passed_over.values().sum();
    assert_eq!(listed + passed + report.omitted.packets, report.packets);
    for connection in &report.connections {
        for way in [&connection.directions.a_to_b, &connection.directions.b_to_a] {
            let sum: f64 = way.limits_s.values().sum();
            // Hostile times may be centuries apart.
            assert!((sum - connection.duration_s).abs() <= 1e-6 + connection.duration_s * 1e-12);
            let counts = &way.retransmission_counts;
            assert_eq!(
                counts.all,
                counts.needed + counts.spurious + counts.undecided
            );
            assert_eq!(
                counts.all,
                way.retransmissions.len() as u64 + counts.not_listed
            );
        }
    }
}
