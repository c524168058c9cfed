//! Closing, aborting, giving up (RFC 9293 §3.6, §3.8.3, §3.10.4, §3.10.5).

use anabranch_core::{body::Body, units::Instant};

use super::{Ending, Endpoint};
use crate::state::{Event, State};
use anabranch_wire::{
    segment::{Flags, Segment},
    seq::Seq,
};

impl<B: Body> Endpoint<B> {
    /// Ends the stream: a FIN follows the data written. An endless stream ends at its current
    /// position. Data from the peer is still received. While the connection is being opened the
    /// close waits for it, as for an application that connects, writes and closes.
    pub fn close(&mut self) {
        match self.state {
            State::Closed | State::Listen => {
                self.state = State::Closed;
                self.snd.recovery.discard();
                self.stop();
            }
            _ if self.snd.queue.is_over() => {}
            _ => {
                self.snd.queue.close(self.snd.nxt);
                self.snd.wake = true;
            }
        }
    }

    /// Ends an attempt to open the connection. Before any answer to the SYN the connection is
    /// deleted (RFC 9293 §3.10.4); else as [`Self::close`].
    pub fn abandon(&mut self, now: Instant) {
        if self.state == State::SynSent {
            self.end(Ending::Abandoned, now);
        } else {
            self.close();
        }
    }

    /// Ends the connection at once, with a RST to the peer. Once the connection is open, the RST has an
    /// acknowledgment, as from the systems that the profiles describe.
    pub fn abort(&mut self, now: Instant) {
        if self.state.is_synchronized() && self.state != State::TimeWait
            || self.state == State::SynReceived
        {
            let answers = self.state.is_synchronized() || self.is_early();
            let ack = answers.then(|| self.rcv.nxt.wire());
            let stamped = ack.is_some() && self.rcv.agreed.timestamps;
            self.want_reset(self.snd.nxt.wire(), ack, stamped);
        }
        self.end(Ending::Aborted, now);
    }

    /// The connection has ended.
    pub(super) fn end(&mut self, ending: Ending, now: Instant) {
        self.snd.limits.close(now);
        if self.state != State::Closed {
            self.cold.failure().ended = Some((ending, now));
        }
        self.transit(Event::Reset);
        self.snd.queue.end_stream();
        self.snd.recovery.discard();
        self.rcv.end();
        self.stop();
    }

    /// Prepares a reset with the numbers that the peer accepts (RFC 9293 §3.5.2 and §3.10.7.1).
    pub(super) fn reset_against(&mut self, segment: &Segment<B>) {
        if segment.flags.any(Flags::RST) {
            return;
        }
        if segment.flags.any(Flags::ACK) {
            self.want_reset(segment.ack, None, false);
        } else {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a body is below 4 GiB and numbers wrap"
            )]
            let len = segment.sequence_len() as u32;
            self.want_reset(0, Some(segment.seq.wrapping_add(len)), false);
        }
    }

    fn want_reset(&mut self, seq: u32, ack: Option<u32>, stamped: bool) {
        self.cold.failure().reset = Some((seq, ack, stamped));
        self.wanted.urgent = true;
        self.snd.wake = true;
    }

    /// The peer's FIN is the next number expected.
    pub(super) fn on_fin(&mut self, now: Instant) {
        self.rcv.nxt += 1;
        self.rcv.cold.peer_fin = Seq::END;
        // The missing data was before the FIN.
        let receive = self.rcv.cold.receive.as_ref();
        self.rcv.gaps = receive.is_some_and(|receive| receive.has_gaps());
        self.rcv.ack.at_once();
        self.transit(Event::Fin);
        if self.state == State::TimeWait {
            self.start_time_wait(now);
        }
    }

    pub(super) fn start_time_wait(&mut self, now: Instant) {
        let lasts = self.settings.time_wait;
        self.snd.recovery.start_time_wait(now, lasts);
    }

    /// Our FIN is acknowledged.
    pub(super) fn on_fin_acknowledged(&mut self, now: Instant) {
        self.transit(Event::FinAcknowledged);
        match self.state {
            State::TimeWait => self.start_time_wait(now),
            State::Closed => self.stop(),
            _ => {}
        }
    }
}
