//! Header fields of every segment: acknowledgment, window, timestamps, SACK.

use anabranch_core::{body::Body, packet::Ecn, units::Instant};

use super::Receiver;
use crate::{clock::timestamp, departure::Departure};
use anabranch_wire::{
    segment::{Flags, Options, Segment, TIMESTAMPS_SIZE, Timestamps},
    seq::Seq,
};

/// Bytes available for options in a header (RFC 9293 §3.1).
const MOST_OPTIONS: u32 = 40;
/// Bytes of a SACK option with two blocks, padded.
const TWO_BLOCKS: u32 = 20;

impl<B: Body> Receiver<B> {
    /// Builds a pure acknowledgment.
    #[inline]
    pub(crate) fn acknowledgment(
        &mut self,
        now: Instant,
        nxt: Seq,
        place: &mut Segment<B>,
    ) -> Departure {
        self.stats.sent_acks += 1;
        let mut departure = self.outgoing(now, nxt, Flags::ACK, B::default(), Ecn::NotEct, place);
        if self.gaps || self.duplicate {
            departure.size += self.add_sack(place);
        }
        departure
    }

    /// Adds SACK blocks for data beyond a gap or received twice (RFC 2018, RFC 2883). Returns the
    /// option's bytes.
    #[inline(never)]
    fn add_sack(&mut self, place: &mut Segment<B>) -> u32 {
        self.duplicate = false;
        if !self.agreed.sack {
            return 0;
        }
        let before = place.options.size();
        let room = (self.option_room() - before - 4) / 8;
        let skip = self.take_withheld();
        let (n, blocks) = self.receive().sack_blocks(room as usize, skip);
        if n == 0 {
            return 0;
        }
        place.options = match (place.options.accecn(), blocks) {
            (Some(accecn), [a, b, c, _]) => Options::SackAccEcn(n, [a, b, c], accecn),
            (None, blocks) => Options::Sack(n, blocks),
        };
        let size = place.options.size() - before;
        self.stats.sent_bytes += u64::from(size);
        size
    }

    /// Bytes available for options in addition to timestamps.
    const fn option_room(&self) -> u32 {
        MOST_OPTIONS
            - if self.agreed.timestamps {
                TIMESTAMPS_SIZE
            } else {
                0
            }
    }

    /// Adds counts of marked octets (RFC 9768 §3.2.3.3) if there is room: two SACK blocks have
    /// precedence, and so does payload. A retransmission has none (§3.2.3.2.2).
    #[inline(never)]
    fn add_accecn(&mut self, ecn: Ecn, place: &mut Segment<B>) {
        let payload = place.body.len();
        let room = if payload == 0 {
            let sack = self.agreed.sack && (self.gaps || self.duplicate);
            self.option_room() - if sack { TWO_BLOCKS } else { 0 }
        } else if ecn == Ecn::NotEct {
            return;
        } else {
            self.option_room().min(self.smss.saturating_sub(payload))
        };
        if let Some(accecn) = self.take_accecn(room) {
            place.options = Options::AccEcn(accecn);
        }
    }

    /// Fills in the header of a segment, which acknowledges all in-order data.
    #[expect(
        clippy::inline_always,
        reason = "measured: every packet of the steady state goes through one of two of its calls"
    )]
    #[inline(always)]
    pub(crate) fn outgoing(
        &mut self,
        now: Instant,
        seq: Seq,
        mut flags: Flags,
        body: B,
        mut ecn: Ecn,
        place: &mut Segment<B>,
    ) -> Departure {
        if self.agreed.ecn || self.agreed.exact_ecn {
            let (echo, of_all) = self.ecn_echo(body.is_empty());
            flags |= echo;
            ecn = of_all.unwrap_or(ecn);
        }
        let window = self.advertise();
        // Written field by field in place: a segment built elsewhere would be copied, and the copy
        // waits for all its parts.
        *place = Segment {
            seq: seq.wire(),
            ack: self.nxt.wire(),
            window,
            flags,
            timestamps: self.agreed.timestamps.then(|| Timestamps {
                value: timestamp(now),
                echo: self.ts_recent,
            }),
            options: Options::None,
            body,
        };
        self.acked = self.nxt;
        self.ack.sent();
        let mut size = place.ip_size();
        if self.agreed.exact_ecn {
            self.add_accecn(ecn, place);
            size = place.ip_size();
        }
        self.stats.sent_bytes += u64::from(size);
        if place.body.len() > 0 {
            self.ack.answered(now);
        }
        Departure {
            size,
            ecn,
            retransmission: None,
        }
    }

    /// As [`Self::outgoing`] on the hot path: nothing waits to be acknowledged, and `window` has been
    /// advertised. Returns the size of the IP packet.
    #[inline]
    pub(crate) fn hot_outgoing(
        &mut self,
        now: Instant,
        seq: Seq,
        window: u16,
        (flags, body): (Flags, B),
        place: &mut Segment<B>,
    ) -> u32 {
        *place = Segment {
            seq: seq.wire(),
            ack: self.nxt.wire(),
            window,
            flags,
            timestamps: self.agreed.timestamps.then(|| Timestamps {
                value: timestamp(now),
                echo: self.ts_recent,
            }),
            options: Options::None,
            body,
        };
        let size = place.ip_size();
        self.stats.sent_bytes += u64::from(size);
        size
    }

    /// Returns the window field, and moves the right edge of the window (RFC 9293 §3.8.6.2.2).
    #[expect(clippy::inline_always, reason = "measured: see `outgoing`")]
    #[inline(always)]
    pub(crate) fn advertise(&mut self) -> u16 {
        if self.nxt == self.acked && self.auto_read && self.advertised {
            // Nothing has arrived since the last segment was sent.
            return self.field;
        }
        let mut window = if self.auto_read && !self.gaps && !self.filled {
            self.window
        } else {
            self.offer()
        };
        let edge = self.nxt + window;
        let scale = self.agreed.scale;
        // The edge moves by at least a full segment or half the buffer, and never back. The last
        // edge was rounded up: an unchanged window moves it by a full segment less the rounding.
        let moved = edge.since(self.edge);
        let (mut from, mut rounded) = (edge, u64::from(self.cold.rcv_rounded));
        if moved == 0 || moved + rounded < u64::from(self.smss).min(self.window / 2) {
            from = self.edge;
            window = from.since(self.nxt);
        } else {
            rounded = 0;
        }
        // Rounded up, so that the edge that the peer computes never moves back (RFC 7323 §2.4).
        let field = ((window + (1 << scale) - 1) >> scale).min(u64::from(u16::MAX));
        self.edge = self.nxt + (field << scale);
        rounded += self.edge.since(from);
        self.cold.rcv_rounded = u16::try_from(rounded).unwrap_or(u16::MAX);
        self.field = u16::try_from(field).unwrap_or(u16::MAX);
        // The application reads these octets before the next acknowledgment.
        self.advertised = !self.filled;
        if self.filled {
            self.note_delivered(0);
        }
        self.field
    }
}
