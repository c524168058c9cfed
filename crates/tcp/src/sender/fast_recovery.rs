//! Fast recovery and what ends it: RFC 5681 §3.2, RFC 6582, RFC 6675, the study's timer rule; and the
//! reductions that marks ask for (RFC 3168 §6.1.2).

use anabranch_core::{
    body::Body,
    units::{Bytes, Instant},
};

use super::{Retransmit, Sender};
use crate::{
    cause::RetransmitCause,
    policy::Recovery,
    congestion_window::Reduction,
    recovery::{AckSummary, Phase, dupthresh, pace::Pace, window_log::WindowChange},
};
use anabranch_congestion::{Recovered, Signal, TimerLoss};

/// What the reduction at the beginning of a recovery is taken from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Base {
    /// What is in flight.
    Flight,
    /// The same, but no more than this.
    AtMost(u64),
    /// This instead, which cwnd should not have outgrown.
    Window(u64),
}

impl<B: Body> Sender<B> {
    /// New data is acknowledged: what it means for the recovery. Whether the retransmission timer
    /// starts anew.
    pub(super) fn after_progress_in_trouble(&mut self, now: Instant, summary: &mut AckSummary) -> bool {
        let complete = self.peer.una() >= self.recovery.recover;
        match self.recovery.phase {
            Phase::Open | Phase::Reduction => {
                self.recovery.dup_acks = 0;
                self.recovery.limited = 0;
                if self.peer.una() > self.recovery.reduced {
                    self.recovery.phase = Phase::Open;
                }
                if summary.new_sack {
                    // RFC 6675 §5: it is a duplicate as well, and may show that more is lost.
                    self.recovery.dup_acks = 1;
                    summary.lost += self.detect_by_sack(now, summary.delivered.fresh);
                }
                true
            }
            Phase::Loss => {
                self.recovery.dup_acks = 0;
                if complete {
                    self.recovery.open();
                    self.board.give_back();
                    self.window.on_recovered(now, None);
                }
                true
            }
            Phase::Recovery if complete || self.settings.recovery == Recovery::Reno => {
                self.recovery.open();
                self.board.give_back();
                let recovered = Recovered {
                    now,
                    in_flight: Bytes::new(self.board.in_flight()),
                    cwnd_limit: self.window_left_by_pace(),
                };
                self.window.on_recovered(now, Some(&recovered));
                true
            }
            Phase::Recovery if self.agreed.guided => true,
            Phase::Recovery => {
                // RFC 6582 §3.2 step 3: a partial acknowledgment.
                self.recovery.dup_acks = 0;
                self.recovery.deflate(summary.acked, self.smss);
                self.board.note_loss(0);
                // A timer rule may have sent it again already.
                if self
                    .board
                    .front()
                    .is_some_and(|front| !front.is_retransmitted())
                {
                    self.retransmit = Retransmit::First(RetransmitCause::PartialAck);
                }
                self.recovery.partial_acks == 1 || self.settings.partial_ack_restarts_timer
            }
        }
    }

    /// The bound on cwnd that the pace of the recovery leaves, if there is one.
    pub(super) fn window_left_by_pace(&self) -> Option<Bytes> {
        let watch = self.cold.watch.as_ref()?;
        let left = watch.pace.as_ref().and_then(Pace::left)?;
        Some(Bytes::new(left.max(u64::from(self.smss))))
    }

    /// A duplicate acknowledgment, as the recovery in use defines it.
    pub(super) fn after_duplicate(&mut self, now: Instant, summary: &mut AckSummary) {
        self.recovery.dup_acks = self.recovery.dup_acks.saturating_add(1);
        if self.agreed.guided {
            if self.recovery.phase.repairs_nothing() {
                summary.lost += self.detect_by_sack(now, summary.delivered.fresh);
            }
        } else if self.recovery.phase == Phase::Recovery {
            self.recovery.inflate(self.smss);
        } else if dupthresh::reached(
            &self.recovery,
            self.peer.una(),
            &self.settings,
            (self.dupthresh(), self.timed),
        ) {
            // RFC 5681 §3.2 steps 2 and 3.
            self.enter_recovery(now, RetransmitCause::DupThresh, 0);
            self.recovery.inflate_at_entry(self.smss);
            self.retransmit = Retransmit::First(RetransmitCause::DupThresh);
        }
    }

    /// RFC 6675 §5 (1), (2) and (4): begins a recovery if what SACK reports says so. Returns what is
    /// newly lost. `fresh` is what the acknowledgment delivered.
    pub(super) fn detect_by_sack(&mut self, now: Instant, fresh: u64) -> u64 {
        if self.cold.watch.is_some() {
            self.tell_remedy_of_duplicate(now);
        }
        // RACK has its own time for it.
        if !self.agreed.guided || self.agreed.racked() || self.peer.una() < self.recovery.recover {
            return 0;
        }
        let dupthresh = self.dupthresh();
        let edge = self.board.lost_below(dupthresh, self.smss);
        let lost = edge.is_some_and(|edge| edge > self.peer.una());
        if !lost && self.recovery.dup_acks < dupthresh {
            return 0;
        }
        let base = if self.cold.watch.is_some() {
            self.tell_remedy_of_loss()
        } else {
            Base::Flight
        };
        self.enter_recovery_from(now, RetransmitCause::DupThresh, (fresh, base));
        let before = self.board.lost();
        self.board.mark_lost(0, RetransmitCause::DupThresh);
        self.update_lost();
        // (4.3): the first segment leaves whatever the pipe.
        self.retransmit = Retransmit::First(RetransmitCause::DupThresh);
        self.board.lost() - before
    }

    /// Update (RFC 6675 §4): what the reports show to be lost.
    pub(super) fn update_lost(&mut self) -> u64 {
        if !self.agreed.guided || self.agreed.racked() {
            return 0;
        }
        match self.board.lost_below(self.dupthresh(), self.smss) {
            Some(edge) => self.board.mark_lost_below(edge),
            None => 0,
        }
    }

    /// Fast recovery begins: cwnd is reduced, unless it was for a mark in the same round trip
    /// (RFC 3168 §6.1.2). `fresh` is what the acknowledgment delivered that begins it.
    pub(super) fn enter_recovery(&mut self, now: Instant, cause: RetransmitCause, fresh: u64) {
        self.enter_recovery_from(now, cause, (fresh, Base::Flight));
    }

    /// As [`Self::enter_recovery`], with the reduction taken from `base`.
    pub(super) fn enter_recovery_from(
        &mut self,
        now: Instant,
        cause: RetransmitCause,
        (fresh, base): (u64, Base),
    ) {
        self.stats.fast_recoveries += 1;
        let before = self.window.state();
        let goes_on = self.recovery.phase == Phase::Reduction;
        let probe_lost = self.is_probe_loss(now);
        let reduces = self.peer.una() > self.recovery.reduced && !probe_lost;
        if reduces {
            let (flight, srtt) = (self.flight_size(), self.rtt.srtt());
            let flight = self.window.validated_flight(now, srtt, flight, true);
            let in_flight = match base {
                Base::Flight => flight,
                Base::AtMost(most) => flight.min(most),
                Base::Window(window) => {
                    self.window.bound(now, window, self.board.in_flight());
                    window
                }
            };
            self.window.on_congestion(now, Signal::Loss, in_flight);
        }
        if !self.agreed.guided {
            self.board.note_loss(0);
        }
        self.recovery.enter(self.nxt);
        self.board.begin_recovery();
        self.window.log(now, WindowChange::Recovery(cause), before);
        self.watch_recovery((reduces, goes_on), fresh);
    }

    /// An event outside of any recovery reduces the window. What proves an earlier reduction spurious comes too late then, since the
    /// control would take back the wrong one.
    pub(super) fn reduce(&mut self, now: Instant, signal: Signal, flight: u64, change: WindowChange) {
        let srtt = self.rtt.srtt();
        self.window.reduce(
            now,
            &Reduction {
                signal,
                flight,
                srtt,
                change,
            },
        );
        if let Some(watch) = &mut self.cold.watch {
            watch.undo.take();
        }
    }

    /// The peer echoes a mark (RFC 3168 §6.1.2): one reduction per round trip.
    pub(super) fn on_echo(&mut self, now: Instant, summary: &AckSummary) {
        // The segment that says so (CWR) is the first after `reduced`.
        if self.peer.una() <= self.recovery.reduced || self.recovery.phase != Phase::Open {
            return;
        }
        self.stats.ecn_reductions += 1;
        self.reduce(now, Signal::EcnCe, self.flight_size(), WindowChange::Mark);
        self.recovery.reduced = self.nxt;
        self.ecn.on_reduction();
        self.watch_reduction(summary);
    }

    /// The study's rule; see [`timer_rule`](crate::recovery::timer_rule).
    pub(super) fn apply_timer_rule(&mut self, now: Instant, summary: &mut AckSummary) {
        let Some(rule) = &mut self.cold.timer_rule else {
            return;
        };
        if summary.acked > 0 || summary.new_sack {
            let duplicates = !self.agreed.guided && summary.prior.dup_acks > 0 && summary.acked > 0;
            rule.on_delivered(now, &summary.delivered, duplicates);
        }
        let Some((once, again)) = rule.limits(now) else {
            return;
        };
        let expired = self.board.expire(once, again);
        if expired.lost == 0 {
            return;
        }
        if expired.retransmissions {
            rule.back_off();
        }
        summary.lost += expired.lost;
        let in_flight = self.flight_size();
        match self.recovery.phase {
            Phase::Open | Phase::Reduction => {
                let dup_acks = self.recovery.dup_acks;
                self.enter_recovery(now, RetransmitCause::TimerRule, summary.delivered.fresh);
                if !self.agreed.guided {
                    self.recovery.dup_acks = dup_acks;
                    self.recovery.inflate_at_entry(self.smss);
                }
                self.retransmit = Retransmit::FirstLost;
            }
            Phase::Recovery => {
                self.stats.timer_losses += 1;
                self.window.on_timer_loss(&TimerLoss {
                    now,
                    in_flight: Bytes::new(in_flight),
                });
                self.recovery.restart(self.nxt);
                self.retransmit = Retransmit::FirstLost;
            }
            Phase::Loss => {}
        }
    }
}

impl<B: Body> Sender<B> {
    /// The peer says that something was lost although it was repaired (RFC 9265 §3): the window is reduced
    /// as for any loss, once per round trip. Whether it was.
    pub(crate) fn on_hidden_loss(&mut self, now: Instant) -> bool {
        if self.peer.una() <= self.recovery.reduced || self.recovery.phase != Phase::Open {
            return false;
        }
        self.reduce(now, Signal::Loss, self.flight_size(), WindowChange::Repaired);
        self.recovery.reduced = self.nxt;
        true
    }
}
