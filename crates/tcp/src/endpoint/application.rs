//! What the application does: it writes and reads (RFC 9293 §3.9.1).

use anabranch_core::{
    body::{Body, Length},
    units::{Bytes, Instant},
};

use super::Endpoint;
use crate::seq::Seq;

impl<B: Body> Endpoint<B> {
    /// Gives the stream `body` to send, as far as the send buffer has room. Returns how many octets
    /// were taken: the first ones.
    pub fn write(&mut self, body: B) -> u64 {
        if self.settings.send_autotuning_start > Bytes::ZERO {
            self.cold.extras().send_space = self.send_space();
        }
        let taken = self.write_room().min(u64::from(body.len()));
        self.cold.write_was_cut = taken < u64::from(body.len());
        if taken == u64::from(body.len()) {
            self.write_all(body);
        } else {
            self.write_all(body.slice(0, u32::try_from(taken).unwrap_or(u32::MAX)));
        }
        taken
    }

    /// Octets that [`Self::write`] would take.
    #[must_use]
    pub fn write_room(&self) -> u64 {
        if self.wanted.fin || self.send_is_over() {
            return 0;
        }
        let first = self.snd.una.max(self.cold.first_octet);
        self.send_space()
            .saturating_sub(self.snd.buffer.end().since(first))
    }

    /// Gives the stream all of `body`, as an application does that blocks in writing: the send
    /// buffer limits what is outstanding, not what is taken here. Ignored after [`Self::close`].
    pub fn write_all(&mut self, body: B) {
        if !self.wanted.fin && !self.send_is_over() && self.snd.buffer.end() != Seq::END {
            self.snd.buffer.write(body);
            self.wanted.wake = true;
        }
    }

    /// Gives the stream `total` octets, `pattern` again and again, as [`Self::write_all`] does. What it costs
    /// does not grow with their number.
    ///
    /// # Panics
    /// If the pattern is empty.
    pub fn write_repeated(&mut self, pattern: B, total: u64) {
        if !self.wanted.fin && !self.send_is_over() && self.snd.buffer.end() != Seq::END {
            self.snd.buffer.write_repeated(pattern, total);
            self.wanted.wake = true;
        }
    }

    /// From here on the stream repeats `pattern` for ever.
    ///
    /// # Panics
    /// If the pattern is empty.
    pub fn write_repeating(&mut self, pattern: B) {
        if !self.wanted.fin && !self.send_is_over() && self.snd.buffer.end() != Seq::END {
            self.snd.buffer.repeat(pattern);
            self.wanted.wake = true;
        }
    }

    /// At most `max` octets that arrived in order. Empty while the application takes everything at
    /// once ([`Self::set_auto_read`]).
    pub fn read(&mut self, now: Instant, max: u64) -> B {
        let first = self
            .cold
            .receive
            .as_ref()
            .map_or(0, |receive| receive.first_unread());
        let before = self.stats.delivered_bytes;
        let body = self.take(max);
        if self.agreed.tuned && !body.is_empty() {
            // It is read piece by piece: what comes after the first counts in the next round trip.
            let taken = before + first.min(u64::from(body.len()));
            let unread = self.stats.delivered_bytes + self.readable() - taken;
            self.on_taken(now, taken, unread);
        }
        body
    }

    fn take(&mut self, max: u64) -> B {
        let Some(receive) = &mut self.cold.receive else {
            return B::default();
        };
        let body = receive.read(max);
        let unread = receive.unread();
        self.stats.delivered_bytes += u64::from(body.len());
        // RFC 9293 §3.8.6.2.2: tell of the new room once it is worth telling.
        let room = self.rcv.window;
        let edge = self.rcv.nxt.saturating_add(self.offer());
        let mut worth = (room / 2).min(2 * u64::from(self.smss));
        if self.settings.receiver.doubles_window_updates() {
            worth = worth.max(self.rcv.edge.since(self.rcv.nxt));
        }
        if self.state.may_receive() && edge.since(self.rcv.edge) >= worth {
            self.rcv.ack.at_once();
            self.wanted.wake = true;
        }
        if unread == 0 {
            self.rcv.ack.all_read();
            self.wanted.wake |= self.rcv.ack.due();
        }
        body
    }

    /// Octets in order that wait for [`Self::read`].
    #[must_use]
    pub fn readable(&self) -> u64 {
        self.cold
            .receive
            .as_ref()
            .map_or(0, |receive| receive.unread())
    }

    /// Whether the application takes everything at once (the default) or by [`Self::read`].
    pub fn set_auto_read(&mut self, on: bool) {
        self.rcv.auto_read = on;
        self.rcv.advertised = false;
        if on {
            self.take(u64::MAX);
        }
    }
}

impl Endpoint<Length> {
    /// From here on there is always more to send.
    pub fn write_endless(&mut self) {
        self.write_repeating(Length(u32::MAX));
    }
}
