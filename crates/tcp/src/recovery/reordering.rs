//! The duplicate threshold that follows the reordering seen, for recoveries that count duplicates
//! (RFC 4653 has the idea; Blanton and Allman, ACM CCR 32:1 (2002), the measure).
//!
//! # Differs from Linux
//! - Without SACK only duplicates before an acknowledgment of what was sent once, or a recovery that
//!   proves spurious, tell how far it goes.
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
    /// From `least` up to `most` duplicates.
    #[must_use]
    pub const fn new(least: u32, most: u32) -> Self {
        Self {
            dupthresh: least,
            least,
            most,
        }
    }

    /// Duplicates that stand for a loss.
    #[must_use]
    pub const fn dupthresh(&self) -> u32 {
        self.dupthresh
    }

    /// A segment came `segments` later than its place.
    pub fn on_reordered(&mut self, segments: u64) {
        let segments = u32::try_from(segments).unwrap_or(u32::MAX).min(self.most);
        self.dupthresh = self.dupthresh.max(segments);
    }

    /// The timer expired although more than `least` duplicates had come: the threshold was too high.
    pub const fn on_timeout(&mut self) {
        self.dupthresh = self.least;
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
}
