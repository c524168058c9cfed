//! Message authentication codes of initiations, and cookies under load (as in WireGuard, Donenfeld
//! 2017, §5.4.4 and §5.4.7).

use anabranch_core::units::Duration;

use crate::time::Instant;
use blake2::{
    Blake2s256, Blake2sMac,
    digest::{Digest, FixedOutput, KeyInit, Update, consts::U16},
};
use chacha20poly1305::{XChaCha20Poly1305, XNonce, aead::Aead, aead::Payload};
use core::net::{IpAddr, SocketAddr};

use super::random::Entropy;
use crate::wire::{CookieReply, Initiation, MAC, PathId};

/// The time for which a secret makes cookies; it is accepted for the same time afterwards.
const SECRET_LIFE: Duration = Duration::from_secs(120);

pub(crate) fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; MAC] {
    // A key of BLAKE2s has up to 32 octets, and those here have 16 or 32.
    let Ok(mut mac) = <Blake2sMac<U16> as KeyInit>::new_from_slice(key) else {
        return [0; MAC];
    };
    for part in parts {
        mac.update(part);
    }
    mac.finalize_fixed().into()
}

fn labelled(label: &[u8], public: &[u8; 32]) -> [u8; 32] {
    Blake2s256::new()
        .chain_update(label)
        .chain_update(public)
        .finalize_fixed()
        .into()
}

/// Whether two codes are equal, in a time that does not depend on the position of a difference.
fn equal(a: &[u8; MAC], b: &[u8; MAC]) -> bool {
    a.iter()
        .zip(b)
        .fold(0, |different, (a, b)| different | (a ^ b))
        == 0
}

/// The keys that are derived from the receiver's public key.
#[derive(Debug, Clone)]
pub struct MacKey {
    mac1: [u8; 32],
    cookie: [u8; 32],
}

impl MacKey {
    /// The keys for public key `public`.
    #[must_use]
    pub fn of(public: &[u8; 32]) -> Self {
        Self {
            mac1: labelled(b"mac1----", public),
            cookie: labelled(b"cookie--", public),
        }
    }

    /// The code over `octets`.
    #[must_use]
    pub fn mac1(&self, octets: &[u8]) -> [u8; MAC] {
        mac(&self.mac1, &[octets])
    }

    /// Whether `mac1` is the code over `octets`.
    #[must_use]
    pub fn is_mac1(&self, octets: &[u8], mac1: &[u8; MAC]) -> bool {
        equal(&self.mac1(octets), mac1)
    }
}

/// A token bucket: a rate of handshakes, and the size of a burst.
#[derive(Debug, Clone, Copy)]
pub struct Meter {
    per_s: f64,
    burst: f64,
    tokens: f64,
    at: Instant,
}

impl Meter {
    /// A full bucket.
    #[must_use]
    pub const fn new(per_s: f64, burst: f64) -> Self {
        Self {
            per_s,
            burst,
            tokens: burst,
            at: Instant::START,
        }
    }

    /// Whether [`Self::take`] would succeed.
    pub fn may_take(&mut self, rest: f64, now: Instant) -> bool {
        let past_s = now.saturating_since(self.at).as_secs_f64();
        // Times so close that rounding would lose the tokens between them are added up.
        if past_s > 1e-4 {
            self.tokens = (self.tokens + past_s * self.per_s).min(self.burst);
            self.at = now;
        }
        self.tokens >= rest + 1.0
    }

    /// Takes a token, unless this would leave fewer than `rest`. Returns whether it was taken.
    pub fn take(&mut self, rest: f64, now: Instant) -> bool {
        let is_taken = self.may_take(rest, now);
        if is_taken {
            self.tokens -= 1.0;
        }
        is_taken
    }
}

/// Creates and verifies cookies.
#[derive(Debug)]
pub struct Jar {
    secret: [u8; 32],
    last: [u8; 32],
    since: Instant,
}

impl Jar {
    /// Creates a jar with secrets from `entropy`.
    #[must_use]
    pub fn new(now: Instant, entropy: &mut impl Entropy) -> Self {
        Self {
            secret: entropy.draw(),
            last: entropy.draw(),
            since: now,
        }
    }

    fn renew(&mut self, now: Instant, entropy: &mut impl Entropy) {
        let age = now.saturating_since(self.since);
        if age < SECRET_LIFE {
            return;
        }
        let fresh = entropy.draw();
        self.last = std::mem::replace(&mut self.secret, fresh);
        if age >= SECRET_LIFE * 2 {
            self.last = entropy.draw();
        }
        self.since = now;
    }

    /// Whether the initiation carries a valid cookie for the address `from`.
    pub fn is_paid(
        &mut self,
        initiation: &Initiation,
        from: SocketAddr,
        now: Instant,
        entropy: &mut impl Entropy,
    ) -> bool {
        self.renew(now, entropy);
        if initiation.mac2 == [0; MAC] {
            return false;
        }
        let octets = initiation.encode();
        [self.secret, self.last].iter().any(|secret| {
            let expected = mac(&cookie(secret, from), &[&octets[..Initiation::BEFORE_MAC2]]);
            equal(&expected, &initiation.mac2)
        })
    }

    /// The reply to an initiation without a valid cookie.
    pub fn reply(
        &self,
        key: &MacKey,
        initiation: &Initiation,
        from: SocketAddr,
        entropy: &mut impl Entropy,
    ) -> Option<CookieReply> {
        let nonce: [u8; 24] = entropy.draw();
        let cookie = cookie(&self.secret, from);
        let payload = Payload {
            msg: &cookie,
            aad: &initiation.mac1,
        };
        let sealed =
            XChaCha20Poly1305::new(&key.cookie.into()).encrypt(&XNonce::from(nonce), payload);
        Some(CookieReply {
            path: initiation.path,
            receiver: initiation.sender,
            nonce,
            sealed: sealed.ok()?.try_into().ok()?,
        })
    }
}

fn cookie(secret: &[u8; 32], from: SocketAddr) -> [u8; MAC] {
    let port = from.port().to_be_bytes();
    match from.ip() {
        IpAddr::V4(ip) => mac(secret, &[&ip.octets(), &port]),
        IpAddr::V6(ip) => mac(secret, &[&ip.octets(), &port]),
    }
}

/// Opens the reply to the initiation with code `mac1`.
#[must_use]
pub fn open_cookie(key: &MacKey, reply: &CookieReply, mac1: &[u8; MAC]) -> Option<[u8; MAC]> {
    let payload = Payload {
        msg: &reply.sealed,
        aad: mac1,
    };
    let opened =
        XChaCha20Poly1305::new(&key.cookie.into()).decrypt(&XNonce::from(reply.nonce), payload);
    opened.ok()?.try_into().ok()
}

/// An initiation for one path, with its codes.
#[must_use]
pub fn with_mac2(
    path: PathId,
    sender: u32,
    noise: &[u8; crate::wire::NOISE_INITIATION],
    key: &MacKey,
    cookie: Option<&[u8; MAC]>,
) -> Initiation {
    let mut initiation = Initiation {
        path,
        sender,
        noise: *noise,
        mac1: [0; MAC],
        mac2: [0; MAC],
    };
    initiation.mac1 = key.mac1(&initiation.encode()[..Initiation::BEFORE_MAC1]);
    if let Some(cookie) = cookie {
        initiation.mac2 = mac(cookie, &[&initiation.encode()[..Initiation::BEFORE_MAC2]]);
    }
    initiation
}
