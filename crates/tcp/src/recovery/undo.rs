//! Reductions that prove spurious: Eifel detection (RFC 3522) and the count of duplicates that the
//! peer reports (RFC 2883 §5, RFC 3708 §3), for the response of RFC 4015.
//!
//! The response is the congestion control's
//! ([`on_spurious`](anabranch_congestion::CongestionControl::on_spurious)), which takes its window back, and
//! the endpoint's, which ends the recovery.
//!
//! RFC 3522 has a single segment retransmitted in mind. With more of them the endpoint waits until none
//! is in flight, and looks once more for what is lost: where something is, the reduction stands.
//!
//! # Differs from Linux
//! - Linux takes a reduction back although something else is still marked lost, and reduces again
//!   if that proves true.
//!
//! # Not implemented
//! - RFC 4015 §3.3: the estimate is not begun anew after a spurious timeout, as in Linux; the next samples show the delay.

use anabranch_wire::seq::Seq;

/// A reduction that may still be taken back.
#[derive(Debug, Clone, Copy, Default)]
pub struct Undo {
    pending: Option<Pending>,
    /// The last acknowledgment was an original's although that had been retransmitted, and more that has been retransmitted is
    /// in flight: whether anything is lost is in doubt, and nothing is retransmitted until the next acknowledgment.
    in_doubt: bool,
}

#[derive(Debug, Clone, Copy)]
struct Pending {
    /// SND.UNA and SND.NXT when it began: what lies between is at stake.
    from: Seq,
    to: Seq,
    /// Retransmissions of it that no report has shown to be spurious.
    unproved: u64,
    /// RetransmitTS (RFC 3522 §3.2 step 1): the tick of the first retransmission, until a timestamp
    /// has shown that it was needed.
    first_resent: Option<u32>,
    needed: bool,
    timeout: bool,
}

impl Undo {
    /// Fast recovery begins, or the timer has expired (`timeout`).
    pub const fn begin(&mut self, una: Seq, nxt: Seq, timeout: bool) {
        self.pending = Some(Pending {
            from: una,
            to: nxt,
            unproved: 0,
            first_resent: None,
            needed: false,
            timeout,
        });
        self.in_doubt = false;
    }

    /// Another fast recovery begins while so many segments that were retransmitted in the last one are in flight: their
    /// answers echo ticks from before anything is retransmitted in this one, and are no originals' for that.
    pub fn begin_again(&mut self, una: Seq, nxt: Seq, resent: u64) {
        let before = self.pending;
        self.begin(una, nxt, false);
        if let (Some(before), Some(pending)) = (before, &mut self.pending) {
            pending.unproved = resent;
            pending.first_resent = before.first_resent;
            pending.needed = before.needed;
        }
    }

    /// See [`Self::is_in_doubt`].
    pub const fn doubt(&mut self, in_doubt: bool) {
        self.in_doubt = in_doubt;
    }

    /// Whether what is marked lost has to wait for the next acknowledgment.
    #[must_use]
    pub const fn is_in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// A segment is retransmitted at this tick of the timestamp clock.
    pub const fn on_retransmission(&mut self, tick: u32) {
        if let Some(pending) = &mut self.pending {
            pending.unproved += 1;
            if pending.first_resent.is_none() && !pending.needed {
                pending.first_resent = Some(tick);
            }
        }
    }

    /// The peer reports `left..right` as a duplicate. `true` if now every retransmission is known to
    /// be spurious.
    pub fn on_duplicate(&mut self, left: Seq, right: Seq, smss: u32) -> bool {
        let Some(pending) = &mut self.pending else {
            return false;
        };
        if left < pending.from || right > pending.to || pending.unproved == 0 {
            return false;
        }
        let segments = right.since(left).div_ceil(u64::from(smss));
        pending.unproved = pending.unproved.saturating_sub(segments);
        pending.unproved == 0
    }

    /// Eifel detection (RFC 3522 §3.2 steps 2 to 5): an acknowledgment of new data echoes this tick.
    /// `true` if the original caused it.
    pub fn on_progress(&mut self, echo: u32) -> bool {
        let Some(pending) = &mut self.pending else {
            return false;
        };
        let Some(resent) = pending.first_resent else {
            return false;
        };
        let original = echo.wrapping_sub(resent).cast_signed() < 0;
        if !original {
            pending.first_resent = None;
            pending.needed = true;
        }
        original
    }

    /// Takes it back: whether it was a timeout's. `None` if there is nothing to take back.
    pub fn take(&mut self) -> Option<bool> {
        let pending = self.pending.take()?;
        Some(pending.timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u64) -> Seq {
        Seq::first(0) + n
    }

    #[test]
    fn duplicates_must_answer_for_every_retransmission() {
        let mut undo = Undo::default();
        assert!(!undo.on_duplicate(at(0), at(100), 100));
        undo.begin(at(100), at(1000), false);
        // Nothing left again: a duplicate that the network made.
        assert!(!undo.on_duplicate(at(100), at(200), 100));
        undo.on_retransmission(1);
        undo.on_retransmission(1);
        // Of what was at stake before.
        assert!(!undo.on_duplicate(at(0), at(100), 100));
        assert!(!undo.on_duplicate(at(100), at(200), 100));
        assert!(undo.on_duplicate(at(300), at(400), 100));
        assert_eq!(undo.take(), Some(false));
        assert_eq!(undo.take(), None);
    }

    #[test]
    fn what_is_under_way_from_the_last_recovery_is_no_original() {
        let mut undo = Undo::default();
        undo.begin(at(0), at(1000), false);
        undo.on_retransmission(10);
        undo.on_retransmission(20);
        assert!(!undo.on_progress(10));
        undo.begin_again(at(900), at(2000), 1);
        undo.on_retransmission(30);
        // The answer to the one of 20.
        assert!(!undo.on_progress(20));
        // It has to be reported as spurious as well.
        assert!(!undo.on_duplicate(at(900), at(1000), 100));
        assert!(undo.on_duplicate(at(1000), at(1100), 100));
        // Where nothing shows that the first was needed an original may still be told.
        undo.begin(at(2000), at(3000), false);
        undo.on_retransmission(40);
        undo.begin_again(at(2500), at(4000), 1);
        undo.on_retransmission(50);
        assert!(undo.on_progress(39));
        assert!(!undo.on_progress(45));
    }

    #[test]
    fn a_retransmission_once_needed_stays_needed() {
        let mut undo = Undo::default();
        undo.begin(at(0), at(1000), true);
        assert!(!undo.on_progress(5));
        undo.on_retransmission(10);
        assert!(undo.on_progress(9));
        undo.on_retransmission(20);
        assert!(undo.on_progress(9));
        assert!(!undo.on_progress(10));
        undo.on_retransmission(30);
        assert!(!undo.on_progress(9));
        undo.begin(at(0), at(1000), true);
        undo.on_retransmission(u32::MAX);
        assert!(!undo.on_progress(0));
    }
}
