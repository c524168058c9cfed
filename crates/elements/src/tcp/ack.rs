//! When to acknowledge (RFC 5681 §4.2, RFC 9293 §3.8.6.3).
//!
//! A segment out of order, one that fills a gap, a duplicate and a FIN are acknowledged at once;
//! others may wait for more segments or for a timeout.
//!
//! # Differs from Linux
//! - No quick-acknowledgment phase, and the timeout does not adapt.
//! - Segments are counted, whatever their size.

use anabranch_core::units::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::settings::DelayedAck;

/// How long an acknowledgment may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelayedAckTable {
    /// For at most so many segments; 2 in RFC 5681 §4.2.
    pub segments: u32,
    /// For at most so long; below 500 ms in RFC 5681 §4.2.
    pub timeout: Duration,
    /// The timeout follows the time between segments, up to this; left out, it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_timeout: Option<Duration>,
    /// So many segments at the start, and after a pause, are acknowledged one by one, unless the
    /// application answers each (at most half of what the window holds; 0 for none).
    #[serde(default)]
    pub quick_segments: u32,
}

/// What the receiver owes.
#[derive(Debug, Clone, Copy)]
pub struct AckPolicy {
    /// Acknowledge at this time at the latest.
    at: Instant,
    timeout: Duration,
    segments: u32,
    /// Segments since the last acknowledgment.
    waiting: u32,
    now: bool,
}

impl AckPolicy {
    /// Nothing owed yet.
    #[must_use]
    pub const fn new(setting: DelayedAck) -> Self {
        let (segments, timeout) = match setting {
            DelayedAck::Off => (1, Duration::ZERO),
            DelayedAck::On(table) => (table.segments, table.timeout),
        };
        Self {
            at: Instant::NEVER,
            timeout,
            segments,
            waiting: 0,
            now: false,
        }
    }

    /// A segment came in order.
    #[inline]
    pub fn in_order(&mut self, now: Instant) {
        self.waiting += 1;
        if self.waiting >= self.segments {
            self.now = true;
        } else if self.at == Instant::NEVER {
            self.at = now.saturating_add(self.timeout);
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
        }
    }
    /// An acknowledgment left, alone or with data.
    #[inline]
    pub const fn sent(&mut self) {
        self.at = Instant::NEVER;
        self.waiting = 0;
        self.now = false;
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

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: DelayedAck = DelayedAck::On(DelayedAckTable {
        segments: 2,
        timeout: Duration::from_millis(200),
        max_timeout: None,
        quick_segments: 0,
    });

    #[test]
    fn every_second_segment_is_acknowledged_at_once() {
        let mut ack = AckPolicy::new(TABLE);
        ack.in_order(Instant::START);
        assert!(!ack.due());
        assert_eq!(ack.deadline(), Instant::from_millis(200));
        ack.in_order(Instant::from_millis(150));
        assert!(ack.due());
        ack.sent();
        assert!(!ack.due());
        assert_eq!(ack.deadline(), Instant::NEVER);
    }

    #[test]
    fn a_lone_segment_waits_for_the_timeout_only() {
        let mut ack = AckPolicy::new(TABLE);
        ack.in_order(Instant::from_millis(10));
        ack.expire(Instant::from_millis(209));
        assert!(!ack.due());
        ack.expire(Instant::from_millis(210));
        assert!(ack.due());
    }

    #[test]
    fn off_acknowledges_every_segment() {
        let mut ack = AckPolicy::new(DelayedAck::Off);
        ack.in_order(Instant::START);
        assert!(ack.due());
    }
}
