//! What leaves (RFC 9293 §3.8.6.2.1, RFC 5681 §3, RFC 6675 §5 (C)).

use anabranch_core::{
    body::Body,
    units::{Duration, Instant},
};

use super::{Departure, Endpoint, Outgoing, Retransmit, pacing::UNKNOWN_TRAIN};
use crate::{
    cause::RetransmitCause,
    policy::RecoveryPace,
    recovery::{
        Phase, limited_transmit,
        sack::{NewData, NextSeg, next_seg},
    },
    segment::{Flags, Segment},
    send_limit::SendLimit,
};
use anabranch_congestion::{CongestionControl, Idle};

/// What may leave waits for more only while it is less than this part of the window,
const SHARE_OF_WINDOW: u64 = 3;
/// only if the last data left no longer ago than this, and if the next acknowledgment is due no later.
const SOON: Duration = Duration::from_millis(1);

/// What losses and reordering let leave.
pub(super) enum Trouble {
    /// A segment sent before.
    Leaves(Departure),
    /// Nothing.
    Waits,
    /// New data, as far as these permit. `held`: it is a remedy that permits no more, not cwnd.
    Permits {
        window: u64,
        in_flight: u64,
        held: bool,
    },
}

impl<B: Body> Endpoint<B> {
    /// The next segment to send. To be called until `None`, after everything else that is called.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Outgoing<B>> {
        let mut segment = Segment::default();
        let departure = self.poll_transmit_into(now, &mut segment)?;
        Some(Outgoing {
            segment,
            size: departure.size,
            ecn: departure.ecn,
            retransmission: departure.retransmission,
        })
    }

    /// As [`Self::poll_transmit`], with the segment put where it is wanted. With `None` what is there may
    /// have changed, too.
    #[inline]
    pub fn poll_transmit_into(
        &mut self,
        now: Instant,
        place: &mut Segment<B>,
    ) -> Option<Departure> {
        if self.may_transmit() {
            self.next_outgoing(now, place)
        } else {
            None
        }
    }

    /// Whether it is worth asking for a segment: nothing has happened since there was none.
    #[must_use]
    #[inline]
    pub const fn may_transmit(&self) -> bool {
        self.wanted.wake
    }

    pub(super) fn next_outgoing(
        &mut self,
        now: Instant,
        place: &mut Segment<B>,
    ) -> Option<Departure> {
        if self.wanted.urgent {
            return self.control_segment(now, place);
        }
        // What arrived out of order is acknowledged by a segment without payload, which alone
        // counts as a duplicate acknowledgment (RFC 5681 §2).
        if self.rcv.ack.due() && self.rcv.gaps {
            return Some(self.acknowledgment(now, place));
        }
        if self.state.may_transmit() {
            if self.snd.board.is_empty()
                && self.snd.nxt >= self.snd.buffer.end()
                && !self.wanted.fin
            {
                self.note_application_limit(now);
            } else if let Some(outgoing) = self.data(now, place) {
                return Some(outgoing);
            }
        }
        self.wanted.wake = false;
        if self.rcv.ack.due() {
            return Some(self.acknowledgment(now, place));
        }
        None
    }

    /// Data, or a FIN, as far as the windows permit.
    #[inline]
    fn data(&mut self, now: Instant, place: &mut Segment<B>) -> Option<Departure> {
        let mut window = self
            .snd
            .control
            .cwnd()
            .get()
            .saturating_sub(self.snd.reserved);
        let mut in_flight = self.snd.board.in_flight();
        let plain = self.snd.recovery.phase == Phase::Open
            && self.snd.board.is_plain()
            && self.snd.recovery.dup_acks == 0
            && self.wanted.retransmit == Retransmit::Nothing
            && !self.agreed.attended();
        // Below cwnd, what does not leave is not cwnd's doing, which so grows by nothing that it does not hold.
        let mut held = false;
        if !plain {
            match self.in_trouble(now, window, place) {
                Trouble::Leaves(outgoing) => return Some(outgoing),
                Trouble::Waits => return None,
                Trouble::Permits {
                    window: w,
                    in_flight: f,
                    held: h,
                } => (window, in_flight, held) = (w, f, h),
            }
        }
        let until = self.snd.cwnd_limited_until;
        let departure = self.new_data(now, window, in_flight, place);
        if !plain && self.snd.limit == SendLimit::Cwnd {
            if held {
                self.snd.cwnd_limited_until = until;
                self.note_unfilled();
            }
            if held || !self.snd.recovery.phase.repairs_nothing() {
                self.note_recovery_limit(now);
            }
        }
        departure
    }

    /// What losses and reordering let leave.
    #[inline(never)]
    fn in_trouble(&mut self, now: Instant, cwnd: u64, place: &mut Segment<B>) -> Trouble {
        match std::mem::take(&mut self.wanted.retransmit) {
            Retransmit::Nothing => {}
            Retransmit::First(cause) => {
                if !self.snd.board.is_empty() {
                    return Trouble::Leaves(self.retransmit(now, 0, cause, place));
                }
            }
            Retransmit::FirstLost => {
                if let Some(index) = self.snd.board.next_lost() {
                    return Trouble::Leaves(self.retransmit_lost(now, index, place));
                }
            }
            Retransmit::Probe => {
                if !self.snd.board.is_empty() {
                    return Trouble::Leaves(self.probe_tail(now, place));
                }
            }
        }
        if let Some(forward) = self.forward(now, place) {
            if matches!(forward, Trouble::Waits) {
                self.note_recovery_limit(now);
            }
            return forward;
        }
        let window = self.window_in_trouble(cwnd);
        if self.snd.board.lost() > 0 && self.snd.paced && self.is_held_back(now, self.smss) {
            self.note_pacing_limit(now, self.snd.board.in_flight());
            return Trouble::Waits;
        }
        let in_doubt = self.is_in_doubt();
        if (self.snd.board.lost() > 0 || self.snd.recovery.phase == Phase::Recovery)
            && !in_doubt
            && let Some(outgoing) = self.repair(now, window, place)
        {
            return Trouble::Leaves(outgoing);
        }
        if self.snd.board.lost() > 0 && !in_doubt {
            // What is lost goes first.
            self.snd.cwnd_limited_until = self.snd.nxt;
            self.note_recovery_limit(now);
            return Trouble::Waits;
        }
        let mut in_flight = self.snd.board.in_flight();
        let (cwnd, mut window) = (window, window);
        let extends = self.snd.recovery.dup_acks > 0 || self.remedy_extends();
        if extends && self.snd.recovery.phase == Phase::Open {
            // RFC 3042; with SACK, RFC 6675 §5 (3) permits it by what the pipe has lost.
            if !self.agreed.guided {
                if self.settings.limited_transmit {
                    window += limited_transmit::allowance(&self.snd.recovery, self.smss);
                }
            } else if !self.settings.limited_transmit {
                in_flight += self.snd.board.sacked();
            } else if let Some(room) = self.remedy_room(now) {
                window = in_flight + room;
            }
        }
        if let Some(ramp) = self.remedy_ramp() {
            window = window.min(ramp);
        }
        Trouble::Permits {
            window,
            in_flight,
            held: window < cwnd && self.remedy_holds(),
        }
    }

    /// Retransmissions that the window permits.
    fn repair(&mut self, now: Instant, window: u64, place: &mut Segment<B>) -> Option<Departure> {
        let in_flight = self.snd.board.in_flight();
        // RFC 6675 §5 (C): a full segment must fit.
        if in_flight > 0 && in_flight + u64::from(self.smss) > window {
            return None;
        }
        if self.snd.recovery.phase != Phase::Recovery || !self.agreed.guided {
            let index = self.snd.board.next_lost()?;
            return Some(self.retransmit_lost(now, index, place));
        }
        // With RACK the last two rules of NextSeg have no place: time finds what is lost.
        let new_data = if self.settings.recovery_pace == RecoveryPace::CountedPipe {
            NewData::BehindHoles
        } else if self.agreed.racked() || self.agreed.aged() || self.sendable().is_some() {
            NewData::Available
        } else {
            NewData::Missing
        };
        match next_seg(
            &mut self.snd.board,
            &self.snd.recovery,
            self.snd.una,
            new_data,
        ) {
            NextSeg::Lost(index) => Some(self.retransmit_lost(now, index, place)),
            NextSeg::Speculative(index) => {
                Some(self.retransmit(now, index, RetransmitCause::Speculative, place))
            }
            NextSeg::Rescue(index) => {
                self.snd.recovery.rescue = self.snd.recovery.recover;
                Some(self.retransmit(now, index, RetransmitCause::Rescue, place))
            }
            NextSeg::New | NextSeg::Nothing => None,
        }
    }

    /// Octets of the next new segment by the application's data, the peer's window and the send
    /// buffer; `None` if none should leave (RFC 9293 §3.8.6.2.1).
    #[inline]
    pub(super) fn sendable(&self) -> Option<u32> {
        let edge = self.edge();
        let end = self.snd.buffer.end();
        let permitted = edge.min(end).since(self.snd.nxt);
        if permitted >= u64::from(self.smss) {
            return Some(self.smss);
        }
        self.sendable_part(permitted, edge >= end)
    }

    /// As [`Self::sendable`], for less than a full segment.
    #[inline(never)]
    fn sendable_part(&self, permitted: u64, all: bool) -> Option<u32> {
        if permitted == 0 {
            return None;
        }
        let idle = self.snd.board.is_empty();
        let send = if all {
            // The last of the data; with Nagle only when nothing is outstanding, or with a FIN.
            !self.settings.nagle || idle || self.wanted.fin
        } else {
            // As much as the window takes: worth it for half of the largest window.
            idle && permitted >= u64::from(self.cold.max_snd_wnd / 2)
        };
        send.then(|| u32::try_from(permitted).unwrap_or(self.smss))
    }

    /// Data not sent before, with the FIN if it is the last.
    #[expect(
        clippy::inline_always,
        reason = "measured: it is called in one place, for all data"
    )]
    #[inline(always)]
    fn new_data(
        &mut self,
        now: Instant,
        window: u64,
        in_flight: u64,
        place: &mut Segment<B>,
    ) -> Option<Departure> {
        let Some(len) = self.sendable() else {
            return self.nothing_sendable(now, (window, in_flight), place);
        };
        if in_flight > 0 && in_flight + u64::from(len) > window {
            self.note_cwnd_limit(now);
            return None;
        }
        if self.snd.paced && self.is_held_back(now, len) {
            self.note_pacing_limit(now, in_flight);
            return None;
        }
        if self.snd.longest_train > 0 {
            if self.snd.longest_train == UNKNOWN_TRAIN {
                self.measure_train();
            }
            if in_flight > 0 && self.is_deferred(now, window, in_flight) {
                self.note_deferral(now, window, in_flight);
                return None;
            }
        }
        if in_flight == 0 && self.snd.limit == SendLimit::Application {
            self.note_idle(now);
        }
        if self.snd.paced {
            self.pace(now, len);
        }
        let in_flight = in_flight + u64::from(len);
        let pushed = self.snd.longest_train > 0 && {
            let another = self.has_another(now, len, window, in_flight);
            if self.piece_left() > u64::from(len) {
                self.ends_train(now, another)
            } else {
                self.ends_piece(now, another)
            }
        };
        let outgoing = self.transmit_new(now, len, place);
        if pushed {
            place.flags |= Flags::PSH;
        }
        self.look_ahead(now, window, in_flight, place);
        Some(outgoing)
    }

    /// Whether what may leave waits for more to go with it
    /// ([`Segmentation`](crate::policy::Segmentation)).
    #[inline(never)]
    fn is_deferred(&self, now: Instant, window: u64, in_flight: u64) -> bool {
        let smss = u64::from(self.smss);
        let unsent = self.snd.buffer.end().since(self.snd.nxt);
        let room = (window - in_flight).min(self.edge().since(self.snd.nxt));
        let chunk = self.snd.control.cwnd().get().min(u64::from(self.snd.wnd)) / SHARE_OF_WINDOW;
        self.settings.segmentation.is_tso()
            && self.snd.recovery.phase.repairs_nothing()
            && room < unsent
            && room < u64::from(self.snd.longest_train) * smss
            && room < chunk
            && room < self.piece_left()
            && now.saturating_since(self.snd.last_sent) <= SOON
            // What has begun to leave as one is not parted.
            && (self.snd.train == 0 || self.snd.last_sent != now)
            && self.snd.board.get(0).is_some_and(|first| {
                let srtt = self.snd.rtt.srtt();
                let expected = first.sent_at.saturating_add(srtt);
                expected.saturating_since(now) <= SOON.min(srtt / 2)
            })
    }

    /// Whether another full segment may leave right after one of `len` octets.
    fn has_another(&mut self, now: Instant, len: u32, window: u64, in_flight: u64) -> bool {
        let smss = u64::from(self.smss);
        let left = self.edge().min(self.snd.buffer.end()).since(self.snd.nxt);
        left >= u64::from(len) + smss
            && in_flight + smss <= window
            && !(self.snd.paced && self.is_held_back(now, self.smss))
    }

    /// Most often the window is full again after a segment, and the next call can be spared.
    #[inline]
    fn look_ahead(&mut self, now: Instant, window: u64, in_flight: u64, place: &mut Segment<B>) {
        let edge = self.edge();
        let left = edge.min(self.snd.buffer.end()).since(self.snd.nxt);
        let full = in_flight + u64::from(self.smss) > window;
        if full && self.snd.buffer.end().since(self.snd.nxt) < u64::from(self.smss) {
            // A window that the application has just filled is used, whether more waits or not.
            self.snd.cwnd_limited_until = self.snd.nxt;
        }
        if left >= u64::from(self.smss) {
            if full {
                self.note_cwnd_limit(now);
                self.wanted.wake = false;
            }
        } else if left == 0 {
            if self.snd.buffer.end() <= self.snd.nxt {
                // RFC 9293 §3.8.2: nothing else waits.
                place.flags |= Flags::PSH;
            }
            if self.wanted.fin {
                return;
            }
            self.note_tightest(now, window, in_flight);
            self.wanted.wake = false;
        }
    }

    /// Nothing can leave for want of data or of window: a FIN may, or the persist timer starts.
    #[inline(never)]
    fn nothing_sendable(
        &mut self,
        now: Instant,
        (window, in_flight): (u64, u64),
        place: &mut Segment<B>,
    ) -> Option<Departure> {
        let end = self.snd.buffer.end();
        if self.snd.nxt == end && self.wanted.fin && !self.send_is_over() {
            if self.snd.nxt < self.snd.edge {
                return Some(self.transmit_rarely(now, 0, place));
            }
        } else if self.snd.nxt >= end {
            self.note_tightest(now, window, in_flight);
            return None;
        }
        self.note_tightest(now, window, in_flight);
        if self.snd.board.is_empty() {
            self.start_persist_timer(now);
        }
        None
    }

    /// Data leaves after the application had nothing to send and everything was acknowledged. Waiting for an
    /// acknowledgment is no pause, even if it is that of all there is.
    fn note_idle(&mut self, now: Instant) {
        let idle = now.saturating_since(self.snd.last_sent);
        if self.snd.validating {
            self.validate(now);
        }
        if !idle.is_zero() {
            self.snd.control.on_idle(&Idle {
                now,
                idle,
                rto: self.snd.rtt.rto(),
                rule: self.settings.idle_restart,
            });
        }
    }
}
