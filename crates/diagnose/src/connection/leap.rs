//! Checks segments and acknowledgments that leap further than a window.
//!
//! A sender has at most a window outstanding (RFC 9293 §3.8.6). A number further away belongs to another connection between the
//! same ends, or is damaged, or the capture has a gap. After a gap the next segment goes on at the new place.

/// A leap that needs no second sign. Larger windows are rare, and a random number is this near in 1 of 256 cases.
const SHORT: i64 = 1 << 24;

/// The place of the last number that leapt.
#[derive(Debug, Default)]
pub(crate) struct Leap {
    to: Option<i64>,
}

impl Leap {
    /// Whether a number at `at` is accepted if the highest before is `next`.
    pub(crate) fn is_accepted(&mut self, at: i64, next: i64, window: i64) -> bool {
        let longest = SHORT.max(2 * window);
        let is_short = at - next <= longest;
        let is_confirmed = self.to.is_some_and(|to| (at - to).abs() <= longest);
        self.to = (!is_short && !is_confirmed).then_some(at);
        is_short || is_confirmed
    }
}
