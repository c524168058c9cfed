//! What the application does: write and read (RFC 9293 §3.9.1).

use anabranch_core::{
    body::{Body, Length},
    units::Instant,
};

use super::Endpoint;

impl<B: Body> Endpoint<B> {
    /// Gives the stream `body` to send, as far as the send buffer has room. Returns how many octets
    /// were taken: the first ones.
    pub fn write(&mut self, body: B) -> u64 {
        self.snd.write(body)
    }

    /// Octets that [`Self::write`] would take.
    #[must_use]
    pub fn write_room(&self) -> u64 {
        self.snd.write_room()
    }

    /// Gives the stream all of `body`, as an application does that blocks in writing: the send
    /// buffer limits what is outstanding, not what is taken here. Ignored after [`Self::close`].
    pub fn write_all(&mut self, body: B) {
        self.snd.append(|buffer| buffer.write(body));
    }

    /// Gives the stream `total` octets, `pattern` again and again, as [`Self::write_all`] does. What it costs
    /// does not grow with their number.
    ///
    /// # Panics
    /// If the pattern is empty.
    pub fn write_repeated(&mut self, pattern: B, total: u64) {
        self.snd
            .append(|buffer| buffer.write_repeated(pattern, total));
    }

    /// From here on the stream repeats `pattern` for ever.
    ///
    /// # Panics
    /// If the pattern is empty.
    pub fn write_repeating(&mut self, pattern: B) {
        self.snd.append(|buffer| buffer.repeat(pattern));
    }

    /// At most `max` octets that arrived in order. Empty while the application takes everything at
    /// once ([`Self::set_auto_read`]).
    pub fn read(&mut self, now: Instant, max: u64) -> B {
        let body = self.rcv.read(now, max, self.state.may_receive());
        self.snd.wake |= self.rcv.ack.due();
        body
    }

    /// Octets in order that wait for [`Self::read`].
    #[must_use]
    pub fn readable(&self) -> u64 {
        self.rcv.readable()
    }

    /// Whether the application takes everything at once (the default) or by [`Self::read`].
    pub fn set_auto_read(&mut self, on: bool) {
        self.rcv.set_auto_read(on, self.state.may_receive());
        self.snd.wake |= self.rcv.ack.due();
    }
}

impl Endpoint<Length> {
    /// From here on there is always more to send.
    pub fn write_endless(&mut self) {
        self.write_repeating(Length(u32::MAX));
    }
}
