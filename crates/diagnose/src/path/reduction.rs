//! Window reductions at losses, which distinguish congestion controls.

/// Maximum number of stored reductions.
const MOST: usize = 256;

/// The amounts in flight before and after recoveries.
#[derive(Debug, Default)]
pub(super) struct Reductions {
    /// The largest amount in flight in the current round.
    peak: i64,
    former: i64,
    round: i64,
    before: Option<i64>,
    ratios: Vec<f64>,
}

impl Reductions {
    /// Processes a segment that was sent: its end, the cumulative acknowledgment, and whether a
    /// loss is being repaired.
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

    /// The median ratio, and the number of ratios.
    pub(super) fn median(&self) -> Option<(f64, usize)> {
        let mut sorted = self.ratios.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.get(sorted.len() / 2)?;
        Some((*middle, sorted.len()))
    }
}
