//! The loss detection of the reordering study's Cubic+: a segment is lost when it was sent longer
//! ago than a round trip and a grace time (Fukuda, KAKENHI 16K00129, 2019, equation 1, after
//! draft-ietf-tcpm-rack-02).
//!
//! On each acknowledgment every segment in flight with `now > xmit_ts + RACK.RTT + reo_wnd` is
//! marked lost and retransmitted. Where the source leaves room, the reading is this:
//! - `RACK.RTT` is that of the latest sent of the segments that the acknowledgment delivers. One that
//!   was retransmitted counts if at least the smallest RTT has passed since (draft-02 §5.3 step 2).
//!   An acknowledgment that delivers nothing leaves `RACK.RTT` as it was.
//! - Without SACK a duplicate acknowledgment still tells that something above `snd_una` was
//!   delivered; reordering is therefore seen when duplicates are followed by an acknowledgment of
//!   the awaited segment and it had not been retransmitted.
//! - Found outside a recovery, a loss is a loss: fast recovery begins. Found during a recovery, the
//!   control is told (`TimerLoss`) and the endpoint goes on in slow start, as after a timeout, but
//!   only what has timed out counts as lost. The first such segment leaves at once, others as the
//!   window permits. Until everything outstanding then is acknowledged, further ones are retransmitted
//!   without another reduction.
//! - Most of what is retransmitted after that has arrived, and is answered by duplicates of the number
//!   that was next then. They begin no recovery (RFC 6582 §3.2 steps 2 and 4), also where
//!   `recover_inclusive` lets those of a fast retransmit: the source restarts so that cwnd does not
//!   wither in recoveries that follow one another.
//! - A retransmission that times out as well doubles the time given to retransmissions, until
//!   something is delivered: a round-trip time that is out of date would otherwise send everything
//!   again with every acknowledgment, without end.
//! - There is no timer between acknowledgments; the retransmission timeout stays as it is.
//!
//! # Differs from Linux
//! - RACK-TLP (RFC 8985) adapts its window to DSACK, has a timer of its own and probes the tail.
//!
//! # Not implemented
//! - The source's rule is implemented whole, as far as it is given.

use anabranch_core::units::{Duration, Instant};

use crate::scoreboard::Delivered;
use anabranch_congestion::TimerRule;
use anabranch_wire::seq::Seq;

/// The rule at work.
#[derive(Debug, Clone, Copy)]
pub struct TimerRuleState {
    rule: TimerRule,
    /// RACK.RTT; zero before the first.
    rtt: Duration,
    /// RACK.min_RTT; zero before the first.
    min_rtt: Duration,
    /// Behind the highest segment delivered.
    highest: Seq,
    reordering_seen: bool,
    /// Retransmissions are given this power of two as long.
    backoff: u32,
}

impl TimerRuleState {
    /// Before the first acknowledgment.
    #[must_use]
    pub const fn new(rule: TimerRule, first: Seq) -> Self {
        Self {
            rule,
            rtt: Duration::ZERO,
            min_rtt: Duration::ZERO,
            highest: first,
            reordering_seen: false,
            backoff: 0,
        }
    }

    /// An acknowledgment delivered something. `duplicates`: without SACK, whether duplicates told
    /// that something above the lowest of it had been delivered before.
    pub fn on_delivered(&mut self, now: Instant, delivered: &Delivered, duplicates: bool) {
        let late = |lowest| lowest < self.highest || duplicates;
        self.reordering_seen |= delivered.lowest_once().is_some_and(late);
        self.highest = self.highest.max(delivered.highest);
        self.backoff = 0;
        let once = delivered.once.map(|once| once.last_sent_at);
        // `None` is before all: the copy retransmitted counts where it left later.
        let again = delivered.again.map(|again| again.sent_at);
        let again = again.filter(|at| again > once && now.saturating_since(*at) >= self.min_rtt);
        if let Some(at) = again.or(once) {
            let rtt = now.saturating_since(at);
            self.rtt = rtt;
            if rtt < self.min_rtt || self.min_rtt.is_zero() {
                self.min_rtt = rtt;
            }
        }
    }

    /// What was sent before the first of these, or again before the second, has timed out; `None`
    /// before the first round-trip time.
    #[must_use]
    pub fn limits(&self, now: Instant) -> Option<(Instant, Instant)> {
        if self.rtt.is_zero() {
            return None;
        }
        let age = self.rtt + self.reo_wnd();
        let before =
            |age: Duration| Instant::from_picos(now.as_picos().saturating_sub(age.as_picos()));
        Some((before(age), before(age.saturating_mul(1 << self.backoff))))
    }

    /// Retransmissions have timed out.
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
    }

    /// The grace time.
    #[must_use]
    pub fn reo_wnd(&self) -> Duration {
        if self.reordering_seen {
            self.min_rtt.mul_f64(self.rule.reo_wnd_min_rtt_share)
        } else {
            self.rule.initial_reo_wnd
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoreboard::{Again, Once};

    const RULE: TimerRule = TimerRule {
        initial_reo_wnd: Duration::from_millis(1),
        reo_wnd_min_rtt_share: 0.25,
    };

    fn delivered(start: u64, end: u64, sent_ms: u64) -> Delivered {
        Delivered {
            once: Some(Once {
                first_sent_at: Instant::from_millis(sent_ms),
                last_sent_at: Instant::from_millis(sent_ms),
                last_end: Seq::first(0) + end,
                lowest: Seq::first(0) + start,
            }),
            highest: Seq::first(0) + end,
            ..Delivered::NOTHING
        }
    }

    #[test]
    fn the_grace_time_grows_once_reordering_is_seen() {
        let mut rule = TimerRuleState::new(RULE, Seq::first(0));
        assert_eq!(rule.limits(Instant::from_millis(500)), None);
        rule.on_delivered(Instant::from_millis(80), &delivered(0, 10, 0), false);
        rule.on_delivered(Instant::from_millis(90), &delivered(20, 30, 20), false);
        assert_eq!(rule.reo_wnd(), Duration::from_millis(1));
        // RACK.RTT is 70 ms, the latest: 200 - 70 - 1.
        assert_eq!(
            rule.limits(Instant::from_millis(200)).map(|l| l.0),
            Some(Instant::from_millis(129))
        );
        rule.on_delivered(Instant::from_millis(95), &delivered(10, 20, 10), false);
        assert_eq!(rule.reo_wnd(), Duration::from_micros(17_500));
    }

    #[test]
    fn without_sack_duplicates_tell_of_reordering() {
        let mut rule = TimerRuleState::new(RULE, Seq::first(0));
        rule.on_delivered(Instant::from_millis(80), &delivered(0, 10, 0), true);
        assert_eq!(rule.reo_wnd(), Duration::from_millis(20));
    }

    #[test]
    fn a_copy_acknowledged_too_soon_gives_no_round_trip_time() {
        let mut rule = TimerRuleState::new(RULE, Seq::first(0));
        rule.on_delivered(Instant::from_millis(80), &delivered(0, 10, 0), false);
        let copy = |at| Delivered {
            again: Some(Again {
                sent_at: Instant::from_millis(at),
                end: Seq::first(0) + 10,
            }),
            ..Delivered::NOTHING
        };
        rule.on_delivered(Instant::from_millis(300), &copy(290), false);
        assert_eq!(
            rule.limits(Instant::from_millis(181)).map(|l| l.0),
            Some(Instant::from_millis(100))
        );
        rule.on_delivered(Instant::from_millis(300), &copy(200), false);
        assert_eq!(
            rule.limits(Instant::from_millis(201)).map(|l| l.0),
            Some(Instant::from_millis(100))
        );
    }
}
