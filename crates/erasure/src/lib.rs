//! Erasure codes: the encoding of redundant packets, and the recovery of lost data packets from
//! them. The crate is independent of TCP and time.
//!
//! Each code has two forms with equal results. On octets, [`Code::encode`] produces redundancy and
//! [`Code::decode`] recovers missing packets. On presence alone, [`Code::recoverable`] returns the
//! packets that would be recovered, which is sufficient for a simulation of lengths.
//!
//! Shorter packets are padded with zeros to the longest one, and are recovered with the padding.
//! The caller knows their lengths.
//!
//! A new code is a file and a variant of [`AnyCode`] in this crate; in the crate `fec` it is a
//! variant of `Config` with its description, and its differences in sender and receiver.
#![forbid(unsafe_code)]

pub mod gf256;
pub mod linear;
pub mod reed_solomon;
pub mod sliding_rlc;
pub mod tinymt32;
pub mod xor;

/// The packets that a redundant packet covers. Places index the slice passed to the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cover {
    /// The first packet.
    pub first: usize,
    /// The number of packets.
    pub count: usize,
    /// The key of this redundant packet among all with the same cover; its meaning
    /// depends on the code.
    pub key: u16,
    /// The number of redundant packets of the same packets, if the code needs it.
    pub of: u16,
}

impl Cover {
    /// The places covered.
    #[must_use]
    pub const fn places(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.count
    }
}

/// An erasure code.
pub trait Code {
    /// Maximum number of packets that one redundant packet can cover.
    fn most_sources(&self) -> u32;
    /// Maximum number of redundant packets of the same packets.
    fn most_redundant(&self) -> u32;
    /// Encodes `n` redundant packets for `sources`, with consecutive keys from `key`.
    ///
    /// # Panics
    /// If there are more sources or redundant packets than the code allows, or none.
    fn encode(&self, sources: &[&[u8]], key: u16, n: u16) -> Vec<Vec<u8>>;
    /// The places of the packets that are not `present` and can be recovered, in ascending order.
    fn recoverable(&self, present: &[bool], redundant: &[Cover]) -> Vec<usize>;
    /// Recovers missing packets, in the order of their places, padded with zeros. Forged redundant
    /// packets may yield wrong or fewer packets, but never a panic.
    fn decode(
        &self,
        sources: &[Option<&[u8]>],
        redundant: &[(Cover, &[u8])],
    ) -> Vec<(usize, Vec<u8>)>;
}

/// One of the codes.
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
