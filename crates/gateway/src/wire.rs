//! Encoding of the tunnel's messages: version 3.
//!
//! All numbers are in network order. `docs/design/027-gateway-protocol.md` shows the layouts.
//! Decoding is strict: a message of another length, type or version is refused, and so are reserved
//! octets that are not zero.

mod arrivals;
mod control;
mod handshake;
mod inner;

pub use arrivals::{Arrivals, WORDS};
pub use control::{Control, Entry, Report, Role};
pub use handshake::{
    COOKIE_REPLY, CookieReply, INITIATION, Initiation, MAC, NOISE_INITIATION, NOISE_RESPONSE,
    RESPONSE, Response, STAMP_REPLY, StampReply,
};
pub use inner::{Inner, Kind, Place, Repair};

/// Octets of a data message's header, which is associated data of the seal.
pub const HEADER: usize = 16;
/// Octets of the sealed header in front of a packet.
pub const INNER: usize = 8;
/// Octets of the seal.
pub const TAG: usize = 16;
/// Octets that the tunnel adds to a packet, over UDP.
pub const OVERHEAD: usize = HEADER + INNER + TAG;
/// The largest number of paths of a tunnel; they are numbered from 0.
pub const PATHS: usize = 16;

const VERSION: u8 = 3;
const TYPE_INITIATION: u8 = 1;
const TYPE_RESPONSE: u8 = 2;
const TYPE_COOKIE_REPLY: u8 = 3;
const TYPE_DATA: u8 = 4;
const TYPE_STAMP_REPLY: u8 = 5;

/// The number of a path, the same at both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathId(u8);

impl PathId {
    /// Path `number`, if a tunnel can have it.
    #[must_use]
    pub fn new(number: u8) -> Option<Self> {
        (usize::from(number) < PATHS).then_some(Self(number))
    }

    /// The number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The number as an index.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The reason why octets are not a valid message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The message type does not exist in this version.
    #[error("message type {0} does not exist")]
    Type(u8),
    /// The message has another version.
    #[error("the tunnel's version is {VERSION}, not {0}")]
    Version(u8),
    /// Too few octets, or too many.
    #[error("{octets} octets, expected {expected}")]
    Length {
        /// The number of octets.
        octets: usize,
        /// The expected number, at least or exactly.
        expected: usize,
    },
    /// A path number beyond [`PATHS`].
    #[error("path {0} does not exist")]
    Path(u8),
    /// Reserved octets are not zero, or a flag or kind is unknown.
    #[error("reserved octets are not zero")]
    Reserved,
    /// A path occurs twice in a control message.
    #[error("path {0} is listed twice")]
    Twice(u8),
}

/// The header of a data message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The path on which it was sent.
    pub path: PathId,
    /// The block of packets and repair packets; 0 for messages of no block.
    pub block: u16,
    /// The receiver's index of the session.
    pub receiver: u32,
    /// The number in the space of the path and direction.
    pub number: u64,
}

impl Header {
    /// Encodes the header.
    #[must_use]
    pub fn encode(self) -> [u8; HEADER] {
        let mut octets = [0; HEADER];
        octets[0] = TYPE_DATA;
        octets[1] = self.path.number();
        octets[2..4].copy_from_slice(&self.block.to_be_bytes());
        octets[4..8].copy_from_slice(&self.receiver.to_be_bytes());
        octets[8..16].copy_from_slice(&self.number.to_be_bytes());
        octets
    }

    fn decode(octets: &[u8]) -> Result<Self, WireError> {
        let least = HEADER + INNER + TAG;
        let head = octets
            .first_chunk::<HEADER>()
            .filter(|_| octets.len() >= least);
        let head = head.ok_or(WireError::Length {
            octets: octets.len(),
            expected: least,
        })?;
        Ok(Self {
            path: path(head[1])?,
            block: two(head, 2),
            receiver: four(head, 4),
            number: eight(head, 8),
        })
    }
}

/// A datagram of the tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// The first message of a handshake.
    Initiation(Initiation),
    /// The answer to an initiation.
    Response(Response),
    /// The answer of an end under load.
    CookieReply(CookieReply),
    /// The answer to an authentic initiation with an old stamp.
    StampReply(StampReply),
    /// A sealed message; the seal covers the content after the header.
    Data(Header),
}

impl Message {
    /// Decodes a datagram. The content is not authenticated yet.
    ///
    /// # Errors
    /// [`WireError`] if these octets are not a message of this version.
    pub fn decode(octets: &[u8]) -> Result<Self, WireError> {
        match octets.first() {
            None => Err(WireError::Length {
                octets: 0,
                expected: HEADER,
            }),
            Some(&TYPE_INITIATION) => Initiation::decode(octets).map(Self::Initiation),
            Some(&TYPE_RESPONSE) => Response::decode(octets).map(Self::Response),
            Some(&TYPE_COOKIE_REPLY) => CookieReply::decode(octets).map(Self::CookieReply),
            Some(&TYPE_STAMP_REPLY) => StampReply::decode(octets).map(Self::StampReply),
            Some(&TYPE_DATA) => Header::decode(octets).map(Self::Data),
            Some(&other) => Err(WireError::Type(other)),
        }
    }
}

fn path(number: u8) -> Result<PathId, WireError> {
    PathId::new(number).ok_or(WireError::Path(number))
}

// The callers' arrays are long enough: their lengths are constants of the layouts.
fn two(octets: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([octets[at], octets[at + 1]])
}

fn four(octets: &[u8], at: usize) -> u32 {
    u32::from(two(octets, at)) << 16 | u32::from(two(octets, at + 2))
}

fn eight(octets: &[u8], at: usize) -> u64 {
    u64::from(four(octets, at)) << 32 | u64::from(four(octets, at + 4))
}

fn array<const N: usize>(octets: &[u8], at: usize) -> [u8; N] {
    let mut copy = [0; N];
    copy.copy_from_slice(&octets[at..at + N]);
    copy
}
