//! How far an application that always has more to send has filled the send buffer.
//!
//! Most stacks here let it fill what becomes free at once. A stack that keeps what is written in pieces
//! ([`Segmentation`](crate::policy::Segmentation)) lets it wait while the buffer is full, until a third is free
//! (`tests/live/test_write_space.py`). Then it fills the buffer again, and more: where bursts are shorter than a piece, the rest of the
//! piece that is being sent takes in what is written without a look at the buffer, until the congestion window or the receive
//! window is full and one piece waits. Without Nagle (`TCP_NODELAY`) all leaves at the end of a write, and the next one looks:
//! so the buffer is passed by a part of one write at most. Writing takes time, in which the buffer takes in what is acknowledged.
//!
//! Measured with Linux 6.18 (`SO_MEMINFO`): 1 Gbit/s, 100 ms and a buffer of 4 MiB carry 248 to 270 Mbit/s, not 335, while bursts are as
//! long as pieces; a third of that buffer is written in 1.5 to 2 ms, in which 1 Gbit/s acknowledges a seventh as much again. With Nagle, 20 Mbit/s, 200 ms and a buffer of 92,672 octets have 120 segments in flight after 7.5 s, as many as cwnd
//! permits; without, 100 Mbit/s, 60 ms and 98,304 octets have 91, a write of 128 KiB, where cwnd permits 129. A burst takes 740 octets (five segments) to 1,011 octets (45 segments) of memory besides its payload.

use anabranch_core::{
    body::Body,
    units::{Duration, Instant},
};

use super::{
    Sender,
    pacing::{MAX_BURST, WRITE},
};
use crate::seq::Seq;
use anabranch_congestion::CongestionControl;

/// Octets of memory that a burst takes besides its payload.
const BURST_OVERHEAD: u64 = 800;

/// An application makes and writes an octet in so many picoseconds, the way through the host included: 64 KiB in 98 µs. Measured on TUN
/// devices: writes alone take 61 to 82 µs, and live flows carry as much as with 100 µs.
const PICOS_PER_OCTET: u64 = 1_500;

/// How long an application takes to write so much.
const fn writing_time(octets: u64) -> Duration {
    Duration::from_picos(octets.saturating_mul(PICOS_PER_OCTET))
}

/// Octets of payload in bursts of `burst` that `memory` holds.
fn payload(memory: u64, burst: u64) -> u64 {
    let payload = u128::from(memory) * u128::from(burst) / u128::from(burst + BURST_OVERHEAD);
    u64::try_from(payload).unwrap_or(u64::MAX)
}

impl<B: Body> Sender<B> {
    /// SND.UNA has moved: the application writes if there is room enough.
    #[inline]
    pub(super) fn after_release(&mut self, now: Instant) {
        if self.peer.una() >= self.written_anew_at {
            self.write_anew(now);
        }
    }

    /// The application fills the send buffer: it is woken, or has not yet found the buffer full.
    #[inline(never)]
    pub(crate) fn write_anew(&mut self, now: Instant) {
        let una = self.peer.una();
        if self.capacity == u64::MAX {
            (self.write_edge, self.written_anew_at) = (Seq::END, Seq::END);
            return;
        }
        if self.longest_train == 0 {
            self.write_edge = una.saturating_add(self.capacity);
            self.written_anew_at = una.saturating_add(1);
            return;
        }
        let smss = u64::from(self.smss);
        let burst = u64::from(self.train_limit()) * smss;
        let mut filled = payload(self.capacity, MAX_BURST);
        let before = self.write_edge;
        if let Some(until) = self.cold.extras().writes_until.take() {
            if now < until {
                self.write_on(una.saturating_add(filled), until);
                return;
            }
            // The last acknowledgment before that left the buffer full.
            let waits_above = payload(self.capacity, burst) / 3 * 2;
            if una + waits_above < before {
                self.written_anew_at = before - waits_above;
                return;
            }
        }
        if burst + smss <= MAX_BURST {
            let window = self.control.cwnd().get().min(u64::from(self.peer.wnd()));
            let mut passed = window.saturating_add(MAX_BURST);
            if !self.settings.nagle {
                let left = before.since(una).min(filled);
                passed = passed.min(left + (filled - left).div_ceil(WRITE) * WRITE);
            }
            filled = filled.max(passed);
        }
        self.write_on(una.saturating_add(filled), now);
    }

    /// The application, which has been writing until `since`, goes on up to `edge`.
    fn write_on(&mut self, edge: Seq, since: Instant) {
        let written = writing_time(edge.since(self.write_edge));
        self.cold.extras().writes_until = Some(since.saturating_add(written));
        self.write_edge = self.write_edge.max(edge);
        self.written_anew_at = self.peer.una().saturating_add(1);
        self.note_write();
    }
}
