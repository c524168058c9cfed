//! The next transmission during loss or reordering, and the record of transmissions (RFC 6675 §4,
//! §5, RFC 3042, RFC 5682 §2.1).

use super::{
    Detection, Phase, Recovery, Scope,
    frto::Frto,
    limited_transmit,
    sack::{NewData, NextSeg, next_seg},
};
use crate::{
    cause::RetransmitCause,
    clock::timestamp,
    policy::RecoveryPace,
    rtt::RttEstimator,
    scoreboard::{Marks, Plain, Record},
    settings::Settings,
};
use anabranch_core::units::Instant;
use anabranch_wire::seq::Seq;

/// A transmission that is due regardless of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Pending {
    #[default]
    Nothing,
    /// The first unacknowledged segment.
    First(RetransmitCause),
    /// The first segment marked lost.
    FirstLost,
    /// New data or the last segment, as a probe (RFC 8985 §7.3).
    Probe,
    /// New data in a larger segment, as a probe of the path MTU (RFC 4821).
    MtuProbe,
}

/// A segment to retransmit, by its index on the scoreboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Retransmission {
    pub(crate) index: usize,
    pub(crate) cause: RetransmitCause,
}

/// New data that recovery permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allowance {
    pub(crate) window: u64,
    pub(crate) in_flight: u64,
    /// The limit is a remedy, not cwnd.
    pub(crate) held: bool,
}

/// The next transmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repair {
    Retransmit(Retransmission),
    /// One segment of new data (RFC 5682 §2.1 step 2b).
    NewSegment,
    NewData(Allowance),
    Wait,
}

/// A segment in its first transmission.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewSegment {
    pub(crate) start: Seq,
    /// Octets of payload.
    pub(crate) len: u32,
    /// Sequence numbers, FIN included.
    pub(crate) taken: u32,
    pub(crate) marks: Marks,
}

impl Recovery {
    /// Whether a retransmission is due regardless of the window.
    pub(crate) const fn has_pending_retransmission(&self) -> bool {
        matches!(self.pending, Pending::First(_) | Pending::FirstLost)
    }

    pub(crate) fn take_pending(&mut self) -> Pending {
        std::mem::take(&mut self.pending)
    }

    /// Requests a probe of the path MTU, unless another transmission is due.
    pub(crate) fn request_mtu_probe(&mut self) {
        if self.pending == Pending::Nothing {
            self.pending = Pending::MtuProbe;
        }
    }

    /// The first record, if there is one.
    pub(crate) fn first(&self, cause: RetransmitCause) -> Option<Retransmission> {
        (!self.board.is_empty()).then_some(Retransmission { index: 0, cause })
    }

    /// The last record.
    pub(crate) fn last(&self, cause: RetransmitCause) -> Retransmission {
        let index = self.board.len() - 1;
        Retransmission { index, cause }
    }

    /// The first record marked lost.
    pub(crate) fn first_lost(&mut self) -> Option<Retransmission> {
        let index = self.board.next_lost()?;
        Some(self.lost(index))
    }

    fn lost(&self, index: usize) -> Retransmission {
        let cause = self.board.get(index).map(Record::lost_by);
        let cause = cause.expect("the scoreboard named it");
        Retransmission { index, cause }
    }

    /// RFC 5682 §2.1 step 2b: only new data is sent until the next acknowledgment. Returns `None`
    /// unless this step is due. `new_data`: new data is available.
    pub(crate) fn forward(&mut self, new_data: bool) -> Option<Repair> {
        let Frto::Second { new } = &mut self.extensions.as_mut()?.frto else {
            return None;
        };
        if *new == 0 || !new_data {
            return Some(Repair::Wait);
        }
        *new -= 1;
        Some(Repair::NewSegment)
    }

    /// Octets that may be in flight now, with a congestion window of `cwnd`.
    pub(crate) fn window(&self, cwnd: u64, smss: u32) -> u64 {
        match self.pace().filter(|_| self.state.phase.reduces()) {
            Some(pace) => pace.window(self.board.in_flight(), cwnd),
            None => self.state.window(cwnd, smss),
        }
    }

    /// The next transmission that `window` permits. `new_data`: new data is available.
    pub(crate) fn next_retransmission(
        &mut self,
        scope: &Scope<'_>,
        window: u64,
        new_data: bool,
    ) -> Repair {
        if !self.is_in_doubt() {
            if (self.board.lost() > 0 || self.state.phase == Phase::Recovery)
                && let Some(retransmission) = self.repair(scope, window, new_data)
            {
                return Repair::Retransmit(retransmission);
            }
            if self.board.lost() > 0 {
                // Lost segments go first.
                return Repair::Wait;
            }
        }
        Repair::NewData(self.allowance(scope, window))
    }

    /// The next retransmission that the window permits.
    fn repair(&mut self, scope: &Scope<'_>, window: u64, new_data: bool) -> Option<Retransmission> {
        let in_flight = self.board.in_flight();
        // RFC 6675 §5 (C): a full segment must fit.
        if in_flight > 0 && in_flight + u64::from(scope.smss) > window {
            return None;
        }
        let counted = scope.settings.recovery_pace == RecoveryPace::CountedPipe;
        if self.state.phase != Phase::Recovery || !self.reports.is_sack() {
            let index = self.board.next_lost()?;
            // In ns-2 the window after a timeout begins at the first segment, regardless of SACK
            // information beyond it (validation/data/ns2-sack-delay.toml).
            if counted && self.board.get(index)?.start(scope.una).since(scope.una) >= window {
                return None;
            }
            return Some(self.lost(index));
        }
        // With RACK the last two rules of NextSeg do not apply, because losses are detected by
        // time.
        let new_data = if counted {
            NewData::BehindHoles
        } else if self.detection != Detection::Duplicates || new_data {
            NewData::Available
        } else {
            NewData::Missing
        };
        match next_seg(&mut self.board, &self.state, scope.una, new_data) {
            NextSeg::Lost(index) => Some(self.lost(index)),
            NextSeg::Speculative(index) => Some(Retransmission {
                index,
                cause: RetransmitCause::Speculative,
            }),
            NextSeg::Rescue(index) => {
                self.state.rescue = self.state.recover;
                Some(Retransmission {
                    index,
                    cause: RetransmitCause::Rescue,
                })
            }
            NextSeg::New | NextSeg::Nothing => None,
        }
    }

    /// New data that may be sent, if the congestion window permits `window` octets in flight.
    fn allowance(&self, scope: &Scope<'_>, window: u64) -> Allowance {
        let mut in_flight = self.board.in_flight();
        let (cwnd, mut window) = (window, window);
        let extends = self.state.dup_acks > 0 || self.remedy_extends();
        if extends && self.state.phase == Phase::Open {
            // RFC 3042. With SACK, RFC 6675 §5 (3) permits new data in the amount that has left the
            // pipe.
            if self.reports.is_counted() {
                // Data counted as delivered has left the pipe.
                if !scope.settings.limited_transmit {
                    in_flight += self.board.unnamed();
                }
            } else if !self.reports.is_sack() {
                if scope.settings.limited_transmit {
                    window += limited_transmit::allowance(&self.state, scope.smss);
                }
            } else if !scope.settings.limited_transmit {
                in_flight += self.board.sacked();
            } else if let Some(room) = self.remedy_room(scope) {
                window = in_flight + room;
            }
        }
        if let Some(ramp) = self.remedy_ramp() {
            window = window.min(ramp);
        }
        Allowance {
            window,
            in_flight,
            held: window < cwnd && self.remedy_holds(),
        }
    }

    /// Records the first transmission of a segment.
    #[inline]
    pub(crate) fn on_sent(
        &mut self,
        now: Instant,
        segment: &NewSegment,
        rtt: &RttEstimator,
        settings: &Settings,
    ) {
        self.board
            .sent(segment.start, segment.taken, segment.marks, now);
        if self.state.dup_acks > 0 && self.state.phase == Phase::Open {
            self.state.limited += segment.taken;
        }
        self.on_new_segment(now, rtt, settings);
        if self.state.phase.reduces() {
            self.on_sent_in_recovery(segment.len);
        }
    }

    /// As [`Self::on_sent`] on the hot path: no duplicate has arrived, and there is no recovery.
    #[inline]
    pub(crate) fn on_hot_sent(
        &mut self,
        now: Instant,
        start: Seq,
        len: u32,
        rtt: &RttEstimator,
        settings: &Settings,
    ) {
        self.board.sent(start, len, Marks::NONE, now);
        self.on_new_segment(now, rtt, settings);
    }

    #[cold]
    fn on_sent_in_recovery(&mut self, len: u32) {
        if let Some(pace) = self.pace_mut() {
            pace.on_sent(len);
        }
    }

    /// The record at `index`.
    pub(crate) fn record(&self, index: usize) -> Record {
        *self.board.get(index).expect("the scoreboard named it")
    }

    /// Records a retransmission.
    pub(crate) fn on_retransmitted(&mut self, scope: &Scope<'_>, retransmission: Retransmission) {
        let Retransmission { index, cause } = retransmission;
        let now = scope.now;
        let record = self.record(index);
        let timed = self.timer_rule.is_some() || self.detection != Detection::Duplicates;
        self.board.resent(index, now, self.reports.is_sack(), timed);
        if let Some(extensions) = &mut self.extensions {
            if cause != RetransmitCause::Tlp {
                extensions.undo.on_retransmission(timestamp(now));
            }
            if let Some(pace) = &mut extensions.pace {
                pace.on_sent(record.len());
            }
        }
        self.remedy_on_retransmission(scope.una, &record, cause);
        // RFC 6675 §6 leaves the restart of the timer open. With RACK the timers exclude each other
        // (RFC 8985 §8), and RFC 6298 (5.1) starts the retransmission timer if none is running.
        // Linux restarts it at the first segment's retransmission, whatever the cause (measured);
        // ns-2 does so in a recovery. A restart at each retransmission would postpone the timeout
        // for a lost retransmission of the first segment as long as later segments are
        // retransmitted.
        let recovers = scope.settings.recovery_pace == RecoveryPace::CountedPipe
            && self.state.phase == Phase::Recovery;
        let first = index == 0
            && (self.detection == Detection::Rack || self.reports.is_counted() || recovers);
        self.on_retransmission_timed(scope, first);
    }

    /// Records the transmission of a tail loss probe; `retransmitted`: it was not new data (RFC
    /// 8985 §7.3).
    pub(crate) fn on_probe_sent(&mut self, scope: &Scope<'_>, retransmitted: bool) {
        if let Some(extensions) = &mut self.extensions {
            extensions.tlp.sent(scope.nxt, retransmitted);
            self.probing = extensions.tlp.probing();
        }
        self.restart_timer(scope.now, scope.rtt, scope.settings);
    }

    /// Processes an acknowledgment of whole segments that were sent once, on the fast path.
    /// Otherwise nothing changes.
    #[inline]
    pub(crate) fn on_plain_ack(&mut self, ack: Seq) -> Option<Plain> {
        debug_assert!(self.state.limited == 0, "no duplicate has arrived");
        self.board.acknowledge_whole(ack)
    }
}
