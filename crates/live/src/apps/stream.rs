//! The content that applications write: octets that depend on their position in the stream, so that
//! a reader can verify them.

use std::fmt;

/// The octets of one direction of a connection, or of one datagram.
///
/// Each group of eight is a hash of its position and of the stream's key, so that no part resembles
/// another part or another stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    key: u64,
    position: u64,
}

impl Stream {
    /// The content that end `side` (0 at `from`, 1 at `to`) of a flow writes.
    pub const fn written_by(flow: usize, side: usize) -> Self {
        Self {
            key: (((flow as u64) << 1) | side as u64) + 1,
            position: 0,
        }
    }

    /// The content of one transfer or datagram of a flow, counted from 0.
    pub const fn numbered(self, number: u64) -> Self {
        Self {
            key: mix(number, self.key),
            position: 0,
        }
    }

    /// The number of octets already taken.
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Fills `room` with the next octets, without advancing.
    pub fn peek(&self, room: &mut [u8]) {
        let mut at = self.position;
        let mut rest = room;
        while !rest.is_empty() {
            let word = mix(at / 8, self.key).to_le_bytes();
            let skip = usize::try_from(at % 8).expect("below eight");
            let part = rest.len().min(8 - skip);
            let (head, tail) = rest.split_at_mut(part);
            head.copy_from_slice(&word[skip..skip + part]);
            at += part as u64;
            rest = tail;
        }
    }

    /// Advances by a number of octets.
    pub const fn advance(&mut self, octets: u64) {
        self.position += octets;
    }
}

/// The finalizer of `SplitMix64` (Steele et al., "Fast Splittable Pseudorandom Number Generators",
/// 2014).
const fn mix(place: u64, key: u64) -> u64 {
    let mut z = place
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(key.wrapping_mul(0xd1b5_4a32_d192_ed03));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The first octet that differs from the written one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wrong {
    /// Counted from 0.
    pub octet: u64,
    /// The transfer or datagram, if the flow has many.
    pub part: Option<Part>,
}

/// One of the transfers or datagrams of a flow, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Transfer(u64),
    Datagram(u64),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "octet {}", self.octet)?;
        match self.part {
            None => Ok(()),
            Some(Part::Transfer(number)) => write!(f, " of transfer {number}"),
            Some(Part::Datagram(number)) => write!(f, " of datagram {number}"),
        }
    }
}

/// Compares octets read with the octets written.
#[derive(Debug, Clone)]
pub struct Check {
    stream: Stream,
    expected: Vec<u8>,
    wrong: Option<u64>,
}

impl Check {
    pub const fn of(stream: Stream) -> Self {
        Self {
            stream,
            expected: Vec::new(),
            wrong: None,
        }
    }

    /// Takes the next octets.
    pub fn take(&mut self, octets: &[u8]) {
        self.expected.resize(octets.len(), 0);
        self.stream.peek(&mut self.expected);
        if self.wrong.is_none() && self.expected != octets {
            let same = self.expected.iter().zip(octets).take_while(|(a, b)| a == b);
            self.wrong = Some(self.stream.position() + same.count() as u64);
        }
        self.stream.advance(octets.len() as u64);
    }

    /// Takes the end of the stream, whose expected length is `size`.
    pub fn end(&mut self, size: u64) {
        if self.stream.position() != size {
            self.wrong.get_or_insert(self.stream.position().min(size));
        }
    }

    pub const fn read(&self) -> u64 {
        self.stream.position()
    }

    /// The position of the first octet that differs from the written one.
    pub const fn wrong(&self) -> Option<u64> {
        self.wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octets(flow: usize, from: u64, len: usize) -> Vec<u8> {
        let mut stream = Stream::written_by(flow, 0);
        stream.advance(from);
        let mut room = vec![0; len];
        stream.peek(&mut room);
        room
    }

    #[test]
    fn content_is_independent_of_read_boundaries() {
        let whole = octets(3, 0, 1000);
        for (from, len) in [(0, 1), (1, 7), (3, 20), (8, 8), (500, 500)] {
            assert_eq!(
                octets(3, from as u64, len),
                whole[from..from + len],
                "{from} {len}"
            );
        }
    }

    /// Detects a check that ignores missing or excess octets, and transfers that all have the same
    /// content.
    #[test]
    fn each_transfer_has_its_own_content_and_length() {
        let of = |number: u64, len: usize| {
            let mut room = vec![0; len];
            Stream::written_by(0, 0).numbered(number).peek(&mut room);
            room
        };
        let after = |octets: &[u8], size: u64| {
            let mut check = Check::of(Stream::written_by(0, 0).numbered(5));
            check.take(octets);
            check.end(size);
            check.wrong()
        };
        assert_eq!(after(&of(5, 100), 100), None);
        assert_eq!(after(&of(6, 100), 100), Some(0));
        assert_eq!(after(&octets(0, 0, 100), 100), Some(0));
        assert_eq!(after(&of(5, 99), 100), Some(99));
        assert_eq!(after(&of(5, 101), 100), Some(100));
    }

    /// Detects a check of the number of octets alone, and a pattern whose period is a segment.
    #[test]
    fn lost_duplicated_and_swapped_data_is_detected() {
        let mut check = Check::of(Stream::written_by(0, 0));
        check.take(&octets(0, 0, 1448));
        check.take(&octets(0, 1448, 1448));
        assert_eq!((check.read(), check.wrong()), (2896, None));
        for wrong in [
            octets(0, 1448 * 3, 1448),
            octets(0, 1448, 1448),
            octets(0, 1448 * 251 * 256, 1448),
            octets(1, 2896, 1448),
            vec![0; 1448],
        ] {
            let mut check = check.clone();
            check.take(&wrong);
            assert_eq!(check.wrong(), Some(2896));
        }
        let mut last = octets(0, 2896, 100);
        last[99] ^= 1;
        check.take(&last);
        assert_eq!(check.wrong(), Some(2995));
    }
}
