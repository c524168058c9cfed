//! The duplicate threshold that adapts to reordering, for recoveries that count duplicates. The
//! idea is from RFC 4653, the measure from Blanton and Allman, ACM CCR 32:1 (2002).
//!
//! Without SACK the extent of reordering is known in two cases only: duplicates before an
//! acknowledgment of a segment sent once, and a recovery that proves spurious. If duplicates count
//! as deliveries ([`counted_deliveries`](super::counted_deliveries)), only the second applies, and
//! the threshold becomes the number of segments outstanding when more duplicates arrive than these
//! can have caused.
//!
//! # Differs from Linux
//! - Without SACK and without PRR, the first rule applies, and the threshold never falls.
//!
//! # Not implemented
//! - The limited transmit extension of RFC 4653.

/// The threshold.
#[derive(Debug, Clone, Copy)]
pub struct Reordering {
    dupthresh: u32,
    least: u32,
    most: u32,
}

impl Reordering {
    /// Creates a threshold between `least` and `most` duplicates.
    #[must_use]
    pub const fn new(least: u32, most: u32) -> Self {
        Self {
            dupthresh: least,
            least,
            most,
        }
    }

    /// Duplicates that indicate a loss.
    #[must_use]
    pub const fn dupthresh(&self) -> u32 {
        self.dupthresh
    }

    /// Records a segment that arrived `segments` later than in order.
    pub fn on_reordered(&mut self, segments: u64) {
        let segments = u32::try_from(segments).unwrap_or(u32::MAX).min(self.most);
        self.dupthresh = self.dupthresh.max(segments);
    }

    /// Handles more duplicates than the `outstanding` segments can have caused.
    pub fn on_outnumbered(&mut self, outstanding: u64) {
        self.dupthresh = u32::try_from(outstanding)
            .unwrap_or(u32::MAX)
            .min(self.most);
    }

    /// Lowers the threshold to `least`: the timer expired although `least` duplicates or more had
    /// arrived.
    pub fn on_timeout(&mut self) {
        self.dupthresh = self.dupthresh.min(self.least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_the_reordering_within_its_bounds() {
        let mut reordering = Reordering::new(3, 300);
        reordering.on_reordered(2);
        assert_eq!(reordering.dupthresh(), 3);
        reordering.on_reordered(40);
        reordering.on_reordered(7);
        assert_eq!(reordering.dupthresh(), 40);
        reordering.on_reordered(u64::MAX);
        assert_eq!(reordering.dupthresh(), 300);
        reordering.on_timeout();
        assert_eq!(reordering.dupthresh(), 3);
    }

    #[test]
    fn the_number_outstanding_replaces_it_up_and_down() {
        let mut reordering = Reordering::new(3, 300);
        for (outstanding, dupthresh) in [(20, 20), (2, 2), (400, 300)] {
            reordering.on_outnumbered(outstanding);
            assert_eq!(reordering.dupthresh(), dupthresh);
        }
        reordering.on_outnumbered(2);
        reordering.on_timeout();
        assert_eq!(reordering.dupthresh(), 2);
    }
}
