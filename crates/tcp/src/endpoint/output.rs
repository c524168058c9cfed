//! Choice of the next segment to send.

use anabranch_core::{body::Body, units::Instant};

use super::Endpoint;
use crate::{
    departure::{Departure, Outgoing},
    send_queue::Stream,
    state::Event,
};
use anabranch_wire::segment::Segment;

impl<B: Body> Endpoint<B> {
    /// Returns the next segment to send. Must be called until `None` after every other call.
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

    /// As [`Self::poll_transmit`], with the segment written to `place`, which may have changed even
    /// if the result is `None`.
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

    /// Whether a segment may be available: `false` if nothing has happened since there was none.
    #[must_use]
    #[inline]
    pub const fn may_transmit(&self) -> bool {
        self.snd.wake
    }

    pub(super) fn next_outgoing(
        &mut self,
        now: Instant,
        place: &mut Segment<B>,
    ) -> Option<Departure> {
        if self.wanted.urgent {
            return self.control_segment(now, place);
        }
        // Out-of-order data is acknowledged by a segment without payload, because only that counts
        // as a duplicate acknowledgment (RFC 5681 §2).
        if self.rcv.ack.due() && self.rcv.gaps {
            return Some(self.rcv.acknowledgment(now, self.snd.nxt, place));
        }
        if self.state.may_transmit() || self.is_early() {
            let stream = self.snd.queue.stream();
            if self.snd.recovery.is_idle()
                && self.snd.nxt >= self.snd.queue.end()
                && stream == Stream::Open
            {
                self.snd.note_application_limit(now);
            } else if let Some(outgoing) = self.snd.data(now, &mut self.rcv, place) {
                if self.snd.queue.stream() != stream {
                    self.transit(Event::SendFin);
                }
                return Some(outgoing);
            }
        }
        self.snd.wake = false;
        if self.rcv.ack.due() {
            return Some(self.rcv.acknowledgment(now, self.snd.nxt, place));
        }
        None
    }
}
