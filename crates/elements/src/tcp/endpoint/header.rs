//! What every segment carries besides its payload: acknowledgment, window, timestamps, SACK.

use anabranch_core::{packet::Ecn, units::Instant};

use super::{Endpoint, Outgoing};
use crate::{
    body::Body,
    tcp::{
        segment::{Flags, Options, Segment, Timestamps},
        seq::Seq,
    },
};

/// Picoseconds of a tick of the timestamp clock: 1 ms (RFC 7323 §5.4).
const TICK: u64 = 1_000_000_000;

/// The timestamp clock.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the clock wraps (RFC 7323 §5.4)"
)]
pub(super) const fn timestamp(now: Instant) -> u32 {
    (now.as_picos() / TICK) as u32
}

impl<B: Body> Endpoint<B> {
    /// A segment without payload that acknowledges.
    #[inline]
    pub(super) fn acknowledgment(&mut self, now: Instant) -> Outgoing<B> {
        self.stats.sent_acks += 1;
        let mut outgoing = self.outgoing(now, self.snd_nxt, Flags::ACK, B::default(), Ecn::NotEct);
        if self.rcv_gaps || self.rcv_duplicate {
            self.add_sack(&mut outgoing);
        }
        outgoing
    }

    /// What arrived beyond a gap, or twice (RFC 2018, RFC 2883).
    #[inline(never)]
    fn add_sack(&mut self, outgoing: &mut Outgoing<B>) {
        self.rcv_duplicate = false;
        if !self.agreed.sack {
            return;
        }
        let room = if self.agreed.timestamps { 3 } else { 4 };
        let (n, blocks) = self.receive().sack_blocks(room);
        if n > 0 {
            outgoing.segment.options = Options::Sack(n, blocks);
            let size = outgoing.segment.options.size();
            outgoing.size += size;
            self.stats.sent_bytes += u64::from(size);
        }
    }

    /// Dresses a segment; it acknowledges everything received in order.
    #[inline]
    pub(super) fn outgoing(
        &mut self,
        now: Instant,
        seq: Seq,
        mut flags: Flags,
        body: B,
        ecn: Ecn,
    ) -> Outgoing<B> {
        if self.agreed.ecn {
            flags |= self.ecn_echo();
        }
        let window = self.advertise();
        let segment = Segment {
            seq: seq.wire(),
            ack: self.rcv_nxt.wire(),
            window,
            flags,
            timestamps: self.agreed.timestamps.then(|| Timestamps {
                value: timestamp(now),
                echo: self.ts_recent,
            }),
            options: Options::None,
            body,
        };
        self.rcv_acked = self.rcv_nxt;
        self.ack.sent();
        let size = segment.ip_size();
        self.stats.sent_bytes += u64::from(size);
        if segment.body.len() > 0 {
            self.last_sent = now;
            self.ack.answered(now);
        }
        Outgoing {
            segment,
            size,
            ecn,
            retransmission: None,
        }
    }

    /// The window field; moves the right edge of the window (RFC 9293 §3.8.6.2.2).
    #[inline]
    fn advertise(&mut self) -> u16 {
        if self.rcv_nxt == self.rcv_acked && self.auto_read && self.told {
            // Nothing has come since the last segment left.
            return self.rcv_field;
        }
        let mut window = self.receive_window;
        if !self.auto_read
            && let Some(receive) = &self.cold.receive
        {
            window = window.saturating_sub(receive.unread());
        }
        let edge = self.rcv_nxt + window;
        // It moves by a full segment or half the buffer, never back.
        if edge.since(self.rcv_edge) < u64::from(self.smss).min(self.receive_window / 2) {
            window = self.rcv_edge.since(self.rcv_nxt);
        }
        let scale = self.agreed.rcv_scale;
        // Rounded up, so that the edge as the peer sees it never moves back (RFC 7323 §2.4).
        let field = (window + (1 << scale) - 1) >> scale;
        self.rcv_edge = self.rcv_nxt + (field << scale);
        self.rcv_field = u16::try_from(field).unwrap_or(u16::MAX);
        self.told = true;
        self.rcv_field
    }
}
