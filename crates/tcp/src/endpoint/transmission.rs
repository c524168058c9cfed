//! Segments of data on their way out, for the first time and again.

use anabranch_core::{
    body::Body,
    packet::Ecn,
    units::{Bytes, Instant},
};

use super::{Departure, Endpoint, timers::Timer};
use crate::{
    cause::RetransmitCause,
    policy::RecoveryPace,
    recovery::Phase,
    scoreboard::Marks,
    segment::{Flags, Segment},
    state::Event,
};
use anabranch_congestion::{CongestionControl, Sent};

impl<B: Body> Endpoint<B> {
    /// A lone FIN, or what the override timeout lets leave.
    #[inline(never)]
    pub(super) fn transmit_rarely(
        &mut self,
        now: Instant,
        len: u32,
        place: &mut Segment<B>,
    ) -> Departure {
        self.transmit_new(now, len, place)
    }

    #[inline]
    pub(super) fn transmit_new(
        &mut self,
        now: Instant,
        len: u32,
        place: &mut Segment<B>,
    ) -> Departure {
        let body = self.snd.buffer.body(self.snd.nxt, len);
        let start = self.snd.nxt;
        let mut flags = Flags::ACK;
        let mut marks = Marks::NONE;
        let mut taken = len;
        let behind = start + u64::from(len);
        if self.wanted.fin && behind == self.snd.buffer.end() && behind < self.snd.edge {
            flags |= Flags::FIN;
            marks = Marks::FIN;
            taken += 1;
            self.transit(Event::SendFin);
        }
        // RFC 3168 §6.1.1, §6.1.2: new data is ECN-capable and carries CWR, a lone FIN is and does neither. With DCTCP it becomes
        // ECN-capable.
        let capable = self.agreed.ecn && len > 0;
        if capable {
            flags |= self.take_cwr();
        }
        self.snd.nxt += u64::from(taken);
        if self.snd.rated {
            self.stamp(now, self.snd.board.len(), taken);
        }
        self.snd.board.sent(start, taken, marks, now);
        if self.snd.recovery.dup_acks > 0 && self.snd.recovery.phase == Phase::Open {
            self.snd.recovery.limited += taken;
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
        if self.snd.recovery.phase.reduces() {
            self.note_sent_in_recovery(len);
        }
        if len > 0 {
            self.stats.sent_packets += 1;
        }
        self.snd.control.on_sent(&Sent {
            now,
            bytes: Bytes::new(u64::from(len)),
            in_flight: Bytes::new(self.snd.board.in_flight()),
            retransmission: false,
            srtt: self.snd.rtt.srtt(),
        });
        let ecn = if capable { Ecn::Ect0 } else { Ecn::NotEct };
        self.outgoing(now, start, flags, body, ecn, place)
    }

    /// The record at `index`, marked lost, is retransmitted.
    pub(super) fn retransmit_lost(
        &mut self,
        now: Instant,
        index: usize,
        place: &mut Segment<B>,
    ) -> Departure {
        let cause = self.snd.board.get(index).map(|record| record.lost_by);
        self.retransmit(now, index, cause.expect("the scoreboard named it"), place)
    }

    /// The record at `index` is retransmitted.
    pub(super) fn retransmit(
        &mut self,
        now: Instant,
        index: usize,
        cause: RetransmitCause,
        place: &mut Segment<B>,
    ) -> Departure {
        let record = *self.snd.board.get(index).expect("the scoreboard named it");
        let twice = self.agreed.guided;
        if self.snd.rated {
            self.stamp(now, index, record.len);
        }
        if self.snd.validating {
            self.validate_retransmission(&record);
        }
        let timed = self.snd.timed || self.agreed.racked() || self.agreed.aged();
        self.snd.board.resent(index, now, twice, timed);
        self.note_retransmission(now, record.len, cause);
        self.tell_remedy_of_retransmission(&record, cause);
        let len = record.payload();
        let body = if len > 0 {
            self.snd.buffer.body(record.start, len)
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
        // this one where none runs; Linux is measured to count from the first segment's retransmission whatever calls for it.
        let first = index == 0 && self.agreed.racked();
        let restarts = first
            || self.settings.recovery_pace == RecoveryPace::CountedPipe
                && self.snd.recovery.phase == Phase::Recovery;
        if first && self.timer == Timer::Reorder {
            self.put_off_timeout(now);
        } else if restarts
            || !matches!(
                self.timer,
                Timer::Retransmit | Timer::Reorder | Timer::Probe
            )
        {
            self.restart_retransmission_timer(now);
        }
        // What leaves with it is handed over by itself.
        self.snd.train = 0;
        self.snd.control.on_sent(&Sent {
            now,
            bytes: Bytes::new(u64::from(len)),
            in_flight: Bytes::new(self.snd.board.in_flight()),
            retransmission: true,
            srtt: self.snd.rtt.srtt(),
        });
        if self.snd.paced {
            self.pace(now, len);
        }
        // RFC 3168 §6.1.5: a retransmission is not ECN-capable. With DCTCP it becomes so.
        let mut departure = self.outgoing(now, record.start, flags, body, Ecn::NotEct, place);
        departure.retransmission = Some(cause);
        departure
    }

    /// The segment of the record at `index` leaves: what a delivery-rate sample needs of it.
    #[inline(never)]
    pub(super) fn stamp(&mut self, now: Instant, index: usize, len: u32) {
        let idle = self.snd.board.is_empty();
        let number = self.snd.board.gone() + index as u64;
        let in_flight = self.snd.board.in_flight() + u64::from(len);
        self.cold
            .extras()
            .rate
            .on_sent(number, now, idle, in_flight);
    }
}
