//! When to acknowledge (RFC 5681 §4.2, RFC 9293 §3.8.6.3).
//!
//! A segment out of order, one that fills a gap, a duplicate and a FIN are acknowledged at once;
//! others may wait for more segments or for a timeout.
//!
//! With `quick_segments` the first segments, and those after a pause of a second, are acknowledged one
//! by one, so that the sender's slow start gets going; an application that answers what it receives
//! ends that, for its answers carry the acknowledgments ("pingpong"), until one has to leave alone for
//! want of an answer. With `quick_again` (Linux: quickack mode) that begins anew after whatever may have
//! stopped the sender: a duplicate, a pause longer than the retransmission timeout, and for two segments
//! a mark; and what leaves at once because a segment filled a gap is one of those. With `max_timeout` the
//! timeout follows the time between segments. With `push` a segment that asks for it is acknowledged as
//! soon as the application has read it.
//!
//! # Differs from Linux
//! - The timeout is a moving average of the time between segments, half of it the last one, within
//!   its bounds. Linux's measure is finer.
//! - On a connection with ECN Linux acknowledges a segment that could not be marked, which was retransmitted
//!   (RFC 3168 §6.1.5), and the next one at once.
//! - Linux counts every acknowledgment that leaves. Here those of segments in order, of reports without
//!   duplicates where these are compressed, of fills and of duplicates below RCV.NXT count.
//! - As many as at first begin again, whatever the window has become.
//! - Segments are counted, whatever their size.

use anabranch_core::units::{Duration, Instant};

use super::policy::{DelayedAck, DelayedAckTable};

/// What the receiver owes.
#[derive(Debug, Clone)]
pub struct AckPolicy {
    /// Acknowledge at this time at the latest.
    at: Instant,
    timeout: Duration,
    segments: u16,
    /// Segments since the last acknowledgment.
    waiting: u16,
    /// Segments still to be acknowledged one by one.
    quick: u16,
    now: bool,
    /// One is due once the application has read.
    left: bool,
    /// The timeout ends with a tick of the clock.
    ticking: bool,
    adaptive: Option<Box<Adaptive>>,
}

/// What follows the arrivals.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "facts of their own")]
struct Adaptive {
    min_timeout: Duration,
    max_timeout: Duration,
    /// As many begin again.
    quick_segments: u16,
    /// [`DelayedAckTable::quick_again`]
    again: bool,
    push: bool,
    /// One of the segments that wait has asked for an acknowledgment.
    pushed: bool,
    /// The application answers what comes.
    pingpong: bool,
    /// When the last segment came; never before.
    last: Instant,
}

/// Segments so far apart are separate bursts, without `quick_again`: the initial timeout of RFC 6298 (2.1).
const PAUSE: Duration = Duration::from_secs(1);

/// Segments that are acknowledged one by one where a mark begins to be echoed.
const QUICK_AFTER_MARK: u16 = 2;

impl AckPolicy {
    /// Nothing owed yet.
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

    /// A window of so many segments is offered at first: no more than half of them are acknowledged
    /// one by one.
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

    /// A segment came in order. `rto`: the retransmission timeout of this end, which may be what makes a pause. `wait`:
    /// where so many have come that one is to leave, it leaves once the application has read, if not sooner for
    /// another reason.
    #[inline]
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

    /// A segment filled a gap, all or in part: acknowledged at once. Returns whether it would be if it did not, as one
    /// of those that are acknowledged one by one, or for what else it says.
    pub fn filled(&mut self, now: Instant, rto: Duration) -> bool {
        if self.begins_again() {
            self.adapt(now, rto);
        }
        std::mem::replace(&mut self.now, true)
    }

    /// Whether it has [`DelayedAckTable::quick_again`].
    fn begins_again(&self) -> bool {
        self.adaptive
            .as_ref()
            .is_some_and(|adaptive| adaptive.again)
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

    /// Whether what comes now is one of those that are acknowledged one by one. What answers carry need not leave by itself.
    fn is_quick(&self) -> bool {
        let answers = |adaptive: &Adaptive| adaptive.again && adaptive.pingpong;
        self.quick > 0 && !self.adaptive.as_deref().is_some_and(answers)
    }

    /// The segment that has just come in order asks for an acknowledgment.
    #[inline]
    pub fn push(&mut self) {
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.pushed = adaptive.push;
        }
    }

    /// The application has read all that has come.
    #[inline]
    pub fn all_read(&mut self) {
        self.now |= self.left;
        if self.is_waiting()
            && let Some(adaptive) = &self.adaptive
        {
            self.now |= adaptive.pushed && !adaptive.pingpong;
        }
    }

    /// A segment came out of order. While segments are acknowledged one by one it counts as one of them;
    /// returns whether it did, and is to be acknowledged at once.
    pub fn quick_out_of_order(&mut self) -> bool {
        let quick = self.is_quick();
        if quick {
            self.quick -= 1;
            self.now = true;
        }
        quick
    }

    /// A duplicate of what had been acknowledged came, as if the acknowledgment had been lost: it is acknowledged at
    /// once, the first of those that are acknowledged one by one.
    pub fn duplicate(&mut self) {
        self.now = true;
        if let Some(adaptive) = &self.adaptive
            && adaptive.again
        {
            self.begin_again(adaptive.quick_segments);
            self.quick = self.quick.saturating_sub(1);
        }
    }

    /// The sender may have been stopped: so many are acknowledged one by one.
    fn begin_again(&mut self, segments: u16) {
        if let Some(adaptive) = &mut self.adaptive {
            self.quick = self.quick.max(segments);
            self.timeout = adaptive.min_timeout;
            adaptive.pingpong = false;
        }
    }

    /// The segment that is to be taken next carries a mark, which is echoed until the sender has reacted; `first`: none
    /// before it is being echoed. It is acknowledged at once; with `quick_again` the first is and the segment behind it,
    /// as the sender's window may become very small, and further ones are not.
    pub fn marked(&mut self, first: bool) {
        if !self.begins_again() {
            self.now = true;
        } else if first {
            self.begin_again(QUICK_AFTER_MARK);
        }
    }

    /// The segment that is to be taken next says that the sender has reacted to a mark: it may be all that its window
    /// holds.
    pub fn sender_reacted(&mut self) {
        self.now |= self.begins_again();
    }

    /// An acknowledgment is due by `at`.
    pub fn by(&mut self, at: Instant) {
        self.at = self.at.min(at);
    }

    /// Data leaves: if it answers what has just come, acknowledgments may wait for such answers.
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

    /// The next segment is acknowledged at once; it is none of those that are acknowledged one by one anyhow,
    /// unless an odd number is left of them.
    pub fn once_at_once(&mut self) {
        if self.adaptive.is_some() {
            self.quick |= 1;
        } else {
            self.now = true;
        }
    }

    /// An acknowledgment is due at once.
    #[inline]
    pub const fn at_once(&mut self) {
        self.now = true;
    }
    /// The time has come, if it has.
    #[inline]
    pub fn expire(&mut self, now: Instant) {
        if now >= self.at {
            self.now = true;
            self.at = Instant::NEVER;
            if self.waiting > 0
                && let Some(adaptive) = &mut self.adaptive
            {
                // No answer came in time to carry it.
                adaptive.pingpong = false;
            }
        }
    }
    /// An acknowledgment left, alone or with data.
    #[inline]
    pub const fn sent(&mut self) {
        self.at = Instant::NEVER;
        self.waiting = 0;
        self.now = false;
        self.left = false;
    }
    /// Whether segments wait to be acknowledged.
    #[must_use]
    #[inline]
    pub const fn is_waiting(&self) -> bool {
        self.waiting > 0
    }
    /// Whether one is due now.
    #[must_use]
    #[inline]
    pub const fn due(&self) -> bool {
        self.now
    }
    /// When the time comes.
    #[must_use]
    #[inline]
    pub const fn deadline(&self) -> Instant {
        self.at
    }
}

/// The `n`-th tick after `now` of a clock that ticks every `tick` from the start of the run on.
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

    /// Whether a segment at that time is acknowledged at once; if so it is.
    fn at_once(ack: &mut AckPolicy, ms: u64) -> bool {
        ack.in_order(Instant::from_millis(ms), RTO, false);
        let due = ack.due();
        if due {
            ack.sent();
        }
        due
    }

    #[test]
    fn the_first_segments_are_acknowledged_one_by_one() {
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

    /// Fails for a policy that begins to wait again once the first segments have come.
    #[test]
    fn what_stops_a_sender_has_segments_acknowledged_one_by_one_again() {
        let DelayedAck::On(table) = TABLE else {
            unreachable!("it is on");
        };
        let mut ack = AckPolicy::new(DelayedAck::On(DelayedAckTable {
            quick_segments: 3,
            quick_again: true,
            ..table
        }));
        // A fill is one of the three.
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
        // The first mark and the next segment, and the word of the sender; not a mark that is being echoed.
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
        // What an application answers waits for the answers, after a pause as well; a duplicate ends that.
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

    /// Fails for a duplicate after which more are acknowledged one by one than at first.
    #[test]
    fn a_small_window_begins_again_with_as_few_as_at_first() {
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

    /// Fails for a host whose retransmission timeout, of a few milliseconds, is less than segments are apart: it would never wait.
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

    /// Fails for rules of `quick_again` that are followed without it.
    #[test]
    fn without_quick_again_only_a_long_pause_begins_anew() {
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
    fn an_application_that_answers_ends_the_quick_phase() {
        let mut ack = linux();
        ack.answered(Instant::from_millis(0));
        assert!(at_once(&mut ack, 10));
        ack.answered(Instant::from_millis(12));
        assert!(!at_once(&mut ack, 20));
    }

    /// What comes at that time and is read at once: whether it is acknowledged at once.
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
    fn what_is_pushed_is_acknowledged_once_it_is_read_unless_the_application_answers() {
        let mut ack = linux().with_window(0);
        assert!(pushed_at_once(&mut ack, 10));
        // Not before it is read, and not for what came before it.
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
        // An answer: the next ones may carry it, until one does not come in time.
        ack.answered(Instant::from_millis(31));
        assert!(!pushed_at_once(&mut ack, 40));
        ack.expire(ack.deadline());
        assert!(ack.due());
        ack.sent();
        assert!(pushed_at_once(&mut ack, 120));
    }

    #[test]
    fn without_the_setting_what_is_pushed_waits() {
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
