//! Transmission of data (RFC 9293 §3.8.6.2.1, RFC 5681 §3, RFC 6675 §5 (C)).

use anabranch_congestion::{Idle, Sent};
use anabranch_core::{
    body::Body,
    packet::Ecn,
    units::{Bytes, Duration, Instant},
};

use super::Sender;
use crate::{
    cause::RetransmitCause,
    departure::Departure,
    mtu_search::ProbeRoom,
    pacer::SHORTEST_BURST,
    receiver::Receiver,
    recovery::{Allowance, NewSegment, Pending, Repair, Retransmission, Timer},
    scoreboard::Marks,
    send_limit::SendLimit,
};
use anabranch_wire::segment::{Flags, Segment};

/// A burst is deferred only if it is shorter than this part of the window,
const SHARE_OF_WINDOW: u64 = 3;
/// if the last data was sent at most this long ago, and if the next acknowledgment is due within
/// this time.
const SOON: Duration = Duration::from_millis(1);

/// The next segment while losses or reordering are known.
enum Next {
    Leaves(Departure),
    NewData(Allowance),
    Nothing,
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
        let mut allowance = Allowance {
            window: self.window.available(),
            in_flight: self.recovery.in_flight(),
            held: false,
        };
        let plain = self.recovery.permits_send_fast_path();
        if !plain {
            match self.next(now, allowance.window, rcv, place) {
                Next::Leaves(departure) => return Some(departure),
                Next::NewData(permitted) => allowance = permitted,
                Next::Nothing => return None,
            }
        }
        let until = self.window.limited_until();
        let departure = self.new_data(now, allowance.window, allowance.in_flight, rcv, place);
        if !plain && self.limits.limit() == SendLimit::Cwnd {
            if allowance.held {
                // A remedy is the limit; cwnd grows only if it is the limit.
                self.window.on_limit(until);
                self.window.on_unfilled(self.peer.una(), self.nxt);
            }
            if allowance.held || !self.recovery.phase().repairs_nothing() {
                self.limits.set(now, SendLimit::Recovery);
            }
        }
        departure
    }

    /// Returns the next segment while losses or reordering are known.
    #[inline(never)]
    fn next(
        &mut self,
        now: Instant,
        cwnd: u64,
        rcv: &mut Receiver<B>,
        place: &mut Segment<B>,
    ) -> Next {
        if self.recovery.has_pending_retransmission() && self.is_retransmission_paced(now) {
            return Next::Nothing;
        }
        let due = match self.recovery.take_pending() {
            Pending::Nothing => None,
            Pending::First(cause) => self.recovery.first(cause),
            Pending::FirstLost => self.recovery.first_lost(),
            Pending::Probe if self.recovery.is_idle() => None,
            Pending::Probe => return Next::Leaves(self.probe_tail(now, rcv, place)),
            Pending::MtuProbe => match self.probe_mtu(now, cwnd, rcv, place) {
                Some(departure) => return Next::Leaves(departure),
                None => None,
            },
        };
        if let Some(due) = due {
            return Next::Leaves(self.retransmit(now, due, rcv, place));
        }
        let len = self.sendable();
        let repair = if let Some(repair) = self.recovery.forward(len.is_some()) {
            repair
        } else {
            let window = self.recovery.window(cwnd, self.smss);
            if self.recovery.board().lost() > 0 && self.is_retransmission_paced(now) {
                return Next::Nothing;
            }
            let repair = self.with_recovery(now, |recovery, scope| {
                recovery.next_retransmission(scope, window, len.is_some())
            });
            if repair == Repair::Wait {
                self.window.on_limit(self.nxt);
            }
            repair
        };
        match (repair, len) {
            (Repair::Retransmit(retransmission), _) => {
                Next::Leaves(self.retransmit(now, retransmission, rcv, place))
            }
            (Repair::NewData(allowance), _) => Next::NewData(allowance),
            (Repair::NewSegment, Some(len)) => {
                Next::Leaves(self.transmit_rarely(now, len, rcv, place))
            }
            (Repair::Wait | Repair::NewSegment, _) => {
                self.limits.set(now, SendLimit::Recovery);
                Next::Nothing
            }
        }
    }

    /// Whether pacing delays a retransmission.
    fn is_retransmission_paced(&mut self, now: Instant) -> bool {
        let held = self.pacer.is_active() && self.is_held_back(now, self.smss);
        if held {
            self.note_pacing_limit(now, self.recovery.in_flight());
        }
        held
    }

    /// Octets of the next new segment by the application's data, the peer's window and the send
    /// buffer; `None` if none should be sent (RFC 9293 §3.8.6.2.1).
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
        let idle = self.recovery.is_idle();
        let send = if all {
            // The last of the data; with Nagle only if no data is outstanding, or with a FIN.
            !self.queue.is_open() || !self.holds && (!self.nagle || idle || self.permits_small())
        } else if self.queue.is_record_end(self.nxt + permitted) {
            // The end of a record, with data after it.
            true
        } else {
            // A part of the data fills the window: sent if it is half of the largest window.
            idle && permitted >= self.peer.half_of_largest()
        };
        send.then(|| u32::try_from(permitted).unwrap_or(self.smss))
    }

    /// Minshall's variant of Nagle's algorithm, which Linux has: data waits only while a segment is
    /// outstanding that was not full (draft-minshall-nagle-01).
    fn permits_small(&self) -> bool {
        self.settings.segmentation.is_tso() && self.queue.small_end() <= self.peer.una()
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
            return self.nothing_sendable(now, window, in_flight, rcv, place);
        };
        if in_flight > 0 && in_flight + u64::from(len) > window {
            self.note_cwnd_limit(now);
            return None;
        }
        if self.pacer.is_active() && self.is_held_back(now, len) {
            self.note_pacing_limit(now, in_flight);
            return None;
        }
        // A burst that has begun is not split.
        if self.pacer.sends_bursts()
            && self.pacer.begins_burst(now)
            && in_flight > 0
            && self.is_deferred(now, window, in_flight)
        {
            self.note_deferral(now, window, in_flight);
            return None;
        }
        if self.pacer.sends_bursts() {
            // Measured by the window before a pause reduces it.
            self.longest_burst();
        }
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
            if self.queue.chunk_left(self.nxt, u64::from(self.smss)) > u64::from(len) {
                self.pacer.ends_burst(now, another)
            } else {
                self.ends_chunk(now, another)
            }
        };
        let outgoing = self.transmit_new(now, len, rcv, place);
        if pushed {
            place.flags |= Flags::PSH;
        }
        self.note_used_window(now, window, in_flight, place);
        Some(outgoing)
    }

    /// Whether a burst is deferred until it is longer
    /// ([`Segmentation`](crate::policy::Segmentation)).
    #[inline(never)]
    pub(crate) fn is_deferred(&mut self, now: Instant, window: u64, in_flight: u64) -> bool {
        let smss = u64::from(self.smss);
        let unsent = self.queue.unsent(self.nxt);
        let room = (window - in_flight).min(self.edge().since(self.nxt));
        let chunk = self.window.cwnd().get().min(u64::from(self.peer.wnd())) / SHARE_OF_WINDOW;
        // A chunk that ends with the FIN will not get longer.
        let left = self.queue.chunk_left(self.nxt, u64::from(self.smss));
        let is_complete = self.queue.is_closing() && unsent <= left;
        self.settings.segmentation.is_tso()
            && self.recovery.phase().repairs_nothing()
            && !is_complete
            && room < unsent
            && (room < u64::from(SHORTEST_BURST) * smss
                || room < u64::from(self.longest_burst()) * smss)
            && room < chunk
            && room < left
            && now.saturating_since(self.pacer.last_sent()) <= SOON
            && self.recovery.board().get(0).is_some_and(|first| {
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

    /// Called before the last segment of a chunk. Returns whether the TSO burst ends with this
    /// segment, or the segment has PSH. If the buffer holds the next chunk in full, a burst of this
    /// segment alone is extended by segments of that chunk, if the window has room for them.
    /// Without room the segment has PSH if its chunk has.
    fn ends_chunk(&mut self, now: Instant, another: bool) -> bool {
        let has_next = self.queue.has_next_chunk();
        if has_next && another && self.pacer.begins_burst(now) {
            return self.pacer.ends_burst(now, true);
        }
        let ends = self.pacer.ends_burst(now, false);
        ends || has_next && self.queue.is_pushed(self.nxt, u64::from(self.smss))
    }

    /// Sends a probe of the path MTU, if nothing is lost and the windows have room for it (RFC 4821
    /// §7.4).
    fn probe_mtu(
        &mut self,
        now: Instant,
        cwnd: u64,
        rcv: &mut Receiver<B>,
        place: &mut Segment<B>,
    ) -> Option<Departure> {
        let size = self.mtu.probe_size(&ProbeRoom {
            smss: self.smss,
            cwnd,
            in_flight: self.recovery.in_flight(),
            unsent: self.edge().min(self.queue.end()).since(self.nxt),
        });
        let size = size.filter(|_| self.recovery.is_undisturbed())?;
        let start = self.nxt;
        let departure = self.transmit_new(now, size, rcv, place);
        self.mtu.on_probe_sent(start..start + u64::from(size));
        Some(departure)
    }

    /// Whether another full segment may be sent right after one of `len` octets.
    fn has_another(&mut self, now: Instant, len: u32, window: u64, in_flight: u64) -> bool {
        let smss = u64::from(self.smss);
        let left = self.edge().min(self.queue.end()).since(self.nxt);
        left >= u64::from(len) + smss
            && in_flight + smss <= window
            && !(self.pacer.is_active() && self.is_held_back(now, self.smss))
    }

    /// Notes that the window is used up, as after most segments, which saves the next call.
    #[inline]
    fn note_used_window(
        &mut self,
        now: Instant,
        window: u64,
        in_flight: u64,
        place: &mut Segment<B>,
    ) {
        let edge = self.edge();
        let left = edge.min(self.queue.end()).since(self.nxt);
        let full = in_flight + u64::from(self.smss) > window;
        if full && self.queue.unsent(self.nxt) < u64::from(self.smss) {
            // A window that the application has just filled is used, even if no more data is ready.
            self.window.on_limit(self.nxt);
        }
        if left >= u64::from(self.smss) {
            if full {
                self.note_cwnd_limit(now);
                self.wake = false;
            }
        } else if left == 0 {
            if self.nagle && place.body.len() < self.smss {
                self.queue.note_small(self.nxt);
            }
            if self.queue.next_record(self.nxt) && self.queue.unsent(self.nxt) > 0 {
                return;
            }
            if self.queue.end() <= self.nxt {
                // RFC 9293 §3.8.2: no more data is ready.
                place.flags |= Flags::PSH;
            }
            if !self.queue.is_open() {
                return;
            }
            self.note_tightest(now, window, in_flight);
            self.wake = false;
        }
    }

    /// No data can be sent for lack of data or of window: sends a FIN if one is due, or starts the
    /// persist timer.
    #[inline(never)]
    fn nothing_sendable(
        &mut self,
        now: Instant,
        window: u64,
        in_flight: u64,
        rcv: &mut Receiver<B>,
        place: &mut Segment<B>,
    ) -> Option<Departure> {
        if self.queue.next_record(self.nxt)
            && let Some(len) = self.sendable()
            && (in_flight == 0 || in_flight + u64::from(len) <= window)
        {
            return Some(self.transmit_rarely(now, len, rcv, place));
        }
        let end = self.queue.end();
        if self.nxt == end && self.queue.is_closing() {
            // Measured of Linux 6.12 and 6.18: a lone FIN waits for cwnd as data does.
            let waits = self.settings.window_rules.fin_waits()
                && in_flight > 0
                && in_flight + u64::from(self.smss) > window;
            if self.nxt < self.peer.edge() && !waits {
                return Some(self.transmit_rarely(now, 0, rcv, place));
            }
        } else if self.nxt >= end {
            self.note_tightest(now, window, in_flight);
            return None;
        }
        self.note_tightest(now, window, in_flight);
        if self.recovery.is_idle() {
            self.start_persist_timer(now);
        }
        None
    }

    /// The application sends again after it had nothing to send and everything was acknowledged.
    /// Waiting for an acknowledgment is no pause, even if all data is outstanding.
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

    /// The window is closed and nothing is outstanding that could open it.
    pub(crate) fn start_persist_timer(&mut self, now: Instant) {
        if self.recovery.timer() == Timer::Off {
            let (rto, max_rto) = (self.rtt.rto(), self.settings.max_rto);
            let interval = self.peer.probe_interval(rto, max_rto);
            self.recovery.start_persist_timer(now, interval);
        }
    }
}

/// Segments of data.
impl<B: Body> Sender<B> {
    /// Sends a lone FIN, data that the override timeout permits, or new data in a recovery.
    #[inline(never)]
    pub(crate) fn transmit_rarely(
        &mut self,
        now: Instant,
        len: u32,
        rcv: &mut Receiver<B>,
        place: &mut Segment<B>,
    ) -> Departure {
        if self.nagle && len > 0 && len < self.smss {
            let end = self.nxt + u64::from(len);
            self.queue.note_small(end);
        }
        self.transmit_new(now, len, rcv, place)
    }

    #[inline]
    fn transmit_new(
        &mut self,
        now: Instant,
        len: u32,
        rcv: &mut Receiver<B>,
        place: &mut Segment<B>,
    ) -> Departure {
        let start = self.nxt;
        let body = self.queue.body(start, len);
        let mut flags = Flags::ACK;
        let mut marks = Marks::NONE;
        let mut taken = len;
        let end = start + u64::from(len);
        if self.queue.is_closing() && end == self.queue.end() && end < self.peer.edge() {
            flags |= Flags::FIN;
            marks = Marks::FIN;
            taken += 1;
            self.queue.end_stream();
        }
        // RFC 3168 §6.1.1, §6.1.2: new data is ECN-capable and carries CWR, a lone FIN is and does
        // neither. With DCTCP it becomes ECN-capable.
        let capable = self.ecn.is_capable() && len > 0;
        if capable {
            flags |= self.ecn.take_cwr();
        }
        self.nxt += u64::from(taken);
        if self.window.is_rated() {
            let board = self.recovery.board();
            self.window.stamp(now, board, board.len(), taken);
        }
        let segment = NewSegment {
            start,
            len,
            taken,
            marks,
        };
        self.recovery
            .on_sent(now, &segment, &self.rtt, &self.settings);
        if self.recovery.needs_all() {
            self.with_recovery(now, |recovery, scope| recovery.remedy_on_sent(scope));
        }
        if len > 0 {
            self.stats.sent_packets += 1;
            self.pacer.on_sent(now);
        }
        self.report_sent(now, len, false);
        let ecn = if capable { Ecn::Ect0 } else { Ecn::NotEct };
        rcv.outgoing(now, start, flags, body, ecn, place)
    }

    fn retransmit(
        &mut self,
        now: Instant,
        retransmission: Retransmission,
        rcv: &mut Receiver<B>,
        place: &mut Segment<B>,
    ) -> Departure {
        let Retransmission { index, cause } = retransmission;
        let record = self.recovery.record(index);
        if self.window.is_rated() {
            self.window
                .stamp(now, self.recovery.board(), index, record.len());
        }
        self.window.on_retransmission(&record);
        self.with_recovery(now, |recovery, scope| {
            recovery.on_retransmitted(scope, retransmission);
        });
        let (start, len) = (record.start(self.peer.una()), record.payload());
        let body = if len > 0 {
            self.queue.body(start, len)
        } else {
            B::default()
        };
        let mut flags = Flags::ACK;
        if record.is_fin() {
            flags |= Flags::FIN;
        }
        if len > 0 {
            self.stats.sent_packets += 1;
            self.stats.retransmitted_packets += 1;
        }
        self.pacer.end_burst();
        self.report_sent(now, len, true);
        if self.pacer.is_active() {
            let (pacer, basis) = self.pacing();
            pacer.pace_alone(now, len, &basis);
        }
        // RFC 3168 §6.1.5: a retransmission is not ECN-capable. With DCTCP or L4S it becomes so.
        let mut departure = rcv.outgoing(now, start, flags, body, Ecn::NotEct, place);
        departure.retransmission = Some(cause);
        departure
    }

    #[inline]
    fn report_sent(&mut self, now: Instant, len: u32, retransmission: bool) {
        self.window.on_sent(&Sent {
            now,
            bytes: Bytes::new(u64::from(len)),
            in_flight: Bytes::new(self.recovery.in_flight()),
            retransmission,
            srtt: self.rtt.srtt(),
        });
    }

    /// Sends a tail loss probe (RFC 8985 §7.3).
    fn probe_tail(
        &mut self,
        now: Instant,
        rcv: &mut Receiver<B>,
        place: &mut Segment<B>,
    ) -> Departure {
        self.stats.probes = self.stats.probes.wrapping_add(1);
        let new = self.sendable();
        let departure = if let Some(len) = new {
            self.transmit_rarely(now, len, rcv, place)
        } else {
            let last = self.recovery.last(RetransmitCause::Tlp);
            self.retransmit(now, last, rcv, place)
        };
        self.with_recovery(now, |recovery, scope| {
            recovery.on_probe_sent(scope, new.is_none());
        });
        departure
    }
}
