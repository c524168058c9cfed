//! The scoreboard: every segment sent and not acknowledged, in order of its sequence number.
//!
//! Each segment is one small record. SACKed ranges are stored as disjoint intervals as well, so a
//! block seen before costs a binary search and a new one only its new part. The status of a record
//! changes a bounded number of times, and no acknowledgment scans records that it does not change:
//! the work is amortised O(1) per segment without losses and O(log n) with them.

mod intervals;
mod loss;
mod record;
mod split;
mod timed;

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use anabranch_core::{ring::Ring, units::Instant};

use self::intervals::Intervals;
pub use self::{
    record::{Again, Delivered, Marks, Once, Plain, Record},
    timed::{Expired, Found, Limit},
};
use anabranch_wire::seq::Seq;

/// The scoreboard; see the module.
#[derive(Debug)]
pub struct Scoreboard {
    records: Ring<Record>,
    /// The first number of the first record.
    una: Seq,
    /// Sequence numbers in flight: sent, not SACKed, not lost; the pipe of RFC 6675.
    in_flight: u64,
    /// Sequence numbers lost and not retransmitted.
    lost: u64,
    /// SACKed sequence numbers.
    sacked: u64,
    /// SACKed segments.
    sacked_segments: u32,
    /// Sequence numbers that duplicate acknowledgments report as delivered, without naming them.
    unnamed: u32,
    repair: Option<Box<Repair>>,
}

impl Default for Scoreboard {
    fn default() -> Self {
        Self {
            records: Ring::new(),
            una: Seq::START,
            in_flight: 0,
            lost: 0,
            sacked: 0,
            sacked_segments: 0,
            unnamed: 0,
            repair: None,
        }
    }
}

/// State needed only with losses and reordering.
#[derive(Debug, Default)]
struct Repair {
    sacked: Intervals,
    /// First numbers of lost records; entries whose record is no longer lost are skipped.
    to_retransmit: BinaryHeap<Reverse<Seq>>,
    /// Records before this one have been checked by [`Scoreboard::mark_lost_below`].
    judged: u64,
    /// Records before this one have been passed by [`Scoreboard::speculative`].
    speculated: u64,
    /// Records before this one have been passed by [`Scoreboard::expire`].
    expired: u64,
    /// Retransmissions in order of their time, for [`Scoreboard::expire`].
    resent: VecDeque<(Instant, Seq)>,
    /// Numbers of records newly marked lost, if [`Scoreboard::keep_loss_log`] was called.
    loss_log: Option<Vec<u64>>,
}

impl Scoreboard {
    /// Sequence numbers in flight.
    #[must_use]
    #[inline]
    pub const fn in_flight(&self) -> u64 {
        self.in_flight.saturating_sub(self.unnamed as u64)
    }
    /// Sequence numbers delivered of which no acknowledgment has named the segment.
    #[must_use]
    pub const fn unnamed(&self) -> u64 {
        self.unnamed as u64
    }
    /// Sets [`Self::unnamed`].
    pub const fn set_unnamed(&mut self, unnamed: u32) {
        self.unnamed = unnamed;
    }
    /// Sequence numbers lost and not retransmitted.
    #[must_use]
    #[inline]
    pub const fn lost(&self) -> u64 {
        self.lost
    }
    /// Sequence numbers SACKed and not yet acknowledged.
    #[must_use]
    #[inline]
    pub const fn sacked(&self) -> u64 {
        self.sacked
    }
    /// Segments SACKed and not yet acknowledged.
    #[must_use]
    pub const fn sacked_segments(&self) -> u32 {
        self.sacked_segments
    }
    /// Number of records removed at the front. The record at index `i` has the permanent number
    /// `gone() + i`.
    #[must_use]
    #[inline]
    pub const fn gone(&self) -> u64 {
        self.records.removed()
    }
    /// The record with the lowest sequence number.
    #[must_use]
    pub fn front(&self) -> Option<&Record> {
        self.records.front()
    }
    /// The record at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Record> {
        self.records.get(index)
    }
    /// Number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }
    /// Whether everything is acknowledged.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
    /// One past the highest octet SACKed.
    #[must_use]
    pub fn highest_sacked(&self) -> Option<Seq> {
        self.repair.as_ref()?.sacked.highest()
    }

    /// Releases memory that slow start needed and a smaller window does not.
    pub fn give_back(&mut self) {
        let needed = self.records.len();
        if self.records.capacity() > 8.max(4 * needed) {
            self.records.shrink_to(4.max(2 * needed));
        }
    }

    /// Enables [`Self::take_loss_log`].
    pub fn keep_loss_log(&mut self) {
        self.repair.get_or_insert_default().loss_log = Some(Vec::new());
    }
    /// Notes the record at `index` as lost, whatever its status.
    pub fn log_loss(&mut self, index: usize) {
        if let Some(repair) = &mut self.repair
            && let Some(loss_log) = &mut repair.loss_log
        {
            loss_log.push(self.records.removed() + index as u64);
        }
    }
    /// The numbers of the records marked lost since the last call.
    pub fn take_loss_log(&mut self) -> Vec<u64> {
        let loss_log = self
            .repair
            .as_mut()
            .and_then(|repair| repair.loss_log.as_mut());
        loss_log.map(std::mem::take).unwrap_or_default()
    }

    /// Adds a segment sent for the first time.
    #[inline]
    pub fn sent(&mut self, start: Seq, len: u32, marks: Marks, now: Instant) {
        if self.records.is_full() && self.records.is_empty() {
            self.una = start;
        }
        debug_assert!(
            !self.is_empty() || self.una == start,
            "no number is skipped"
        );
        self.in_flight += u64::from(len);
        self.records.push_back(Record::new(start, len, marks, now));
    }

    /// Whether there are neither SACKed nor lost segments.
    #[must_use]
    #[inline]
    pub const fn is_plain(&self) -> bool {
        self.sacked | self.lost == 0
    }

    /// As [`Self::acknowledge`], if `una` ends a record, and it and those before it were sent once
    /// and carry neither SYN nor FIN. Otherwise nothing changes.
    #[expect(
        clippy::inline_always,
        reason = "measured: it is a step of the hot path"
    )]
    #[inline(always)]
    pub fn acknowledge_whole(&mut self, una: Seq) -> Option<Plain> {
        let octets = una.since(self.una);
        // Segments sent once are in the order of their times.
        let first = *self.records.front()?;
        let last = if first.is_plain_of(octets) {
            self.records.pop_front();
            first
        } else {
            self.acknowledge_several(octets)?
        };
        self.in_flight -= octets;
        self.una = una;
        Some(Plain {
            first_sent_at: first.sent_at,
            last_sent_at: last.sent_at,
            octets,
            latest: self.gone() - 1,
        })
    }

    /// The records of [`Self::acknowledge_whole`]. Returns the last of them.
    #[inline]
    fn acknowledge_several(&mut self, octets: u64) -> Option<Record> {
        let mut left = octets;
        let mut count = 0;
        loop {
            let record = *self.records.get(count)?;
            count += 1;
            if record.marks() != Marks::NONE {
                return None;
            }
            left = left.checked_sub(record.numbers())?;
            if left == 0 {
                self.records.drop_front(count);
                return Some(record);
            }
        }
    }

    /// Removes the records before `una`, which are acknowledged.
    pub fn acknowledge(&mut self, una: Seq, delivered: &mut Delivered) {
        while let Some(front) = self.records.front() {
            let front = *front;
            if front.end(una) > una {
                break;
            }
            self.leave(&front, una, delivered);
            self.records.pop_front();
        }
        if let Some(front) = self.records.front_mut()
            && let cut @ 1.. = una.since(front.start(una))
        {
            self.trim(una, cut);
        }
        self.una = una;
        if self.sacked > 0
            && let Some(repair) = &mut self.repair
        {
            repair.sacked.release(una);
        }
    }

    fn leave(&mut self, record: &Record, una: Seq, delivered: &mut Delivered) {
        delivered.control_bits += u64::from(record.is_syn()) + u64::from(record.is_fin());
        self.in_flight -= record.in_flight();
        if record.is_sacked() {
            self.sacked -= record.numbers();
            self.sacked_segments -= 1;
        } else {
            if record.any(Marks::LOST) {
                self.lost -= record.numbers();
            }
            delivered.note(record, self.gone(), una);
        }
    }

    /// Removes the acknowledged part of the front record.
    #[cold]
    fn trim(&mut self, una: Seq, cut: u64) {
        let Some(front) = self.records.front_mut() else {
            return;
        };
        let before = front.in_flight();
        front.trim(u32::try_from(cut).expect("a part of a record"));
        self.in_flight = self.in_flight - before + front.in_flight();
        if front.is_sacked() {
            self.sacked -= cut;
        } else if front.any(Marks::LOST) {
            self.lost -= cut;
            self.repair
                .get_or_insert_default()
                .to_retransmit
                .push(Reverse(una));
        }
    }

    /// Whether the segment around `number`, which is not acknowledged, was sent more than once.
    #[must_use]
    pub fn was_resent(&self, number: Seq) -> bool {
        let index = index_around(&self.records, self.una, number);
        self.records
            .get(index)
            .is_some_and(Record::is_retransmitted)
    }

    /// Processes the SACK block `left..right`, which must be within the data sent and not
    /// acknowledged. Returns `false` if nothing in the block is new.
    pub fn sack(&mut self, left: Seq, right: Seq, delivered: &mut Delivered) -> bool {
        let Self {
            records,
            repair,
            in_flight,
            lost,
            sacked,
            sacked_segments,
            unnamed: _,
            una,
        } = self;
        let repair = repair.get_or_insert_default();
        let before = delivered.sacked;
        let known = repair.sacked.insert(left, right, |from, to, whole| {
            let mut index = index_around(records, *una, from);
            while let Some(record) = records.get_mut(index) {
                let number = index as u64;
                index += 1;
                let (start, end) = (record.start(left), record.end(left));
                if start >= to {
                    break;
                }
                // A record counts once it is SACKed in full.
                if record.is_sacked() || start < whole.0 || end > whole.1 {
                    continue;
                }
                *in_flight -= record.in_flight();
                if record.any(Marks::LOST) {
                    *lost -= record.numbers();
                }
                record.unmark(Marks::LOST.with(Marks::TWICE));
                record.mark(Marks::SACKED);
                *sacked += record.numbers();
                *sacked_segments += 1;
                delivered.sacked += record.numbers();
                let record = *record;
                delivered.note(&record, records.removed() + number, left);
            }
        });
        !known && delivered.sacked > before
    }

    /// The record at `index` is retransmitted. With `twice`, a copy that was not marked lost counts
    /// as in flight in addition to the new one.
    pub fn resent(&mut self, index: usize, now: Instant, twice: bool, timed: bool) {
        let Some(record) = self.records.get_mut(index) else {
            return;
        };
        let before = record.in_flight();
        if record.any(Marks::LOST) {
            self.lost -= record.numbers();
            record.unmark(Marks::LOST);
        } else if twice && !record.is_sacked() {
            // No copy of SACKed data counts as in flight, whichever copy arrived.
            record.mark(Marks::TWICE);
        }
        record.mark(Marks::RETRANSMITTED);
        record.sent_at = now;
        self.in_flight = self.in_flight - before + record.in_flight();
        if timed {
            let start = record.start(self.una);
            self.repair
                .get_or_insert_default()
                .resent
                .push_back((now, start));
        }
    }

    /// Starts a new recovery: records skipped before may be retransmitted in it.
    pub fn begin_recovery(&mut self) {
        if let Some(repair) = &mut self.repair {
            repair.speculated = self.records.removed();
        }
    }

    #[inline]
    fn index(&self, number: u64) -> usize {
        usize::try_from(number - self.gone()).unwrap_or(usize::MAX)
    }

    /// Recounts all totals from the records, for comparison with the running counts.
    #[cfg(test)]
    fn recount(&self) -> (u64, u64, u64) {
        let sum = |f: &dyn Fn(&Record) -> u64| self.records.iter().map(f).sum::<u64>();
        (
            sum(&Record::in_flight),
            sum(&|r| {
                if r.any(Marks::LOST) { r.numbers() } else { 0 }
            }),
            sum(&|r| if r.is_sacked() { r.numbers() } else { 0 }),
        )
    }
}

/// Index of the record that contains `seq`; one past the last if there is none. `una` is the first
/// number of the first record.
fn index_around(records: &Ring<Record>, una: Seq, seq: Seq) -> usize {
    // Most segments are as long as the first.
    if let Some(first) = records.front()
        && let Some(guess) = seq.since(una).checked_div(first.numbers())
        && let Ok(index) = usize::try_from(guess)
        && let Some(record) = records.get(index)
        && record.start(seq) <= seq
        && seq < record.end(seq)
    {
        return index;
    }
    records.partition_point(|record| record.end(seq) <= seq)
}

#[cfg(test)]
mod tests;
