//! The handshake's messages, the cookie reply and the stamp reply.

use super::{
    PathId, TYPE_COOKIE_REPLY, TYPE_INITIATION, TYPE_RESPONSE, TYPE_STAMP_REPLY, VERSION,
    WireError, array, four, path,
};

/// Octets of a message authentication code.
pub const MAC: usize = 16;
/// Octets of Noise IK's first message: two public keys, one of them sealed, and a sealed payload:
/// boot number and stamp.
pub const NOISE_INITIATION: usize = 32 + 48 + 32;
/// Octets of Noise IK's second message: a public key and a sealed boot number.
pub const NOISE_RESPONSE: usize = 32 + 24;
/// Octets of an initiation.
pub const INITIATION: usize = 8 + NOISE_INITIATION + 2 * MAC;
/// Octets of a response. It is shorter than an initiation, so that it cannot be used for
/// amplification.
pub const RESPONSE: usize = 12 + NOISE_RESPONSE + MAC;
/// Octets of a cookie reply, which is shorter than an initiation too.
pub const COOKIE_REPLY: usize = 8 + 24 + 32;
/// Octets of a stamp reply, which is shorter than an initiation too.
pub const STAMP_REPLY: usize = 8 + 24 + 24;

/// The first message of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Initiation {
    /// The path on which it was sent.
    pub path: PathId,
    /// The sender's index of the future session.
    pub sender: u32,
    /// Noise IK's first message.
    pub noise: [u8; NOISE_INITIATION],
    /// Code over all preceding octets, by the receiver's public key.
    pub mac1: [u8; MAC],
    /// Code over all preceding octets, by a cookie; zero without one.
    pub mac2: [u8; MAC],
}

impl Initiation {
    /// Octets that `mac1` covers.
    pub const BEFORE_MAC1: usize = INITIATION - 2 * MAC;
    /// Octets that `mac2` covers.
    pub const BEFORE_MAC2: usize = INITIATION - MAC;

    /// Encodes the message.
    #[must_use]
    pub fn encode(&self) -> [u8; INITIATION] {
        let mut octets = [0; INITIATION];
        octets[..3].copy_from_slice(&[TYPE_INITIATION, VERSION, self.path.number()]);
        octets[4..8].copy_from_slice(&self.sender.to_be_bytes());
        octets[8..Self::BEFORE_MAC1].copy_from_slice(&self.noise);
        octets[Self::BEFORE_MAC1..Self::BEFORE_MAC2].copy_from_slice(&self.mac1);
        octets[Self::BEFORE_MAC2..].copy_from_slice(&self.mac2);
        octets
    }

    pub(super) fn decode(octets: &[u8]) -> Result<Self, WireError> {
        Ok(Self {
            path: begin::<INITIATION>(octets)?,
            sender: four(octets, 4),
            noise: array(octets, 8),
            mac1: array(octets, Self::BEFORE_MAC1),
            mac2: array(octets, Self::BEFORE_MAC2),
        })
    }
}

/// The answer to an initiation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// The path of the initiation that it answers.
    pub path: PathId,
    /// The sender's index of the session.
    pub sender: u32,
    /// The receiver's index of the session.
    pub receiver: u32,
    /// Noise IK's second message.
    pub noise: [u8; NOISE_RESPONSE],
    /// Code over all preceding octets, by the receiver's public key.
    pub mac1: [u8; MAC],
}

impl Response {
    /// Octets that `mac1` covers.
    pub const BEFORE_MAC1: usize = RESPONSE - MAC;

    /// Encodes the message.
    #[must_use]
    pub fn encode(&self) -> [u8; RESPONSE] {
        let mut octets = [0; RESPONSE];
        octets[..3].copy_from_slice(&[TYPE_RESPONSE, VERSION, self.path.number()]);
        octets[4..8].copy_from_slice(&self.sender.to_be_bytes());
        octets[8..12].copy_from_slice(&self.receiver.to_be_bytes());
        octets[12..Self::BEFORE_MAC1].copy_from_slice(&self.noise);
        octets[Self::BEFORE_MAC1..].copy_from_slice(&self.mac1);
        octets
    }

    pub(super) fn decode(octets: &[u8]) -> Result<Self, WireError> {
        Ok(Self {
            path: begin::<RESPONSE>(octets)?,
            sender: four(octets, 4),
            receiver: four(octets, 8),
            noise: array(octets, 12),
            mac1: array(octets, Self::BEFORE_MAC1),
        })
    }
}

/// The answer to an initiation without a cookie, from an end under load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CookieReply {
    /// The path of the initiation that it answers.
    pub path: PathId,
    /// The receiver's index of the future session.
    pub receiver: u32,
    /// The nonce of the seal.
    pub nonce: [u8; 24],
    /// The cookie, sealed.
    pub sealed: [u8; 32],
}

impl CookieReply {
    /// Encodes the message.
    #[must_use]
    pub fn encode(&self) -> [u8; COOKIE_REPLY] {
        let mut octets = [0; COOKIE_REPLY];
        octets[..3].copy_from_slice(&[TYPE_COOKIE_REPLY, VERSION, self.path.number()]);
        octets[4..8].copy_from_slice(&self.receiver.to_be_bytes());
        octets[8..32].copy_from_slice(&self.nonce);
        octets[32..].copy_from_slice(&self.sealed);
        octets
    }

    pub(super) fn decode(octets: &[u8]) -> Result<Self, WireError> {
        Ok(Self {
            path: begin::<COOKIE_REPLY>(octets)?,
            receiver: four(octets, 4),
            nonce: array(octets, 8),
            sealed: array(octets, 32),
        })
    }
}

/// The answer to an authentic initiation whose stamp is not above the newest one of its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StampReply {
    /// The path of the initiation that it answers.
    pub path: PathId,
    /// The receiver's index of the future session.
    pub receiver: u32,
    /// The nonce of the seal.
    pub nonce: [u8; 24],
    /// The newest stamp, sealed.
    pub sealed: [u8; 24],
}

impl StampReply {
    /// Encodes the message.
    #[must_use]
    pub fn encode(&self) -> [u8; STAMP_REPLY] {
        let mut octets = [0; STAMP_REPLY];
        octets[..3].copy_from_slice(&[TYPE_STAMP_REPLY, VERSION, self.path.number()]);
        octets[4..8].copy_from_slice(&self.receiver.to_be_bytes());
        octets[8..32].copy_from_slice(&self.nonce);
        octets[32..].copy_from_slice(&self.sealed);
        octets
    }

    pub(super) fn decode(octets: &[u8]) -> Result<Self, WireError> {
        Ok(Self {
            path: begin::<STAMP_REPLY>(octets)?,
            receiver: four(octets, 4),
            nonce: array(octets, 8),
            sealed: array(octets, 32),
        })
    }
}

/// Decodes the common beginning: a fixed length, the version and the path.
fn begin<const OCTETS: usize>(octets: &[u8]) -> Result<PathId, WireError> {
    if octets.len() != OCTETS {
        return Err(WireError::Length {
            octets: octets.len(),
            expected: OCTETS,
        });
    }
    match octets {
        [_, VERSION, number, 0, ..] => path(*number),
        [_, VERSION, ..] => Err(WireError::Reserved),
        [_, version, ..] => Err(WireError::Version(*version)),
        _ => Err(WireError::Reserved),
    }
}
