//! Detection of spurious reductions: Eifel detection (RFC 3522) and the count of duplicates that
//! the peer reports (RFC 2883 §5, RFC 3708 §3), for the response of RFC 4015.
//!
//! The congestion control responds
//! ([`on_spurious`](anabranch_congestion::CongestionControl::on_spurious)) and restores its window;
//! the endpoint ends the recovery.
//!
//! RFC 3522 considers a single retransmitted segment. With several, the endpoint waits until none
//! is in flight and then runs loss detection once more. If a segment is lost, the reduction
//! remains.
//!
//! # Differs from Linux
//! - Linux undoes a reduction although another segment is still marked lost, and reduces again if
//!   that loss is confirmed.
//!
//! # Not implemented
//! - RFC 4015 §3.3: as in Linux, the estimate is not restarted after a spurious timeout; the next
//!   samples show the delay.

use anabranch_wire::seq::Seq;

/// A reduction that can still be undone.
#[derive(Debug, Clone, Copy, Default)]
pub struct Undo {
    pending: Option<Pending>,
    /// The last acknowledgment was for an original segment that had been retransmitted, and other
    /// retransmitted segments are in flight. Whether any segment is lost is uncertain, so nothing
    /// is retransmitted until the next acknowledgment.
    in_doubt: bool,
}

#[derive(Debug, Clone, Copy)]
struct Pending {
    /// SND.UNA and SND.NXT when the reduction began; the duplicates between them count.
    from: Seq,
    to: Seq,
    /// Its retransmissions that no duplicate report has shown to be spurious.
    unproved: u64,
    /// RetransmitTS (RFC 3522 §3.2 step 1): the tick of the first retransmission, until a timestamp
    /// has shown that the retransmission was genuine.
    first_resent: Option<u32>,
    needed: bool,
    timeout: bool,
}

impl Undo {
    /// Begins with fast recovery, or with an expiry of the timer (`timeout`).
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

    /// Begins again with another fast recovery, while `resent` segments that the last one
    /// retransmitted are in flight. Their acknowledgments echo ticks from before the first
    /// retransmission of this one, but are not acknowledgments of originals.
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

    /// Whether the retransmission of segments marked lost has to wait for the next acknowledgment.
    #[must_use]
    pub const fn is_in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// Records a retransmission at this tick of the timestamp clock.
    pub const fn on_retransmission(&mut self, tick: u32) {
        if let Some(pending) = &mut self.pending {
            pending.unproved += 1;
            if pending.first_resent.is_none() && !pending.needed {
                pending.first_resent = Some(tick);
            }
        }
    }

    /// Processes a report of `left..right` as a duplicate. Returns `true` if every retransmission
    /// is now known to be spurious.
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

    /// Eifel detection (RFC 3522 §3.2 steps 2 to 5): an acknowledgment of new data echoes this
    /// tick. Returns `true` if the original caused it.
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

    /// Takes the pending reduction and returns whether it was for a timeout. `None` if no reduction
    /// is pending.
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
        // Nothing was retransmitted: the network duplicated a segment.
        assert!(!undo.on_duplicate(at(100), at(200), 100));
        undo.on_retransmission(1);
        undo.on_retransmission(1);
        // Data from before this reduction.
        assert!(!undo.on_duplicate(at(0), at(100), 100));
        assert!(!undo.on_duplicate(at(100), at(200), 100));
        assert!(undo.on_duplicate(at(300), at(400), 100));
        assert_eq!(undo.take(), Some(false));
        assert_eq!(undo.take(), None);
    }

    #[test]
    fn a_retransmission_of_the_last_recovery_is_not_an_original() {
        let mut undo = Undo::default();
        undo.begin(at(0), at(1000), false);
        undo.on_retransmission(10);
        undo.on_retransmission(20);
        assert!(!undo.on_progress(10));
        undo.begin_again(at(900), at(2000), 1);
        undo.on_retransmission(30);
        // The acknowledgment of the retransmission at tick 20.
        assert!(!undo.on_progress(20));
        // That retransmission has to be reported as spurious, too.
        assert!(!undo.on_duplicate(at(900), at(1000), 100));
        assert!(undo.on_duplicate(at(1000), at(1100), 100));
        // If nothing has shown that the first retransmission was genuine, an original can still be
        // detected.
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
