//! X25519 keys (RFC 7748).

use std::{fmt, str::FromStr};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, de};
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroize;

/// A key of thirty-two octets, displayed in base64.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(pub [u8; 32]);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

impl fmt::Debug for Key {
    /// Omits the octets, which may be a private key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl FromStr for Key {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let octets = STANDARD.decode(text).map_err(|_| "is no base64")?;
        <[u8; 32]>::try_from(octets)
            .map(Self)
            .map_err(|_| "is no key of 32 octets")
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The message must not contain a private key.
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|why| {
            de::Error::custom(format!(
                "this {why}; expected a key in base64, 44 characters, as `keygen` prints it"
            ))
        })
    }
}

/// A new private key.
///
/// # Errors
/// If the system has no randomness.
pub fn generate() -> Result<Key, getrandom::Error> {
    let mut octets = [0; 32];
    getrandom::fill(&mut octets)?;
    // Clamped (RFC 7748 §5), as other programs print private keys.
    Ok(Key(StaticSecret::from(octets).to_bytes()))
}

/// The public key of a private key.
pub fn public(key: &Key) -> Key {
    Key(PublicKey::from(&StaticSecret::from(key.0)).to_bytes())
}
