//! Reorder density (RFC 5236): the displacement of each packet from its position in order.
//!
//! The definition numbers the arrivals with a receive index that skips lost packets. The
//! displacement of a packet is its receive index minus its own index. A missing packet is
//! considered lost if it is not among the next `threshold + 1` arrivals. This look-ahead is stored
//! as runs of consecutive packets, so that arrivals in order cost one step per run, not one per
//! packet.

use std::collections::VecDeque;

/// Consecutive arrivals with consecutive indices.
#[derive(Debug, Clone, Copy)]
struct Run {
    first: u64,
    length: u64,
}

/// The streaming computation of the density.
#[derive(Debug, Clone)]
pub(super) struct Density {
    /// DT: a packet displaced by more is not counted.
    threshold: u32,
    /// RI: the index that the next packet is compared with.
    receive_index: u64,
    /// Arrivals not yet evaluated, in order of arrival.
    window: VecDeque<Run>,
    /// Number of packets in `window`: at most DT + 1 between calls.
    waiting: u64,
    /// Packets evaluated as early whose position has not yet come, ascending; all are at or above
    /// `receive_index` by less than DT.
    early: VecDeque<u64>,
    /// Packets with displacement 0.
    in_place: u64,
    /// Packets by displacement + DT; empty until one is displaced.
    displaced: Vec<u64>,
}

impl Density {
    /// For a stream whose first arrival is packet `first`. A packet more than DT below it counts as
    /// lost (the definition starts at the first packet sent, with none below).
    pub(super) fn new(threshold: u32, first: u64) -> Self {
        Self {
            threshold,
            receive_index: first.saturating_sub(u64::from(threshold)),
            window: VecDeque::new(),
            waiting: 0,
            early: VecDeque::new(),
            in_place: 0,
            displaced: Vec::new(),
        }
    }

    /// `length` packets arrived in order from index `first`, all above every earlier arrival.
    ///
    /// They may enter the window before the packets that must leave it are evaluated: a packet
    /// above all others changes no decision, because the receive index always finds a lower one to
    /// stop at.
    pub(super) fn push_in_order(&mut self, first: u64, length: u64) {
        if length == 0 {
            return;
        }
        match self.window.back_mut() {
            Some(run) if run.first + run.length == first => run.length += length,
            _ => self.window.push_back(Run { first, length }),
        }
        self.waiting += length;
        let ahead = u64::from(self.threshold) + 1;
        self.judge(self.waiting.saturating_sub(ahead));
    }

    /// A packet that is not above every earlier arrival: late, or a duplicate.
    pub(super) fn push_late(&mut self, index: u64) {
        if self.waiting > u64::from(self.threshold) {
            self.judge(1);
        }
        let duplicate = self.early.binary_search(&index).is_ok()
            || self.window.iter().any(|run| run.contains(index));
        if index < self.receive_index || duplicate {
            return;
        }
        match self.window.back_mut() {
            Some(run) if run.first + run.length == index => run.length += 1,
            _ => self.window.push_back(Run {
                first: index,
                length: 1,
            }),
        }
        self.waiting += 1;
    }

    /// Evaluates all remaining packets, as at the end of the stream, and returns (displacement,
    /// share) in ascending order of displacement, without zero shares.
    pub(super) fn finish(mut self) -> Vec<(i64, f64)> {
        self.judge(self.waiting);
        let total = self.in_place + self.displaced.iter().sum::<u64>();
        let threshold = i64::from(self.threshold);
        let mut displaced = self.displaced;
        displaced.resize(2 * self.threshold as usize + 1, 0);
        displaced[self.threshold as usize] = self.in_place;
        (-threshold..=threshold)
            .zip(displaced)
            .filter(|&(_, packets)| packets != 0)
            .map(|(displacement, packets)| (displacement, packets as f64 / total as f64))
            .collect()
    }

    /// Evaluates the first `packets` packets of the window.
    fn judge(&mut self, mut packets: u64) {
        while packets != 0 {
            self.skip_lost();
            let Some(head) = self.window.front_mut() else {
                return;
            };
            let index = head.first;
            let judged = if index == self.receive_index {
                head.length.min(packets)
            } else {
                1
            };
            head.first += judged;
            head.length -= judged;
            if head.length == 0 {
                self.window.pop_front();
            }
            self.waiting -= judged;
            packets -= judged;
            if index == self.receive_index {
                self.in_place += judged;
                self.receive_index += judged;
            } else {
                self.judge_displaced(index);
            }
        }
    }

    fn judge_displaced(&mut self, index: u64) {
        let distance = index.abs_diff(self.receive_index);
        let Ok(distance @ 1..) = u32::try_from(distance) else {
            return;
        };
        if distance > self.threshold {
            return;
        }
        let threshold = self.threshold as usize;
        self.displaced.resize(2 * threshold + 1, 0);
        if self.early.front() == Some(&self.receive_index) {
            self.early.pop_front();
        }
        if index < self.receive_index {
            self.displaced[threshold + distance as usize] += 1;
        } else {
            self.displaced[threshold - distance as usize] += 1;
            let place = self.early.partition_point(|&other| other < index);
            self.early.insert(place, index);
        }
        self.receive_index += 1;
    }

    /// Advances the receive index to the next packet known to exist.
    fn skip_lost(&mut self) {
        let mut next = self.early.front().copied();
        for run in &self.window {
            if next == Some(self.receive_index) {
                return;
            }
            if run.first + run.length > self.receive_index {
                let candidate = run.first.max(self.receive_index);
                next = Some(next.map_or(candidate, |next| next.min(candidate)));
            }
        }
        if let Some(next) = next {
            self.receive_index = next;
        }
    }
}

impl Run {
    fn contains(self, index: u64) -> bool {
        index.wrapping_sub(self.first) < self.length
    }
}
