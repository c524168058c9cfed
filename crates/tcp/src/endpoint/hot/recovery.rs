//! The hot path of segments that need functions of the general path: data at a receiver with a gap,
//! and acknowledgments that [`Endpoint::hot_ack`] does not take. Most are part of the repair of
//! losses.
//!
//! The functions check the header in place of the general path's checks, and call its functions for
//! all that follows.

use anabranch_core::{body::Body, packet::Ecn, units::Instant};

use super::{Endpoint, HotData};
use crate::recovery::Timer;
use anabranch_wire::{
    segment::{Flags, Options, Segment},
    seq::Seq,
};

impl<B: Body> Endpoint<B> {
    /// [`Endpoint::hot_data`] of data that opens, leaves or fills a gap: `on_any_segment`,
    /// `next_outgoing`.
    #[inline(never)]
    pub(super) fn hot_data_at_gap(
        &mut self,
        now: Instant,
        place: &mut Segment<B>,
        ecn: Ecn,
    ) -> HotData {
        let len = u64::from(place.body.len());
        let (snd, rcv) = (&mut self.snd, &mut self.rcv);
        let seq = rcv.nxt.near(place.seq);
        let una = snd.peer.una();
        let at_gap = seq > rcv.nxt || (rcv.gaps && seq == rcv.nxt);
        if !at_gap
            || len == 0
            || seq + len > rcv.edge
            || place.flags.without(Flags::PSH) != Flags::ACK
            || place.ack != una.wire()
            || place.options != Options::None
            || ecn == Ecn::Ce
            || rcv.cold.peer_fin != Seq::END
            || snd.recovery.takes_ack_when_idle(&[])
            || !self.has_usual_timestamp(place)
        {
            return HotData::NotHot;
        }
        self.rcv.stats.received_packets += 1;
        if seq <= self.rcv.acked {
            self.take_timestamp(now, place);
        }
        let (snd, rcv) = (&mut self.snd, &mut self.rcv);
        // `Sender::on_acknowledgment`. Nothing is left to send, so no persist timer runs.
        debug_assert_eq!(snd.recovery.timer(), Timer::Off);
        snd.peer.update(place.window, seq, una);
        rcv.on_data(now, place, (seq, seq + len), &snd.rtt);
        if !rcv.ack.due() {
            return HotData::Waits;
        }
        HotData::Answered(rcv.acknowledgment(now, snd.nxt, place).size)
    }

    /// Processes an acknowledgment that [`Endpoint::hot_ack`] has left: `on_segment`. Returns
    /// `false` if it is left to the general path. The end may be hot no longer.
    /// [`Endpoint::poll_transmit`] returns its segments.
    #[inline(never)]
    pub fn hot_other_ack(&mut self, now: Instant, segment: &Segment<B>, ecn: Ecn) -> bool {
        debug_assert!(self.is_hot_sender(), "judged after the last event");
        if !segment.body.is_empty() || ecn == Ecn::Ce || !self.is_usual(segment) {
            return false;
        }
        self.rcv.stats.received_packets += 1;
        self.snd.wake = true;
        self.on_usual_segment(now, segment);
        true
    }
}
