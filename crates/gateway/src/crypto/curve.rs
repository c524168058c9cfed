//! X25519 (RFC 7748), and the static key pair of an end.

use snow::{
    Error,
    types::{Dh, Random},
};
use std::{
    fmt,
    sync::{Arc, OnceLock},
};
use x25519_dalek::{X25519_BASEPOINT_BYTES, x25519};

/// The static key pair of an end. The public key is computed once, because that costs as much as a
/// Diffie-Hellman exchange.
#[derive(Clone)]
pub struct Identity {
    private: [u8; 32],
    public: [u8; 32],
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity")
    }
}

impl Identity {
    /// The key pair of a private key.
    #[must_use]
    pub fn new(private: [u8; 32]) -> Self {
        let public = x25519(private, X25519_BASEPOINT_BYTES);
        Self { private, public }
    }

    /// The private key.
    #[must_use]
    pub const fn private(&self) -> &[u8; 32] {
        &self.private
    }

    /// The public key.
    #[must_use]
    pub const fn public(&self) -> &[u8; 32] {
        &self.public
    }

    /// The secret that the two static keys share.
    pub(super) fn shared(&self, peer: &[u8; 32]) -> [u8; 32] {
        x25519(self.private, *peer)
    }
}

/// The public key of a private key.
#[must_use]
pub fn public_key(private: &[u8; 32]) -> [u8; 32] {
    Identity::new(*private).public
}

/// The reading of an initiation in two steps. The first exchange, with the ephemeral key, reveals
/// the initiator's static key; the second one, with that key, costs as much again, and is left out
/// for unknown initiators.
#[derive(Debug)]
pub(super) struct Reading {
    ephemeral: [u8; 32],
    /// The result of the first exchange.
    first: OnceLock<[u8; 32]>,
    /// The initiator's static key, not authenticated.
    initiator: OnceLock<[u8; 32]>,
}

impl Reading {
    pub(super) fn new(ephemeral: [u8; 32]) -> Arc<Self> {
        Arc::new(Self {
            ephemeral,
            first: OnceLock::new(),
            initiator: OnceLock::new(),
        })
    }

    /// The static key that the message claims, after it was read once.
    pub(super) fn initiator(&self) -> Option<&[u8; 32]> {
        self.initiator.get()
    }

    /// The exchange of `private` with the other end's `public` key; `None` for the second one the
    /// first time.
    fn exchange(&self, private: [u8; 32], public: [u8; 32]) -> Option<[u8; 32]> {
        if public == self.ephemeral {
            return Some(*self.first.get_or_init(|| x25519(private, public)));
        }
        let is_first_time = self.initiator.set(public).is_ok();
        (!is_first_time).then(|| x25519(private, public))
    }
}

/// The key pairs of one handshake.
pub(super) struct Curve {
    pair: Identity,
    /// The static key pair, whose public key is known.
    known: Identity,
    reading: Option<Arc<Reading>>,
}

impl Curve {
    pub(super) fn new(known: Identity, reading: Option<Arc<Reading>>) -> Self {
        let pair = Identity {
            private: [0; 32],
            public: [0; 32],
        };
        Self {
            pair,
            known,
            reading,
        }
    }
}

impl Dh for Curve {
    fn name(&self) -> &'static str {
        "25519"
    }
    fn pub_len(&self) -> usize {
        32
    }
    fn priv_len(&self) -> usize {
        32
    }
    fn set(&mut self, private: &[u8]) {
        // The caller's keys have 32 octets.
        let private = private.first_chunk().copied().unwrap_or([0; 32]);
        self.pair = if private == self.known.private {
            self.known.clone()
        } else {
            Identity::new(private)
        };
    }
    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), Error> {
        let mut private = [0; 32];
        rng.try_fill_bytes(&mut private)?;
        self.pair = Identity::new(private);
        Ok(())
    }
    fn pubkey(&self) -> &[u8] {
        &self.pair.public
    }
    fn privkey(&self) -> &[u8] {
        &self.pair.private
    }
    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let public = public.first_chunk().ok_or(Error::Dh)?;
        let out = out.first_chunk_mut().ok_or(Error::Dh)?;
        *out = match &self.reading {
            // The answer's exchanges use this end's ephemeral key.
            Some(reading) if self.pair.private == self.known.private => reading
                .exchange(self.pair.private, *public)
                .ok_or(Error::Dh)?,
            _ => x25519(self.pair.private, *public),
        };
        Ok(())
    }
}
