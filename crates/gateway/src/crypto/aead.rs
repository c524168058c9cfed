//! ChaCha20-Poly1305 (RFC 8439), in place.
//!
//! A browser's engine has no assembly: there a library in Rust alone takes ring's place. Both give
//! the same octets.

/// Octets of the authentication tag.
pub const TAG: usize = 16;

#[cfg(not(target_arch = "wasm32"))]
mod library {
    use super::TAG;
    use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

    /// A key of one direction.
    pub struct Cipher(LessSafeKey);

    impl Cipher {
        /// `None` if the library lacks the cipher.
        pub fn new(key: &[u8; 32]) -> Option<Self> {
            let key = UnboundKey::new(&CHACHA20_POLY1305, key);
            key.ok().map(LessSafeKey::new).map(Self)
        }

        /// Encrypts `content`, and returns its tag.
        pub fn seal(&self, nonce: [u8; 12], head: &[u8], content: &mut [u8]) -> Option<[u8; TAG]> {
            let nonce = Nonce::assume_unique_for_key(nonce);
            let tag = self
                .0
                .seal_in_place_separate_tag(nonce, Aad::from(head), content)
                .ok()?;
            tag.as_ref().try_into().ok()
        }

        /// Decrypts `sealed`, whose last octets are the tag, and returns the content.
        pub fn open<'a>(
            &self,
            nonce: [u8; 12],
            head: &[u8],
            sealed: &'a mut [u8],
        ) -> Option<&'a mut [u8]> {
            let nonce = Nonce::assume_unique_for_key(nonce);
            self.0.open_in_place(nonce, Aad::from(head), sealed).ok()
        }
    }
}

// Compiled for tests everywhere, so that they compare both.
#[cfg(any(target_arch = "wasm32", test))]
mod portable {
    use super::TAG;
    use chacha20poly1305::{AeadInPlace, ChaCha20Poly1305, KeyInit, Tag};

    /// A key of one direction.
    pub struct Cipher(ChaCha20Poly1305);

    impl Cipher {
        /// Always a key.
        #[expect(
            clippy::unnecessary_wraps,
            reason = "the other library may lack the cipher"
        )]
        pub fn new(key: &[u8; 32]) -> Option<Self> {
            Some(Self(ChaCha20Poly1305::new(key.into())))
        }

        /// Encrypts `content`, and returns its tag.
        pub fn seal(&self, nonce: [u8; 12], head: &[u8], content: &mut [u8]) -> Option<[u8; TAG]> {
            let tag = self
                .0
                .encrypt_in_place_detached(&nonce.into(), head, content);
            tag.ok().map(Into::into)
        }

        /// Decrypts `sealed`, whose last octets are the tag, and returns the content.
        pub fn open<'a>(
            &self,
            nonce: [u8; 12],
            head: &[u8],
            sealed: &'a mut [u8],
        ) -> Option<&'a mut [u8]> {
            let length = sealed.len().checked_sub(TAG)?;
            let (content, tag) = sealed.split_at_mut(length);
            self.0
                .decrypt_in_place_detached(&nonce.into(), head, content, Tag::from_slice(tag))
                .ok()?;
            Some(content)
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
pub use library::Cipher;
#[cfg(target_arch = "wasm32")]
pub use portable::Cipher;

#[cfg(test)]
mod tests {
    use super::{TAG, library, portable};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_libraries_give_the_same_octets(
            key: [u8; 32],
            nonce: [u8; 12],
            head in proptest::collection::vec(any::<u8>(), 0..40),
            content in proptest::collection::vec(any::<u8>(), 0..1500),
            flipped: proptest::sample::Index,
        ) {
            let [mut one, mut other] = [content.clone(), content.clone()];
            let (here, there) = (library::Cipher::new(&key), portable::Cipher::new(&key));
            let (here, there) = (here.expect("ring has it"), there.expect("always"));
            let tag = here.seal(nonce, &head, &mut one).expect("short");
            prop_assert_eq!(there.seal(nonce, &head, &mut other), Some(tag));
            prop_assert_eq!(&one, &other);
            one.extend_from_slice(&tag);
            let mut forged = [one.clone(), one.clone()];
            for sealed in &mut forged {
                sealed[flipped.index(content.len() + TAG)] ^= 1;
            }
            let [here_forged, there_forged] = &mut forged;
            prop_assert!(here.open(nonce, &head, here_forged).is_none());
            prop_assert!(there.open(nonce, &head, there_forged).is_none());
            let mut again = one.clone();
            let opened = here.open(nonce, &head, &mut again).map(|content| content.to_vec());
            prop_assert_eq!(opened.as_ref(), Some(&content));
            let opened = there.open(nonce, &head, &mut one).map(|content| content.to_vec());
            prop_assert_eq!(opened, Some(content));
            let mut short = [0; TAG - 1];
            prop_assert!(there.open(nonce, &head, &mut short).is_none());
        }
    }
}
