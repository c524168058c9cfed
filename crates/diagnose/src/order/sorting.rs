//! Sorts any number of segments by time in bounded memory: it writes sorted runs to a temporary
//! file and merges them.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    io,
    ops::{ControlFlow, Range},
};

use super::{
    record::{self, LENGTH},
    store::Store,
};
use crate::{segment::Segment, time::Nanos};

/// Segments that are sorted in memory: about 20 MB. Smaller captures need no file.
const RUN: usize = 1 << 17;
/// Records that are read at once from each run: 64 MB in all for a thousand million segments.
const READ: usize = 64;

/// An external merge sort of segments.
#[derive(Debug)]
pub(crate) struct Sorting {
    most: usize,
    held: Vec<Segment>,
    file: Option<Store>,
    /// The records of each run.
    runs: Vec<Range<u64>>,
}

impl Default for Sorting {
    fn default() -> Self {
        Self::with_runs_of(RUN)
    }
}

impl Sorting {
    /// Sets the number of segments that are sorted in memory.
    fn with_runs_of(most: usize) -> Self {
        Self {
            most,
            held: Vec::new(),
            file: None,
            runs: Vec::new(),
        }
    }

    /// Adds a segment.
    ///
    /// # Errors
    /// If the temporary file cannot be written.
    pub(crate) fn push(&mut self, segment: Segment) -> io::Result<()> {
        if self.held.len() >= self.most {
            self.spill()?;
        }
        self.held.push(segment);
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        let mut file = self.file.take().map_or_else(Store::new, Ok)?;
        self.held.sort_by_key(|segment| segment.time);
        let mut octets = Vec::with_capacity(LENGTH * READ);
        for part in self.held.chunks(READ) {
            octets.clear();
            for segment in part {
                record::write(*segment, &mut octets);
            }
            file.append(&octets)?;
        }
        let start = self.runs.last().map_or(0, |run| run.end);
        self.runs.push(start..start + self.held.len() as u64);
        self.held.clear();
        self.file = Some(file);
        Ok(())
    }

    /// Passes all segments to `take` in order of time, unless it breaks off. Segments with equal times
    /// keep their order.
    ///
    /// # Errors
    /// If the temporary file cannot be read.
    pub(crate) fn finish(
        mut self,
        mut take: impl FnMut(&Segment) -> ControlFlow<()>,
    ) -> io::Result<ControlFlow<()>> {
        // The sort is stable, and the runs in the file are earlier than these segments.
        self.held.sort_by_key(|segment| segment.time);
        let (Some(file), Some(&like)) = (self.file, self.held.first()) else {
            return Ok(self.held.iter().try_for_each(take));
        };
        let in_file = |left| Run {
            left,
            ahead: Vec::new(),
        };
        let mut runs: Vec<Run> = self.runs.into_iter().map(in_file).collect();
        self.held.reverse();
        runs.push(Run {
            left: 0..0,
            ahead: self.held,
        });
        let mut next: BinaryHeap<Reverse<(Nanos, usize)>> = BinaryHeap::new();
        for (index, run) in runs.iter_mut().enumerate() {
            next.extend(run.time(&file, like)?.map(|time| Reverse((time, index))));
        }
        while let Some(Reverse((_, index))) = next.pop() {
            let Some(run) = runs.get_mut(index) else {
                break;
            };
            if let Some(segment) = run.ahead.pop()
                && take(&segment).is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
            next.extend(run.time(&file, like)?.map(|time| Reverse((time, index))));
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// A sorted run: the range of unread records, and the segments read, in reverse order.
#[derive(Debug)]
struct Run {
    left: Range<u64>,
    ahead: Vec<Segment>,
}

impl Run {
    /// The time of its next segment. `like` is any segment.
    fn time(&mut self, file: &Store, like: Segment) -> io::Result<Option<Nanos>> {
        if self.ahead.is_empty() && !self.left.is_empty() {
            let count = (self.left.end - self.left.start).min(READ as u64);
            let mut octets = vec![0; LENGTH * READ.min(usize::try_from(count).unwrap_or(READ))];
            file.read(&mut octets, self.left.start * LENGTH as u64)?;
            self.left.start += count;
            let records = octets.chunks_exact(LENGTH).rev();
            self.ahead = records.map(|record| record::read(record, like)).collect();
        }
        Ok(self.ahead.last().map(|segment| segment.time))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use anabranch_wire::Flags;

    use super::*;
    use crate::segment::MOST_BLOCKS;

    fn segment(number: u64, time: Nanos, word: u32, bits: u8) -> Segment {
        let has = |bit: u8| bits >> bit & 1 == 1;
        let half = u16::try_from(word >> 16).expect("16 bits");
        let octet = word.to_le_bytes()[0];
        Segment {
            number,
            time,
            source: (Ipv4Addr::from(word).into(), half),
            target: if has(0) {
                (Ipv6Addr::from(u128::from(word) << 64).into(), 80)
            } else {
                (Ipv4Addr::LOCALHOST.into(), 80)
            },
            seq: word,
            ack: has(1).then_some(!word),
            flags: Flags(half),
            window: half,
            payload: word,
            hop_limit: octet,
            ecn: octet & 3,
            id: has(2).then_some(half),
            stamps: has(3).then_some((word, !word)),
            mss: has(4).then_some(half),
            scale: has(5).then_some(octet),
            sack_permitted: has(6),
            has_all_options: has(7),
            blocks: [(word, !word); MOST_BLOCKS],
            block_count: octet % 5,
            quic: None,
        }
    }

    proptest! {
        #[test]
        fn runs_in_a_file_are_merged_into_a_stable_sort(made in prop::collection::vec((-3_i64..9, any::<u32>(), any::<u8>()), 0..200), most in 1_usize..90) {
            let mut sorting = Sorting::with_runs_of(most);
            let mut expected = Vec::new();
            for (number, (time, word, bits)) in made.into_iter().enumerate() {
                let segment = segment(number as u64, time, word, bits);
                expected.push(segment);
                sorting.push(segment).expect("a temporary file");
            }
            expected.sort_by_key(|segment| segment.time);
            let mut found = Vec::new();
            let done = sorting.finish(|segment| { found.push(*segment); ControlFlow::Continue(()) });
            prop_assert!(done.is_ok_and(|flow| flow.is_continue()));
            prop_assert_eq!(found, expected);
        }
    }
}
