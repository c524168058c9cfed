//! RACK (RFC 8985 §6): a segment is lost when one sent later has been delivered and the reordering
//! window has passed since.
//!
//! Here are the state and its arithmetic; which segments have left when is the
//! [scoreboard](crate::scoreboard)'s, whose records stand in the order of their times, so
//! that detection looks only at what it marks.
//!
//! # Differs from RFC 8985
//! - §6.2 step 5: the reordering timer is set for the segment delivered latest instead of the latest
//!   that is missing; that is later by no more than the time between the two. Acknowledgments in
//!   between detect losses without it.
//! - Step 3: a recovery that proves spurious shows reordering, too. Its segments were retransmitted, so
//!   that the step by itself would never see a reordering that always exceeds DupThresh.
//! - Step 2 is left out for acknowledgments that neither report nor fill a gap: everything that they
//!   deliver was sent before everything that is outstanding, so that it can show no loss.
//!
//! # Differs from Linux
//! - The reordering window is computed from the smallest round-trip time of the whole connection;
//!   Linux forgets it after some minutes.
//!
//! # Not implemented
//! - Nothing of §6.

use anabranch_core::units::{Duration, Instant};

use crate::scoreboard::{Delivered, Limit};
use anabranch_wire::seq::Seq;

/// Recoveries without a duplicate after which the window shrinks again (§6.2 step 4).
const PERSIST: u32 = 16;
/// So that a hostile peer cannot make the multiplier overflow; the window ends at SRTT anyway.
const MAX_MULT: u32 = 1 << 16;

/// The state of RACK.
#[derive(Debug, Clone, Copy)]
pub struct Rack {
    /// RACK.xmit_ts and RACK.end_seq: of the latest sent of the segments delivered.
    latest: Option<(Instant, Seq)>,
    /// RACK.rtt: of that segment.
    rtt: Duration,
    /// RACK.min_RTT; zero before the first.
    min_rtt: Duration,
    /// RACK.fack: behind the highest segment delivered.
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

/// What the reordering window depends on besides (§6.2 step 4).
#[derive(Debug, Clone, Copy)]
pub struct Circumstances {
    /// A recovery is under way, fast or after a timeout.
    pub recovering: bool,
    /// RACK.segs_sacked has reached DupThresh.
    pub many_sacked: bool,
    /// Smoothed round-trip time.
    pub srtt: Duration,
}

/// What tells whether a copy retransmitted is the one delivered (§6.2 step 2).
#[derive(Debug, Clone, Copy)]
pub struct Echo {
    /// The tick of the timestamp clock that the acknowledgment echoes.
    pub echoed: u32,
    /// The tick at which the copy left.
    pub resent: u32,
}

impl Rack {
    /// Before anything is delivered; `first` is the first number.
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

    /// Steps 1 to 3: an acknowledgment delivered something. `una` is the number acknowledged before
    /// it, `min_rtt` the smallest round-trip time known otherwise. Returns how far behind the highest
    /// delivered the lowest new one lies, if it was reordered.
    pub fn on_delivered(
        &mut self,
        now: Instant,
        delivered: &Delivered,
        una: Seq,
        min_rtt: Duration,
        echo: Option<Echo>,
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

    /// What step 5 judges by; `None` before the first delivery.
    #[must_use]
    pub fn limit(&self, circumstances: &Circumstances) -> Option<Limit> {
        Some(Limit {
            latest: self.latest?,
            age: self.rtt + self.reo_wnd(circumstances),
        })
    }

    /// How far a number lies behind the highest delivered.
    #[must_use]
    pub fn behind(&self, number: Seq) -> u64 {
        if number < self.fack {
            self.fack.since(number)
        } else {
            0
        }
    }

    /// A recovery has proved spurious: what was marked lost was only late.
    pub const fn on_spurious(&mut self) {
        self.reordering_seen = true;
    }

    /// RACK.fack: behind the highest segment delivered.
    #[must_use]
    pub const fn fack(&self) -> Seq {
        self.fack
    }

    /// RACK.reordering_seen
    #[must_use]
    pub const fn reordering_seen(&self) -> bool {
        self.reordering_seen
    }
}

#[cfg(test)]
mod tests;
