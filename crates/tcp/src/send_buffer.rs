//! Data that the application has written and the peer has not acknowledged.

use std::collections::VecDeque;

use anabranch_core::body::Body;
use anabranch_wire::seq::Seq;

/// Small writes are joined into chunks of about this many octets.
const CHUNK: u32 = 65_536;

/// The stream to send, by sequence number.
#[derive(Debug)]
pub struct SendBuffer<B> {
    /// One past the last octet written; [`Seq::END`] for an endless stream.
    end: Seq,
    /// Each chunk reaches to the next one, the last to the start of the pattern or to the end. A
    /// chunk shorter than its range is repeated.
    chunks: VecDeque<(Seq, B)>,
    /// Pattern that an endless stream repeats; the number is that of the first octet of a
    /// repetition that is not fully released.
    pattern: Option<(Seq, B)>,
}

impl<B: Body> SendBuffer<B> {
    /// Returns an empty buffer whose first octet will have the number `first`.
    #[must_use]
    pub const fn new(first: Seq) -> Self {
        Self {
            end: first,
            chunks: VecDeque::new(),
            pattern: None,
        }
    }

    /// One past the last octet that can be sent.
    #[must_use]
    #[inline]
    pub const fn end(&self) -> Seq {
        self.end
    }

    /// Appends `body`.
    ///
    /// # Panics
    /// After [`Self::repeat`].
    pub fn write(&mut self, body: B) {
        assert!(self.pattern.is_none(), "nothing follows an endless stream");
        let len = body.len();
        if len == 0 {
            return;
        }
        match self.chunks.back_mut() {
            Some((start, last))
                if last.len() <= CHUNK
                    && len <= CHUNK - last.len()
                    && *start + u64::from(last.len()) == self.end =>
            {
                last.append(&body);
            }
            _ => self.chunks.push_back((self.end, body)),
        }
        self.end = self.end.saturating_add(u64::from(len)).min(Seq::LAST);
    }

    /// Appends `total` octets, repetitions of `pattern`. It takes the memory of one pattern,
    /// whatever `total` is.
    ///
    /// # Panics
    /// If the pattern is empty, and after [`Self::repeat`].
    pub fn write_repeated(&mut self, pattern: B, total: u64) {
        assert!(self.pattern.is_none(), "nothing follows an endless stream");
        assert!(!pattern.is_empty(), "a pattern has octets");
        if total > 0 {
            self.chunks.push_back((self.end, pattern));
            self.end = self.end.saturating_add(total).min(Seq::LAST);
        }
    }

    /// Lets the stream repeat `pattern` without end.
    ///
    /// # Panics
    /// If the pattern is empty.
    pub fn repeat(&mut self, pattern: B) {
        assert!(!pattern.is_empty(), "a pattern has octets");
        self.pattern = Some((self.end, pattern));
        self.end = Seq::END;
    }

    /// Ends the stream at `end`, which is not before any data sent.
    pub fn truncate(&mut self, end: Seq) {
        self.end = self.end.min(end);
    }

    /// Returns `len` octets from `at` on. They must have been written and not yet released.
    #[must_use]
    #[inline]
    pub fn body(&self, at: Seq, len: u32) -> B {
        if B::LENGTH_IS_ALL {
            debug_assert_eq!(self.assemble(at, len).len(), len);
            return B::filler(len);
        }
        if let Some((begin, pattern)) = &self.pattern
            && at >= *begin
        {
            let start = at.since(*begin);
            if start + u64::from(len) <= u64::from(pattern.len()) {
                #[expect(clippy::cast_possible_truncation, reason = "less than a 32-bit length")]
                return pattern.slice(start as u32, len);
            }
        }
        self.assemble(at, len)
    }

    /// As [`Self::body`], for octets of several chunks.
    #[inline(never)]
    fn assemble(&self, mut at: Seq, mut len: u32) -> B {
        let mut body = B::default();
        let mut chunk = self
            .chunks
            .partition_point(|(start, _)| *start <= at)
            .wrapping_sub(1);
        while len > 0 {
            let end = self.chunk_end(chunk);
            let (start, source, end) = match (self.chunks.get(chunk), &self.pattern) {
                (Some((start, source)), _) if at < end => (*start, source, end),
                (_, Some((start, pattern))) if at >= *start => (*start, pattern, Seq::END),
                _ => unreachable!("octets at {at:?} are written and not released"),
            };
            #[expect(clippy::cast_possible_truncation, reason = "an offset within a body")]
            let offset = (at.since(start) % u64::from(source.len())) as u32;
            let left = u32::try_from(end.since(at)).unwrap_or(u32::MAX);
            let part = len.min(source.len() - offset).min(left);
            if body.is_empty() {
                body = source.slice(offset, part);
            } else {
                body.append(&source.slice(offset, part));
            }
            at += u64::from(part);
            len -= part;
            if at >= end {
                chunk = chunk.wrapping_add(1);
            }
        }
        body
    }

    /// End of a chunk: the start of the next one or of the pattern.
    fn chunk_end(&self, chunk: usize) -> Seq {
        match (self.chunks.get(chunk.wrapping_add(1)), &self.pattern) {
            (Some((next, _)), _) => *next,
            (None, Some((begin, _))) => *begin,
            (None, None) => self.end,
        }
    }

    /// Releases everything before `una`, which is acknowledged.
    #[expect(
        clippy::inline_always,
        reason = "measured: it is a step of the hot path"
    )]
    #[inline(always)]
    pub fn release(&mut self, una: Seq) {
        if let Some((begin, pattern)) = &mut self.pattern {
            while una.since(*begin) >= u64::from(pattern.len()) {
                *begin += u64::from(pattern.len());
            }
        }
        while !self.chunks.is_empty() && self.chunk_end(0) <= una {
            self.chunks.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_core::body::{Length, Octets};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_part_equals_the_data_written(
            writes in proptest::collection::vec(
                (proptest::collection::vec(any::<u8>(), 0..50), proptest::option::of(0_usize..200)), 1..20,
            ),
            pattern in proptest::option::of(proptest::collection::vec(any::<u8>(), 1..9)),
            from in 0_usize..1_200, len in 1_usize..300, released in 0_usize..1_200,
        ) {
            let first = Seq::first(u32::MAX - 5);
            let mut buffer = SendBuffer::new(first);
            let mut stream: Vec<u8> = Vec::new();
            for (write, repeated) in writes {
                match repeated {
                    Some(total) if !write.is_empty() => {
                        stream.extend(write.iter().cycle().take(total));
                        buffer.write_repeated(Octets(write), total as u64);
                    }
                    _ => {
                        stream.extend(&write);
                        buffer.write(Octets(write));
                    }
                }
            }
            if let Some(pattern) = pattern {
                buffer.repeat(Octets(pattern.clone()));
                stream.extend(pattern.iter().cycle().take(500));
            }
            let from = from.min(stream.len());
            let len = len.min(stream.len() - from);
            buffer.release(first + released.min(from) as u64);
            if len > 0 {
                let part = buffer.body(first + from as u64, u32::try_from(len).unwrap());
                prop_assert_eq!(&part.0[..], &stream[from..from + len]);
            }
        }
    }

    #[test]
    fn repeated_data_takes_no_memory_for_its_length() {
        for total in [u64::from(u32::MAX) * 5, 1 << 50, u64::MAX] {
            let first = Seq::first(u32::MAX);
            let mut buffer = SendBuffer::new(first);
            buffer.write(Length(7));
            buffer.write_repeated(Length(65_536), total);
            buffer.write(Length(9));
            assert_eq!(buffer.chunks.len(), 3);
            assert!(first < buffer.end() && buffer.end() < Seq::END);
            let at = total / 3;
            buffer.release(first + at);
            assert_eq!(buffer.body(first + at, 1448), Length(1448));
        }
    }

    #[test]
    fn an_endless_stream_of_lengths_costs_no_memory() {
        let first = Seq::first(0);
        let mut buffer = SendBuffer::new(first);
        buffer.repeat(Length(u32::MAX));
        assert_eq!(buffer.end(), Seq::END);
        for at in [0, u64::from(u32::MAX) - 3, 1 << 40] {
            assert_eq!(buffer.body(first + at, 1448), Length(1448));
        }
    }
}
