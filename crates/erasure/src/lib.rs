//! Erasure codes: redundant packets made of data packets, and the packets that they rebuild. The crate knows neither TCP nor time.
//!
//! Each code has two forms that say the same. On octets ([`Code::encode`], [`Code::decode`]) it
//! makes redundancy and rebuilds what is missing. On presence alone ([`Code::recoverable`]) it says which
//! packets would be rebuilt, which is all that a simulation of lengths needs.
//!
//! Packets of different lengths count as padded with zeros to the longest, and come back padded: how long
//! they were is the business of whoever names them.
//!
//! A code is a file and a variant of [`AnyCode`] here. In the crate `fec` it is a variant of `Config` with its description, and
//! whatever sender and receiver do differently for it.
#![forbid(unsafe_code)]

pub mod gf256;
pub mod linear;
pub mod reed_solomon;
pub mod sliding_rlc;
pub mod tinymt32;
pub mod xor;

/// What a redundant packet covers. Places count the packets of whatever slice the code is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cover {
    /// The first packet.
    pub first: usize,
    /// How many.
    pub count: usize,
    /// Which of the redundant packets that cover them this is, in the code's own terms.
    pub key: u16,
    /// How many redundant packets the same packets have, where the code needs to know.
    pub of: u16,
}

impl Cover {
    /// The places covered.
    #[must_use]
    pub const fn places(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.count
    }
}

/// A code.
pub trait Code {
    /// The most packets that one redundant packet can cover.
    fn most_sources(&self) -> u32;
    /// The most redundant packets of the same packets.
    fn most_redundant(&self) -> u32;
    /// `n` redundant packets for `sources`, the first of which has this key and each further one the next.
    ///
    /// # Panics
    /// If there are more sources or redundant packets than the code allows, or none.
    fn encode(&self, sources: &[&[u8]], key: u16, n: u16) -> Vec<Vec<u8>>;
    /// The places of the packets that are not `present` and can be rebuilt, in ascending order.
    fn recoverable(&self, present: &[bool], redundant: &[Cover]) -> Vec<usize>;
    /// The packets that are not there and can be rebuilt, in the order of their places, padded with zeros.
    /// Whoever made the redundant packets may have lied: then nonsense may come back, or less, but nothing
    /// panics.
    fn decode(
        &self,
        sources: &[Option<&[u8]>],
        redundant: &[(Cover, &[u8])],
    ) -> Vec<(usize, Vec<u8>)>;
}

/// Any of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnyCode {
    /// See [`xor`].
    Xor(xor::Xor),
    /// See [`reed_solomon`].
    ReedSolomon(reed_solomon::ReedSolomon),
    /// See [`sliding_rlc`].
    SlidingRlc(sliding_rlc::SlidingRlc),
}

macro_rules! each {
    ($value:expr, $code:ident => $body:expr) => {
        match $value {
            Self::Xor($code) => $body,
            Self::ReedSolomon($code) => $body,
            Self::SlidingRlc($code) => $body,
        }
    };
}

impl Code for AnyCode {
    fn most_sources(&self) -> u32 {
        each!(self, code => code.most_sources())
    }
    fn most_redundant(&self) -> u32 {
        each!(self, code => code.most_redundant())
    }
    fn encode(&self, sources: &[&[u8]], key: u16, n: u16) -> Vec<Vec<u8>> {
        each!(self, code => code.encode(sources, key, n))
    }
    fn recoverable(&self, present: &[bool], redundant: &[Cover]) -> Vec<usize> {
        each!(self, code => code.recoverable(present, redundant))
    }
    fn decode(
        &self,
        sources: &[Option<&[u8]>],
        redundant: &[(Cover, &[u8])],
    ) -> Vec<(usize, Vec<u8>)> {
        each!(self, code => code.decode(sources, redundant))
    }
}
