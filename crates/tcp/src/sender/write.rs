//! The application writes.

use anabranch_core::{body::Body, units::Bytes};

use super::{Sender, Stream};
use crate::{send_buffer::SendBuffer, seq::Seq};
use anabranch_congestion::CongestionControl;

impl<B: Body> Sender<B> {
    /// Gives the stream `body` to send, as far as the send buffer has room. Returns how many octets
    /// were taken: the first ones.
    pub(crate) fn write(&mut self, body: B) -> u64 {
        if self.settings.send_autotuning_start > Bytes::ZERO {
            self.cold.extras().send_space = self.send_space();
        }
        let taken = self.write_room().min(u64::from(body.len()));
        self.cold.write_was_cut = taken < u64::from(body.len());
        let part = if self.cold.write_was_cut {
            body.slice(0, u32::try_from(taken).unwrap_or(u32::MAX))
        } else {
            body
        };
        self.append(|buffer| buffer.write(part));
        taken
    }

    /// Octets that [`Self::write`] would take.
    pub(crate) fn write_room(&self) -> u64 {
        if self.stream != Stream::Open {
            return 0;
        }
        let first = self.peer.una().max(self.cold.first_octet);
        self.send_space()
            .saturating_sub(self.buffer.end().since(first))
    }

    /// Gives the stream what `write` writes, unless it has an end.
    pub(crate) fn append(&mut self, write: impl FnOnce(&mut SendBuffer<B>)) {
        if self.stream == Stream::Open && self.buffer.end() != Seq::END {
            write(&mut self.buffer);
            self.wake = true;
        }
    }
}

impl<B: Body> Sender<B> {
    /// Octets of the send buffer as far as it has grown.
    pub(super) fn send_space(&self) -> u64 {
        let start = self.settings.send_autotuning_start.get();
        if start == 0 {
            return self.capacity;
        }
        let wanted = 2 * self.control.cwnd().get();
        let before = self
            .cold
            .extras
            .as_ref()
            .map_or(0, |extras| extras.send_space);
        before.max(wanted).max(start).min(self.capacity)
    }
}
