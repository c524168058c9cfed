//! Reordering on sequences small enough to check by hand, among them the arrival orders of the
//! examples in RFC 4737 §7.

use anabranch_core::reordering::{Arrival, Extent, Params, Reordering, Summary};

const IN_ORDER: Arrival = Arrival {
    reordered: false,
    extent: 0,
    duplicate: false,
};
const DUPLICATE: Arrival = Arrival {
    reordered: false,
    extent: 0,
    duplicate: true,
};

const fn late(extent: u64) -> Arrival {
    Arrival {
        reordered: true,
        extent,
        duplicate: false,
    }
}

/// Measures the arrivals with this displacement threshold; returns their classification, and the
/// summary.
fn measure(threshold: u32, indices: &[u64]) -> (Vec<Arrival>, Summary) {
    let mut reordering = Reordering::new(&Params {
        displacement_threshold: threshold,
        ..Params::default()
    });
    let arrivals = indices
        .iter()
        .map(|&index| reordering.on_arrival(index))
        .collect();
    (arrivals, reordering.summary())
}

/// The packets among `indices` that were not in order, and their classification.
fn remarkable(indices: &[u64], arrivals: &[Arrival]) -> Vec<(u64, Arrival)> {
    indices
        .iter()
        .copied()
        .zip(arrivals.iter().copied())
        .filter(|&(_, arrival)| arrival != IN_ORDER)
        .collect()
}

/// Shares as counts of `whole` packets.
fn counts<K: Copy>(shares: &[(K, f64)], whole: u32) -> Vec<(K, f64)> {
    shares
        .iter()
        .map(|&(key, share)| (key, (share * f64::from(whole) * 1e6).round() / 1e6))
        .collect()
}

/// RFC 4737 §7.1: packet 4 arrives after packet 8.
#[test]
fn one_packet_late() {
    let indices = [1, 2, 3, 5, 6, 7, 8, 4, 9, 10];
    let (arrivals, summary) = measure(8, &indices);
    assert_eq!(remarkable(&indices, &arrivals), [(4, late(4))]);
    assert_eq!(summary.reordered, 1);
    assert_eq!(summary.arrived, 10);
    assert_eq!(
        counts(&summary.n_reordering, 10),
        [(1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0)]
    );
    assert_eq!(
        counts(&summary.density, 10),
        [(-1, 4.0), (0, 5.0), (4, 1.0)]
    );
}

/// RFC 4737 §7.2: packets 5 and 6 arrive after packet 7. Only the first of them immediately follows
/// a larger index.
#[test]
fn two_packets_late() {
    let indices = [1, 2, 3, 4, 7, 5, 6, 8, 9, 10];
    let (arrivals, summary) = measure(8, &indices);
    assert_eq!(
        remarkable(&indices, &arrivals),
        [(5, late(1)), (6, late(2))]
    );
    assert_eq!(counts(&summary.n_reordering, 10), [(1, 1.0)]);
    assert_eq!(
        counts(&summary.density, 10),
        [(-2, 1.0), (0, 7.0), (1, 2.0)]
    );
}

/// RFC 4737 §7.3: packets 4, 5 and 6 arrive after packet 10.
#[test]
fn three_packets_late() {
    let indices = [1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11];
    let (arrivals, summary) = measure(8, &indices);
    assert_eq!(
        remarkable(&indices, &arrivals),
        [(4, late(4)), (5, late(5)), (6, late(6))]
    );
    assert_eq!(
        summary.extent,
        Some(Extent {
            p50: 5,
            p95: 6,
            max: 6
        })
    );
    assert_eq!(
        counts(&summary.n_reordering, 11),
        [(1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0)]
    );
    assert_eq!(
        counts(&summary.density, 11),
        [(-3, 4.0), (0, 4.0), (4, 3.0)]
    );
}

/// RFC 5236, neither loss nor duplicate: receive indices 1 to 8.
#[test]
fn density_of_a_permutation() {
    let (_, summary) = measure(4, &[1, 4, 2, 5, 3, 6, 7, 8]);
    assert_eq!(
        summary.density,
        [(-2, 0.125), (-1, 0.125), (0, 0.5), (1, 0.125), (2, 0.125)]
    );
}

/// RFC 5236, packet 4 lost: there is no receive index 4, so that the packets after it are in order.
#[test]
fn density_skips_lost_packets() {
    let indices = [1, 2, 5, 3, 6, 7, 8];
    let (arrivals, summary) = measure(2, &indices);
    assert_eq!(counts(&summary.density, 7), [(-2, 1.0), (0, 5.0), (2, 1.0)]);
    assert_eq!(remarkable(&indices, &arrivals), [(3, late(1))]);
}

/// RFC 5236, packet 3 duplicated: the copy takes no receive index.
#[test]
fn density_ignores_duplicates() {
    let indices = [1, 3, 2, 3, 4, 5, 4];
    let (arrivals, summary) = measure(2, &indices);
    assert_eq!(
        remarkable(&indices, &arrivals),
        [(2, late(1)), (3, DUPLICATE), (4, DUPLICATE)]
    );
    assert_eq!(summary.density, [(-1, 0.2), (0, 0.6), (1, 0.2)]);
    assert_eq!((summary.arrived, summary.duplicates), (5, 2));
}

/// A packet later than the threshold counts as lost for the density, but is still reordered.
#[test]
fn the_threshold_separates_late_from_lost() {
    let indices = [0, 2, 3, 4, 5, 1, 6, 7];
    let (arrivals, within) = measure(4, &indices);
    assert_eq!(counts(&within.density, 8), [(-1, 4.0), (0, 3.0), (4, 1.0)]);
    let (same, beyond) = measure(3, &indices);
    assert_eq!(arrivals, same);
    assert_eq!(beyond.density, [(0, 1.0)]);
    assert_eq!(beyond.reordered, 1);
}

/// The periodic reordering of an interval of four: the first packet of every five arrives after the
/// other four.
#[test]
fn interval_reordering() {
    let indices: Vec<u64> = (0..1000)
        .flat_map(|block| [1, 2, 3, 4, 0].map(|offset| 5 * block + offset))
        .collect();
    let (_, summary) = measure(128, &indices);
    assert_eq!(summary.reordered, 1000);
    assert_eq!(
        summary.extent,
        Some(Extent {
            p50: 4,
            p95: 4,
            max: 4
        })
    );
    assert_eq!(
        summary.n_reordering,
        [(1, 0.2), (2, 0.2), (3, 0.2), (4, 0.2)]
    );
    assert_eq!(summary.density, [(-1, 0.8), (4, 0.2)]);
}

#[test]
fn without_reordering_there_is_no_extent() {
    let (_, nothing) = measure(8, &[]);
    assert_eq!(nothing, Summary::default());
    let (_, in_order) = measure(8, &[7, 8, 9]);
    let (_, lossy) = measure(8, &[7, 9, 40]);
    for summary in [in_order, lossy] {
        assert_eq!(summary.arrived, 3);
        assert_eq!(summary.reordered, 0);
        assert_eq!(summary.extent, None);
        assert!(summary.n_reordering.is_empty());
        assert_eq!(summary.density, [(0, 1.0)]);
    }
}

/// With max_n = 3, a larger degree counts as 3-reordered.
#[test]
fn degrees_end_at_max_n() {
    let mut reordering = Reordering::new(&Params {
        max_n: 3,
        ..Params::default()
    });
    for index in [1, 2, 3, 4, 5, 6, 7, 0] {
        reordering.on_arrival(index);
    }
    assert_eq!(
        reordering.summary().n_reordering,
        [(1, 0.125), (2, 0.125), (3, 0.125)]
    );
}
