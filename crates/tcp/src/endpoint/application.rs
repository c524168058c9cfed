//! Calls of the application: write and read (RFC 9293 §3.9.1).

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
