//! The TCP Fast Open option (RFC 7413 §4.1.1).

use std::num::NonZeroU8;

/// Octets of the longest cookie.
const MOST: usize = 16;
/// Octets of the shortest one.
const LEAST: usize = 4;
/// Bit of the shape for the experimental option.
const EXPERIMENTAL: u8 = 1 << 7;

/// The option: a request for a cookie, or a cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FastOpen {
    /// 1 + octets of the cookie, and [`EXPERIMENTAL`]. The encoding is compact because a segment
    /// has to fit a cache line.
    shape: NonZeroU8,
    octets: [u8; MOST],
}

impl FastOpen {
    /// A request for a cookie.
    pub const REQUEST: Self = Self {
        shape: NonZeroU8::MIN,
        octets: [0; MOST],
    };

    /// An option with this cookie, or a request if it has no octets. `None` for a cookie of a
    /// length that RFC 7413 does not permit: 4 to 16 octets, an even number.
    #[must_use]
    pub fn new(cookie: &[u8]) -> Option<Self> {
        if cookie.is_empty() {
            return Some(Self::REQUEST);
        }
        if !(LEAST..=MOST).contains(&cookie.len()) || !cookie.len().is_multiple_of(2) {
            return None;
        }
        let mut octets = [0; MOST];
        octets[..cookie.len()].copy_from_slice(cookie);
        let len = u8::try_from(cookie.len()).unwrap_or(0);
        Some(Self {
            shape: NonZeroU8::MIN.saturating_add(len),
            octets,
        })
    }

    /// The same as the experimental option (RFC 6994: kind 254 with the identifier F989), which
    /// stacks used before kind 34 was assigned.
    #[must_use]
    pub const fn experimental(self, on: bool) -> Self {
        let shape = self.shape.get() & !EXPERIMENTAL | if on { EXPERIMENTAL } else { 0 };
        match NonZeroU8::new(shape) {
            Some(shape) => Self { shape, ..self },
            None => self,
        }
    }

    /// Whether this is the experimental option.
    #[must_use]
    pub const fn is_experimental(&self) -> bool {
        self.shape.get() & EXPERIMENTAL != 0
    }

    /// The cookie; empty for a request.
    #[must_use]
    pub fn cookie(&self) -> &[u8] {
        let len = usize::from(self.shape.get() & !EXPERIMENTAL) - 1;
        &self.octets[..len.min(MOST)]
    }

    /// Whether this is a request for a cookie.
    #[must_use]
    pub fn is_request(&self) -> bool {
        self.cookie().is_empty()
    }

    /// Size in the header in bytes, padded to words.
    #[must_use]
    pub fn size(&self) -> u32 {
        let header = if self.is_experimental() { 4 } else { 2 };
        let cookie = self.cookie().len();
        u32::next_multiple_of(header + u32::try_from(cookie).unwrap_or(0), 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_have_an_even_number_of_four_to_sixteen_octets() {
        let cookie = [7; 20];
        for len in 1..=20 {
            let option = FastOpen::new(&cookie[..len]);
            let valid = matches!(len, 4 | 6 | 8 | 10 | 12 | 14 | 16);
            assert_eq!(option.is_some(), valid, "{len}");
            if let Some(option) = option {
                assert_eq!(option.cookie(), &cookie[..len]);
                assert_eq!(option.experimental(true).cookie(), &cookie[..len]);
            }
        }
    }

    #[test]
    fn the_experimental_option_is_two_octets_longer() {
        let request = FastOpen::REQUEST;
        assert!(request.is_request() && request.experimental(true).is_request());
        assert_eq!((request.size(), request.experimental(true).size()), (4, 4));
        let option = FastOpen::new(&[1; 8]).expect("a valid length");
        assert_eq!((option.size(), option.experimental(true).size()), (12, 12));
        assert_eq!(option.experimental(true).experimental(false), option);
    }
}
