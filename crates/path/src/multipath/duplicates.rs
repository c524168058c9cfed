//! Detection of duplicates by the tunnel's packet numbers.
//!
//! Each flow has a window of numbers, like the anti-replay window of IPsec receivers (RFC 4303
//! §3.4.3). A number below the window may be new or a duplicate; it counts as new because an extra
//! copy does less harm than a lost packet.

use anabranch_core::tunnel::Header;

/// Size of the window in numbers.
pub const WINDOW: u64 = 1_024;
const WORDS: usize = (WINDOW / 64) as usize;

#[derive(Debug, Clone)]
struct Flow {
    /// One past the highest extended number seen. The first number extends to 2^32, so that smaller
    /// numbers exist.
    top: u64,
    /// One bit per number, modulo the window.
    seen: [u64; WORDS],
}

impl Default for Flow {
    fn default() -> Self {
        Self {
            top: 1 << 32,
            seen: [0; WORDS],
        }
    }
}

/// Numbers seen, for all flows.
#[derive(Debug, Default)]
pub struct Duplicates {
    flows: Vec<Flow>,
}

impl Duplicates {
    /// Whether the packet is a duplicate. Records its number.
    pub fn is_copy(&mut self, header: &Header) -> bool {
        let flow = usize::from(header.flow);
        if flow >= self.flows.len() {
            self.flows.resize(flow + 1, Flow::default());
        }
        let flow = &mut self.flows[flow];
        #[expect(clippy::cast_possible_truncation, reason = "the low half travels")]
        let distance = header.number.wrapping_sub(flow.top as u32).cast_signed();
        let at = flow.top.wrapping_add_signed(i64::from(distance));
        let bit = |at: u64| {
            (
                usize::try_from(at % WINDOW / 64).unwrap_or(0),
                1_u64 << (at % 64),
            )
        };
        if at < flow.top {
            if flow.top - at > WINDOW {
                return false;
            }
            let (word, bit) = bit(at);
            let copy = flow.seen[word] & bit != 0;
            flow.seen[word] |= bit;
            return copy;
        }
        if at - flow.top >= WINDOW {
            flow.seen = [0; WORDS];
        } else {
            for passed in flow.top..at {
                let (word, bit) = bit(passed);
                flow.seen[word] &= !bit;
            }
        }
        let (word, bit) = bit(at);
        flow.seen[word] |= bit;
        flow.top = at + 1;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(number: u32) -> Header {
        Header {
            number,
            ..Header::default()
        }
    }

    #[test]
    fn copies_within_the_window_are_detected() {
        let mut duplicates = Duplicates::default();
        for number in [0, 2, 1, 70, 1_023, 3, 1_024, 5_000] {
            assert!(!duplicates.is_copy(&header(number)), "{number}");
        }
        for number in [5_000, 5_000] {
            assert!(duplicates.is_copy(&header(number)), "{number}");
        }
        assert!(!duplicates.is_copy(&header(4_999)));
        assert!(duplicates.is_copy(&header(4_999)));
        // Below the window, a number counts as new.
        assert!(!duplicates.is_copy(&header(1)));
    }

    #[test]
    fn numbers_wrap() {
        let mut duplicates = Duplicates::default();
        for number in (0..6).map(|k| 0x3fff_ffff_u32.wrapping_mul(k)) {
            assert!(!duplicates.is_copy(&header(number)), "{number:#x}");
            assert!(duplicates.is_copy(&header(number)), "{number:#x}");
        }
    }
}
