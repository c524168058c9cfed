//! Loss detection of the reordering study's Cubic+: a segment is lost when a round-trip time and a
//! grace time have passed since its transmission (Fukuda, KAKENHI 16K00129, 2019, equation 1, after
//! draft-ietf-tcpm-rack-02).
//!
//! On each acknowledgment every segment in flight with `now > xmit_ts + RACK.RTT + reo_wnd` is
//! marked lost and retransmitted. The points that the source leaves open are read as follows:
//! - `RACK.RTT` is the round-trip time of the latest sent of the segments that the acknowledgment
//!   delivers. A retransmitted segment counts if at least the smallest RTT has passed since its
//!   retransmission (draft-02 §5.3 step 2). An acknowledgment that delivers nothing leaves
//!   `RACK.RTT` unchanged.
//! - Without SACK a duplicate acknowledgment still indicates that data above `snd_una` was
//!   delivered. Reordering is therefore detected when duplicates are followed by an acknowledgment
//!   of the awaited segment and that segment was not retransmitted.
//! - A loss found outside a recovery begins fast recovery. For a loss found during a recovery the
//!   control receives `TimerLoss`, and the endpoint continues in slow start as after a timeout, but
//!   only timed-out segments count as lost. The first of them is sent at once, others as the window
//!   permits. Until all data then outstanding is acknowledged, further losses are retransmitted
//!   without another reduction.
//! - Most data retransmitted after that has arrived, and is answered by duplicates of the SND.NXT
//!   of that time. They begin no recovery (RFC 6582 §3.2 steps 2 and 4), even if
//!   `recover_inclusive` accepts such duplicates after a fast retransmit: the source restarts so
//!   that cwnd does not wither in consecutive recoveries.
//! - A retransmission that times out doubles the time allowed for retransmissions until data is
//!   delivered. Otherwise an outdated round-trip time would retransmit everything with every
//!   acknowledgment, without end.
//! - There is no timer between acknowledgments; the retransmission timeout is unchanged.
//!
//! # Differs from Linux
//! - RACK-TLP (RFC 8985) adapts its window to DSACK, has a separate timer and probes the tail.
//!
//! # Not implemented
//! - The source's rule is implemented whole, as far as it is given.

use anabranch_core::units::{Duration, Instant};

use crate::scoreboard::Delivered;
use anabranch_congestion::TimerRule;
use anabranch_wire::seq::Seq;

/// State of the rule.
#[derive(Debug, Clone, Copy)]
pub struct TimerRuleState {
    rule: TimerRule,
    /// RACK.RTT; zero before the first.
    rtt: Duration,
    /// RACK.min_RTT; zero before the first.
    min_rtt: Duration,
    /// One past the highest octet delivered.
    highest: Seq,
    reordering_seen: bool,
    /// The time allowed for retransmissions is multiplied by two to this power.
    backoff: u32,
}

impl TimerRuleState {
    /// Creates the state before the first acknowledgment.
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

    /// Processes an acknowledgment that delivered data. `duplicates`: without SACK, whether earlier
    /// duplicates showed that data above its lowest segment had been delivered before.
    pub fn on_delivered(&mut self, now: Instant, delivered: &Delivered, duplicates: bool) {
        let late = |lowest| lowest < self.highest || duplicates;
        self.reordering_seen |= delivered.lowest_once().is_some_and(late);
        self.highest = self.highest.max(delivered.highest);
        self.backoff = 0;
        let once = delivered.once.map(|once| once.last_sent_at);
        // `None` sorts first: the retransmission counts if it was sent later.
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

    /// Returns two times. A segment sent once has timed out if it was sent before the first, a
    /// retransmission if it was sent before the second. `None` before the first round-trip time.
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

    /// Doubles the time allowed for retransmissions after some have timed out.
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
    fn without_sack_duplicates_indicate_reordering() {
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
