//! Segments to be retransmitted in smaller ones.

use std::{cmp::Reverse, collections::VecDeque};

use super::{Marks, Record, Scoreboard, record::SETTLED};
use crate::cause::RetransmitCause;

impl Scoreboard {
    /// Splits outstanding segments of more than `most` octets, which the path does not carry, and
    /// marks the pieces lost. SACKed segments stay whole. Returns the number of each record split,
    /// counted after the splits before it, and its number of pieces.
    ///
    /// The losses are not in the log ([`Self::take_loss_log`]): they do not indicate congestion.
    pub fn refuse_above(&mut self, most: u32) -> Vec<(u64, usize)> {
        let most = most.max(1);
        let mut cut = Vec::new();
        let records = std::mem::take(&mut self.records);
        let mut kept = VecDeque::with_capacity(records.len());
        let repair = self.repair.get_or_insert_default();
        for record in records {
            if record.is_sacked() || record.payload() <= most {
                kept.push_back(record);
                continue;
            }
            let number = self.gone + kept.len() as u64;
            if !record.marks.any(SETTLED) {
                self.in_flight -= record.in_flight();
                self.lost += u64::from(record.len);
            }
            let pieces = pieces(record, most);
            cut.push((number, pieces.len()));
            for piece in pieces {
                repair.to_retransmit.push(Reverse(piece.start));
                kept.push_back(piece);
            }
        }
        self.records = kept;
        if !cut.is_empty() {
            // Record numbers have changed; checking a record again changes nothing.
            repair.judged = self.gone;
            repair.speculated = self.gone;
            repair.expired = self.gone;
        }
        cut
    }
}

/// Splits the record into pieces of `most` octets of payload, all marked lost. SYN stays with the
/// first piece and FIN with the last.
fn pieces(record: Record, most: u32) -> Vec<Record> {
    let lost_by = if record.marks.any(Marks::LOST) {
        record.lost_by
    } else {
        RetransmitCause::PathMtu
    };
    let lost = record.marks.without(Marks::TWICE).with(Marks::LOST);
    let (mut start, mut left) = (record.start, record.payload());
    let mut pieces = Vec::new();
    while left > 0 {
        let payload = left.min(most);
        left -= payload;
        let mut marks = lost.without(Marks::SYN).without(Marks::FIN);
        let mut len = payload;
        if record.is_syn() && pieces.is_empty() {
            marks = marks.with(Marks::SYN);
            len += 1;
        }
        if record.is_fin() && left == 0 {
            marks = marks.with(Marks::FIN);
            len += 1;
        }
        pieces.push(Record {
            start,
            sent_at: record.sent_at,
            len,
            marks,
            lost_by,
        });
        start += u64::from(len);
    }
    pieces
}
