//! Control segments: SYN, RST, window probes.

use anabranch_core::{body::Body, packet::Ecn, units::Instant};

use super::Endpoint;
use crate::{
    ack::AckPolicy, cause::RetransmitCause, clock::timestamp, departure::Departure,
    settings::DelayedAck, state::State,
};
use anabranch_wire::{
    segment::{Flags, Options, Segment, Timestamps},
    seq::Seq,
};

/// Bytes that the other options of a SYN leave of the 40, at worst.
const SYN_ACCECN_ROOM: u32 = 16;

impl<B: Body> Endpoint<B> {
    /// Returns a SYN, RST or probe.
    #[cold]
    pub(super) fn control_segment(
        &mut self,
        now: Instant,
        place: &mut Segment<B>,
    ) -> Option<Departure> {
        self.wanted.urgent = false;
        let failure = self.cold.failure.as_mut();
        if let Some((seq, ack, stamped)) = failure.and_then(|failure| failure.reset.take()) {
            self.wanted.urgent = self.wanted.another();
            let mut flags = Flags::RST;
            if ack.is_some() {
                flags |= Flags::ACK;
            }
            *place = Segment {
                seq,
                ack: ack.unwrap_or(0),
                window: 0,
                flags,
                // Linux and BSD send them with the acknowledgment (RFC 7323 §3.2 permits it).
                timestamps: stamped.then(|| Timestamps {
                    value: timestamp(now),
                    echo: self.rcv.ts_recent,
                }),
                options: Options::None,
                body: B::default(),
            };
            let size = place.ip_size();
            self.rcv.stats.sent_acks += 1;
            self.rcv.stats.sent_bytes += u64::from(size);
            return Some(Departure {
                size,
                ecn: self.rcv.control_ecn(),
                retransmission: None,
            });
        }
        if self.wanted.syn {
            let failure = self.cold.failure.as_mut();
            self.wanted.syn =
                failure.is_some_and(|failure| std::mem::take(&mut failure.opening.two));
            self.wanted.urgent = self.wanted.another();
            return Some(self.syn(now, place));
        }
        if self.wanted.probe {
            self.wanted.probe = false;
            if let Some(outgoing) = self.probe(now, place) {
                return Some(outgoing);
            }
        }
        if std::mem::take(&mut self.wanted.ack) && self.rcv.ack.due() {
            return Some(self.rcv.acknowledgment(now, self.snd.nxt, place));
        }
        if let Some(extras) = &mut self.rcv.cold.extras
            && let Some((number, echo)) = extras.ecn.early.take()
        {
            return Some(self.early_acknowledgment(now, number, echo, place));
        }
        if std::mem::take(&mut self.wanted.answer) {
            self.snd.wake = false;
            if self.rcv.ack.due() {
                return Some(self.rcv.acknowledgment(now, self.snd.nxt, place));
            }
        }
        self.next_outgoing(now, place)
    }

    /// Acknowledges the data before `number` only (RFC 8257 §3.2).
    fn early_acknowledgment(
        &mut self,
        now: Instant,
        number: Seq,
        echo: bool,
        place: &mut Segment<B>,
    ) -> Departure {
        self.rcv.stats.sent_acks += 1;
        let owed = std::mem::replace(&mut self.rcv.ack, AckPolicy::new(DelayedAck::Off));
        let departure = self.rcv.outgoing(
            now,
            self.snd.nxt,
            Flags::ACK,
            B::default(),
            Ecn::NotEct,
            place,
        );
        // The segment that changed the echo is not acknowledged yet.
        self.rcv.ack = owed;
        place.ack = number.wire();
        place.flags = if echo {
            Flags::ACK | Flags::ECE
        } else {
            Flags::ACK
        };
        departure
    }

    fn syn(&mut self, now: Instant, place: &mut Segment<B>) -> Departure {
        let answers = self.state == State::SynReceived;
        let early = self.is_early();
        let again = if early {
            self.snd.recovery.retries.expiries() > 0
        } else {
            !self.snd.recovery.is_idle()
        };
        let retransmission = again.then_some(RetransmitCause::Rto);
        let additions = self.syn_additions(now, again);
        if retransmission.is_some() {
            // In a simultaneous open the SYN/ACK is the first of its kind.
            if self.cold.passive || self.snd.recovery.retries.expiries() > 0 {
                self.note_retransmitted_syn();
            }
            if !early {
                self.snd.recovery.on_syn_sent(now, self.snd.nxt);
            }
        } else if !early {
            self.snd.recovery.on_syn_sent(now, self.snd.nxt);
            self.snd.nxt += 1;
        }
        let mut flags = Flags::SYN;
        if answers {
            flags |= Flags::ACK;
        }
        flags |= self
            .rcv
            .ecn_syn_flags(answers, self.snd.recovery.retries.expiries());
        // RFC 9768 §3.2.3.2: in the first answer only.
        let accecn = if answers
            && self.rcv.agreed.exact_ecn
            && retransmission.is_none()
            && additions.option.is_none()
        {
            self.rcv.take_accecn(SYN_ACCECN_ROOM)
        } else {
            None
        };
        let s = &self.settings;
        // A SYN/ACK offers only options that the SYN offered (RFC 7323 §2.2, RFC 2018 §2).
        let offers = |on: bool, agreed: bool| on && (!answers || agreed);
        let options = Options::Syn {
            mss: s.mss_option(),
            window_scale: offers(s.window_scaling, self.rcv.agreed.scaling)
                .then(|| s.window_shift()),
            sack_permitted: offers(s.sack, self.rcv.agreed.sack),
            accecn,
            fast_open: additions.option,
        };
        let timestamps = offers(s.timestamps, self.snd.timestamps);
        let segment = if answers {
            u64::from(self.rcv.smss)
        } else {
            u64::from(s.mss_option())
        };
        let window = s.receive_window_of_syn(segment);
        self.rcv.edge = self.rcv.edge.max(self.rcv.nxt + window);
        *place = Segment {
            seq: (self.snd.queue.first_octet() - 1).wire(),
            ack: if answers { self.rcv.nxt.wire() } else { 0 },
            window: u16::try_from(window).unwrap_or(u16::MAX),
            flags,
            timestamps: timestamps.then(|| Timestamps {
                value: timestamp(now),
                echo: if answers { self.rcv.ts_recent } else { 0 },
            }),
            options,
            body: additions.body,
        };
        self.rcv.ack.sent();
        let size = place.ip_size();
        self.rcv.stats.sent_acks += 1;
        self.rcv.stats.sent_bytes += u64::from(size);
        Departure {
            size,
            ecn: self.rcv.control_ecn(),
            retransmission,
        }
    }

    /// Returns a probe of a closed window, or data too short for a segment otherwise (the override
    /// timeout of RFC 9293 §3.8.6.2.1).
    fn probe(&mut self, now: Instant, place: &mut Segment<B>) -> Option<Departure> {
        self.snd.recovery.stop_timer();
        if !self.state.may_transmit() || !self.snd.recovery.is_idle() {
            return None;
        }
        let edge = self.snd.peer.edge().min(self.snd.queue.end());
        let permitted = edge.since(self.snd.nxt).min(u64::from(self.snd.smss));
        if permitted > 0 {
            self.snd.peer.on_probe_answered();
            let len = u32::try_from(permitted).unwrap_or(self.snd.smss);
            return Some(self.snd.transmit_rarely(now, len, &mut self.rcv, place));
        }
        self.snd.peer.on_probe_sent();
        self.snd.start_persist_timer(now);
        self.snd.stats.window_probes += 1;
        self.rcv.stats.sent_acks += 1;
        Some(self.rcv.outgoing(
            now,
            self.snd.peer.una() - 1,
            Flags::ACK,
            B::default(),
            Ecn::NotEct,
            place,
        ))
    }
}
