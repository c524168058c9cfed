//! Checks segments and acknowledgments whose numbers leap further than a window.
//!
//! A sender has at most a window outstanding (RFC 9293 §3.8.6). A number further away belongs to
//! another connection between the same ends, or is damaged, or follows a gap in the capture. After
//! a gap, the next segment continues at the new number.

/// A leap that needs no confirmation. Larger windows are rare, and a random number is this close in
/// 1 of 256 cases.
const SHORT: i64 = 1 << 24;

/// The target of the last leap.
#[derive(Debug, Default)]
pub(crate) struct Leap {
    to: Option<i64>,
}

impl Leap {
    /// Whether the number `at` is accepted if the highest one before is `next`.
    pub(crate) fn is_accepted(&mut self, at: i64, next: i64, window: i64) -> bool {
        let longest = SHORT.max(2 * window);
        let is_short = at - next <= longest;
        let is_confirmed = self.to.is_some_and(|to| (at - to).abs() <= longest);
        self.to = (!is_short && !is_confirmed).then_some(at);
        is_short || is_confirmed
    }
}
