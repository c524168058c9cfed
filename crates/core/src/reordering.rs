//! Packet reordering at a receiver, measured while the packets arrive.
//!
//! Packets are identified by their *sending index*: 0, 1, 2 … per flow and direction in the order
//! of transmission; a retransmission is a new packet with a new index. The metrics are
//! - reordered packets and their ratio (RFC 4737 §3.3, §4.1): a packet below the next expected
//!   index, which is one above the largest that arrived;
//! - reordering extent (RFC 4737 §4.2): `i − j` for the `i`-th arrival, where `j` is the earliest
//!   arrival with a larger index;
//! - n-reordering (RFC 4737 §5): a packet is n-reordered if each of the n arrivals just before it
//!   has a larger index; the degree of n-reordering is the share of such packets. With n = 3 these
//!   are the packets that a sender with a threshold of three duplicate ACKs marks lost;
//! - reorder density (RFC 5236): the distribution of displacements (receive index − index; negative
//!   is early, positive late) of packets displaced by at most a threshold DT.
//!
//! Only the first arrival of a duplicated packet counts (RFC 4737, RFC 5236); duplicates take no
//! position in the order of arrival. The caller passes only arrivals within the measured interval.
//! The first of them, whatever its index, sets the next expected index.
//!
//! # Method and memory
//! Only packets that have *not* arrived are stored. The earliest arrival with a larger index than a
//! late packet is the arrival that skipped it. Each gap of missing packets therefore stores the
//! position of the arrival that opened it, and the extent is a binary search and a subtraction. The
//! latest arrival with a smaller index, which ends a packet's n-reordering, is either the one
//! before that skip or a later late packet; only late packets that still separate gaps are stored.
//!
//! A flow in order costs [`Reordering`] itself (at most 64 bytes) and two increments per packet.
//! After the first gap: at most `max_gaps` gaps of 24 bytes and `max_gaps + 2` late packets of 16
//! bytes, 2·DT + 1 counters of 8 bytes and up to DT + 1 runs and DT early packets of the density,
//! `max_n` counters of 8 bytes, and the [`Histogram`] of extents. (The capacity of growing
//! containers may be twice the need.)
//!
//! The gap of a lost packet remains for ever. If there are more than `max_gaps`, the gap with the
//! lowest indices is discarded. A packet that still arrives in it, or a duplicate of a packet below
//! it, is counted as reordered and as [`uncertain`](Summary::uncertain): its extent is a lower
//! bound and it is not counted as n-reordered.
//!
//! # Differs from the sources
//! In RFC 4737 §5 duplicates take a position; here they do not, as for the document's other
//! metrics. RFC 5236 starts at the first packet sent; here, if that packet never arrived, at DT
//! before the first arrival.
//!
//! # Not implemented
//! Late-time and byte offset, gaps between discontinuities, reordering-free runs (RFC 4737
//! §4.3–§4.6); reorder buffer-occupancy density (RFC 5236).

mod density;

use std::collections::VecDeque;

use self::density::Density;
use crate::histogram::Histogram;

/// Bounds of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// DT, packets: for the density, a packet displaced by more counts as lost (RFC 5236 leaves the
    /// choice to the application). Default 128, which covers queues and reorderings of the studies.
    pub displacement_threshold: u32,
    /// The largest n of n-reordering that is distinguished; larger degrees count as this one.
    /// Default 100.
    pub max_n: u32,
    /// Largest number of gaps of missing packets that are stored. Default 4096: about 100 KiB,
    /// reached only by flows with that number of losses.
    pub max_gaps: u32,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            displacement_threshold: 128,
            max_n: 100,
            max_gaps: 4096,
        }
    }
}

/// Classification of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Arrival {
    /// A packet with a larger index arrived before (RFC 4737 §3.3).
    pub reordered: bool,
    /// Reordering extent, packets (RFC 4737 §4.2); 0 if not reordered.
    pub extent: u64,
    /// Duplicate of an earlier arrival, which does not count.
    pub duplicate: bool,
}

/// Percentiles of the reordering extent over the reordered packets, packets. Exact below 256, then
/// within 0.4 %; the maximum is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Median.
    pub p50: u64,
    /// 95th percentile.
    pub p95: u64,
    /// Maximum.
    pub max: u64,
}

/// The measurement so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    /// Packets that arrived, without duplicates.
    pub arrived: u64,
    /// Duplicate arrivals.
    pub duplicates: u64,
    /// Reordered packets.
    pub reordered: u64,
    /// `reordered / arrived`; 0 if nothing arrived.
    pub reordered_ratio: f64,
    /// `None` if nothing was reordered.
    pub extent: Option<Extent>,
    /// (n, share of the arrived packets that are n-reordered), for n from 1 to the largest degree
    /// found or `max_n`.
    pub n_reordering: Vec<(u32, f64)>,
    /// (displacement, share of the packets within DT), ascending, without zero shares.
    pub density: Vec<(i64, f64)>,
    /// Reordered packets in discarded gaps.
    pub uncertain: u64,
}

/// The measurement of one flow in one direction.
#[derive(Debug, Clone)]
pub struct Reordering {
    /// NextExp (RFC 4737 §3.3).
    next_expected: u64,
    /// Number of arrivals without duplicates, which is the position of the latest.
    arrived: u64,
    /// The index of the first arrival.
    first: u64,
    /// `None` while all packets arrived in order and without a gap.
    detail: Option<Box<Detail>>,
    params: Params,
}

/// Missing packets below the packet at `end`, which arrived.
#[derive(Debug, Clone, Copy)]
struct Gap {
    first: u64,
    /// One past the last.
    end: u64,
    /// The position of the arrival that skipped them.
    jumped_at: u64,
}

/// A late packet: the latest arrival below all packets above it.
#[derive(Debug, Clone, Copy)]
struct Late {
    index: u64,
    position: u64,
}

#[derive(Debug, Clone)]
struct Detail {
    /// Ascending, separated by at least one packet that arrived.
    gaps: VecDeque<Gap>,
    /// Ascending in index and in position.
    late: VecDeque<Late>,
    /// The newest of the discarded gaps; everything below its end is uncertain.
    forgotten: Option<Gap>,
    /// Arrivals in order from this index on are not yet in `density`.
    synced: u64,
    density: Density,
    reordered: u64,
    duplicates: u64,
    uncertain: u64,
    extents: Histogram<7>,
    /// Packets by degree − 1; those above `max_n` count as `max_n`.
    degrees: Vec<u64>,
}

impl Reordering {
    /// A measurement before the first arrival.
    #[must_use]
    pub const fn new(params: &Params) -> Self {
        Self {
            next_expected: 0,
            arrived: 0,
            first: 0,
            detail: None,
            params: *params,
        }
    }

    /// The packet with this sending index arrived. Indices are below `u64::MAX`.
    #[inline]
    pub fn on_arrival(&mut self, index: u64) -> Arrival {
        if index == self.next_expected {
            self.next_expected += 1;
            self.arrived += 1;
            return Arrival::default();
        }
        self.on_other_arrival(index)
    }

    /// The measurement so far, as if the stream ended here.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let arrived = self.arrived;
        let mut summary = Summary {
            arrived,
            ..Summary::default()
        };
        if arrived == 0 {
            return summary;
        }
        let Some(detail) = &self.detail else {
            summary.density = vec![(0, 1.0)];
            return summary;
        };
        let ratio = |packets: u64| packets as f64 / arrived as f64;
        summary.duplicates = detail.duplicates;
        summary.reordered = detail.reordered;
        summary.reordered_ratio = ratio(detail.reordered);
        summary.uncertain = detail.uncertain;
        summary.extent = detail.extent();
        let mut at_least: u64 = detail.degrees.iter().sum();
        for (n, packets) in (1..).zip(&detail.degrees) {
            summary.n_reordering.push((n, ratio(at_least)));
            at_least -= packets;
        }
        let mut density = detail.density.clone();
        density.push_in_order(detail.synced, self.next_expected - detail.synced);
        summary.density = density.finish();
        summary
    }

    /// Handles an arrival other than the next expected packet.
    #[cold]
    fn on_other_arrival(&mut self, index: u64) -> Arrival {
        debug_assert!(index != u64::MAX, "indices count packets from 0");
        if self.arrived == 0 {
            self.first = index;
            self.next_expected = index + 1;
            self.arrived = 1;
            return Arrival::default();
        }
        let (first, next_expected, params) = (self.first, self.next_expected, self.params);
        let detail = self
            .detail
            .get_or_insert_with(|| Box::new(Detail::new(&params, first)));
        detail
            .density
            .push_in_order(detail.synced, next_expected - detail.synced);
        if index > next_expected {
            self.arrived += 1;
            self.next_expected = index + 1;
            detail.synced = index + 1;
            detail.density.push_in_order(index, 1);
            detail.gaps.push_back(Gap {
                first: next_expected,
                end: index,
                jumped_at: self.arrived,
            });
            detail.forget(&params);
            return Arrival::default();
        }
        detail.synced = next_expected;
        detail.density.push_late(index);
        let arrival = detail.on_late(index, self.arrived + 1, &params);
        self.arrived += u64::from(!arrival.duplicate);
        arrival
    }
}

impl Detail {
    /// State after arrivals in order from index `first` on.
    fn new(params: &Params, first: u64) -> Self {
        let mut detail = Self {
            gaps: VecDeque::new(),
            late: VecDeque::new(),
            forgotten: None,
            synced: first,
            density: Density::new(params.displacement_threshold, first),
            reordered: 0,
            duplicates: 0,
            uncertain: 0,
            extents: Histogram::new(),
            degrees: Vec::new(),
        };
        if first != 0 {
            detail.gaps.push_back(Gap {
                first: 0,
                end: first,
                jumped_at: 1,
            });
        }
        detail
    }

    /// A packet below the next expected one arrived, at this position unless it is a duplicate.
    fn on_late(&mut self, index: u64, position: u64, params: &Params) -> Arrival {
        let above = self.gaps.partition_point(|gap| gap.first <= index);
        let gap = above.checked_sub(1).map(|at| (at, self.gaps[at]));
        let (jumped_at, gap) = match (gap, self.forgotten) {
            (Some((at, gap)), _) if index < gap.end => (gap.jumped_at, Some((at, gap))),
            (_, Some(forgotten)) if index < forgotten.end => (forgotten.jumped_at, None),
            _ => {
                self.duplicates += 1;
                return Arrival {
                    duplicate: true,
                    ..Arrival::default()
                };
            }
        };
        while self.late.back().is_some_and(|late| late.index > index) {
            self.late.pop_back();
        }
        if let Some((at, gap)) = gap {
            let below = self.late.back().map_or(0, |late| late.position);
            // Everything before the skip was below the gap.
            let below = below.max(jumped_at - 1);
            self.count_degree(position - below - 1, params.max_n);
            self.fill(at, gap, index);
        } else {
            self.uncertain += 1;
        }
        // Late packets without a gap between them and this one no longer end an n-reordering.
        let separated_from = self.gaps.partition_point(|gap| gap.first < index);
        let separated_from = separated_from
            .checked_sub(1)
            .map_or(0, |at| self.gaps[at].first);
        while self
            .late
            .back()
            .is_some_and(|late| late.index >= separated_from)
        {
            self.late.pop_back();
        }
        self.late.push_back(Late { index, position });
        self.forget(params);

        let extent = position - jumped_at;
        self.reordered += 1;
        self.extents.record(extent);
        Arrival {
            reordered: true,
            extent,
            duplicate: false,
        }
    }

    fn count_degree(&mut self, degree: u64, max_n: u32) {
        let degree = u32::try_from(degree).map_or(max_n, |degree| degree.min(max_n)) as usize;
        if degree == 0 {
            return;
        }
        if self.degrees.len() < degree {
            self.degrees.resize(degree, 0);
        }
        self.degrees[degree - 1] += 1;
    }

    /// Removes one packet from the gap at `at`.
    fn fill(&mut self, at: usize, gap: Gap, index: u64) {
        match (gap.first == index, gap.end == index + 1) {
            (true, true) => {
                self.gaps.remove(at);
            }
            (true, false) => self.gaps[at].first += 1,
            (false, true) => self.gaps[at].end -= 1,
            (false, false) => {
                self.gaps[at].end = index;
                let rest = Gap {
                    first: index + 1,
                    ..gap
                };
                self.gaps.insert(at + 1, rest);
            }
        }
    }

    /// Discards the lowest gaps beyond the bound, and the late packets that only they needed.
    fn forget(&mut self, params: &Params) {
        while self.gaps.len() > params.max_gaps as usize {
            self.forgotten = self.gaps.pop_front();
        }
        let Some(forgotten) = self.forgotten else {
            return;
        };
        while self
            .late
            .get(1)
            .is_some_and(|late| late.index < forgotten.end)
        {
            self.late.pop_front();
        }
    }

    fn extent(&self) -> Option<Extent> {
        Some(Extent {
            p50: self.extents.percentile(50.0)?,
            p95: self.extents.percentile(95.0)?,
            max: self.extents.max()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_in_order_is_small() {
        assert!(size_of::<Reordering>() <= 64);
        let mut reordering = Reordering::new(&Params::default());
        for index in 700..900 {
            reordering.on_arrival(index);
        }
        assert!(reordering.detail.is_none());
    }

    /// Endless losses, with late packets between them: the memory stays within the bound.
    #[test]
    fn memory_is_bounded() {
        let params = Params {
            max_gaps: 50,
            displacement_threshold: 16,
            ..Params::default()
        };
        let mut reordering = Reordering::new(&params);
        for block in 0..10_000 {
            let start = 10 * block;
            // In every ten packets, 4 and 7 are lost and 2 is late by one; sometimes 7 arrives a
            // block later.
            for offset in [0, 1, 3, 2, 5, 6, 8, 9] {
                reordering.on_arrival(start + offset);
            }
            if block % 7 == 3 {
                reordering.on_arrival(start - 3);
            }
            let detail = reordering.detail.as_ref().expect("out of order");
            assert!(detail.gaps.len() <= 50);
            assert!(detail.late.len() <= 52, "{}", detail.late.len());
        }
        assert_eq!(reordering.summary().uncertain, 0);
        assert!(reordering.on_arrival(4).reordered);
        assert_eq!(reordering.summary().uncertain, 1);
    }
}
