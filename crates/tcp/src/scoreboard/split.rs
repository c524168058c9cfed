//! Segments to be retransmitted in smaller ones.

use std::cmp::Reverse;

use super::{Marks, Record, Scoreboard, record::SETTLED};
use crate::cause::RetransmitCause;
use anabranch_wire::seq::Seq;

impl Scoreboard {
    /// Splits outstanding segments of more than `most` octets, which the path does not carry, and
    /// marks the pieces lost. SACKed segments stay whole. Returns the number of each record split,
    /// counted after the splits before it, and its number of pieces.
    ///
    /// The losses are not in the log ([`Self::take_loss_log`]): they do not indicate congestion.
    pub fn refuse_above(&mut self, most: u32) -> Vec<(u64, usize)> {
        let most = most.max(1);
        let mut cut = Vec::new();
        let gone = self.gone();
        let records: Vec<Record> = self.records.iter().copied().collect();
        self.records.truncate(0);
        let repair = self.repair.get_or_insert_default();
        for record in records {
            if record.is_sacked() || record.payload() <= most {
                self.records.push_back(record);
                continue;
            }
            let number = gone + self.records.len() as u64;
            if !record.any(SETTLED) {
                self.in_flight -= record.in_flight();
                self.lost += record.numbers();
            }
            let pieces = pieces(record, self.una, most);
            cut.push((number, pieces.len()));
            for piece in pieces {
                repair.to_retransmit.push(Reverse(piece.start(self.una)));
                self.records.push_back(piece);
            }
        }
        if !cut.is_empty() {
            // Record numbers have changed; checking a record again changes nothing.
            repair.judged = gone;
            repair.speculated = gone;
            repair.expired = gone;
        }
        cut
    }
}

/// Splits the record into pieces of `most` octets of payload, all marked lost. SYN stays with the
/// first piece and FIN with the last. `near` is a number of the same window.
fn pieces(record: Record, near: Seq, most: u32) -> Vec<Record> {
    let lost_by = if record.any(Marks::LOST) {
        record.lost_by()
    } else {
        RetransmitCause::PathMtu
    };
    let control = Marks::SYN.with(Marks::FIN);
    let inner = record.marks().without(Marks::TWICE.with(control));
    let (mut start, mut left) = (record.start(near), record.payload());
    let mut pieces = Vec::new();
    while left > 0 {
        let payload = left.min(most);
        left -= payload;
        let mut marks = inner;
        let mut len = payload;
        if record.is_syn() && pieces.is_empty() {
            marks = marks.with(Marks::SYN);
            len += 1;
        }
        if record.is_fin() && left == 0 {
            marks = marks.with(Marks::FIN);
            len += 1;
        }
        let mut piece = Record::new(start, len, marks, record.sent_at);
        piece.lose(lost_by);
        pieces.push(piece);
        start += u64::from(len);
    }
    pieces
}
