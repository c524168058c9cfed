//! Calls of the application: write and read (RFC 9293 §3.9.1).

use std::sync::Arc;

use anabranch_core::{
    body::{Body, Length},
    units::Instant,
};

use super::Endpoint;

impl<B: Body> Endpoint<B> {
    /// Appends `body` to the stream as far as the send buffer has room. Returns the number of
    /// octets taken.
    pub fn write(&mut self, body: B) -> u64 {
        self.snd.write(body)
    }

    /// Ends a record after the data written: no segment has data of it and of later writes (Linux:
    /// `MSG_EOR`).
    pub fn end_record(&mut self) {
        let end = self.snd.queue.end();
        self.snd.queue.end_record(end);
    }

    /// Selects whether the last data waits until it fills a segment (Linux: `TCP_CORK`), for the
    /// override timeout at most (RFC 9293 §3.8.6.2.1). Data that waits is sent at the next event
    /// after the end of this, or at [`Self::push`].
    pub const fn hold(&mut self, on: bool) {
        self.snd.holds = on;
    }

    /// Whether the last data waits.
    #[must_use]
    pub const fn holds(&self) -> bool {
        self.snd.holds
    }

    /// Lets data that waits be sent, as far as the windows and Nagle's algorithm permit.
    pub const fn push(&mut self) {
        self.snd.wake = true;
    }

    /// Switches Nagle's algorithm (RFC 9293 §3.7.4) of an open connection.
    pub const fn set_nagle(&mut self, on: bool) {
        self.snd.nagle = on;
    }

    /// Sets the octets of the send buffer of an open connection, which no longer grows.
    pub fn set_send_buffer(&mut self, octets: u64) {
        self.snd.queue.set_capacity(octets);
    }

    /// Octets that are written and not acknowledged (Linux: `SIOCOUTQ`).
    #[must_use]
    pub fn unacknowledged(&self) -> u64 {
        let una = self.snd.peer.una().max(self.snd.queue.first_octet());
        self.snd.queue.end().since(una)
    }

    /// Octets of the stream that the peer has acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        let first = self.snd.queue.first_octet();
        let una = self.snd.peer.una().max(first).min(self.snd.queue.end());
        una.since(first)
    }

    /// Octets of the send buffer.
    #[must_use]
    pub fn send_buffer(&self) -> u64 {
        self.snd.queue.space(self.snd.window.cwnd().get())
    }

    /// Octets that [`Self::write`] would take now.
    #[must_use]
    pub fn write_room(&self) -> u64 {
        self.snd.write_room()
    }

    /// Appends all of `body` to the stream, as an application does that blocks in writing: the send
    /// buffer limits the outstanding data, not this call. Ignored after [`Self::close`].
    pub fn write_all(&mut self, body: B) {
        self.snd.append(|buffer| buffer.write(body));
    }

    /// Appends `total` octets to the stream, repetitions of `pattern`, as [`Self::write_all`] does.
    /// The cost does not grow with their number.
    ///
    /// # Panics
    /// If the pattern is empty.
    pub fn write_repeated(&mut self, pattern: B, total: u64) {
        self.snd
            .append(|buffer| buffer.write_repeated(pattern, total));
    }

    /// Lets the stream repeat `pattern` without end.
    ///
    /// # Panics
    /// If the pattern is empty.
    pub fn write_repeating(&mut self, pattern: B) {
        self.snd.append(|buffer| buffer.repeat(pattern));
    }

    /// Returns at most `max` octets received in order. Empty while the application takes all data
    /// at once ([`Self::set_auto_read`]).
    pub fn read(&mut self, now: Instant, max: u64) -> B {
        let body = self.rcv.read(now, max, self.state.may_receive());
        self.snd.wake |= self.rcv.ack.due();
        body
    }

    /// Returns at most `max` octets received in order, which stay available for [`Self::read`].
    #[must_use]
    pub fn peek(&self, max: u64) -> B {
        self.rcv.peek(max)
    }

    /// Sets the retransmissions of our SYN.
    pub fn set_syn_retries(&mut self, count: u32) {
        Arc::make_mut(&mut self.settings).syn_retries = count;
    }

    /// The largest window that the peer has offered.
    #[must_use]
    pub const fn largest_window(&self) -> u64 {
        2 * self.snd.peer.half_of_largest()
    }

    /// Octets in order available for [`Self::read`].
    #[must_use]
    pub fn readable(&self) -> u64 {
        self.rcv.readable()
    }

    /// Selects whether the application takes all data at once (the default) or by [`Self::read`].
    pub fn set_auto_read(&mut self, on: bool) {
        self.rcv.set_auto_read(on, self.state.may_receive());
        self.snd.wake |= self.rcv.ack.due();
    }
}

impl Endpoint<Length> {
    /// Lets the stream continue without end.
    pub fn write_endless(&mut self) {
        self.write_repeating(Length(u32::MAX));
    }
}
