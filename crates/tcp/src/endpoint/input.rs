//! Arrival of segments (RFC 9293 §3.10.7).

use anabranch_core::{
    body::Body,
    packet::Ecn,
    units::{Duration, Instant},
};

use super::{Ending, Endpoint};
use crate::{
    clock::{OUTDATED, age_tick},
    recovery::Timer,
    refusal::Refusal,
    state::{Event, State},
};
use anabranch_wire::{
    segment::{Flags, Segment},
    seq::Seq,
};

/// Bits that a segment of the steady state may not have.
const UNUSUAL: Flags = Flags(
    Flags::FIN.0
        | Flags::SYN.0
        | Flags::RST.0
        | Flags::URG.0
        | Flags::ECE.0
        | Flags::CWR.0
        | Flags::AE.0,
);

impl<B: Body> Endpoint<B> {
    /// Processes a segment that arrived in an IP packet with `ecn`.
    #[expect(
        clippy::inline_always,
        reason = "measured: one caller has nearly all of the segments"
    )]
    #[inline(always)]
    pub fn on_segment(&mut self, now: Instant, segment: &Segment<B>, ecn: Ecn) {
        self.rcv.stats.received_packets += 1;
        self.snd.wake = true;
        if self.is_usual(segment) && ecn != Ecn::Ce {
            self.on_usual_segment(now, segment);
        } else {
            self.on_other_segment(now, segment, ecn);
        }
    }

    /// Processes a segment outside the fast path.
    #[inline(never)]
    fn on_other_segment(&mut self, now: Instant, segment: &Segment<B>, ecn: Ecn) {
        if ecn == Ecn::Ce {
            self.rcv.stats.ce_segments += 1;
        }
        match self.state {
            State::Closed => self.reset_against(segment),
            State::Listen => self.on_segment_in_listen(now, segment, ecn),
            State::SynSent => self.on_segment_in_syn_sent(now, segment, ecn),
            _ => self.on_any_segment(now, segment, ecn),
        }
    }

    /// Whether header prediction applies (RFC 7323, appendix): the next expected segment of an open
    /// connection, or one without payload. The fast path skips only checks that this function
    /// makes.
    #[inline]
    pub(super) fn is_usual(&self, segment: &Segment<B>) -> bool {
        self.state == State::Established
            && segment.flags.any(Flags::ACK)
            && !segment.flags.any(UNUSUAL)
            && segment.seq == self.rcv.nxt.wire()
            && !self.rcv.gaps
            && !self.rcv.agreed.exact_ecn
            && self.has_usual_timestamp(segment)
            && u64::from(segment.body.len()) <= self.rcv.edge.since(self.rcv.nxt)
    }

    /// Whether the segment has a timestamp no older than the last one, or none as agreed.
    #[inline]
    pub(super) fn has_usual_timestamp(&self, segment: &Segment<B>) -> bool {
        match segment.timestamps {
            Some(timestamps) => {
                let newer = timestamps.value.wrapping_sub(self.rcv.ts_recent);
                self.snd.timestamps && newer.cast_signed() >= 0
            }
            None => !self.snd.timestamps,
        }
    }

    #[expect(clippy::inline_always, reason = "measured: see `on_segment`")]
    #[inline(always)]
    pub(super) fn on_usual_segment(&mut self, now: Instant, segment: &Segment<B>) {
        let len = segment.body.len();
        // A segment with payload that acknowledges nothing new is no duplicate acknowledgment; only
        // its window could be new.
        let plain = len > 0
            && segment.ack == self.snd.peer.una().wire()
            && self.snd.peer.scaled(segment.window) == self.snd.peer.wnd()
            && segment.options.sack_blocks().is_empty();
        if !plain && !self.on_acknowledgment(now, segment) {
            return;
        }
        if let Some(timestamps) = segment.timestamps
            && self.rcv.nxt <= self.rcv.acked
        {
            self.rcv.ts_recent = timestamps.value;
            self.rcv.ts_recent_at = age_tick(now);
        }
        if len > 0 {
            self.rcv.nxt += u64::from(len);
            self.rcv.deliver(&segment.body);
            if self.rcv.agreed.tuned {
                self.rcv.tune_in_order(now, segment);
            }
            self.rcv.ack_in_order(now, &self.snd.rtt);
            if segment.flags.any(Flags::PSH) || len < self.snd.smss {
                self.rcv.on_push();
            }
        }
    }

    /// RFC 9293 §3.10.7.4, in its order.
    fn on_any_segment(&mut self, now: Instant, segment: &Segment<B>, ecn: Ecn) {
        let flags = segment.flags;
        let seq = self.rcv.nxt.near(segment.seq);
        if !self.passes_timestamps(now, segment, seq) {
            return;
        }
        if !self.is_acceptable(segment, seq) {
            self.on_unacceptable(now, segment, seq);
            return;
        }
        if flags.any(Flags::RST) {
            self.on_reset(now, seq);
            return;
        }
        if flags.any(Flags::SYN) {
            if self.state == State::SynReceived
                && self.is_own_syn(segment, seq)
                && !flags.any(Flags::ACK)
            {
                self.on_repeated_syn(now, segment, ecn);
                return;
            }
            if !(self.state == State::SynReceived
                && flags.any(Flags::ACK)
                && seq + 1 == self.rcv.nxt)
            {
                // RFC 5961 §4.2: challenge.
                if seq + 1 != self.rcv.nxt {
                    self.refuse(Refusal::BlindSyn);
                }
                self.challenge(now);
                return;
            }
        }
        if !flags.any(Flags::ACK) {
            self.refuse(Refusal::Flags);
            return;
        }
        let ack = self.snd.peer.una().near(segment.ack);
        // A segment that is not accepted must have no other effect: neither its timestamp nor its
        // count of marks is used.
        if self.state == State::SynReceived {
            let least = self.snd.queue.first_octet();
            if !(least <= ack && ack <= self.snd.nxt + self.carried()) {
                self.refuse(Refusal::UnsentAck);
                self.reset_against(segment);
                return;
            }
        } else if !self.snd.peer.may_acknowledge(ack, self.snd.nxt) {
            self.on_acknowledgment(now, segment);
            return;
        }
        if let Some(timestamps) = segment.timestamps
            && self.snd.timestamps
            && seq <= self.rcv.acked
            && timestamps
                .value
                .wrapping_sub(self.rcv.ts_recent)
                .cast_signed()
                >= 0
        {
            // RFC 7323 §4.3
            self.rcv.ts_recent = timestamps.value;
            self.rcv.ts_recent_at = age_tick(now);
        }
        if self.rcv.agreed.exact_ecn && self.state != State::SynReceived {
            self.snd.read_ace(segment, ack);
        }
        if self.state == State::SynReceived {
            self.transit(Event::SynAcknowledged);
            if flags.any(Flags::SYN) {
                // Simultaneous open; the SYN itself was processed before.
                self.rcv.ack.at_once();
            }
            if self.snd.ecn.on_handshake(segment) {
                self.snd.read_ace(segment, self.snd.peer.una());
            }
            if self.began_early() {
                self.confirm_early(now);
                if !self.on_acknowledgment(now, segment) {
                    return;
                }
            } else {
                self.on_fast_syn_ack(segment, ack);
                self.established(now, ack, segment);
            }
        } else if !self.on_acknowledgment(now, segment) {
            return;
        }
        self.wanted.urgent |= self.rcv.on_ecn(flags, ecn, segment.body.len());
        self.on_payload(now, segment, seq);
    }

    /// Processes the peer's SYN received again before ours is acknowledged: ours was lost, or is
    /// late.
    fn on_repeated_syn(&mut self, now: Instant, segment: &Segment<B>, ecn: Ecn) {
        let due =
            self.snd.recovery.timer() == Timer::Retransmit && self.snd.recovery.deadline() <= now;
        if due && self.cold.passive && !self.is_early() && self.has_no_retry_left() {
            // A listener that gives up at this moment listens again, and this is its next SYN.
            self.on_retransmission_timeout(now);
            self.on_segment_in_listen(now, segment, ecn);
            return;
        }
        if self.settings.receiver.limits_answers() {
            if !self.may_challenge(now) {
                return;
            }
            // Measured: a timer that expires at the arrival is handled first, and the next timeout
            // counts from this SYN/ACK.
            if due {
                self.on_retransmission_timeout(now);
                if self.state != State::SynReceived {
                    return;
                }
                self.cold.failure().opening.two = true;
            }
            self.snd.restart_retransmission_timer(now);
        }
        self.want_syn();
    }

    /// PAWS (RFC 7323 §5.3 R1).
    fn passes_timestamps(&mut self, now: Instant, segment: &Segment<B>, seq: Seq) -> bool {
        if !self.snd.timestamps || segment.flags.any(Flags::RST) {
            return true;
        }
        match segment.timestamps {
            Some(timestamps) if self.rcv.is_old(timestamps.value) => {
                if age_tick(now).saturating_sub(self.rcv.ts_recent_at) > OUTDATED {
                    // RFC 7323 §5.5: TS.Recent is outdated, and this timestamp replaces it.
                    self.rcv.ts_recent = timestamps.value;
                    self.rcv.ts_recent_at = age_tick(now);
                    return true;
                }
                if self.is_overtaken(segment, timestamps.value) {
                    return true;
                }
                self.refuse(Refusal::OldTimestamp);
                self.rcv.note_duplicate(segment, seq);
                if segment.flags.any(Flags::SYN) {
                    self.challenge(now);
                } else {
                    self.answer_invalid(now, segment);
                }
                // A dropped segment releases no data: a deferred burst stays deferred.
                self.wanted.answer = self.rcv.ack.due();
                self.wanted.urgent |= self.wanted.answer;
                self.snd.wake = self.wanted.urgent;
                false
            }
            Some(_) => true,
            None if self.settings.receiver.accepts_missing_timestamp() => true,
            None => {
                // RFC 7323 §3.2: drop silently.
                self.refuse(Refusal::MissingTimestamp);
                false
            }
        }
    }

    /// Whether the segment repeats the last acknowledgment, opens no window and was only overtaken
    /// in flight
    /// ([`Receiver::passes_overtaken_acks`](crate::policy::Receiver::passes_overtaken_acks)).
    fn is_overtaken(&self, segment: &Segment<B>, value: u32) -> bool {
        let age = u64::from(self.rcv.ts_recent.wrapping_sub(value));
        self.settings.receiver.passes_overtaken_acks()
            && segment.sequence_len() == 0
            && segment.flags.any(Flags::ACK)
            && segment.seq == self.rcv.nxt.wire()
            && segment.ack == self.snd.peer.una().wire()
            && (1..=self.snd.peer.wnd()).contains(&(self.snd.peer.scaled(segment.window)))
            && Duration::from_millis(age) <= self.snd.rtt.rto() * 6 / 5
    }

    /// Answers an unacceptable segment (RFC 9293 §3.10.7.4, RFC 7323 §5.3 R1).
    fn answer_invalid(&mut self, now: Instant, segment: &Segment<B>) {
        if self.settings.receiver.limits_answers() && segment.sequence_len() == 0 {
            self.challenge(now);
        } else {
            self.rcv.ack.at_once();
        }
    }

    /// RFC 9293 §3.4: whether the segment overlaps the window.
    fn is_acceptable(&self, segment: &Segment<B>, seq: Seq) -> bool {
        if self.state == State::SynReceived && segment.flags.any(Flags::SYN) {
            return true;
        }
        match (segment.sequence_len(), self.rcv.edge.since(self.rcv.nxt)) {
            (0, 0) => seq == self.rcv.nxt,
            (0, _) => self.rcv.nxt <= seq && seq < self.rcv.edge,
            (_, 0) => false,
            (len, _) => seq < self.rcv.edge && seq + len > self.rcv.nxt,
        }
    }

    /// RFC 9293 §3.10.7.4, first: answers an unacceptable segment without its data.
    fn on_unacceptable(&mut self, now: Instant, segment: &Segment<B>, seq: Seq) {
        let flags = segment.flags;
        if let Some(reason) = self.rcv.outside(flags, seq) {
            self.refuse(reason);
            if !flags.any(Flags::RST) {
                // RFC 5961 §4.2, RFC 9293 §3.10.7.4.
                self.challenge(now);
            }
            return;
        }
        if flags.any(Flags::RST) {
            // RFC 9293 §3.10.7.4: a closed window accepts no octets, but resets.
            if seq == self.rcv.nxt {
                self.on_reset(now, seq);
            }
            return;
        }
        if self.state == State::TimeWait && segment.flags.any(Flags::FIN) {
            // RFC 9293 §3.10.7.4, eighth: the peer's FIN again restarts the wait.
            self.start_time_wait(now);
        } else {
            self.rcv.note_duplicate(segment, seq);
        }
        if flags.any(Flags::SYN) {
            // RFC 5961 §4.2: a SYN with any number.
            self.challenge(now);
        } else {
            self.answer_invalid(now, segment);
        }
        // A closed window accepts no data, but acknowledgments.
        if seq == self.rcv.nxt && segment.flags.any(Flags::ACK) && self.state.is_synchronized() {
            self.on_acknowledgment(now, segment);
        }
    }

    /// RFC 5961 §3.2: only a reset with exactly the next number is accepted.
    fn on_reset(&mut self, now: Instant, seq: Seq) {
        if seq != self.rcv.nxt {
            self.refuse(Refusal::BlindReset);
            self.challenge(now);
        } else if self.state == State::SynReceived && self.cold.passive && !self.is_early() {
            self.listen_again();
        } else if self.state != State::TimeWait {
            self.end(Ending::Reset, now);
        } else {
            self.transit(Event::Reset);
            self.stop();
        }
    }

    /// Sends a challenge ACK for a segment that a blind attacker may have sent (RFC 5961): a
    /// genuine peer corrects itself. The settings limit the rate of challenge ACKs (RFC 5961 §7).
    #[cold]
    pub(super) fn challenge(&mut self, now: Instant) {
        if self.may_challenge(now) {
            self.rcv.stats.challenge_acks = self.rcv.stats.challenge_acks.wrapping_add(1);
            self.rcv.ack.at_once();
        }
    }

    /// Whether `challenge_ack_interval` has passed since the last challenge ACK.
    fn may_challenge(&mut self, now: Instant) -> bool {
        let notes = self.cold.notes.get_or_insert_default();
        let least = self.settings.challenge_ack_interval;
        let may = notes
            .challenged
            .is_none_or(|then| now.saturating_since(then) >= least);
        if may {
            notes.challenged = Some(now);
        }
        may
    }

    /// RFC 9293 §3.10.7.4, seventh and eighth: payload and FIN.
    #[expect(clippy::inline_always, reason = "measured: see `on_segment`")]
    #[inline(always)]
    pub(super) fn on_payload(&mut self, now: Instant, segment: &Segment<B>, seq: Seq) {
        let len = u64::from(segment.body.len());
        let end = seq + len;
        if !self.state.may_receive() {
            if len > 0 {
                self.rcv.note_duplicate(segment, seq);
                self.rcv.ack.at_once();
            }
            return;
        }
        if segment.flags.any(Flags::FIN)
            && end <= self.rcv.edge
            && self.rcv.cold.peer_fin == Seq::END
        {
            self.rcv.cold.peer_fin = end;
            // The segment that fills the gap before the FIN must not take the fast path.
            self.rcv.gaps |= end > self.rcv.nxt;
        }
        // No data may follow a FIN, or exceed the window.
        let limit = self.rcv.cold.peer_fin.min(self.rcv.edge);
        if len > 0 && end > limit {
            self.refuse(Refusal::OutsideWindow);
        }
        if len > 0 && seq >= limit {
            self.rcv.ack.at_once();
        } else if len > 0 {
            self.rcv
                .on_data(now, segment, (seq, end.min(limit)), &self.snd.rtt);
        }
        if self.rcv.cold.peer_fin == self.rcv.nxt {
            self.on_fin(now);
        } else if segment.flags.any(Flags::FIN) {
            self.rcv.on_early_fin(now, (seq, end), &self.snd.rtt);
        }
    }
}
