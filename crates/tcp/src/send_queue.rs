//! The send queue: the data that the application has written, the send buffer that limits it, and
//! the chunks in which a stack with TSO keeps the data
//! ([`Segmentation`](crate::policy::Segmentation)). In most stacks an application that always has
//! more to send fills free room at once. In a stack with chunks it waits while the buffer is full,
//! until a third is free (`tests/guest/test_write_space.py`). Then it fills the buffer again, and
//! more: if bursts are shorter than a chunk, the rest of the chunk that is being sent takes data
//! without a check of the buffer, until the congestion window or the receive window is full and one
//! chunk is ready. Without Nagle (`TCP_NODELAY`) all data is sent at the end of a write, and the
//! next write checks the buffer, so at most a part of one write exceeds it. Writing takes time, in
//! which acknowledgments make more room.
//!
//! Measured with Linux 6.18 (`SO_MEMINFO`): 1 Gbit/s, 100 ms and a buffer of 4 MiB carry 248 to 270
//! Mbit/s, not 335, while bursts are as long as chunks; a third of that buffer is written in 1.5 to
//! 2 ms, in which 1 Gbit/s acknowledges another seventh of that. With Nagle, 20 Mbit/s, 200 ms and
//! a buffer of 92,672 octets have 120 segments in flight after 7.5 s, as many as cwnd permits;
//! without, 100 Mbit/s, 60 ms and 98,304 octets have 91, a write of 128 KiB, where cwnd permits
//! 129. A burst takes 740 octets (five segments) to 1,011 octets (45 segments) of memory in
//! addition to its payload.
//!
//! # Differs from Linux
//! - If PSH depends on the ends of writes (`send_autotuning_start`), each write has 128 KiB,
//!   whatever the application writes.

use std::collections::VecDeque;

use anabranch_core::{
    body::Body,
    units::{Duration, Instant},
};

use crate::{pacer::MAX_BURST, send_buffer::SendBuffer, settings::Settings};
use anabranch_wire::seq::Seq;

/// Octets of memory that a burst takes in addition to its payload.
const BURST_OVERHEAD: u64 = 800;
/// Time in which an application makes and writes an octet, the way through the host included: 64
/// KiB in 98 µs. Measured on TUN devices: writes alone take 61 to 82 µs, and live flows carry as
/// much as with 100 µs.
const PICOS_PER_OCTET: u64 = 1_500;
/// Octets of a write of an application that always has more to send: `cat` and our live
/// applications.
const WRITE: u64 = 131_072;
/// Octets of the first chunk in a buffer that is small at first; later ones are as large as the
/// largest burst.
const FIRST_CHUNK: u64 = 83_200;
/// Half of the largest window that a SYN-ACK can offer: chunks written before any other window was
/// offered are no larger.
const EARLY_CHUNK: u64 = 32_767;

/// Time in which an application writes `octets`.
const fn writing_time(octets: u64) -> Duration {
    Duration::from_picos(octets.saturating_mul(PICOS_PER_OCTET))
}

/// Octets of payload in bursts of `burst` that `memory` holds.
fn payload(memory: u64, burst: u64) -> u64 {
    let payload = u128::from(memory) * u128::from(burst) / u128::from(burst + BURST_OVERHEAD);
    u64::try_from(payload).unwrap_or(u64::MAX)
}

/// `octets` rounded down to whole segments of `smss`, one at least.
const fn whole(octets: u64, smss: u64) -> u64 {
    let segments = octets / smss;
    (if segments > 0 { segments } else { 1 }) * smss
}

/// State of the stream of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// The application may write.
    Open,
    /// A FIN follows the data written.
    Closing,
    /// The FIN has been sent, or can no longer be sent.
    Over,
}

/// Circumstances under which an application that always has more to send fills the send buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refill {
    pub(crate) now: Instant,
    pub(crate) una: Seq,
    pub(crate) smss: u64,
    /// Octets of a TSO burst.
    pub(crate) burst: u64,
    /// The congestion window or the receive window, whichever is smaller.
    pub(crate) window: u64,
    pub(crate) nagle: bool,
}

/// Rare state of a send queue.
#[derive(Debug)]
struct Rare {
    /// Ends of records, which no segment crosses.
    ends: VecDeque<Seq>,
    /// The end of the data that the buffer holds without them.
    edge: Seq,
    /// End of the last segment that was not full.
    small_end: Seq,
    /// Data before it was sent in a SYN, and does not count as small.
    small_from: Seq,
}

/// The send queue of a connection.
#[derive(Debug)]
pub(crate) struct SendQueue<B> {
    buffer: SendBuffer<B>,
    stream: Stream,
    /// The send buffer had no room for all of the last write.
    was_cut: bool,
    /// Number of the first octet of the stream.
    first_octet: Seq,
    /// Octets of the send buffer.
    capacity: u64,
    /// Octets that it holds at first; zero if it does not grow.
    autotuning_start: u64,
    /// Octets to which it has grown.
    grown: u64,
    /// Segments that are sent at once.
    initial_cwnd: u32,
    /// End of the data of an application that always has more to send.
    write_edge: Seq,
    /// SND.UNA at which it writes again.
    refill_at: Seq,
    /// End of the current write of an application that has not found the buffer full;
    /// [`Instant::NEVER`] if it waits.
    writes_until: Instant,
    /// SND.UNA when the buffer was found full, until the application has written again; for
    /// delivery-rate samples. [`Seq::END`] otherwise: every endpoint has this field.
    blocked_at: Seq,
    /// End of the chunk that is being sent; at or below SND.NXT it has to be measured.
    chunk_end: Seq,
    /// Created by the end of a record (`MSG_EOR`), or by a small segment with Nagle's algorithm.
    rare: Option<Box<Rare>>,
}

impl<B: Body> SendQueue<B> {
    /// An empty queue of a connection whose SYN has the number `iss`.
    pub(crate) fn new(settings: &Settings, iss: Seq) -> Self {
        Self {
            buffer: SendBuffer::new(iss + 1),
            stream: Stream::Open,
            was_cut: false,
            first_octet: iss + 1,
            capacity: settings.send_buffer_bytes(),
            autotuning_start: settings.send_autotuning_start.get(),
            grown: 0,
            initial_cwnd: settings.initial_cwnd,
            write_edge: iss,
            refill_at: iss,
            writes_until: Instant::NEVER,
            blocked_at: Seq::END,
            chunk_end: Seq::START,
            rare: None,
        }
    }

    /// Ends a record at `end`: no segment has data of it and of the next.
    pub(crate) fn end_record(&mut self, end: Seq) {
        let rare = self.rare();
        if rare.ends.back() != Some(&end) {
            rare.ends.push_back(end);
        }
        let edge = rare.edge;
        self.set_write_edge(edge);
    }

    fn rare(&mut self) -> &mut Rare {
        let (edge, first) = (self.write_edge, self.first_octet);
        self.rare.get_or_insert_with(|| {
            Box::new(Rare {
                ends: VecDeque::new(),
                edge,
                small_end: first,
                small_from: first,
            })
        })
    }

    /// The data before `end` was sent in a SYN: it stays a segment, and was not delayed.
    pub(crate) fn keep_whole(&mut self, end: Seq) {
        self.rare().small_from = end;
        self.end_record(end);
    }

    /// A segment that ends at `end` is not full.
    #[cold]
    pub(crate) fn note_small(&mut self, end: Seq) {
        let rare = self.rare();
        if end > rare.small_from {
            rare.small_end = end;
        }
    }

    /// End of the last segment that was not full.
    pub(crate) fn small_end(&self) -> Seq {
        self.rare
            .as_ref()
            .map_or(self.first_octet, |rare| rare.small_end)
    }

    /// Everything before `nxt` has been sent: the next record follows. Returns whether there is
    /// one.
    pub(crate) fn next_record(&mut self, nxt: Seq) -> bool {
        let Some(rare) = &mut self.rare else {
            return false;
        };
        if rare.ends.front().is_none_or(|end| *end > nxt) {
            return false;
        }
        while rare.ends.front().is_some_and(|end| *end <= nxt) {
            rare.ends.pop_front();
        }
        let edge = rare.edge;
        self.set_write_edge(edge);
        true
    }

    /// Whether a record ends at `at`.
    pub(crate) fn is_record_end(&self, at: Seq) -> bool {
        let ends = self.rare.as_ref().map(|rare| &rare.ends);
        ends.is_some_and(|ends| ends.front() == Some(&at))
    }

    /// Sets the end of the data that the buffer holds, which the end of a record limits.
    fn set_write_edge(&mut self, edge: Seq) {
        self.write_edge = edge;
        if let Some(rare) = &mut self.rare {
            rare.edge = edge;
            if let Some(end) = rare.ends.front() {
                self.write_edge = edge.min(*end);
            }
        }
    }

    /// Sets the octets of the send buffer, which no longer grows.
    pub(crate) fn set_capacity(&mut self, octets: u64) {
        self.capacity = octets;
        self.autotuning_start = 0;
    }

    /// Number of the first octet of the stream.
    pub(crate) const fn first_octet(&self) -> Seq {
        self.first_octet
    }

    /// One past the last octet written.
    #[inline]
    pub(crate) const fn end(&self) -> Seq {
        self.buffer.end()
    }

    /// Octets written and not yet sent.
    #[inline]
    pub(crate) fn unsent(&self, nxt: Seq) -> u64 {
        self.buffer.end().since(nxt)
    }

    /// End of the data that the send buffer holds.
    #[inline]
    pub(crate) const fn write_edge(&self) -> Seq {
        self.write_edge
    }

    /// `len` octets from `at` on.
    #[inline]
    pub(crate) fn body(&self, at: Seq, len: u32) -> B {
        self.buffer.body(at, len)
    }

    /// Drops the data before `una`, which is acknowledged.
    #[inline]
    pub(crate) fn release(&mut self, una: Seq) {
        self.buffer.release(una);
    }

    #[inline]
    pub(crate) const fn stream(&self) -> Stream {
        self.stream
    }

    #[inline]
    pub(crate) const fn is_open(&self) -> bool {
        matches!(self.stream, Stream::Open)
    }

    #[inline]
    pub(crate) const fn is_closing(&self) -> bool {
        matches!(self.stream, Stream::Closing)
    }

    #[inline]
    pub(crate) const fn is_over(&self) -> bool {
        matches!(self.stream, Stream::Over)
    }

    /// A FIN follows the data written. An endless stream ends at SND.NXT.
    pub(crate) fn close(&mut self, nxt: Seq) {
        if self.buffer.end() == Seq::END {
            self.buffer.truncate(nxt);
        }
        self.stream = Stream::Closing;
    }

    /// Ends the stream: the FIN is sent, or can no longer be sent.
    pub(crate) const fn end_stream(&mut self) {
        self.stream = Stream::Over;
    }

    /// Takes the first octets of `body`, as many as the send buffer has room for, and returns how
    /// many. `una` is SND.UNA.
    pub(crate) fn write(&mut self, body: B, una: Seq, cwnd: u64) -> u64 {
        if self.autotuning_start > 0 {
            self.grown = self.space(cwnd);
        }
        let taken = self.room(una, cwnd).min(u64::from(body.len()));
        self.was_cut = taken < u64::from(body.len());
        let part = if self.was_cut {
            body.slice(0, u32::try_from(taken).unwrap_or(u32::MAX))
        } else {
            body
        };
        self.append(|buffer| buffer.write(part));
        taken
    }

    /// Octets that [`Self::write`] would take.
    pub(crate) fn room(&self, una: Seq, cwnd: u64) -> u64 {
        if !self.is_open() {
            return 0;
        }
        let outstanding = self.end().since(una.max(self.first_octet));
        self.space(cwnd).saturating_sub(outstanding)
    }

    /// Whether data can be appended: the stream has no end yet.
    pub(crate) fn is_appendable(&self) -> bool {
        self.is_open() && self.end() != Seq::END
    }

    /// Appends the data that `write` writes, if that is possible.
    pub(crate) fn append(&mut self, write: impl FnOnce(&mut SendBuffer<B>)) {
        if self.is_appendable() {
            write(&mut self.buffer);
        }
    }

    /// Octets of the send buffer: twice cwnd if it grows.
    pub(crate) fn space(&self, cwnd: u64) -> u64 {
        if self.autotuning_start == 0 {
            return self.capacity;
        }
        let grown = self.grown.max(2 * cwnd).max(self.autotuning_start);
        grown.min(self.capacity)
    }

    /// Whether the send buffer had no room for all of the last write.
    pub(crate) const fn was_cut(&self) -> bool {
        self.was_cut
    }

    /// Whether the application writes now that SND.UNA has moved to `una`.
    #[inline]
    pub(crate) fn is_refill_due(&self, una: Seq) -> bool {
        una >= self.refill_at
    }

    /// The application fills a send buffer without chunks. Returns `false` if it has chunks: see
    /// [`Self::refill`].
    pub(crate) fn refill_at_once(&mut self, una: Seq, has_chunks: bool) -> bool {
        if self.capacity == u64::MAX {
            self.set_write_edge(Seq::END);
            self.refill_at = Seq::END;
        } else if !has_chunks {
            self.set_write_edge(una.saturating_add(self.capacity));
            self.refill_at = una.saturating_add(1);
        } else {
            return false;
        }
        true
    }

    /// The application, which is woken or has not yet found the buffer full, fills it. Returns
    /// whether it writes.
    pub(crate) fn refill(&mut self, refill: &Refill) -> bool {
        let Refill {
            now,
            una,
            smss,
            burst,
            window,
            nagle,
        } = *refill;
        let mut filled = payload(self.capacity, MAX_BURST);
        let before = self.write_edge;
        let until = std::mem::replace(&mut self.writes_until, Instant::NEVER);
        if until != Instant::NEVER {
            if now < until {
                self.write_on(una, una.saturating_add(filled), until);
                return true;
            }
            // After the last acknowledgment before that time the buffer was full.
            let waits_above = payload(self.capacity, burst) / 3 * 2;
            if una + waits_above < before {
                self.refill_at = before - waits_above;
                return false;
            }
        }
        if burst + smss <= MAX_BURST {
            let mut passed = window.saturating_add(MAX_BURST);
            if !nagle {
                let left = before.since(una).min(filled);
                passed = passed.min(left + (filled - left).div_ceil(WRITE) * WRITE);
            }
            filled = filled.max(passed);
        }
        self.write_on(una, una.saturating_add(filled), now);
        true
    }

    /// The application, which has been writing until `since`, goes on up to `edge`.
    fn write_on(&mut self, una: Seq, edge: Seq, since: Instant) {
        let written = writing_time(edge.since(self.write_edge));
        self.writes_until = since.saturating_add(written);
        self.set_write_edge(self.write_edge.max(edge));
        self.refill_at = una.saturating_add(1);
    }

    /// Notes that the send buffer is full.
    pub(crate) fn on_blocked(&mut self, una: Seq) {
        if self.blocked_at == Seq::END {
            self.blocked_at = una;
        }
    }

    /// The application has written. Returns whether the send buffer was full before.
    pub(crate) fn end_block(&mut self) -> bool {
        std::mem::replace(&mut self.blocked_at, Seq::END) != Seq::END
    }

    /// Whether the send buffer was full and a third of it has become free since.
    pub(crate) fn has_third_free(&self, una: Seq) -> bool {
        self.blocked_at != Seq::END && 3 * una.since(self.blocked_at) >= self.capacity
    }

    /// Whether the initial buffer exceeds an early chunk: then the next chunk is complete before
    /// this one has been sent.
    pub(crate) const fn has_next_chunk(&self) -> bool {
        self.autotuning_start > EARLY_CHUNK
    }

    /// The size of segments has changed: measures the current chunk again.
    pub(crate) const fn resize_chunks(&mut self) {
        self.chunk_end = Seq::START;
    }

    /// Octets of the current chunk that have not been sent.
    #[inline]
    pub(crate) fn chunk_left(&mut self, nxt: Seq, smss: u64) -> u64 {
        if nxt >= self.chunk_end {
            self.chunk_end = nxt + self.measure_chunk(nxt, smss);
        }
        let left = self.chunk_end.since(nxt);
        debug_assert_eq!(left, self.measure_chunk(nxt, smss), "SND.NXT only advances");
        left
    }

    /// The same from the lengths of all chunks. A buffer that is large at first is filled before
    /// the peer has offered more than with its SYN.
    #[inline(never)]
    fn measure_chunk(&self, nxt: Seq, smss: u64) -> u64 {
        let sent = nxt.since(self.first_octet);
        let mut first = FIRST_CHUNK.div_ceil(smss) * smss;
        if self.has_next_chunk() {
            // Data sent at once makes room in its chunk, which is filled up.
            let (begun, early) = self.early_chunks(smss);
            if sent < self.autotuning_start {
                return match sent.checked_sub(begun) {
                    Some(beyond) => early - beyond % early,
                    None => begun - sent,
                };
            }
            first = self.later_chunks(begun, early);
        }
        let further = whole(MAX_BURST, smss);
        match sent.checked_sub(first) {
            Some(beyond) => further - beyond % further,
            None => first - sent,
        }
    }

    /// Octets that are sent at once, and octets of the chunks that follow.
    fn early_chunks(&self, smss: u64) -> (u64, u64) {
        let begun = u64::from(self.initial_cwnd) * smss;
        (begun, whole(EARLY_CHUNK, smss))
    }

    /// Offset of the first chunk written after the peer has offered more than with its SYN: `begun`
    /// octets are sent at once, and chunks of `early` octets follow.
    fn later_chunks(&self, begun: u64, early: u64) -> u64 {
        begun + self.autotuning_start.saturating_sub(begun).div_ceil(early) * early
    }

    /// Whether the chunk that ends with the next segment has PSH. Among the chunks written before
    /// the peer has offered more than with its SYN, a chunk has PSH if it ends more than half of
    /// that window after the last chunk with PSH, or if a write ends in it. All later chunks have
    /// it.
    pub(crate) fn is_pushed(&self, nxt: Seq, smss: u64) -> bool {
        let (begun, early) = self.early_chunks(smss);
        let sent = nxt.since(self.first_octet);
        if sent >= self.later_chunks(begun, early) {
            return true;
        }
        let end_after = |octets: u64| match octets.checked_sub(begun) {
            Some(beyond) => begun + beyond.div_ceil(early) * early,
            None => begun,
        };
        let last = end_after(sent + 1);
        // Chunks before the end of the last write have no effect any more.
        let mut asked = last / WRITE * WRITE;
        let mut end = end_after(asked.max(1));
        let mut pushed = asked > 0;
        loop {
            if end - asked > EARLY_CHUNK {
                (asked, pushed) = (end, true);
            }
            if end >= last {
                return pushed;
            }
            (end, pushed) = (end + early, false);
        }
    }
}
