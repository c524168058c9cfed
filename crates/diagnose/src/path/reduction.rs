//! By how much a sender reduces its window for a loss: what tells congestion controls apart.

/// Reductions that are kept.
const MOST: usize = 256;

/// What is in flight before and behind recoveries.
#[derive(Debug, Default)]
pub(super) struct Reductions {
    /// The most in flight since the last acknowledgment of a whole round.
    peak: i64,
    former: i64,
    round: i64,
    before: Option<i64>,
    ratios: Vec<f64>,
}

impl Reductions {
    /// A segment was sent: where it ends, what is acknowledged, and whether a loss is being repaired.
    pub(super) fn see(&mut self, next: i64, una: i64, is_recovering: bool, by_timer: bool) {
        let flight = next - una;
        if by_timer {
            self.before = None;
            self.peak = 0;
            return;
        }
        match (is_recovering, self.before) {
            (true, None) => self.before = Some(self.peak.max(self.former)),
            (false, Some(before)) => {
                self.before = None;
                if before > 0 && self.ratios.len() < MOST {
                    self.ratios.push(flight as f64 / before as f64);
                }
                self.restart(next, flight);
            }
            (true, Some(_)) => {}
            (false, None) if una >= self.round => {
                self.former = self.peak;
                self.restart(next, flight);
            }
            (false, None) => self.peak = self.peak.max(flight),
        }
    }

    fn restart(&mut self, next: i64, flight: i64) {
        self.round = next;
        self.peak = flight;
    }

    /// The median, and how many there are.
    pub(super) fn median(&self) -> Option<(f64, usize)> {
        let mut sorted = self.ratios.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.get(sorted.len() / 2)?;
        Some((*middle, sorted.len()))
    }
}
