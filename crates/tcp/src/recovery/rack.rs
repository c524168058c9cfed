//! RACK (RFC 8985 §6): a segment is lost if one sent later was delivered and the reordering window
//! has passed since.
//!
//! This module holds the state and its arithmetic. The [scoreboard](crate::scoreboard) holds the
//! times of transmission. Its records are in order of these times, so detection visits only the
//! records it marks.
//!
//! # Differs from RFC 8985
//! - §6.2 step 5: the reordering timer is set for the segment delivered latest instead of the
//!   latest missing one. It therefore expires later by at most the time between the two.
//!   Acknowledgments in between detect losses without it.
//! - Step 3: a spurious recovery also counts as reordering. Its segments were retransmitted, so the
//!   step alone would never detect reordering that always exceeds DupThresh.
//! - Step 2 is omitted for acknowledgments that neither carry SACK information nor fill a gap. All
//!   data that they deliver was sent before all outstanding data, so they can show no loss.
//!
//! # Differs from Linux
//! - The reordering window is computed from the smallest round-trip time of the whole connection;
//!   Linux discards that minimum after some minutes.
//!
//! # Not implemented
//! - Nothing of §6.

use anabranch_core::units::{Duration, Instant};

use crate::scoreboard::{Delivered, Limit};
use anabranch_wire::seq::Seq;

/// Recoveries without a duplicate after which the window shrinks again (§6.2 step 4).
const PERSIST: u32 = 16;
/// Bound that keeps a hostile peer from overflowing the multiplier; SRTT bounds the window anyway.
const MAX_MULT: u32 = 1 << 16;

/// The state of RACK.
#[derive(Debug, Clone, Copy)]
pub struct Rack {
    /// RACK.xmit_ts and RACK.end_seq, of the delivered segment that was sent latest.
    latest: Option<(Instant, Seq)>,
    /// RACK.rtt: of that segment.
    rtt: Duration,
    /// RACK.min_RTT; zero before the first.
    min_rtt: Duration,
    /// RACK.fack: one past the highest octet delivered.
    fack: Seq,
    /// RACK.reordering_seen
    reordering_seen: bool,
    /// RACK.reo_wnd_mult
    reo_wnd_mult: u32,
    /// RACK.reo_wnd_persist
    reo_wnd_persist: u32,
    /// RACK.dsack_round
    dsack_round: Option<Seq>,
}

/// Further inputs of the reordering window (§6.2 step 4).
#[derive(Debug, Clone, Copy)]
pub struct Circumstances {
    /// A recovery is under way, fast or after a timeout.
    pub recovering: bool,
    /// RACK.segs_sacked has reached DupThresh.
    pub many_sacked: bool,
    /// Smoothed round-trip time.
    pub srtt: Duration,
}

/// Evidence of whether the retransmission or the original was delivered (§6.2 step 2).
#[derive(Debug, Clone, Copy)]
pub struct Echo {
    /// The tick of the timestamp clock that the acknowledgment echoes.
    pub echoed: u32,
    /// The tick at which the retransmission was sent.
    pub resent: u32,
}

/// The order in which the segments of an acknowledgment are processed: the last gives RACK.rtt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The order of transmission (RFC 8985 §6.2 step 2).
    Transmission,
    /// The order of their numbers, up to this number acknowledged: Linux. A retransmission that fills
    /// a gap together with a later segment sent before it gives no short round-trip time, by which
    /// all that was sent before it would be lost.
    Number(Seq),
}

impl Rack {
    /// Creates the state before any delivery; `first` is the first number.
    #[must_use]
    pub const fn new(first: Seq) -> Self {
        Self {
            latest: None,
            rtt: Duration::ZERO,
            min_rtt: Duration::ZERO,
            fack: first,
            reordering_seen: false,
            reo_wnd_mult: 1,
            reo_wnd_persist: PERSIST,
            dsack_round: None,
        }
    }

    /// Steps 1 to 3, for an acknowledgment that delivered data. `una` is the number acknowledged
    /// before it, `min_rtt` the smallest round-trip time from another source. If the data was
    /// reordered, returns the distance from the lowest octet newly delivered up to the highest
    /// delivered.
    pub fn on_delivered(
        &mut self,
        now: Instant,
        delivered: &Delivered,
        una: Seq,
        min_rtt: Duration,
        echo: Option<Echo>,
        order: Order,
    ) -> Option<u64> {
        if !min_rtt.is_zero() && (min_rtt < self.min_rtt || self.min_rtt.is_zero()) {
            self.min_rtt = min_rtt;
        }
        if let Some(once) = delivered.once {
            let rtt = now.saturating_since(once.last_sent_at);
            if rtt < self.min_rtt || self.min_rtt.is_zero() {
                self.min_rtt = rtt;
            }
            self.note(rtt, (once.last_sent_at, once.last_end));
        }
        if let Some(again) = delivered.again {
            let rtt = now.saturating_since(again.sent_at);
            let original = rtt < self.min_rtt
                || echo.is_some_and(|echo| echo.echoed.wrapping_sub(echo.resent).cast_signed() < 0);
            if !original {
                self.note(rtt, (again.sent_at, again.end));
                if let (Order::Number(ack), Some(once)) = (order, delivered.once)
                    && again.end < once.last_end
                    && once.last_end <= ack
                {
                    self.rtt = now.saturating_since(once.last_sent_at);
                }
            }
        }
        self.fack = self.fack.max(una);
        let behind = delivered
            .lowest_once()
            .filter(|lowest| *lowest < self.fack)
            .map(|lowest| self.fack.since(lowest));
        self.reordering_seen |= behind.is_some();
        self.fack = self.fack.max(delivered.highest);
        behind
    }

    fn note(&mut self, rtt: Duration, segment: (Instant, Seq)) {
        if self.latest.is_none_or(|latest| latest < segment) {
            self.latest = Some(segment);
            self.rtt = rtt;
        }
    }

    /// Step 4, first part: the peer reports a duplicate. `una` and `nxt` are SND.UNA and SND.NXT.
    pub fn on_duplicate(&mut self, una: Seq, nxt: Seq) {
        if self.dsack_round.is_some_and(|round| una >= round) {
            self.dsack_round = None;
        }
        if self.dsack_round.is_none() {
            self.dsack_round = Some(nxt);
            self.reo_wnd_mult = (self.reo_wnd_mult + 1).min(MAX_MULT);
            self.reo_wnd_persist = PERSIST;
        }
    }

    /// Step 4, second part: a recovery is over.
    pub fn on_recovered(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
        if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 1;
        }
    }

    /// Step 4, last part: RACK.reo_wnd.
    #[must_use]
    pub fn reo_wnd(&self, circumstances: &Circumstances) -> Duration {
        if !self.reordering_seen && (circumstances.recovering || circumstances.many_sacked) {
            return Duration::ZERO;
        }
        (self.min_rtt / 4)
            .saturating_mul(u64::from(self.reo_wnd_mult))
            .min(circumstances.srtt)
    }

    /// The limit for step 5; `None` before the first delivery.
    #[must_use]
    pub fn limit(&self, circumstances: &Circumstances) -> Option<Limit> {
        Some(Limit {
            latest: self.latest?,
            age: self.rtt + self.reo_wnd(circumstances),
        })
    }

    /// Distance from `number` up to one past the highest octet delivered.
    #[must_use]
    pub fn behind(&self, number: Seq) -> u64 {
        if number < self.fack {
            self.fack.since(number)
        } else {
            0
        }
    }

    /// Records a spurious recovery: its segments marked lost were only late.
    pub const fn on_spurious(&mut self) {
        self.reordering_seen = true;
    }

    /// RACK.fack: one past the highest octet delivered.
    #[must_use]
    pub const fn fack(&self) -> Seq {
        self.fack
    }
}

#[cfg(test)]
mod tests;
