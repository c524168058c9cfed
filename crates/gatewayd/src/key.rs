//! X25519 keys (RFC 7748).

use x25519_dalek::{PublicKey, StaticSecret};

use crate::config::Key;

/// A new private key.
///
/// # Errors
/// If the system has no randomness.
pub fn generate() -> Result<Key, getrandom::Error> {
    let mut octets = [0; 32];
    getrandom::fill(&mut octets)?;
    // Clamped (RFC 7748 §5), as others show them.
    Ok(Key(StaticSecret::from(octets).to_bytes()))
}

/// The public key of a private one.
pub fn public(key: &Key) -> Key {
    Key(PublicKey::from(&StaticSecret::from(key.0)).to_bytes())
}
