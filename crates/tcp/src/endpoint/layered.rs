//! Interface to a layer below that repairs losses ([`fec`](anabranch_fec)).

use std::ops::Range;

use anabranch_core::{body::Body, packet::Ecn, units::Instant};

use super::Endpoint;
use crate::{clock::timestamp, recovery::Recovery};
use anabranch_wire::{
    segment::{Flags, Segment, Timestamps},
    seq::Seq,
};

impl<B: Body> Endpoint<B> {
    /// Reserves `octets` of the congestion window for packets other than data.
    pub fn reserve_window(&mut self, octets: u64) {
        self.snd.wake |= self.snd.window.reserve(octets);
    }

    /// [`Self::on_segment`], out of line: the fast path is compiled into the caller only.
    #[inline(never)]
    pub fn on_segment_passed_on(&mut self, now: Instant, segment: &Segment<B>, ecn: Ecn) {
        self.on_segment(now, segment, ecn);
    }

    /// Processes octets from `start` on that were lost and have been rebuilt: they arrive now,
    /// without a segment and its header.
    #[inline(never)]
    pub fn on_repaired(&mut self, now: Instant, start: Seq, body: &B) {
        self.snd.wake = true;
        let segment = Segment {
            seq: start.wire(),
            ack: self.snd.peer.una().wire(),
            flags: Flags::ACK,
            body: body.clone(),
            ..Segment::default()
        };
        self.on_payload(now, &segment, start);
    }

    /// The peer reports a loss that was repaired (RFC 9265 §3): the window is reduced as for any
    /// loss, once per round trip. Returns whether it was.
    pub fn on_hidden_loss(&mut self, now: Instant) -> bool {
        self.snd.with_recovery(now, Recovery::on_hidden_loss)
    }

    /// Requests a call of [`Self::poll_transmit`] for a packet that is not TCP's.
    pub const fn wake(&mut self) {
        self.snd.wake = true;
    }

    /// Sets the timestamp of a delayed acknowledgment to its time of transmission.
    pub fn restamp(&self, now: Instant, segment: &mut Segment<B>) {
        segment.timestamps = segment.timestamps.map(|old| Timestamps {
            value: timestamp(now),
            ..old
        });
    }

    /// The next number expected from the peer.
    #[must_use]
    pub const fn rcv_nxt(&self) -> Seq {
        self.rcv.nxt
    }

    /// Parts of `octets` that the peer has sent and that have not arrived.
    #[must_use]
    pub fn missing(&self, octets: Range<Seq>) -> Vec<Range<Seq>> {
        let from = octets.start.max(self.rcv.nxt);
        match &self.rcv.cold.receive {
            _ if from >= octets.end => Vec::new(),
            Some(receive) => receive.missing(from, octets.end),
            None => vec![from..octets.end],
        }
    }

    /// Right edge of the window offered to the peer: no acceptable octet has this number or a
    /// higher one.
    #[must_use]
    pub const fn window_end(&self) -> Seq {
        self.rcv.edge
    }

    /// Initial sequence numbers of this end and of the peer.
    #[must_use]
    pub const fn initial_numbers(&self) -> (u32, u32) {
        let iss = self.snd.queue.first_octet().wire().wrapping_sub(1);
        (iss, self.rcv.cold.irs)
    }

    /// Whether data has arrived beyond the next number expected.
    #[must_use]
    pub const fn has_gaps(&self) -> bool {
        self.rcv.gaps
    }

    /// The shift of the window that this end offers (RFC 7323 §2.2).
    #[must_use]
    pub const fn receive_scale(&self) -> u8 {
        self.rcv.agreed.scale
    }

    /// An acknowledgment with counts of marked octets is not sent: the next one carries them (RFC
    /// 9768 §3.2.3.3).
    pub fn repeat_marks(&mut self) {
        self.rcv.repeat_option();
    }

    /// SND.UNA: the first number not acknowledged.
    #[must_use]
    pub const fn snd_una(&self) -> Seq {
        self.snd.peer.una()
    }

    /// One past the highest number that the peer is known to have.
    #[must_use]
    pub fn reached(&self) -> Seq {
        self.snd
            .recovery
            .board()
            .highest_sacked()
            .map_or(self.snd.peer.una(), |sacked| {
                sacked.max(self.snd.peer.una())
            })
    }

    /// Whether all data written has been sent at least once.
    #[must_use]
    pub fn has_sent_all(&self) -> bool {
        self.snd.nxt >= self.snd.queue.end()
    }

    /// Octets of a full segment.
    #[must_use]
    pub const fn smss(&self) -> u32 {
        self.snd.smss
    }
}
