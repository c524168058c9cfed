//! Invariants of the diagnosis of any capture.

use std::io::Cursor;

use anabranch_diagnose::{Bounds, Report, diagnose, quic::QuicFlow};

/// Small, so that inputs reach them.
pub const BOUNDS: Bounds = Bounds {
    open_connections: 8,
    connections: 4,
    retransmissions: 16,
    ..Bounds::DEFAULT
};

/// Diagnoses a capture: the limits of each direction sum to its duration, and each packet is
/// counted once.
pub fn check(capture: &[u8]) {
    let file = Cursor::new(capture);
    let report = match diagnose(file, "fuzzed", BOUNDS, || false) {
        Ok(report) => report,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let listed: u64 = report.connections.iter().map(|one| one.packets).sum();
    let passed: u64 = report.passed_over.values().sum();
    let quic: u64 = report.quic.iter().map(datagrams).sum();
    assert_eq!(
        listed + passed + quic + report.quic_not_listed + report.omitted.packets,
        report.packets
    );
    check_connections(&report);
}

fn datagrams(flow: &QuicFlow) -> u64 {
    flow.directions.a_to_b.datagrams + flow.directions.b_to_a.datagrams
}

/// Checks the sums of each direction.
pub fn check_connections(report: &Report) {
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
