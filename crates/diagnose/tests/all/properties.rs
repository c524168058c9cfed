//! Properties that hold for any packets.

use anabranch_diagnose::limit::Limit;
use anabranch_diagnose::{Bounds, Report, path::Estimate, report::Connection};
use proptest::prelude::*;

use crate::make::{Made, pcap, read};

fn packet() -> impl Strategy<Value = Made> {
    let near = prop_oneof![8 => 0_u32..20_000, 1 => any::<u32>()];
    let flags = prop_oneof![8 => Just(16_u8), 2 => Just(24), 1 => any::<u8>()];
    let place = (0_u64..3_000_000, 0_usize..2, 0_u16..3);
    let numbers = (
        near.clone(),
        near,
        flags,
        any::<u16>(),
        0_u16..3000,
        any::<u16>(),
    );
    let options = prop::collection::vec(any::<u8>(), 0..40);
    let sacks = prop::collection::vec(0_u32..20_000, 0..4).prop_map(|edges| {
        let pairs = edges.chunks_exact(2).count();
        let length = u8::try_from(2 + 8 * pairs).unwrap_or(2);
        let mut option = vec![5, length];
        option.extend(
            edges
                .iter()
                .take(2 * pairs)
                .flat_map(|edge| edge.to_be_bytes()),
        );
        option
    });
    let options = prop_oneof![1 => options, 3 => sacks];
    (place, numbers, options).prop_map(|((micros, from, port), numbers, options)| {
        let (seq, ack, flags, window, payload, id) = numbers;
        Made {
            micros,
            from,
            ports: (5000 + port, 80),
            seq,
            ack,
            flags,
            window,
            payload,
            id,
            hops: 64,
            options,
        }
    })
}

/// Checks that the bounds of an estimate are ordered, not negative, and at most `most`.
fn is_estimate(estimate: &Estimate, most: f64) -> Result<(), TestCaseError> {
    let known = [
        Some(0.0),
        estimate.low,
        estimate.value,
        estimate.high,
        Some(most),
    ];
    let known: Vec<f64> = known.into_iter().flatten().collect();
    prop_assert!(known.is_sorted(), "{:?}", estimate);
    Ok(())
}

fn is_possible(connection: &Connection, packets: u64) -> Result<(), TestCaseError> {
    for finding in &connection.findings {
        prop_assert!((0.0..=1.0).contains(&finding.share), "{:?}", finding);
        prop_assert!(
            finding
                .packets
                .iter()
                .all(|frame| (1..=packets).contains(frame))
        );
    }
    for way in [&connection.directions.a_to_b, &connection.directions.b_to_a] {
        let trips = [way.rtt_ms.min, way.rtt_ms.median, way.rtt_ms.p95];
        let trips: Vec<f64> = trips.into_iter().flatten().collect();
        prop_assert!(
            trips.is_sorted() && trips.iter().all(|ms| *ms > 0.0),
            "{:?}",
            trips
        );
    }
    if let Some(model) = &connection.path.model {
        for (estimate, most) in [
            (&model.base_rtt_ms, f64::MAX),
            (&model.rate_mbit_s, f64::MAX),
            (&model.buffer_bytes, f64::MAX),
            (&model.buffer_ms, f64::MAX),
            (&model.jitter_ms, f64::MAX),
            (&model.loss.rate, 1.0),
            (&model.loss.mean_burst, f64::MAX),
            (&model.reordering.ratio, 1.0),
        ] {
            is_estimate(estimate, most)?;
        }
        if let Some(policer) = &model.policer {
            is_estimate(&policer.rate_mbit_s, f64::MAX)?;
            is_estimate(&policer.burst_bytes, f64::MAX)?;
        }
    }
    Ok(())
}

/// Checks that each direction's limits sum to the connection's duration, and that retransmissions
/// are counted once.
fn is_sound(report: &Report) -> Result<(), TestCaseError> {
    for connection in &report.connections {
        is_possible(connection, report.packets)?;
        for direction in [&connection.directions.a_to_b, &connection.directions.b_to_a] {
            let sum: f64 = direction.limits_s.values().sum();
            prop_assert!((sum - connection.duration_s).abs() < 1e-6);
            prop_assert!(direction.limits_s.values().all(|time| *time >= 0.0));
            let limits = &direction.limits_s;
            let parts = direction.receiver_application_s + direction.closing_s;
            prop_assert!(parts <= limits[&Limit::Application] + 1e-6);
            prop_assert!(direction.answering_s <= limits[&Limit::Application] + 1e-6);
            prop_assert!(direction.turns_s <= limits[&Limit::RoundTrips] + 1e-6);
            let counts = &direction.retransmission_counts;
            prop_assert_eq!(counts.all, direction.retransmissions.len() as u64);
            prop_assert_eq!(
                counts.all,
                counts.needed + counts.spurious + counts.undecided
            );
            prop_assert_eq!(direction.triggers.values().sum::<u64>(), counts.all);
            let mut packets = direction.retransmissions.iter().map(|one| one.packet);
            prop_assert!(packets.all(|packet| packet >= 1 && packet <= report.packets));
        }
    }
    let listed: u64 = report.connections.iter().map(|one| one.packets).sum();
    let passed: u64 = report.passed_over.values().sum();
    prop_assert_eq!(listed + passed + report.omitted.packets, report.packets);
    Ok(())
}

proptest! {
    #[test]
    fn any_packets_give_a_sound_report(packets in prop::collection::vec(packet(), 1..200), snaplen in 0_usize..120) {
        is_sound(&read(&pcap(&packets, snaplen), Bounds::default()))?;
    }

    #[test]
    fn packets_in_order_of_time_give_a_sound_report(mut packets in prop::collection::vec(packet(), 1..200)) {
        packets.sort_by_key(|packet| packet.micros);
        is_sound(&read(&pcap(&packets, 65_535), Bounds::default()))?;
    }

    #[test]
    fn the_order_in_the_file_does_not_matter(mut packets in prop::collection::vec(packet(), 1..60), seed: u64) {
        // Packets with equal times keep the file's order, so times differ here, by less than a step
        // of a clock.
        for (k, packet) in packets.iter_mut().enumerate() {
            packet.micros = packet.micros / 32 / 256 * 256 + k as u64;
        }
        let limits = |packets: &[Made]| {
            let report = read(&pcap(packets, 65_535), Bounds::default());
            let mut limits: Vec<_> = report.connections.iter().map(|one| format!("{:?}", one.directions.a_to_b.limits_s)).collect();
            limits.sort();
            limits
        };
        let mut mixed = packets.clone();
        let length = mixed.len();
        for k in 0..length {
            let other = usize::try_from(seed.wrapping_mul(k as u64 + 1) >> 20).unwrap_or(0) % length;
            mixed.swap(k, other);
        }
        prop_assert_eq!(limits(&packets), limits(&mixed));
    }
}
