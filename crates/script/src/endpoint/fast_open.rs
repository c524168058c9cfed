//! Cookies of TCP Fast Open (RFC 7413): a server's secret, and a client's cache.

use anabranch_tcp::{FastOpenOutcome, FastOpenServer};
use anabranch_wire::FastOpen;

/// Bits of `net.ipv4.tcp_fastopen` (Linux, `Documentation/networking/ip-sysctl.rst`).
const CLIENT: u32 = 0x1;
const SERVER: u32 = 0x2;
const CLIENT_WITHOUT_COOKIE: u32 = 0x4;
const SERVER_WITHOUT_COOKIE: u32 = 0x200;
/// Every listener accepts data, also without `TCP_FASTOPEN`.
const ALL_LISTENERS: u32 = 0x400;

/// A secret of 128 bits.
pub(super) type Key = [u8; 16];

/// The secret that packetdrill's init scripts set.
const KEY: Key = [
    0xa1, 0xa1, 0xa1, 0xa1, 0xb2, 0xb2, 0xb2, 0xb2, 0xc3, 0xc3, 0xc3, 0xc3, 0xd4, 0xd4, 0xd4, 0xd4,
];

/// Which kind of option a client sends to a server that has given no cookie: kind 34 first, then the
/// experimental option once, and then kind 34 for good.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Attempt {
    #[default]
    Standard,
    Experimental,
    StandardForGood,
}

/// Fast Open of a host, with one peer.
#[derive(Debug)]
pub(super) struct Host {
    /// `net.ipv4.tcp_fastopen`
    bits: u32,
    /// `net.ipv4.tcp_fastopen_key`: the secret, and the one before.
    keys: Vec<Key>,
    cookie: Option<FastOpen>,
    mss: Option<u16>,
    attempt: Attempt,
}

impl Default for Host {
    fn default() -> Self {
        Self {
            bits: CLIENT,
            keys: vec![KEY],
            cookie: None,
            mss: None,
            attempt: Attempt::default(),
        }
    }
}

impl Host {
    /// Sets `net.ipv4.tcp_fastopen` or `net.ipv4.tcp_fastopen_key`. Returns whether it is one of them.
    pub(super) fn sysctl(&mut self, name: &str, text: &str) -> Result<bool, String> {
        match name {
            "net.ipv4.tcp_fastopen" => {
                let bits = match text.strip_prefix("0x") {
                    Some(hex) => u32::from_str_radix(hex, 16),
                    None => text.parse(),
                };
                self.bits = bits.map_err(|_| format!("{name}={text}: expected a sum of bits"))?;
                Ok(true)
            }
            "net.ipv4.tcp_fastopen_key" => {
                let keys: Option<Vec<Key>> = text.split(',').map(key_of).collect();
                match keys.filter(|keys| (1..=2).contains(&keys.len())) {
                    Some(keys) => self.keys = keys,
                    None => {
                        return Err(format!(
                            "{name}={text}: expected one or two keys such as \
                             a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4"
                        ));
                    }
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Whether connections may be opened with data.
    pub(super) const fn is_client(&self) -> bool {
        self.bits & CLIENT != 0
    }

    /// The option of a SYN: the cookie, or a request; `None` if data goes without a cookie.
    pub(super) fn client_option(&self, without_cookie: bool) -> Option<FastOpen> {
        if without_cookie || self.bits & CLIENT_WITHOUT_COOKIE != 0 {
            return None;
        }
        let is_experimental = self.attempt == Attempt::Experimental;
        let request = FastOpen::REQUEST.experimental(is_experimental);
        Some(self.cookie.unwrap_or(request))
    }

    /// The MSS of the last SYN-ACK.
    pub(super) const fn mss(&self) -> Option<u16> {
        self.mss
    }

    /// Learns from a SYN-ACK. `sent` is the option of the SYN, if it had one.
    pub(super) fn learn(&mut self, outcome: FastOpenOutcome, sent: Option<FastOpen>) {
        self.mss = outcome.mss.or(self.mss);
        if let Some(cookie) = outcome.cookie {
            self.cookie = Some(cookie);
            self.attempt = Attempt::Standard;
        } else if sent.is_some_and(|sent| sent.is_request()) && !outcome.is_retransmitted {
            self.attempt = match self.attempt {
                Attempt::Standard => Attempt::Experimental,
                _ => Attempt::StandardForGood,
            };
        }
    }

    /// Discards the cookie and the MSS.
    pub(super) fn forget(&mut self) {
        (self.cookie, self.mss) = (None, None);
        self.attempt = Attempt::default();
    }

    /// Policy of a listener. `listens` is set if the application has permitted it
    /// (`TCP_FASTOPEN`), `own` is the secret of the socket, and `addresses` are the source and the destination of a SYN.
    pub(super) fn server(
        &self,
        listens: bool,
        own: &[Key],
        addresses: [[u8; 4]; 2],
    ) -> Option<FastOpenServer> {
        let on = self.bits & SERVER != 0 && (listens || self.bits & ALL_LISTENERS != 0);
        let keys = if own.is_empty() { &self.keys } else { own };
        let mut cookies = keys.iter().map(|key| cookie(key, addresses));
        on.then(|| FastOpenServer {
            cookie: cookies.next().expect("there is a secret"),
            older: cookies.next(),
            without_cookie: self.bits & SERVER_WITHOUT_COOKIE != 0,
        })
    }
}

/// The key in a socket option: 16 octets.
pub(super) fn keys_of_option(octets: &[u8]) -> Option<Vec<Key>> {
    let (keys, rest) = octets.as_chunks::<16>();
    (rest.is_empty() && (1..=2).contains(&keys.len())).then(|| keys.to_vec())
}

/// Four numbers of 32 bits in hexadecimal; each is written to memory in the order of little-endian
/// hosts.
fn key_of(text: &str) -> Option<Key> {
    let mut key = Key::default();
    let words: Vec<&str> = text.trim().split('-').collect();
    if words.len() != 4 {
        return None;
    }
    for (place, word) in key.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&u32::from_str_radix(word, 16).ok()?.to_le_bytes());
    }
    Some(key)
}

/// The cookie of a client: SipHash-2-4 of both addresses, in little-endian order. Measured: cookies
/// of Linux 6.12 and those in packetdrill's scripts.
fn cookie(key: &Key, [source, destination]: [[u8; 4]; 2]) -> FastOpen {
    let message = [source, destination].concat();
    FastOpen::new(&siphash(key, &message).to_le_bytes()).expect("eight octets are a cookie")
}

/// SipHash-2-4 (Aumasson and Bernstein, 2012).
fn siphash(key: &Key, message: &[u8]) -> u64 {
    let half = |at: usize| {
        let octets = key[at..at + 8].try_into().expect("eight octets");
        u64::from_le_bytes(octets)
    };
    let (k0, k1) = (half(0), half(8));
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let round = |v: &mut [u64; 4]| {
        v[0] = v[0].wrapping_add(v[1]);
        v[1] = v[1].rotate_left(13) ^ v[0];
        v[0] = v[0].rotate_left(32);
        v[2] = v[2].wrapping_add(v[3]);
        v[3] = v[3].rotate_left(16) ^ v[2];
        v[0] = v[0].wrapping_add(v[3]);
        v[3] = v[3].rotate_left(21) ^ v[0];
        v[2] = v[2].wrapping_add(v[1]);
        v[1] = v[1].rotate_left(17) ^ v[2];
        v[2] = v[2].rotate_left(32);
    };
    let mut padded = message.to_vec();
    while padded.len() % 8 != 7 {
        padded.push(0);
    }
    padded.push(u8::try_from(message.len() % 256).expect("below 256"));
    for word in padded.as_chunks::<8>().0 {
        let word = u64::from_le_bytes(*word);
        v[3] ^= word;
        round(&mut v);
        round(&mut v);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    for _ in 0..4 {
        round(&mut v);
    }
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first of the published vectors with a message of eight octets.
    #[test]
    fn siphash_matches_its_published_vector() {
        let key: Key = std::array::from_fn(|at| u8::try_from(at).expect("below 16"));
        let message: Vec<u8> = (0..8).collect();
        assert_eq!(siphash(&key, &message), 0x93f5_f579_9a93_2462);
    }

    #[test]
    fn cookies_match_linux() {
        let host = Host {
            bits: 0x403,
            ..Host::default()
        };
        let addresses = [[192, 0, 2, 1], [192, 168, 0, 1]];
        let server = host.server(false, &[], addresses).expect("it listens");
        let expected = [0x30, 0x21, 0xb9, 0xd8, 0x89, 0x01, 0x7e, 0xeb];
        assert_eq!(server.cookie.cookie(), expected);
        let mut other = Host::default();
        let key = "a0bf63f7-ed803d81-cd641d30-cebc4a90";
        assert_eq!(other.sysctl("net.ipv4.tcp_fastopen_key", key), Ok(true));
        assert_eq!(other.sysctl("net.ipv4.tcp_fastopen", "0x2"), Ok(true));
        let addresses = [[10, 248, 0, 2], [192, 168, 0, 2]];
        assert_eq!(other.server(false, &[], addresses), None);
        let server = other.server(true, &[], addresses).expect("it listens");
        let expected = [0x00, 0xab, 0xaa, 0xab, 0xe8, 0xe9, 0x54, 0xc2];
        assert_eq!(server.cookie.cookie(), expected);
    }
}
