//! Reading by the application.

use anabranch_core::{body::Body, units::Instant};

use super::Receiver;

impl<B: Body> Receiver<B> {
    /// Returns at most `max` octets received in order. Empty while the application takes all data
    /// at once ([`Self::set_auto_read`]).
    pub(crate) fn read(&mut self, now: Instant, max: u64, open: bool) -> B {
        let first = self
            .cold
            .receive
            .as_ref()
            .map_or(0, |receive| receive.first_unread());
        let before = self.stats.delivered_bytes;
        let body = self.take(max, open);
        if self.agreed.tuned && !body.is_empty() {
            // The application reads piece by piece: data after the first piece counts in the next
            // round trip.
            let taken = before + first.min(u64::from(body.len()));
            let unread = self.stats.delivered_bytes + self.readable() - taken;
            self.on_taken(now, taken, unread);
        }
        body
    }

    fn take(&mut self, max: u64, open: bool) -> B {
        let Some(receive) = &mut self.cold.receive else {
            return B::default();
        };
        let body = receive.read(max);
        let unread = receive.unread();
        self.stats.delivered_bytes += u64::from(body.len());
        // RFC 9293 §3.8.6.2.2: a window update is sent once it is large enough.
        let room = self.window;
        let edge = self.nxt.saturating_add(self.offer());
        let mut worth = (room / 2).min(2 * u64::from(self.smss));
        if self.settings.receiver.doubles_window_updates() {
            worth = worth.max(self.edge.since(self.nxt));
        }
        if open && edge.since(self.edge) >= worth {
            self.ack.at_once();
        }
        if unread == 0 {
            self.ack.all_read();
        }
        body
    }

    /// Returns at most `max` octets received in order, which stay available.
    pub(crate) fn peek(&self, max: u64) -> B {
        let receive = self.cold.receive.as_ref();
        receive.map_or_else(B::default, |receive| receive.peek(max))
    }

    /// Octets in order available for [`Self::read`].
    pub(crate) fn readable(&self) -> u64 {
        self.cold
            .receive
            .as_ref()
            .map_or(0, |receive| receive.unread())
    }

    /// The connection has ended: no more data arrives. Data in order can still be read.
    pub(crate) fn end(&mut self) {
        if self.readable() == 0 {
            self.cold.receive = None;
        } else if let Some(receive) = &mut self.cold.receive {
            receive.forget_gaps();
        }
        self.gaps = false;
    }

    /// Selects whether the application takes all data at once (the default) or by [`Self::read`].
    pub(crate) fn set_auto_read(&mut self, on: bool, open: bool) {
        self.auto_read = on;
        self.advertised = false;
        if on {
            self.take(u64::MAX, open);
        }
    }
}
