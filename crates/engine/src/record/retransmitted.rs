//! Each retransmission with the packet that carried its octets before.

use std::collections::BTreeMap;

use super::{needed::Judge, packet_log::PacketRow};

/// A retransmission and its original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retransmitted<'a> {
    /// The retransmission.
    pub row: &'a PacketRow,
    /// See [`super::PacketLog::needed`].
    pub needed: Option<bool>,
    /// The last earlier packet with the same first octet that carried all of its octets; if the
    /// segment boundaries differ, the last packet that carried some of them.
    pub original: Option<&'a PacketRow>,
}

const fn end(row: &PacketRow) -> u64 {
    row.sequence + row.payload as u64
}

/// Returns the retransmissions among `rows`, all packets of one end of a connection in order of
/// sending.
pub(super) fn retransmitted(rows: &[PacketRow]) -> Vec<Retransmitted<'_>> {
    let again = |row: &PacketRow| row.retransmission && row.counts();
    // Only packets that start at the first octet of a retransmission are indexed: few in a long
    // transfer.
    let mut same: BTreeMap<u64, Vec<usize>> = rows
        .iter()
        .filter(|row| again(row))
        .map(|row| (row.sequence, Vec::new()))
        .collect();
    if same.is_empty() {
        return Vec::new();
    }
    let (mut judge, mut found) = (Judge::default(), Vec::new());
    for (number, row) in rows.iter().enumerate() {
        let was_sent = row.retransmission && judge.has_left(row);
        let needed = judge.next(row);
        if !row.counts() {
            continue;
        }
        let whole = same.get_mut(&row.sequence);
        if row.retransmission {
            let earlier = whole.as_deref().into_iter().flatten().rev();
            let mut earlier = earlier.map(|&before| &rows[before]);
            let original = earlier
                .find(|before| end(before) >= end(row))
                .or_else(|| overlapping(&rows[..number], row).filter(|_| was_sent));
            found.push(Retransmitted {
                row,
                needed,
                original,
            });
        }
        if let Some(whole) = whole {
            whole.push(number);
        }
    }
    found
}

/// The last of `before` that shares an octet with `row`.
fn overlapping<'a>(before: &'a [PacketRow], row: &PacketRow) -> Option<&'a PacketRow> {
    before
        .iter()
        .rev()
        .filter(|other| other.counts())
        .find(|other| other.sequence < end(row) && end(other) > row.sequence)
}
