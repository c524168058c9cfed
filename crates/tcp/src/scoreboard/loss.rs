//! Loss marking, and the choice of the next retransmission (RFC 6675 §4).

use std::{cmp::Reverse, collections::BinaryHeap};

use super::{Marks, Record, Scoreboard, index_around, record::SETTLED};
use crate::cause::RetransmitCause;
use anabranch_wire::seq::Seq;

impl Scoreboard {
    /// IsLost of RFC 6675 §4 for every octet at once: octets below the result that are not SACKed
    /// are lost.
    #[must_use]
    pub fn lost_below(&self, dupthresh: u32, smss: u32) -> Option<Seq> {
        if self.sacked == 0 {
            return None;
        }
        self.repair.as_ref()?.sacked.lost_below(dupthresh, smss)
    }

    /// Marks lost the data below `edge` that is not SACKed. Returns the sequence numbers newly
    /// lost.
    pub fn mark_lost_below(&mut self, edge: Seq) -> u64 {
        let before = self.lost;
        let mut number = self.repair.get_or_insert_default().judged.max(self.gone());
        while let Some(record) = self.records.get_mut(self.index(number))
            && record.start(edge) < edge
        {
            if record.is_retransmitted() {
                // The first copy is marked lost; the other is still in flight.
                if record.any(Marks::TWICE) {
                    self.in_flight -= record.numbers();
                    record.unmark(Marks::TWICE);
                    let index = self.index(number);
                    self.log_loss(index);
                }
            } else {
                let index = self.index(number);
                self.mark_lost(index, RetransmitCause::DupThresh);
            }
            number += 1;
        }
        self.repair.get_or_insert_default().judged = number;
        self.lost - before
    }

    /// Marks the record at `index` lost, unless it is SACKed or already lost.
    pub fn mark_lost(&mut self, index: usize, cause: RetransmitCause) {
        let Some(record) = self.records.get_mut(index) else {
            return;
        };
        if record.any(SETTLED) {
            return;
        }
        self.in_flight -= record.in_flight();
        self.lost += record.numbers();
        record.unmark(Marks::TWICE);
        record.lose(cause);
        let start = record.start(self.una);
        self.repair
            .get_or_insert_default()
            .to_retransmit
            .push(Reverse(start));
        self.log_loss(index);
    }

    /// Marks all data lost that is not SACKed, after a timeout. If the peer has reneged (its SACK
    /// blocks cover the octet at SND.UNA), its blocks are discarded (RFC 6675 §5.1).
    pub fn mark_all_lost(&mut self) {
        let reneged = self.front().is_some_and(Record::is_sacked);
        let gone = self.gone();
        let repair = self.repair.get_or_insert_default();
        if reneged {
            repair.sacked.clear();
            self.sacked = 0;
            self.sacked_segments = 0;
        }
        repair.judged = gone + self.records.len() as u64;
        repair.resent.clear();
        let mut starts = std::mem::take(&mut repair.to_retransmit).into_vec();
        starts.clear();
        self.lost = 0;
        for (number, record) in (gone..).zip(self.records.iter_mut_from(0)) {
            record.unmark(Marks::TWICE);
            if reneged {
                record.unmark(Marks::SACKED);
            }
            if !record.is_sacked() {
                if !record.any(Marks::LOST)
                    && let Some(loss_log) = &mut repair.loss_log
                {
                    loss_log.push(number);
                }
                record.lose(RetransmitCause::Rto);
                self.lost += record.numbers();
                starts.push(Reverse(record.start(self.una)));
            }
        }
        self.in_flight = 0;
        self.unnamed = 0;
        repair.to_retransmit = BinaryHeap::from(starts);
    }

    /// Returns data marked lost and not retransmitted to the data in flight.
    pub fn forgive(&mut self) {
        for record in self.records.iter_mut_from(0) {
            if record.any(Marks::LOST) {
                record.unmark(Marks::LOST);
                self.in_flight += record.in_flight();
            }
        }
        self.lost = 0;
        if let Some(repair) = &mut self.repair {
            repair.to_retransmit.clear();
            repair.judged = 0;
            repair.expired = 0;
            repair.resent.clear();
        }
        self.note_resent();
    }

    /// The lost record with the lowest number.
    pub fn next_lost(&mut self) -> Option<usize> {
        if self.lost == 0 {
            return None;
        }
        let repair = self.repair.as_mut()?;
        while let Some(Reverse(start)) = repair.to_retransmit.peek() {
            let una = self.una;
            let index = index_around(&self.records, una, *start);
            if let Some(record) = self.records.get(index)
                && record.start(una) == *start
                && record.any(Marks::LOST)
            {
                return Some(index);
            }
            repair.to_retransmit.pop();
        }
        None
    }

    /// Rule 3 of NextSeg (RFC 6675 §4): the lowest record below the highest SACKed number that is
    /// neither SACKed nor lost and has not been retransmitted in this recovery.
    pub fn speculative(&mut self) -> Option<usize> {
        let highest = self.highest_sacked()?;
        let repair = self.repair.as_mut()?;
        let gone = self.records.removed();
        let mut number = repair.speculated.max(gone);
        let mut found = None;
        while let Ok(index) = usize::try_from(number - gone)
            && let Some(record) = self.records.get(index)
            && record.end(highest) <= highest
        {
            if !record.any(SETTLED.with(Marks::RETRANSMITTED)) {
                found = Some(index);
                break;
            }
            number += 1;
        }
        repair.speculated = number;
        found
    }

    /// The highest record not SACKed, for the rescue retransmission, once per recovery (rule 4 of
    /// NextSeg, RFC 6675 §4); `None` if another rule has just retransmitted it.
    #[must_use]
    pub fn last_unreported(&self) -> Option<usize> {
        let backwards = (0..self.len()).rev().zip(self.records.iter().rev());
        let (last, record) = { backwards }.find(|(_, record)| !record.is_sacked())?;
        (!record.is_retransmitted()).then_some(last)
    }
}
