//! Stamps of initiations: each end gives its initiations increasing numbers, so that a repeated one
//! is recognized (as TAI64N in WireGuard, Donenfeld 2017, §5.1).
//!
//! A stamp is the time in nanoseconds, but only its order matters. If an end's clock is behind that
//! of an earlier start, the other end reports the newest stamp in a stamp reply, and the next
//! initiation has a greater one. So no clock has to be right, and nothing is stored.

use crate::time::Instant;
use blake2::{Blake2s256, digest::Digest};
use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use std::fmt;

use super::{Identity, random::Entropy};
use crate::wire::{Initiation, MAC, StampReply};

/// The stamps of one tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamps {
    /// The time at [`Instant::START`], in nanoseconds since any fixed time.
    epoch: u64,
    /// The last stamp of this end.
    last: u64,
    /// The newest stamp of the other end.
    newest: Option<u64>,
}

impl Stamps {
    /// No stamps yet.
    #[must_use]
    pub const fn new(epoch: u64) -> Self {
        Self {
            epoch,
            last: 0,
            newest: None,
        }
    }

    /// The stamp of a new initiation.
    pub fn next(&mut self, now: Instant) -> u64 {
        let time = self.epoch.saturating_add(now.as_nanos());
        self.last = time.max(self.last.saturating_add(1));
        self.last
    }

    /// Takes a stamp of the other end if it is newer than all before.
    pub fn take(&mut self, stamp: u64) -> bool {
        let is_new = self.newest.is_none_or(|newest| stamp > newest);
        if is_new {
            self.newest = Some(stamp);
        }
        is_new
    }

    /// The newest stamp of the other end.
    #[must_use]
    pub const fn newest(&self) -> Option<u64> {
        self.newest
    }

    /// Raises this end's stamps above one that the other end has reported.
    pub fn raise(&mut self, above: u64) {
        self.last = self.last.max(above);
    }
}

/// The key of stamp replies. Only the two ends can compute it.
pub struct StampKey(XChaCha20Poly1305);

impl fmt::Debug for StampKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StampKey")
    }
}

impl StampKey {
    /// The key for replies from the owner of public key `from`.
    #[must_use]
    pub fn of(own: &Identity, peer: &[u8; 32], from: &[u8; 32]) -> Self {
        let hash = Blake2s256::new()
            .chain_update(b"stamp---")
            .chain_update(own.shared(peer))
            .chain_update(from);
        Self(XChaCha20Poly1305::new(&hash.finalize()))
    }

    /// The reply to an initiation.
    pub fn reply(
        &self,
        initiation: &Initiation,
        newest: u64,
        entropy: &mut impl Entropy,
    ) -> Option<StampReply> {
        let nonce: [u8; 24] = entropy.draw();
        let payload = Payload {
            msg: &newest.to_be_bytes(),
            aad: &initiation.mac1,
        };
        let sealed = self.0.encrypt(&XNonce::from(nonce), payload).ok()?;
        Some(StampReply {
            path: initiation.path,
            receiver: initiation.sender,
            nonce,
            sealed: sealed.try_into().ok()?,
        })
    }

    /// Opens the reply to the initiation with code `mac1`.
    #[must_use]
    pub fn open(&self, reply: &StampReply, mac1: &[u8; MAC]) -> Option<u64> {
        let payload = Payload {
            msg: &reply.sealed,
            aad: mac1,
        };
        let opened = self.0.decrypt(&XNonce::from(reply.nonce), payload).ok()?;
        Some(u64::from_be_bytes(*opened.first_chunk()?))
    }
}
