//! Segments of data on their way out, for the first time and again.

use anabranch_core::{
    body::Body,
    packet::Ecn,
    units::{Bytes, Instant},
};

use super::{Sender, timers::Timer};
use crate::{
    cause::RetransmitCause,
    departure::Departure,
    policy::RecoveryPace,
    receiver::Receiver,
    recovery::Phase,
    scoreboard::Marks,
    segment::{Flags, Segment},
};
use anabranch_congestion::Sent;

impl<B: Body> Sender<B> {
    /// A lone FIN, or what the override timeout lets leave.
    #[inline(never)]
    pub(crate) fn transmit_rarely(
        &mut self,
        now: Instant,
        len: u32,
        rcv: &mut Receiver<B>,
        place: &mut Segment<B>,
    ) -> Departure {
        self.transmit_new(now, len, rcv, place)
    }

    #[inline]
    pub(super) fn transmit_new(
        &mut self,
        now: Instant,
        len: u32,
        rcv: &mut Receiver<B>,
        place: &mut Segment<B>,
    ) -> Departure {
        let body = self.queue.body(self.nxt, len);
        let start = self.nxt;
        let mut flags = Flags::ACK;
        let mut marks = Marks::NONE;
        let mut taken = len;
        let behind = start + u64::from(len);
        if self.queue.is_closing() && behind == self.queue.end() && behind < self.peer.edge() {
            flags |= Flags::FIN;
            marks = Marks::FIN;
            taken += 1;
            self.queue.end_stream();
        }
        // RFC 3168 §6.1.1, §6.1.2: new data is ECN-capable and carries CWR, a lone FIN is and does neither. With DCTCP it becomes
        // ECN-capable.
        let capable = self.ecn.is_capable() && len > 0;
        if capable {
            flags |= self.ecn.take_cwr();
        }
        self.nxt += u64::from(taken);
        if self.window.is_rated() {
            let index = self.board.len();
            self.window.stamp(now, &self.board, index, taken);
        }
        self.board.sent(start, taken, marks, now);
        if self.recovery.dup_acks > 0 && self.recovery.phase == Phase::Open {
            self.recovery.limited += taken;
        }
        if self.agreed.attended() {
            self.tell_remedy_of_sending(now);
        }
        if self.agreed.tlp {
            self.after_sending(now);
        } else if !matches!(self.timer, Timer::Retransmit | Timer::Reorder) {
            // RFC 6298 (5.1)
            self.restart_retransmission_timer(now);
        }
        if self.recovery.phase.reduces() {
            self.note_sent_in_recovery(len);
        }
        if len > 0 {
            self.stats.sent_packets += 1;
            self.pacer.on_sent(now);
        }
        self.window.on_sent(&Sent {
            now,
            bytes: Bytes::new(u64::from(len)),
            in_flight: Bytes::new(self.board.in_flight()),
            retransmission: false,
            srtt: self.rtt.srtt(),
        });
        let ecn = if capable { Ecn::Ect0 } else { Ecn::NotEct };
        rcv.outgoing(now, start, flags, body, ecn, place)
    }

    /// The record at `index`, marked lost, is retransmitted.
    pub(super) fn retransmit_lost(
        &mut self,
        now: Instant,
        index: usize,
        rcv: &mut Receiver<B>,
        place: &mut Segment<B>,
    ) -> Departure {
        let cause = self.board.get(index).map(|record| record.lost_by);
        self.retransmit(
            now,
            index,
            cause.expect("the scoreboard named it"),
            rcv,
            place,
        )
    }

    /// The record at `index` is retransmitted.
    pub(super) fn retransmit(
        &mut self,
        now: Instant,
        index: usize,
        cause: RetransmitCause,
        rcv: &mut Receiver<B>,
        place: &mut Segment<B>,
    ) -> Departure {
        let record = *self.board.get(index).expect("the scoreboard named it");
        let twice = self.agreed.guided;
        if self.window.is_rated() {
            self.window.stamp(now, &self.board, index, record.len);
        }
        self.window.on_retransmission(&record);
        let timed = self.timed || self.agreed.racked() || self.agreed.aged();
        self.board.resent(index, now, twice, timed);
        self.note_retransmission(now, record.len, cause);
        self.tell_remedy_of_retransmission(&record, cause);
        let len = record.payload();
        let body = if len > 0 {
            self.queue.body(record.start, len)
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
        // RFC 6675 §6 leaves that open. With RACK the timers exclude each other (RFC 8985 §8), and RFC 6298 (5.1) starts
        // this one where none runs; Linux is measured to count from the first segment's retransmission whatever calls for it,
        // ns-2 in a recovery. Counted from each retransmission the timeout of a first one that is lost would never come as
        // long as later segments are.
        let recovers = self.settings.recovery_pace == RecoveryPace::CountedPipe
            && self.recovery.phase == Phase::Recovery;
        let first = index == 0 && (self.agreed.racked() || recovers);
        if first && self.timer == Timer::Reorder {
            self.put_off_timeout(now);
        } else if first
            || !matches!(
                self.timer,
                Timer::Retransmit | Timer::Reorder | Timer::Probe
            )
        {
            self.restart_retransmission_timer(now);
        }
        self.pacer.end_burst();
        self.window.on_sent(&Sent {
            now,
            bytes: Bytes::new(u64::from(len)),
            in_flight: Bytes::new(self.board.in_flight()),
            retransmission: true,
            srtt: self.rtt.srtt(),
        });
        if self.pacer.is_active() {
            let (pacer, basis) = self.pacing();
            pacer.pace_alone(now, len, &basis);
        }
        // RFC 3168 §6.1.5: a retransmission is not ECN-capable. With DCTCP or L4S it becomes so.
        let mut departure = rcv.outgoing(now, record.start, flags, body, Ecn::NotEct, place);
        departure.retransmission = Some(cause);
        departure
    }
}
