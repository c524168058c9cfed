//! Reception of initiations for many peers under load.

use super::Seeded;
use anabranch_core::units::Duration;
use anabranch_gateway::{
    crypto::{
        Entropy as _, Identity, Keys, MacKey, Pending, Unread, open_cookie, public_key, with_mac2,
    },
    reception::{Admission, COOKIES_PER_S, FREE_PER_S, PAID_PER_S, Reception},
    time::Instant,
    wire::{Initiation, MAC, NOISE_INITIATION, PathId},
};
use core::net::SocketAddr;

const OWN: [u8; 32] = [1; 32];

/// The private key of a peer.
fn private(number: u32) -> [u8; 32] {
    Seeded::new(number.into(), "peer").draw()
}

struct Bench {
    reception: Reception,
    random: Seeded,
    now: Instant,
    read: u32,
    cookies: u32,
}

impl Bench {
    fn new(peers: u32) -> Self {
        let mut random = Seeded::new(1, "reception");
        let now = Instant::START;
        let mut reception = Reception::new(Identity::new(OWN), now, &mut random);
        for number in 0..peers {
            reception.insert(public_key(&private(number)), number);
        }
        let (read, cookies) = (0, 0);
        Self {
            reception,
            random,
            now,
            read,
            cookies,
        }
    }

    /// The Noise message of an end.
    fn noise(&mut self, private: [u8; 32]) -> [u8; NOISE_INITIATION] {
        let keys = Keys {
            private,
            peer: public_key(&OWN),
            psk: None,
        };
        let identity = Identity::new(private);
        let pending = Pending::begin(&identity, &keys, 7, [0; 2], &mut self.random);
        pending.expect("valid keys").noise
    }

    fn admit(&mut self, initiation: &Initiation, from: SocketAddr) -> Admission {
        let admission = self
            .reception
            .admit(initiation, from, self.now, &mut self.random);
        match admission {
            Admission::Cookie(_) => self.cookies += 1,
            Admission::Refused(_) | Admission::Opened(..) => self.read += 1,
            Admission::Limited | Admission::Copy(_) => {}
        }
        admission
    }

    /// The cookie for an address, as soon as one is demanded.
    fn cookie(&mut self, from: SocketAddr) -> [u8; MAC] {
        let key = MacKey::of(&public_key(&OWN));
        let initiation = initiation(&self.noise([9; 32]), None);
        loop {
            if let Admission::Cookie(reply) = self.admit(&initiation, from) {
                return open_cookie(&key, &reply, &initiation.mac1).expect("it is authentic");
            }
            self.now = self.now + Duration::from_micros(200);
        }
    }
}

fn initiation(noise: &[u8; NOISE_INITIATION], cookie: Option<&[u8; MAC]>) -> Initiation {
    let path = PathId::new(0).expect("a small number");
    with_mac2(path, 7, noise, &MacKey::of(&public_key(&OWN)), cookie)
}

/// An address of a prefix.
fn address(prefix: u32, host: u8) -> SocketAddr {
    let [_, a, b, c] = prefix.to_be_bytes();
    SocketAddr::from(([a, b, c, host], 5_000))
}

#[test]
fn each_of_many_peers_is_found_by_its_key() {
    let mut bench = Bench::new(1_000);
    for number in [0, 1, 500, 999] {
        let noise = bench.noise(private(number));
        let first = bench.admit(&initiation(&noise, None), address(1, 1));
        assert!(matches!(first, Admission::Opened(found, _) if found == number));
        let copy = bench.admit(&initiation(&noise, None), address(2, 1));
        assert!(matches!(copy, Admission::Copy(found) if found == number));
    }
    bench.reception.clear();
    let noise = bench.noise(private(500));
    let refused = bench.admit(&initiation(&noise, None), address(1, 1));
    let unknown = Unread::Unknown(public_key(&private(500)));
    assert!(matches!(refused, Admission::Refused(why) if why == unknown));
    let mut misdirected = initiation(&noise, None);
    misdirected.mac1[0] ^= 1;
    let refused = bench.admit(&misdirected, address(1, 1));
    assert!(matches!(refused, Admission::Refused(Unread::Misdirected)));
}

/// Sends 10,000 initiations a second with valid cookies, from this many prefixes. After two seconds
/// a peer of other prefixes sends one on each of two paths every 250 ms. Returns how many of them
/// are read in this time.
fn admitted_under_load(prefixes: u32, seconds: usize) -> usize {
    let mut bench = Bench::new(100);
    let forged = bench.noise([9; 32]);
    for _ in 0..300 {
        bench.admit(&initiation(&forged, None), address(0, 1));
    }
    let sources: Vec<_> = (0..prefixes.max(200))
        .map(|number| {
            let prefix = 0x0a_00_00 + number % prefixes;
            let from = address(prefix, u8::try_from(number / prefixes).expect("small"));
            let cookie = bench.cookie(from);
            (from, cookie)
        })
        .collect();
    let paths = [address(0x00c0_0002, 1), address(0x00c6_3364, 1)];
    let cookies = paths.map(|from| bench.cookie(from));
    let mut admitted = 0;
    for number in 0..(2 + seconds) * 10_000 {
        if number == 20_000 {
            (bench.read, bench.cookies) = (0, 0);
        }
        let (from, cookie) = sources[number % sources.len()];
        bench.admit(&initiation(&forged, Some(&cookie)), from);
        bench.now = bench.now + Duration::from_micros(100);
        if number >= 20_000 && number % 2_500 == 1_250 {
            for (from, cookie) in paths.iter().zip(&cookies) {
                let noise = bench.noise(private(5));
                let admission = bench.admit(&initiation(&noise, Some(cookie)), *from);
                admitted += usize::from(matches!(admission, Admission::Opened(5, _)));
            }
        }
    }
    let most = seconds as f64 * PAID_PER_S + PAID_PER_S + FREE_PER_S;
    assert!(f64::from(bench.read) <= most, "{} read", bench.read);
    admitted
}

/// Sources of few prefixes do not keep others out.
#[test]
fn a_flood_with_cookies_is_limited_by_prefix() {
    for prefixes in [1, 100] {
        let admitted = admitted_under_load(prefixes, 1);
        assert_eq!(admitted, 8, "{prefixes} prefixes");
    }
}

#[test]
#[ignore = "many cases: make test-cases"]
fn a_flood_with_cookies_is_limited_by_prefix_in_many_cases() {
    for prefixes in [2, 5, 10, 20, 50] {
        let admitted = admitted_under_load(prefixes, 1);
        assert_eq!(admitted, 8, "{prefixes} prefixes");
    }
}

/// More prefixes than that share the rate evenly.
#[test]
fn a_flood_from_many_prefixes_leaves_a_share() {
    let admitted = admitted_under_load(1_000, 5);
    assert!(admitted >= 4, "{admitted} of 40");
}

#[test]
fn a_flood_without_cookies_is_neither_read_nor_amplified() {
    let mut bench = Bench::new(100);
    let forged = bench.noise([9; 32]);
    for number in 0..10_000 {
        bench.admit(&initiation(&forged, None), address(number, 1));
        bench.now = bench.now + Duration::from_micros(100);
    }
    assert!(f64::from(bench.read) <= 2.0 * FREE_PER_S, "{}", bench.read);
    assert!(f64::from(bench.cookies) <= 1.1 * COOKIES_PER_S + 1.0);
    let from = address(0xc0_00_02, 1);
    let cookie = bench.cookie(from);
    let noise = bench.noise(private(5));
    let admission = bench.admit(&initiation(&noise, Some(&cookie)), from);
    assert!(matches!(admission, Admission::Opened(5, _)));
}

/// Unknown senders of one prefix do not keep cookies from others.
#[test]
fn cookies_of_one_prefix_are_limited() {
    let mut bench = Bench::new(1);
    let forged = bench.noise([9; 32]);
    let mut demanded = 0;
    for number in 0..20_000 {
        bench.admit(&initiation(&forged, None), address(1, 1));
        bench.now = bench.now + Duration::from_micros(100);
        if number % 1_000 == 500 {
            let answer = bench.admit(&initiation(&forged, None), address(2, 1));
            demanded += u32::from(matches!(
                answer,
                Admission::Cookie(_) | Admission::Refused(_)
            ));
        }
    }
    assert_eq!(demanded, 20);
}
