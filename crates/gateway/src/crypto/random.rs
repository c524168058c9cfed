//! Random octets, which the caller provides.

use snow::{
    Error,
    params::{CipherChoice, DHChoice, HashChoice},
    resolvers::{CryptoResolver, DefaultResolver},
    types::{Cipher, Dh, Hash, Random},
};

use std::sync::Arc;

use super::curve::{Curve, Identity, Reading};

/// A source of random octets. A daemon must use the kernel's; tests use a seeded one.
pub trait Entropy: Send {
    /// Fills `octets`.
    fn fill(&mut self, octets: &mut [u8]);

    /// Draws an array.
    fn draw<const N: usize>(&mut self) -> [u8; N]
    where
        Self: Sized,
    {
        let mut octets = [0; N];
        self.fill(&mut octets);
        octets
    }
}

impl Entropy for Box<dyn Entropy> {
    fn fill(&mut self, octets: &mut [u8]) {
        self.as_mut().fill(octets);
    }
}

/// The primitives of one handshake of an end. Only the ephemeral key uses random octets, which are
/// drawn beforehand.
pub(super) struct Drawn {
    pub(super) ephemeral: [u8; 32],
    pub(super) identity: Identity,
    /// If an initiation is read.
    pub(super) reading: Option<Arc<Reading>>,
}

impl CryptoResolver for Drawn {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Once(Some(self.ephemeral))))
    }
    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        matches!(choice, DHChoice::Curve25519)
            .then(|| Box::new(Curve::new(self.identity.clone(), self.reading.clone())) as _)
    }
    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }
    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

/// Returns its octets once, so that no two keys are made from them.
struct Once(Option<[u8; 32]>);

impl Random for Once {
    fn try_fill_bytes(&mut self, into: &mut [u8]) -> Result<(), Error> {
        let octets = self.0.take().ok_or(Error::Rng)?;
        into.copy_from_slice(octets.get(..into.len()).ok_or(Error::Rng)?);
        Ok(())
    }
}
