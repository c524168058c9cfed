//! Acceptance of acknowledgments (RFC 9293 §3.10.7.4 fifth, RFC 5961 §5).

use anabranch_core::{body::Body, units::Instant};

use super::Endpoint;
use crate::{refusal::Refusal, sender::Outcome, state::State};
use anabranch_wire::segment::Segment;

impl<B: Body> Endpoint<B> {
    /// Processes the acknowledgment and the window of a segment. Returns `false` if the segment
    /// acknowledges data that was never sent and must be dropped.
    #[inline]
    pub(super) fn on_acknowledgment(&mut self, now: Instant, segment: &Segment<B>) -> bool {
        let ack = self.snd.peer.una().near(segment.ack);
        if ack > self.snd.nxt {
            // RFC 9293 §3.10.7.4: answer and drop.
            self.refuse(Refusal::UnsentAck);
            if self.settings.receiver.answers_unsent_ack() || self.state != State::Established {
                self.challenge(now);
            }
            return false;
        }
        if ack < self.snd.peer.una() {
            if !self.snd.peer.may_acknowledge(ack, self.snd.nxt) {
                self.refuse(Refusal::OldAck);
                self.challenge(now);
                return false;
            }
            if self.snd.on_late_acknowledgment(now, segment) == Outcome::GaveUp {
                self.give_up(now);
            }
            return true;
        }
        let seq = self.rcv.nxt.near(segment.seq);
        match self.snd.on_acknowledgment(now, segment, seq, ack) {
            Outcome::Usual => {}
            Outcome::FinAcknowledged => self.on_fin_acknowledged(now),
            Outcome::GaveUp => self.give_up(now),
        }
        true
    }
}
