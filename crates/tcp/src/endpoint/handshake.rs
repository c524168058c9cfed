//! Opening a connection (RFC 9293 §3.5, §3.10.1, §3.10.7.2, §3.10.7.3).

use anabranch_core::{
    body::Body,
    packet::Ecn,
    units::{Duration, Instant},
};

use super::{Ending, Endpoint};
use crate::{
    clock::{age_tick, timestamp},
    ecn::{
        FIRST_COUNT, Feedback, on_syn, on_syn_ack,
        option::{OptionReader, OptionWriter},
    },
    refusal::Refusal,
    scoreboard::Delivered,
    settings::{EcnMode, Settings},
    state::{Event, State},
};
use anabranch_wire::{
    segment::{Flags, Options, Segment, TIMESTAMPS_SIZE},
    seq::Seq,
};

/// MSS of a peer that advertises none, over IPv4 and over IPv6 (RFC 9293 §3.7.1): the largest
/// packet that every host accepts, less the fixed headers.
pub(super) const DEFAULT_MSS: u16 = 576 - 40;
const DEFAULT_MSS_IPV6: u16 = 1280 - 60;
/// Smallest MSS accepted from a peer: a smaller one would be an attack, not a path.
pub(super) const LEAST_MSS: u32 = 64;

/// State of a SYN or SYN/ACK that was retransmitted.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Opening {
    /// Retransmissions.
    pub(super) again: u16,
    /// One of them followed a timeout.
    pub(super) timed_out: bool,
    /// Timestamp of the first transmission.
    pub(super) first: u32,
    /// Another is sent at the same time, one for the timer and one for the peer's SYN.
    pub(super) two: bool,
}

impl Opening {
    /// Whether `echo` is the timestamp of the first transmission: it arrived, so the retransmission
    /// was spurious (RFC 6928 §2).
    fn is_spurious(self, echo: Option<u32>) -> bool {
        echo == Some(self.first)
    }

    /// Whether the initial window is one segment (RFC 5681 §3.1; RFC 6928 §2: after more than one
    /// retransmission).
    fn is_lossy(self, echo: Option<u32>) -> bool {
        self.timed_out && self.again > 1 && !self.is_spurious(echo)
    }
}

impl<B: Body> Endpoint<B> {
    /// Opens the connection with a SYN. No effect unless the end is closed or listening.
    pub fn open(&mut self, now: Instant) {
        if !matches!(self.state, State::Closed | State::Listen) || self.cold.ended().is_some() {
            return;
        }
        self.transit(Event::ActiveOpen);
        self.want_syn();
        self.snd.wake = true;
        self.snd.restart_retransmission_timer(now);
    }

    /// Declares IPv6: a peer that advertises no MSS takes 1,220 octets instead of 536 (RFC 9293
    /// §3.7.1). [`Settings::mss`](crate::Settings::mss) is unchanged.
    #[must_use]
    pub fn over_ipv6(mut self) -> Self {
        self.cold.default_mss = DEFAULT_MSS_IPV6;
        self
    }

    pub(super) const fn want_syn(&mut self) {
        self.wanted.syn = true;
        self.wanted.urgent = true;
    }

    /// RFC 9293 §3.10.7.2
    pub(super) fn on_segment_in_listen(&mut self, now: Instant, segment: &Segment<B>, ecn: Ecn) {
        let flags = segment.flags;
        if flags.any(Flags::RST) {
            self.refuse(Refusal::BlindReset);
        } else if flags.any(Flags::ACK) {
            self.refuse(Refusal::UnsentAck);
            self.reset_against(segment);
        } else if flags.any(Flags::SYN) {
            self.accept_syn(now, segment, ecn);
            self.transit(Event::Syn);
            if self.judge_syn(segment) {
                self.begin_early(now, segment);
            }
            self.want_syn();
            self.snd.restart_retransmission_timer(now);
        } else {
            self.refuse(Refusal::Flags);
        }
    }

    /// RFC 9293 §3.10.7.3
    pub(super) fn on_segment_in_syn_sent(&mut self, now: Instant, segment: &Segment<B>, ecn: Ecn) {
        let flags = segment.flags;
        let ack = self.snd.peer.una().near(segment.ack);
        let acknowledges = flags.any(Flags::ACK);
        let acceptable = self.snd.peer.una() < ack && ack <= self.snd.nxt + self.carried();
        if acknowledges && !acceptable {
            self.refuse(Refusal::UnsentAck);
            self.reset_against(segment);
            return;
        }
        if acknowledges && !flags.any(Flags::RST) && self.echoes_wrongly(now, segment) {
            self.refuse(Refusal::OldTimestamp);
            self.reset_against(segment);
            return;
        }
        if flags.any(Flags::RST) {
            if acknowledges {
                self.end(Ending::Refused, now);
            } else {
                self.refuse(Refusal::BlindReset);
            }
            return;
        }
        if !flags.any(Flags::SYN) {
            self.refuse(Refusal::Flags);
            return;
        }
        self.accept_syn(now, segment, ecn);
        if acknowledges {
            self.transit(Event::SynAck);
            self.rcv.ack.at_once();
            self.wanted.ack =
                self.settings.segmentation.is_tso() && !self.acknowledges_with_data(ack);
            self.wanted.urgent |= self.wanted.ack;
            self.on_fast_syn_ack(segment, ack);
            self.established(now, ack, segment);
            if self.takes_syn_ack_data() {
                let seq = self.rcv.nxt;
                self.on_payload(now, segment, seq);
            }
        } else {
            // Simultaneous open.
            self.transit(Event::Syn);
            self.want_syn();
        }
    }

    /// Whether a SYN-ACK echoes a timestamp that none of our SYNs had, where that is checked.
    fn echoes_wrongly(&self, now: Instant, segment: &Segment<B>) -> bool {
        let Some(timestamps) = segment.timestamps else {
            return false;
        };
        if !self.settings.receiver.checks_echo_of_syn() || !self.settings.timestamps {
            return false;
        }
        let opening = self.opening();
        let sent = self.snd.recovery.board().get(0);
        let first = match sent {
            Some(_) if opening.again > 0 => opening.first,
            Some(record) => timestamp(record.sent_at),
            None => return false,
        };
        let age = timestamp(now).wrapping_sub(first);
        timestamps.echo != 0 && timestamps.echo.wrapping_sub(first) > age
    }

    /// Takes the initial number and the options of the peer's SYN.
    fn accept_syn(&mut self, now: Instant, segment: &Segment<B>, ecn: Ecn) {
        let irs = Seq::first(segment.seq);
        self.rcv.cold.irs = segment.seq;
        let offered = self.rcv.edge.since(self.rcv.nxt);
        self.rcv.nxt = irs + 1;
        self.rcv.acked = self.rcv.nxt;
        self.rcv.edge = self.rcv.nxt + offered;
        let (mss, window_scale, sack_permitted) = match segment.options {
            Options::Syn {
                mss,
                window_scale,
                sack_permitted,
                ..
            } => (mss, window_scale, sack_permitted),
            _ => (self.cold.default_mss, None, false),
        };
        self.rcv.agreed.sack = self.settings.sack && sack_permitted;
        let first = self.snd.queue.first_octet();
        let sack = self.rcv.agreed.sack;
        self.snd.recovery.agree(&self.settings, sack, first);
        let timestamps = self.settings.timestamps && segment.timestamps.is_some();
        self.snd.timestamps = timestamps;
        self.rcv.agreed.timestamps = timestamps;
        if let Some(timestamps) = segment.timestamps {
            self.rcv.ts_recent = timestamps.value;
            self.rcv.ts_recent_at = age_tick(now);
        }
        if let Some(shift) = window_scale
            && self.settings.window_scaling
        {
            // RFC 7323 §2.3: 14 at most.
            self.rcv.agreed.scaling = true;
            self.snd.peer.set_shift(shift.min(14));
            self.rcv.agreed.scale = self.settings.window_shift();
        }
        let options = if self.snd.timestamps {
            TIMESTAMPS_SIZE
        } else {
            0
        };
        let theirs = u32::from(mss).saturating_sub(options).max(LEAST_MSS);
        // The setting has room for timestamps, which payload takes without them (RFC 6691 §4).
        let ours = u32::from(self.settings.mss_option()).saturating_sub(options);
        let smss = ours.min(theirs);
        if smss != self.snd.smss {
            self.fit_control(smss);
        }
        self.snd.smss = smss;
        self.rcv.smss = smss;
        self.rcv.fit_first_window();
        self.agree_on_ecn(segment, ecn);
    }

    /// Makes the control for segments of `smss` octets: the initial window (RFC 6928 §2) and the
    /// least ssthresh (RFC 5681 §3.1 equation 4) are multiples of SMSS, which the peer's MSS limits
    /// (RFC 5681 §2).
    #[cold]
    fn fit_control(&mut self, smss: u32) {
        if let Some(config) = &self.cold.control {
            let settings = Settings {
                mss: smss,
                ..Settings::clone(&self.settings)
            };
            self.snd
                .window
                .replace_control(config.build(&settings.init()));
        }
    }

    /// Our SYN is acknowledged by `segment`.
    pub(super) fn established(&mut self, now: Instant, ack: Seq, segment: &Segment<B>) {
        self.cold.control = None;
        let delivered = self.snd.recovery.open(ack);
        self.wanted.syn = false;
        self.measure_handshake(now, segment, &delivered);
        let echo = self.echo(segment);
        if self.opening().is_lossy(echo) {
            self.snd.window.on_lost_syns();
        }
        self.snd.window.open(ack);
        // The window of a SYN is never scaled (RFC 7323 §2.2).
        let window = if segment.flags.any(Flags::SYN) {
            u32::from(segment.window)
        } else {
            self.snd.peer.scaled(segment.window)
        };
        let seq = self.rcv.nxt.near(segment.seq);
        self.snd.peer.open(window, seq, ack);
        self.snd.limits.open(now);
        self.snd.refill(now);
        self.rcv.start_tuning(now);
        self.snd.begin_mtu_search();
    }

    /// Notes a retransmission of the SYN or SYN/ACK.
    pub(super) fn note_retransmitted_syn(&mut self) {
        let last = self
            .snd
            .recovery
            .board()
            .get(0)
            .map(|record| record.sent_at);
        let opening = &mut self.cold.failure().opening;
        if opening.again == 0 {
            opening.first = last.map_or(0, timestamp);
        }
        opening.again = opening.again.saturating_add(1);
        self.snd.stats.retransmitted_packets += 1;
        self.snd.stats.retransmitted_syns += 1;
    }

    fn opening(&self) -> Opening {
        let failure = self.cold.failure.as_ref();
        failure.map_or_else(Opening::default, |failure| failure.opening)
    }

    /// The timestamp that a segment echoes.
    fn echo(&self, segment: &Segment<B>) -> Option<u32> {
        let timestamps = segment.timestamps.filter(|_| self.snd.timestamps);
        timestamps.map(|timestamps| timestamps.echo)
    }

    /// Measures the round-trip time of the handshake, or sets the initial timeout for data if it is
    /// unknown.
    fn measure_handshake(&mut self, now: Instant, segment: &Segment<B>, delivered: &Delivered) {
        let handshake = self.opening();
        if handshake.again == 0 {
            self.snd.sample_rtt(now, segment, delivered);
        } else if self.settings.timers.sample_after_syn_timeout() {
            match self.echo(segment) {
                Some(echo) => {
                    let ticks = timestamp(now).wrapping_sub(echo).max(1);
                    self.snd.take_rtt(Duration::from_millis(u64::from(ticks)));
                }
                None => self.snd.rtt.after_syn_timeout(),
            }
        } else if handshake.timed_out {
            self.snd.rtt.after_syn_timeout();
            self.snd.recovery.on_unmeasured_start();
        } else {
            self.snd.sample_rtt(now, segment, delivered);
        }
    }
}

impl<B: Body> Endpoint<B> {
    /// Negotiates ECN after the peer's SYN or SYN/ACK, which arrived with `ecn`.
    fn agree_on_ecn(&mut self, segment: &Segment<B>, ecn: Ecn) {
        let mode = self.settings.ecn;
        if mode == EcnMode::Off {
            return;
        }
        let answer = segment.flags.any(Flags::ACK);
        let feedback = if answer {
            on_syn_ack(mode, segment.flags)
        } else {
            on_syn(mode, segment.flags)
        };
        let counts = feedback == Feedback::Counter;
        let with_option = mode.counts_octets() && counts;
        let option = with_option.then(|| {
            let mut option = OptionReader::default();
            option.on_first(segment.options.accecn());
            option
        });
        self.snd.ecn.agree(feedback, option);
        let echoed = &mut self.rcv.cold.extras().ecn;
        echoed.feedback = feedback;
        echoed.answer_syn_ack = answer && counts;
        // RFC 9768 §3.2.2.2: a marked SYN/ACK counts, a marked SYN does not.
        echoed.received = FIRST_COUNT + u32::from(answer && ecn == Ecn::Ce);
        echoed.syn = ecn;
        echoed.refused = feedback == Feedback::None;
        echoed.option = with_option.then(OptionWriter::default);
        let agreed = feedback != Feedback::None;
        self.rcv.agreed.ecn = agreed;
        self.rcv.agreed.exact_ecn = matches!(feedback, Feedback::Exact | Feedback::Counter);
    }
}
