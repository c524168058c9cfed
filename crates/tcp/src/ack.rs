//! Delayed acknowledgments (RFC 5681 §4.2, RFC 9293 §3.8.6.3).
//!
//! A segment out of order, one that fills a gap, a duplicate and a FIN are acknowledged at once;
//! other segments may wait for more segments or for a timeout.
//!
//! With `quick_segments` the receiver begins in quickack mode: it acknowledges each of the first
//! segments at once, and each after a pause of one second, so that slow start gets going. An
//! application that replies ends the mode, because its replies carry the acknowledgments
//! ("pingpong"), until an acknowledgment times out without a reply to carry it.
//!
//! With `quick_again` (as in Linux) quickack mode also begins again after events that may have
//! stopped the sender: a duplicate, a pause longer than the retransmission timeout, and, for two
//! segments, a CE mark. The acknowledgment of a segment that fills a gap counts as one of the quick
//! ones. If the first segment to arrive is out of order and the receive window grows by it, the
//! mode does not begin.
//!
//! With `max_timeout` the timeout follows the time between segments. With `push` a segment with PSH
//! is acknowledged as soon as the application has read it.
//!
//! # Differs from Linux
//! - The timeout is a moving average of the time between segments, half of it the last one, within
//!   its bounds. Linux's measure is finer.
//! - On a connection with ECN Linux acknowledges a segment that could not be marked, which was
//!   retransmitted (RFC 3168 §6.1.5), and the next one at once.
//! - Linux counts every acknowledgment it sends. Here acknowledgments of in-order segments, of
//!   filled gaps and of duplicates below RCV.NXT count. With SACK compression out-of-order segments
//!   that are not duplicates count as well, unless they precede the first in-order segment.
//! - Quickack mode begins again with the initial number of segments, whatever the window is by
//!   then.
//! - Segments are counted, whatever their size.

use anabranch_core::units::{Duration, Instant};

use super::policy::{DelayedAck, DelayedAckTable};

/// State of delayed acknowledgments.
#[derive(Debug, Clone)]
pub struct AckPolicy {
    /// Acknowledge at this time at the latest.
    at: Instant,
    timeout: Duration,
    segments: u16,
    /// Segments since the last acknowledgment.
    waiting: u16,
    /// Segments left in quickack mode.
    quick: u16,
    now: bool,
    /// An acknowledgment is due once the application has read.
    left: bool,
    /// The timeout ends at a tick of the clock.
    ticking: bool,
    adaptive: Option<Box<Adaptive>>,
}

/// State that follows the arrivals.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "facts of their own")]
struct Adaptive {
    min_timeout: Duration,
    max_timeout: Duration,
    /// Segments of a new quickack mode.
    quick_segments: u16,
    /// [`DelayedAckTable::quick_again`]
    again: bool,
    push: bool,
    /// One of the waiting segments has PSH.
    pushed: bool,
    /// The application replies to the data it receives.
    pingpong: bool,
    /// Arrival of the last segment; [`Instant::NEVER`] before the first.
    last: Instant,
}

/// Pause that begins quickack mode again without `quick_again`: the initial timeout of RFC 6298
/// (2.1).
const PAUSE: Duration = Duration::from_secs(1);

/// Segments of quickack mode after the first CE mark.
const QUICK_AFTER_MARK: u16 = 2;

impl AckPolicy {
    /// Returns a policy with no acknowledgment due.
    #[must_use]
    pub fn new(setting: DelayedAck) -> Self {
        let (segments, timeout, adaptive) = match setting {
            DelayedAck::Off => (1, Duration::ZERO, None),
            DelayedAck::On(table) => (
                u16::try_from(table.segments).unwrap_or(u16::MAX),
                table.timeout,
                Adaptive::new(&table),
            ),
        };
        Self {
            at: Instant::NEVER,
            timeout,
            segments,
            waiting: 0,
            quick: adaptive.map_or(0, |adaptive| adaptive.quick_segments),
            now: false,
            left: false,
            ticking: matches!(setting, DelayedAck::On(table) if table.ticking),
            adaptive: adaptive.map(Box::new),
        }
    }

    /// Limits quickack mode to half of the first window offered, which holds `segments` segments.
    #[must_use]
    pub fn with_window(mut self, segments: u64) -> Self {
        let half = u16::try_from(segments / 2).unwrap_or(u16::MAX);
        self.quick = self.quick.min(half);
        if let Some(adaptive) = &mut self.adaptive
            && adaptive.again
        {
            adaptive.quick_segments = adaptive.quick_segments.min(half);
        }
        self
    }

    /// Processes an in-order segment. `rto` is the retransmission timeout of this end, a bound of a
    /// pause. If `wait` is set and enough segments have arrived for an acknowledgment, it is sent
    /// after the application has read, unless another rule sends it sooner.
    #[expect(
        clippy::inline_always,
        reason = "measured: it is a step of the hot path"
    )]
    #[inline(always)]
    pub fn in_order(&mut self, now: Instant, rto: Duration, wait: bool) {
        self.waiting = self.waiting.saturating_add(1);
        if self.adaptive.is_some() {
            self.adapt(now, rto);
        }
        if self.waiting >= self.segments {
            self.now |= !wait;
            self.left |= wait;
        }
        if !self.now && self.at == Instant::NEVER {
            self.at = if self.ticking {
                next_tick(now, self.timeout, 1)
            } else {
                now.saturating_add(self.timeout)
            };
        }
    }

    /// Processes a segment that fills a gap, in full or in part, and acknowledges it at once.
    /// Returns whether the segment would be acknowledged at once even if it filled no gap.
    pub fn filled(&mut self, now: Instant, rto: Duration) -> bool {
        if self.begins_again() {
            self.adapt(now, rto);
        }
        std::mem::replace(&mut self.now, true)
    }

    /// Whether [`DelayedAckTable::quick_again`] is set.
    fn begins_again(&self) -> bool {
        self.adaptive
            .as_ref()
            .is_some_and(|adaptive| adaptive.again)
    }

    /// Whether no in-order segment has arrived, with `quick_again`.
    fn is_before_first(&self) -> bool {
        self.adaptive
            .as_ref()
            .is_some_and(|adaptive| adaptive.again && adaptive.last == Instant::NEVER)
    }

    #[inline(never)]
    fn adapt(&mut self, now: Instant, rto: Duration) {
        let Some(adaptive) = &mut self.adaptive else {
            return;
        };
        let gap = now.saturating_since(adaptive.last);
        if adaptive.last != Instant::NEVER {
            if adaptive.again && gap > rto.max(self.timeout) {
                self.quick = self.quick.max(adaptive.quick_segments);
            } else if !adaptive.again && gap > PAUSE {
                self.quick = adaptive.quick_segments;
            } else {
                self.timeout = (self.timeout / 2 + gap / 2)
                    .min(adaptive.max_timeout)
                    .max(adaptive.min_timeout);
            }
        }
        adaptive.last = now;
        if self.waiting == 1 {
            adaptive.pushed = false;
        }
        if self.is_quick() {
            self.quick -= 1;
            self.now = true;
        }
    }

    /// Whether quickack mode applies to this segment. With `quick_again` it does not while replies
    /// carry the acknowledgments.
    fn is_quick(&self) -> bool {
        let answers = |adaptive: &Adaptive| adaptive.again && adaptive.pingpong;
        self.quick > 0 && !self.adaptive.as_deref().is_some_and(answers)
    }

    /// The in-order segment just processed has PSH.
    #[inline]
    pub fn push(&mut self) {
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.pushed = adaptive.push;
        }
    }

    /// The application has read all data received.
    #[inline]
    pub fn all_read(&mut self) {
        self.now |= self.left;
        if self.is_waiting()
            && let Some(adaptive) = &self.adaptive
        {
            self.now |= adaptive.pushed && !adaptive.pingpong;
        }
    }

    /// Processes an out-of-order segment. In quickack mode it counts as one of the quick segments;
    /// returns whether it did and is acknowledged at once. `widened` is set if the receive window
    /// has grown by it.
    pub fn quick_out_of_order(&mut self, widened: bool) -> bool {
        if self.is_before_first() {
            // Measured with Linux: quickack mode begins with the first in-order segment. An earlier
            // segment that is acknowledged at once because the window has grown prevents that.
            if widened {
                self.quick = 0;
                self.now = true;
            }
            return widened;
        }
        let quick = self.is_quick();
        if quick {
            self.quick -= 1;
            self.now = true;
        }
        quick
    }

    /// Acknowledges a duplicate at once, because the acknowledgment may have been lost. With
    /// `quick_again` this acknowledgment is the first of a new quickack mode.
    pub fn duplicate(&mut self) {
        self.now = true;
        if let Some(adaptive) = &self.adaptive
            && adaptive.again
        {
            self.begin_again(adaptive.quick_segments);
            self.quick = self.quick.saturating_sub(1);
        }
    }

    /// Enters quickack mode for `segments` segments, because the sender may have been stopped.
    fn begin_again(&mut self, segments: u16) {
        if let Some(adaptive) = &mut self.adaptive {
            self.quick = self.quick.max(segments);
            self.timeout = adaptive.min_timeout;
            adaptive.pingpong = false;
        }
    }

    /// Prepares for a segment with a CE mark, which is echoed until the sender has reacted. `first`
    /// is set if no mark is being echoed yet. Without `quick_again` each marked segment is
    /// acknowledged at once. With it the first and the segment after it are, because the sender's
    /// window may become very small; further marks are not.
    pub fn marked(&mut self, first: bool) {
        if !self.begins_again() {
            self.now = true;
        } else if first {
            self.begin_again(QUICK_AFTER_MARK);
        }
    }

    /// Prepares for a segment with CWR: the sender has reacted to a mark. With `quick_again` the
    /// segment is acknowledged at once, because it may fill the sender's whole window.
    pub fn sender_reacted(&mut self) {
        self.now |= self.begins_again();
    }

    /// Sets the latest time of the next acknowledgment to `at`, unless it is earlier already.
    pub fn by(&mut self, at: Instant) {
        self.at = self.at.min(at);
    }

    /// Data is sent. If it is a reply to the last segment, acknowledgments may wait for further
    /// replies.
    #[inline]
    pub fn answered(&mut self, now: Instant) {
        if let Some(adaptive) = &mut self.adaptive
            && adaptive.last != Instant::NEVER
            && now.saturating_since(adaptive.last) < self.timeout
        {
            self.quick = 0;
            adaptive.pingpong = true;
        }
    }

    /// The SYN-ACK is acknowledged by the data of a writer that waits: further acknowledgments may wait
    /// for replies as well.
    pub fn answers_syn_ack(&mut self) {
        if let Some(adaptive) = &mut self.adaptive {
            self.quick = 0;
            adaptive.pingpong = true;
        }
    }

    /// Acknowledges the next segment at once. In quickack mode this uses up one of its segments,
    /// unless an even number is left.
    pub fn once_at_once(&mut self) {
        if self.adaptive.is_some() {
            self.quick |= 1;
        } else {
            self.now = true;
        }
    }

    /// Makes an acknowledgment due at once.
    #[inline]
    pub const fn at_once(&mut self) {
        self.now = true;
    }
    /// Makes an acknowledgment due if its time has come.
    #[inline]
    pub fn expire(&mut self, now: Instant) {
        if now >= self.at {
            self.now = true;
            self.at = Instant::NEVER;
            if self.waiting > 0
                && let Some(adaptive) = &mut self.adaptive
            {
                // No reply carried it in time.
                adaptive.pingpong = false;
            }
        }
    }
    /// An acknowledgment was sent, alone or with data.
    #[inline]
    pub const fn sent(&mut self) {
        self.at = Instant::NEVER;
        self.waiting = 0;
        self.now = false;
        self.left = false;
    }
    /// Whether an acknowledgment is due once the application has read.
    pub(crate) const fn waits_for_read(&self) -> bool {
        self.left
    }
    /// Whether segments wait to be acknowledged.
    #[must_use]
    #[inline]
    pub const fn is_waiting(&self) -> bool {
        self.waiting > 0
    }
    /// Whether an acknowledgment is due now.
    #[must_use]
    #[inline]
    pub const fn due(&self) -> bool {
        self.now
    }
    /// Latest time of the next acknowledgment.
    #[must_use]
    #[inline]
    pub const fn deadline(&self) -> Instant {
        self.at
    }
}

/// Returns the `n`-th tick after `now` of a clock that ticks every `tick` from the start of the
/// run.
pub(super) const fn next_tick(now: Instant, tick: Duration, n: u64) -> Instant {
    let passed = now.as_picos() / tick.as_picos();
    let since_start = tick.saturating_mul(passed.saturating_add(n));
    Instant::START.saturating_add(since_start)
}

impl Adaptive {
    fn new(table: &DelayedAckTable) -> Option<Self> {
        let max_timeout = table.max_timeout.unwrap_or(table.timeout);
        (max_timeout > table.timeout || table.quick_segments > 0 || table.push).then(|| Self {
            min_timeout: table.timeout,
            max_timeout,
            push: table.push,
            pushed: false,
            pingpong: false,
            quick_segments: u16::try_from(table.quick_segments).unwrap_or(u16::MAX),
            again: table.quick_again,
            last: Instant::NEVER,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTO: Duration = Duration::from_millis(300);

    const TABLE: DelayedAck = DelayedAck::On(DelayedAckTable {
        segments: 2,
        timeout: Duration::from_millis(200),
        max_timeout: None,
        quick_segments: 0,
        quick_again: false,
        push: false,
        ticking: false,
    });

    #[test]
    fn every_second_segment_is_acknowledged_at_once() {
        let mut ack = AckPolicy::new(TABLE);
        ack.in_order(Instant::START, RTO, false);
        assert!(!ack.due());
        assert_eq!(ack.deadline(), Instant::from_millis(200));
        ack.in_order(Instant::from_millis(150), RTO, false);
        assert!(ack.due());
        ack.sent();
        assert!(!ack.due());
        assert_eq!(ack.deadline(), Instant::NEVER);
    }

    #[test]
    fn a_lone_segment_waits_for_the_timeout_only() {
        let mut ack = AckPolicy::new(TABLE);
        ack.in_order(Instant::from_millis(10), RTO, false);
        ack.expire(Instant::from_millis(209));
        assert!(!ack.due());
        ack.expire(Instant::from_millis(210));
        assert!(ack.due());
    }

    fn linux() -> AckPolicy {
        AckPolicy::new(DelayedAck::On(DelayedAckTable {
            segments: 2,
            timeout: Duration::from_millis(40),
            max_timeout: Some(Duration::from_millis(200)),
            quick_segments: 3,
            quick_again: false,
            push: true,
            ticking: false,
        }))
    }

    /// Whether a segment at `ms` is acknowledged at once; sends the acknowledgment if so.
    fn at_once(ack: &mut AckPolicy, ms: u64) -> bool {
        ack.in_order(Instant::from_millis(ms), RTO, false);
        let due = ack.due();
        if due {
            ack.sent();
        }
        due
    }

    #[test]
    fn quickack_mode_covers_the_first_segments() {
        let mut ack = linux();
        let due = [0, 1, 2, 3, 4, 5].map(|ms| at_once(&mut ack, ms));
        assert_eq!(due, [true, true, true, false, true, false]);
        // And those after a pause.
        let due = [1100, 1101, 1102, 1103].map(|ms| at_once(&mut ack, ms));
        assert_eq!(due, [true, true, true, false]);
        // Half of a window of four.
        let mut ack = linux().with_window(4);
        let due = [0, 1, 2, 3].map(|ms| at_once(&mut ack, ms));
        assert_eq!(due, [true, true, false, true]);
    }

    /// Detects a policy that delays acknowledgments again after the first segments.
    #[test]
    fn quickack_mode_begins_again_after_a_stopped_sender() {
        let DelayedAck::On(table) = TABLE else {
            unreachable!("it is on");
        };
        let mut ack = AckPolicy::new(DelayedAck::On(DelayedAckTable {
            quick_segments: 3,
            quick_again: true,
            ..table
        }));
        // The fill is one of the three quick segments.
        assert!(at_once(&mut ack, 0));
        assert!(ack.filled(Instant::from_millis(1), RTO));
        ack.sent();
        assert_eq!(
            [2, 3, 4].map(|ms| at_once(&mut ack, ms)),
            [true, false, true]
        );
        assert!(!ack.filled(Instant::from_millis(5), RTO));
        assert!(ack.due());
        ack.sent();
        // So is the acknowledgment of the duplicate.
        ack.duplicate();
        assert!(ack.due());
        ack.sent();
        assert_eq!(
            [6, 7, 8, 9].map(|ms| at_once(&mut ack, ms)),
            [true, true, false, true]
        );
        // After the timeout.
        assert_eq!(
            [309, 310, 611, 612].map(|ms| at_once(&mut ack, ms)),
            [false, true, true, true]
        );
        assert_eq!(
            [613, 614, 615].map(|ms| at_once(&mut ack, ms)),
            [true, false, true]
        );
        // Quickack applies to the first mark and the segment after it, and to CWR; not to a mark
        // already echoed.
        ack.marked(true);
        assert_eq!(
            [616, 617, 618].map(|ms| at_once(&mut ack, ms)),
            [true, true, false]
        );
        ack.marked(false);
        assert!(!ack.due());
        ack.sender_reacted();
        assert!(ack.due());
        ack.sent();
        // Data that the application replies to waits for the replies, also after a pause; a
        // duplicate ends that.
        assert!([1000, 1001, 1002].iter().all(|&ms| at_once(&mut ack, ms)));
        ack.answered(Instant::from_millis(1003));
        assert!(!at_once(&mut ack, 1400));
        ack.sent();
        ack.duplicate();
        ack.sent();
        assert!(at_once(&mut ack, 1401));
    }

    fn again(window: u64) -> AckPolicy {
        let DelayedAck::On(table) = TABLE else {
            unreachable!("it is on");
        };
        AckPolicy::new(DelayedAck::On(DelayedAckTable {
            timeout: Duration::from_millis(40),
            max_timeout: Some(Duration::from_millis(200)),
            quick_segments: 16,
            quick_again: true,
            ..table
        }))
        .with_window(window)
    }

    /// Detects quickack mode after a duplicate that lasts longer than the first one.
    #[test]
    fn quickack_mode_is_as_short_as_the_first_in_a_small_window() {
        let mut ack = again(4);
        assert_eq!(
            [0, 1, 2].map(|ms| at_once(&mut ack, ms)),
            [true, true, false]
        );
        ack.sent();
        ack.duplicate();
        ack.sent();
        assert_eq!([3, 4].map(|ms| at_once(&mut ack, ms)), [true, false]);
    }

    /// Detects a host whose retransmission timeout, of a few milliseconds, is shorter than the time
    /// between segments and which would never delay an acknowledgment.
    #[test]
    fn no_pause_is_shorter_than_the_timeout_of_acknowledgments() {
        let mut ack = again(1000);
        assert!((0..16).all(|ms| at_once(&mut ack, ms)));
        let mut at_once = |ms| {
            ack.in_order(Instant::from_millis(ms), Duration::from_millis(5), false);
            let due = ack.due();
            ack.sent();
            due
        };
        let due = [45, 75, 105, 165].map(&mut at_once);
        assert_eq!(due, [false, false, false, true]);
    }

    /// Detects rules of `quick_again` that apply without it.
    #[test]
    fn without_quick_again_only_a_long_pause_begins_quickack_mode() {
        let mut ack = linux();
        assert!([0, 1, 2].iter().all(|&ms| at_once(&mut ack, ms)));
        ack.duplicate();
        assert!(ack.due());
        ack.sent();
        assert!(!ack.filled(Instant::from_millis(3), RTO));
        assert!(ack.due());
        ack.sent();
        ack.sender_reacted();
        assert!(!ack.due());
        assert!(!at_once(&mut ack, 900));
        ack.sent();
        for first in [true, false] {
            ack.marked(first);
            assert!(ack.due());
            ack.sent();
        }
    }

    #[test]
    fn replies_end_quickack_mode() {
        let mut ack = linux();
        ack.answered(Instant::from_millis(0));
        assert!(at_once(&mut ack, 10));
        ack.answered(Instant::from_millis(12));
        assert!(!at_once(&mut ack, 20));
    }

    /// Whether a segment with PSH at `ms`, read at once, is acknowledged at once.
    fn pushed_at_once(ack: &mut AckPolicy, ms: u64) -> bool {
        ack.in_order(Instant::from_millis(ms), RTO, false);
        ack.push();
        ack.all_read();
        let due = ack.due();
        if due {
            ack.sent();
        }
        due
    }

    #[test]
    fn pushed_data_is_acknowledged_once_read_unless_the_application_replies() {
        let mut ack = linux().with_window(0);
        assert!(pushed_at_once(&mut ack, 10));
        // Not before the data is read, and not for segments before it.
        ack.in_order(Instant::from_millis(20), RTO, false);
        ack.push();
        assert!(!ack.due());
        ack.all_read();
        assert!(ack.due());
        ack.sent();
        ack.in_order(Instant::from_millis(30), RTO, false);
        ack.all_read();
        assert!(!ack.due());
        ack.sent();
        // After a reply acknowledgments wait for the next reply, until one times out.
        ack.answered(Instant::from_millis(31));
        assert!(!pushed_at_once(&mut ack, 40));
        ack.expire(ack.deadline());
        assert!(ack.due());
        ack.sent();
        assert!(pushed_at_once(&mut ack, 120));
    }

    #[test]
    fn without_the_setting_pushed_data_waits() {
        let mut ack = AckPolicy::new(TABLE);
        assert!(!pushed_at_once(&mut ack, 10));
    }

    #[test]
    fn the_timeout_follows_the_time_between_segments_within_its_bounds() {
        let timeout = |gap: u64| {
            let mut ack = linux().with_window(0);
            for n in 0..20 {
                ack.sent();
                ack.in_order(Instant::from_millis(n * gap), RTO, false);
            }
            ack.deadline() - Instant::from_millis(19 * gap)
        };
        assert_eq!(timeout(1), Duration::from_millis(40));
        assert!(timeout(100) > Duration::from_millis(99));
        assert!(timeout(100) <= Duration::from_millis(100));
        assert_eq!(timeout(900), Duration::from_millis(200));
    }

    #[test]
    fn off_acknowledges_every_segment() {
        let mut ack = AckPolicy::new(DelayedAck::Off);
        ack.in_order(Instant::START, RTO, false);
        assert!(ack.due());
    }
}
