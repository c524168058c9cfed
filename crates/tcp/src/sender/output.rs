//! What is sent (RFC 9293 §3.8.6.2.1, RFC 5681 §3, RFC 6675 §5 (C)).

use anabranch_core::{
    body::Body,
    units::{Duration, Instant},
};

use super::{Retransmit, Sender};
use crate::{
    cause::RetransmitCause,
    departure::Departure,
    mtu_search::ProbeRoom,
    pacer::SHORTEST_BURST,
    policy::RecoveryPace,
    receiver::Receiver,
    recovery::{
        Phase, limited_transmit,
        sack::{NewData, NextSeg, next_seg},
    },
    segment::{Flags, Segment},
    send_limit::SendLimit,
};
use anabranch_congestion::Idle;

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

impl<B: Body> Sender<B> {
    /// Data, or a FIN, as far as the windows permit.
    #[inline]
    pub(crate) fn data(
        &mut self,
        now: Instant,
        rcv: &mut Receiver<B>,
        place: &mut Segment<B>,
    ) -> Option<Departure> {
        let mut window = self.window.available();
        let mut in_flight = self.board.in_flight();
        let plain = self.recovery.phase == Phase::Open
            && self.board.is_plain()
            && self.recovery.dup_acks == 0
            && self.retransmit == Retransmit::Nothing
            && !self.agreed.attended();
        // Below cwnd, what does not leave is not cwnd's doing, which so grows by nothing that it does not hold.
        let mut held = false;
        if !plain {
            match self.in_trouble(now, window, rcv, place) {
                Trouble::Leaves(outgoing) => return Some(outgoing),
                Trouble::Waits => return None,
                Trouble::Permits {
                    window: w,
                    in_flight: f,
                    held: h,
                } => (window, in_flight, held) = (w, f, h),
            }
        }
        let until = self.window.limited_until();
        let departure = self.new_data(now, window, in_flight, rcv, place);
        if !plain && self.limits.limit() == SendLimit::Cwnd {
            if held {
                self.window.on_limit(until);
                self.note_unfilled();
            }
            if held || !self.recovery.phase.repairs_nothing() {
                self.note_recovery_limit(now);
            }
        }
        departure
    }

    /// What losses and reordering let leave.
    #[inline(never)]
    fn in_trouble(
        &mut self,
        now: Instant,
        cwnd: u64,
        rcv: &mut Receiver<B>,
        place: &mut Segment<B>,
    ) -> Trouble {
        let repairs = matches!(
            self.retransmit,
            Retransmit::First(_) | Retransmit::FirstLost
        );
        if repairs && self.pacer.is_active() && self.is_held_back(now, self.smss) {
            self.note_pacing_limit(now, self.board.in_flight());
            return Trouble::Waits;
        }
        match std::mem::take(&mut self.retransmit) {
            Retransmit::Nothing => {}
            Retransmit::First(cause) => {
                if !self.board.is_empty() {
                    return Trouble::Leaves(self.retransmit(now, 0, cause, rcv, place));
                }
            }
            Retransmit::FirstLost => {
                if let Some(index) = self.board.next_lost() {
                    return Trouble::Leaves(self.retransmit_lost(now, index, rcv, place));
                }
            }
            Retransmit::Probe => {
                if !self.board.is_empty() {
                    return Trouble::Leaves(self.probe_tail(now, rcv, place));
                }
            }
            Retransmit::MtuProbe => {
                if let Some(departure) = self.probe_mtu(now, cwnd, rcv, place) {
                    return Trouble::Leaves(departure);
                }
            }
        }
        if let Some(forward) = self.forward(now, rcv, place) {
            if matches!(forward, Trouble::Waits) {
                self.note_recovery_limit(now);
            }
            return forward;
        }
        let window = self.window_in_trouble(cwnd);
        if self.board.lost() > 0 && self.pacer.is_active() && self.is_held_back(now, self.smss) {
            self.note_pacing_limit(now, self.board.in_flight());
            return Trouble::Waits;
        }
        let in_doubt = self.is_in_doubt();
        if (self.board.lost() > 0 || self.recovery.phase == Phase::Recovery)
            && !in_doubt
            && let Some(outgoing) = self.repair(now, window, rcv, place)
        {
            return Trouble::Leaves(outgoing);
        }
        if self.board.lost() > 0 && !in_doubt {
            // What is lost goes first.
            self.window.on_limit(self.nxt);
            self.note_recovery_limit(now);
            return Trouble::Waits;
        }
        let mut in_flight = self.board.in_flight();
        let (cwnd, mut window) = (window, window);
        let extends = self.recovery.dup_acks > 0 || self.remedy_extends();
        if extends && self.recovery.phase == Phase::Open {
            // RFC 3042; with SACK, RFC 6675 §5 (3) permits it by what the pipe has lost.
            if !self.agreed.guided {
                if self.settings.limited_transmit {
                    window += limited_transmit::allowance(&self.recovery, self.smss);
                }
            } else if !self.settings.limited_transmit {
                in_flight += self.board.sacked();
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
    fn repair(
        &mut self,
        now: Instant,
        window: u64,
        rcv: &mut Receiver<B>,
        place: &mut Segment<B>,
    ) -> Option<Departure> {
        let in_flight = self.board.in_flight();
        // RFC 6675 §5 (C): a full segment must fit.
        if in_flight > 0 && in_flight + u64::from(self.smss) > window {
            return None;
        }
        if self.recovery.phase != Phase::Recovery || !self.agreed.guided {
            let index = self.board.next_lost()?;
            // ns-2's window after a timeout begins at the first segment, whatever SACK says behind it (validation/data/ns2-sack-delay.toml).
            if self.settings.recovery_pace == RecoveryPace::CountedPipe {
                let lost = self.board.get(index)?.start;
                if lost.since(self.peer.una()) >= window {
                    return None;
                }
            }
            return Some(self.retransmit_lost(now, index, rcv, place));
        }
        // With RACK the last two rules of NextSeg have no place: time finds what is lost.
        let new_data = if self.settings.recovery_pace == RecoveryPace::CountedPipe {
            NewData::BehindHoles
        } else if self.agreed.racked() || self.agreed.aged() || self.sendable().is_some() {
            NewData::Available
        } else {
            NewData::Missing
        };
        match next_seg(&mut self.board, &self.recovery, self.peer.una(), new_data) {
            NextSeg::Lost(index) => Some(self.retransmit_lost(now, index, rcv, place)),
            NextSeg::Speculative(index) => {
                Some(self.retransmit(now, index, RetransmitCause::Speculative, rcv, place))
            }
            NextSeg::Rescue(index) => {
                self.recovery.rescue = self.recovery.recover;
                Some(self.retransmit(now, index, RetransmitCause::Rescue, rcv, place))
            }
            NextSeg::New | NextSeg::Nothing => None,
        }
    }

    /// Octets of the next new segment by the application's data, the peer's window and the send
    /// buffer; `None` if none should leave (RFC 9293 §3.8.6.2.1).
    #[inline]
    pub(super) fn sendable(&self) -> Option<u32> {
        let edge = self.edge();
        let end = self.queue.end();
        let permitted = edge.min(end).since(self.nxt);
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
        let idle = self.board.is_empty();
        let send = if all {
            // The last of the data; with Nagle only when nothing is outstanding, or with a FIN.
            !self.settings.nagle || idle || !self.queue.is_open()
        } else {
            // As much as the window takes: worth it for half of the largest window.
            idle && permitted >= self.peer.half_of_largest()
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
        rcv: &mut Receiver<B>,
        place: &mut Segment<B>,
    ) -> Option<Departure> {
        let Some(len) = self.sendable() else {
            return self.nothing_sendable(now, (window, in_flight), rcv, place);
        };
        if in_flight > 0 && in_flight + u64::from(len) > window {
            self.note_cwnd_limit(now);
            return None;
        }
        if self.pacer.is_active() && self.is_held_back(now, len) {
            self.note_pacing_limit(now, in_flight);
            return None;
        }
        // What has begun to leave as one is not parted.
        if self.pacer.sends_bursts()
            && self.pacer.begins_burst(now)
            && in_flight > 0
            && self.is_deferred(now, window, in_flight)
        {
            self.note_deferral(now, window, in_flight);
            return None;
        }
        // By the window as it is before a pause reduces it.
        self.longest_burst();
        if in_flight == 0 && self.limits.limit() == SendLimit::Application {
            self.note_idle(now);
        }
        if self.pacer.is_active() {
            let (pacer, basis) = self.pacing();
            pacer.pace(now, len, &basis);
        }
        let in_flight = in_flight + u64::from(len);
        let pushed = self.pacer.sends_bursts() && {
            let another = self.has_another(now, len, window, in_flight);
            if self.queue.chunk_left(&self.chunks()) > u64::from(len) {
                self.pacer.ends_burst(now, another)
            } else {
                self.ends_chunk(now, another)
            }
        };
        let outgoing = self.transmit_new(now, len, rcv, place);
        if pushed {
            place.flags |= Flags::PSH;
        }
        self.look_ahead(now, window, in_flight, place);
        Some(outgoing)
    }

    /// Whether what may leave waits for more to go with it
    /// ([`Segmentation`](crate::policy::Segmentation)).
    #[inline(never)]
    fn is_deferred(&mut self, now: Instant, window: u64, in_flight: u64) -> bool {
        let smss = u64::from(self.smss);
        let unsent = self.queue.unsent(self.nxt);
        let room = (window - in_flight).min(self.edge().since(self.nxt));
        let chunk = self.window.cwnd().get().min(u64::from(self.peer.wnd())) / SHARE_OF_WINDOW;
        self.settings.segmentation.is_tso()
            && self.recovery.phase.repairs_nothing()
            && room < unsent
            && (room < u64::from(SHORTEST_BURST) * smss
                || room < u64::from(self.longest_burst()) * smss)
            && room < chunk
            && room < self.queue.chunk_left(&self.chunks())
            && now.saturating_since(self.pacer.last_sent()) <= SOON
            && self.board.get(0).is_some_and(|first| {
                let srtt = self.rtt.srtt();
                let expected = first.sent_at.saturating_add(srtt);
                expected.saturating_since(now) <= SOON.min(srtt / 2)
            })
    }

    /// Whether `len` octets must wait for their time; if so, the deadline is set.
    fn is_held_back(&mut self, now: Instant, len: u32) -> bool {
        let (pacer, basis) = self.pacing();
        pacer.is_held_back(now, len, &basis)
    }

    /// The next segment is the last of its chunk. Returns whether its TSO burst ends with it, or has PSH. In a buffer in which the next
    /// chunk is complete a segment that would leave by itself takes segments of that chunk along, if there is room for them. Without
    /// room it has PSH if its chunk has.
    fn ends_chunk(&mut self, now: Instant, another: bool) -> bool {
        let has_next = self.queue.has_next_chunk();
        if has_next && another && self.pacer.begins_burst(now) {
            return self.pacer.ends_burst(now, true);
        }
        let ends = self.pacer.ends_burst(now, false);
        ends || has_next && self.queue.is_pushed(&self.chunks())
    }

    /// A probe of the path MTU leaves, if nothing is lost and the windows have room for it (RFC 4821 §7.4).
    fn probe_mtu(
        &mut self,
        now: Instant,
        cwnd: u64,
        rcv: &mut Receiver<B>,
        place: &mut Segment<B>,
    ) -> Option<Departure> {
        let quiet = self.recovery.phase == Phase::Open
            && self.board.is_plain()
            && self.recovery.dup_acks == 0;
        let size = self.mtu.probe_size(&ProbeRoom {
            smss: self.smss,
            cwnd,
            in_flight: self.board.in_flight(),
            unsent: self.edge().min(self.queue.end()).since(self.nxt),
        });
        let size = size.filter(|_| quiet)?;
        let start = self.nxt;
        let departure = self.transmit_new(now, size, rcv, place);
        self.mtu.on_probe_sent(start..start + u64::from(size));
        Some(departure)
    }

    /// Whether another full segment may leave right after one of `len` octets.
    fn has_another(&mut self, now: Instant, len: u32, window: u64, in_flight: u64) -> bool {
        let smss = u64::from(self.smss);
        let left = self.edge().min(self.queue.end()).since(self.nxt);
        left >= u64::from(len) + smss
            && in_flight + smss <= window
            && !(self.pacer.is_active() && self.is_held_back(now, self.smss))
    }

    /// Most often the window is full again after a segment, and the next call can be spared.
    #[inline]
    fn look_ahead(&mut self, now: Instant, window: u64, in_flight: u64, place: &mut Segment<B>) {
        let edge = self.edge();
        let left = edge.min(self.queue.end()).since(self.nxt);
        let full = in_flight + u64::from(self.smss) > window;
        if full && self.queue.unsent(self.nxt) < u64::from(self.smss) {
            // A window that the application has just filled is used, whether more waits or not.
            self.window.on_limit(self.nxt);
        }
        if left >= u64::from(self.smss) {
            if full {
                self.note_cwnd_limit(now);
                self.wake = false;
            }
        } else if left == 0 {
            if self.queue.end() <= self.nxt {
                // RFC 9293 §3.8.2: nothing else waits.
                place.flags |= Flags::PSH;
            }
            if !self.queue.is_open() {
                return;
            }
            self.note_tightest(now, window, in_flight);
            self.wake = false;
        }
    }

    /// Nothing can leave for want of data or of window: a FIN may, or the persist timer starts.
    #[inline(never)]
    fn nothing_sendable(
        &mut self,
        now: Instant,
        (window, in_flight): (u64, u64),
        rcv: &mut Receiver<B>,
        place: &mut Segment<B>,
    ) -> Option<Departure> {
        let end = self.queue.end();
        if self.nxt == end && self.queue.is_closing() {
            if self.nxt < self.peer.edge() {
                return Some(self.transmit_rarely(now, 0, rcv, place));
            }
        } else if self.nxt >= end {
            self.note_tightest(now, window, in_flight);
            return None;
        }
        self.note_tightest(now, window, in_flight);
        if self.board.is_empty() {
            self.start_persist_timer(now);
        }
        None
    }

    /// Data leaves after the application had nothing to send and everything was acknowledged. Waiting for an
    /// acknowledgment is no pause, even if it is that of all there is.
    fn note_idle(&mut self, now: Instant) {
        let idle = now.saturating_since(self.pacer.last_sent());
        let idle = Idle {
            now,
            idle,
            rto: self.rtt.rto(),
            rule: self.settings.idle_restart,
        };
        self.window.on_idle(&idle, self.rtt.srtt());
    }
}
