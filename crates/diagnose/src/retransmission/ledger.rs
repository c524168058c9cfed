//! The retransmissions of a direction: open ones, whose need is undecided yet, and stored ones.

use std::collections::{BTreeMap, VecDeque};

use super::{
    Evidence, LossSide, Retransmission, Trigger,
    need::{self, Path, Verdict},
    piece::Piece,
};
use crate::{entries::Counts, time::Nanos};

/// Maximum number of retransmissions with an open verdict. Beyond it the oldest stay undecided.
const MOST_OPEN: usize = 1 << 14;

/// The pieces that a retransmission copies.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Parts {
    pub(crate) pieces: u32,
    /// A piece has too many copies to store this one.
    pub(crate) is_beyond: bool,
}

#[derive(Debug)]
struct Open {
    retransmission: Retransmission,
    /// When it passed.
    time: Nanos,
    /// Pieces without a verdict.
    pieces: u32,
    is_needed: bool,
    is_unknown: bool,
    /// The side on which data was lost, if any.
    place: LossSide,
}

/// The retransmissions of a direction.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    open: VecDeque<Open>,
    /// The number of the first open retransmission.
    first: u64,
    /// Stored ones, in the order of the capture.
    pub(crate) kept: Vec<Retransmission>,
    pub(crate) by_trigger: BTreeMap<Trigger, u64>,
    pub(crate) counts: Counts,
    /// Verdicts that the caller has not collected yet.
    pub(crate) decided: Vec<Decided>,
}

/// The verdict on a retransmission.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decided {
    pub(crate) time: Nanos,
    pub(crate) needed: Option<bool>,
}

/// The number of retransmissions that may still be stored, over all connections.
#[derive(Debug, Default)]
pub(crate) struct Budget(pub(crate) u64);

impl Ledger {
    /// The number of the next retransmission.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.open.len() as u64
    }

    /// Adds a retransmission of these pieces, which passed at `time`.
    pub(crate) fn add(
        &mut self,
        retransmission: Retransmission,
        time: Nanos,
        parts: Parts,
        unseen: bool,
        budget: &mut Budget,
    ) {
        self.open.push_back(Open {
            retransmission,
            time,
            pieces: parts.pieces,
            is_needed: false,
            is_unknown: parts.is_beyond,
            place: if unseen {
                LossSide::Before
            } else {
                LossSide::After
            },
        });
        if self.open.len() > MOST_OPEN
            && let Some(oldest) = self.open.front_mut()
            && oldest.pieces > 0
        {
            oldest.pieces = 0;
            oldest.is_unknown = true;
        }
        self.close(budget);
    }

    /// Judges the retransmissions of a piece. Returns whether its original was lost, if decidable.
    pub(crate) fn judge(&mut self, piece: &Piece, path: Path, budget: &mut Budget) -> Option<bool> {
        let verdicts = need::judge(piece, path);
        let is_lost = verdicts.first().and_then(|verdict| verdict.needed);
        for (copy, verdict) in piece.again.iter().zip(verdicts) {
            if let Some(number) = copy.retransmission {
                if piece.is_original_late
                    && let Some(open) = self.open_at(number)
                {
                    // No data was lost.
                    open.place = LossSide::Unknown;
                }
                self.decide(number, verdict, budget);
            }
        }
        is_lost.map(|is_lost| is_lost && !piece.is_original_late)
    }

    /// Records that the data of a retransmission had been acknowledged before.
    pub(crate) fn decide_acknowledged(&mut self, number: u64, budget: &mut Budget) {
        let verdict = Verdict {
            needed: Some(false),
            evidence: Evidence::AcknowledgedBefore,
        };
        self.decide(number, verdict, budget);
    }

    fn open_at(&mut self, number: u64) -> Option<&mut Open> {
        let index = number.checked_sub(self.first)?;
        self.open.get_mut(usize::try_from(index).ok()?)
    }

    /// Records the verdict on one piece of a retransmission.
    fn decide(&mut self, number: u64, verdict: Verdict, budget: &mut Budget) {
        let Some(open) = self.open_at(number) else {
            return;
        };
        let is_open = !open.is_needed && !open.is_unknown;
        let weighs_more = is_open || (verdict.needed == Some(true) && !open.is_needed);
        if weighs_more {
            open.retransmission.evidence = verdict.evidence;
        }
        open.is_needed |= verdict.needed == Some(true);
        open.is_unknown |= verdict.needed.is_none();
        open.pieces = open.pieces.saturating_sub(1);
        if open.pieces == 0 {
            self.close(budget);
        }
    }

    /// Closes decided retransmissions at the front.
    fn close(&mut self, budget: &mut Budget) {
        while self.open.front().is_some_and(|open| open.pieces == 0) {
            let Some(open) = self.open.pop_front() else {
                return;
            };
            self.first += 1;
            let needed = if open.is_needed {
                Some(true)
            } else if open.is_unknown {
                None
            } else {
                Some(false)
            };
            let lost = match needed {
                Some(true) => open.place,
                _ => LossSide::Unknown,
            };
            self.counts.add(needed);
            self.decided.push(Decided {
                time: open.time,
                needed,
            });
            let trigger = open.retransmission.trigger;
            *self.by_trigger.entry(trigger).or_default() += 1;
            if budget.0 > 0 {
                budget.0 -= 1;
                self.kept.push(Retransmission {
                    needed,
                    lost,
                    ..open.retransmission
                });
            } else {
                self.counts.not_listed += 1;
            }
        }
    }

    /// Ends the ledger. Open retransmissions stay undecided.
    pub(crate) fn finish(&mut self, budget: &mut Budget) {
        for open in &mut self.open {
            if open.pieces > 0 {
                open.pieces = 0;
                open.is_unknown = true;
                open.retransmission.evidence = Evidence::NeverAcknowledged;
            }
        }
        self.close(budget);
    }
}
