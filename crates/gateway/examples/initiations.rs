//! Initiations of senders without a peer's key: what one costs the receiver, and a flood of them.
//!
//! - `initiations cost PEERS [KIND]` prints nanoseconds an initiation by kind, or, for valgrind,
//!   receives 1,000 of one kind.
//! - `initiations flood ADDRESS:PORT PUBLIC_KEY RATE KIND SOURCE…` sends until it is ended. The key
//!   is in hexadecimal, and the sources are local addresses.
//!
//! Kinds: `code` (with the code of the receiver's key), `cookie` (also with a valid cookie).

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the program measures, and sends over sockets"
)]

use anabranch_core::units::Duration;
use anabranch_gateway::{
    crypto::{Entropy, Identity, Keys, MacKey, Pending, open_cookie, public_key, with_mac2},
    reception::{Admission, Reception},
    time::Instant,
    wire::{Initiation, MAC, Message, NOISE_INITIATION, PathId},
};
use std::{
    env,
    net::{SocketAddr, UdpSocket},
    time,
};

/// Octets of a counter, mixed: keys of this program are for measurements alone.
struct Mixed(u64);

impl Entropy for Mixed {
    fn fill(&mut self, octets: &mut [u8]) {
        for octet in octets {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            *octet = self.0.to_be_bytes()[0];
        }
    }
}

/// An initiation of an unknown sender to the owner of `receiver`.
fn initiation(
    receiver: &[u8; 32],
    noise: &[u8; NOISE_INITIATION],
    cookie: Option<&[u8; MAC]>,
) -> Initiation {
    let path = PathId::new(0).expect("a small number");
    with_mac2(path, 7, noise, &MacKey::of(receiver), cookie)
}

fn noise(private: [u8; 32], receiver: [u8; 32], random: &mut Mixed) -> [u8; NOISE_INITIATION] {
    let keys = Keys {
        private,
        peer: receiver,
        psk: None,
    };
    let pending = Pending::begin(&Identity::new(private), &keys, 7, [0; 2], random);
    pending.expect("valid keys").noise
}

const OWN: [u8; 32] = [1; 32];
const KINDS: [&str; 6] = [
    "wrong code",
    "code",
    "code beyond the rate",
    "cookie",
    "unknown key",
    "peer",
];

/// Receives `count` initiations of a kind; returns the time of each in nanoseconds.
fn receive(reception: &mut Reception, peer: [u8; 32], kind: &str, count: u32) -> f64 {
    let mut random = Mixed(5);
    let public = public_key(&OWN);
    let from = SocketAddr::from(([192, 0, 2, 1], 5_000));
    let mut now = Instant::START;
    let forged = noise([9; 32], public, &mut random);
    let first = initiation(&public, &forged, None);
    // The tokens without a cookie are used up.
    let cookie = loop {
        if let Admission::Cookie(reply) = reception.admit(&first, from, now, &mut random) {
            break open_cookie(&MacKey::of(&public), &reply, &first.mac1);
        }
    };
    let mut made: Vec<Initiation> = (0..count)
        .map(|_| match kind {
            "peer" => initiation(&public, &noise(peer, public, &mut random), None),
            "cookie" => initiation(&public, &forged, cookie.as_ref()),
            _ => first,
        })
        .collect();
    if kind == "wrong code" {
        for one in &mut made {
            one.mac1[0] ^= 1;
        }
    }
    if ["code beyond the rate", "cookie"].contains(&kind) {
        while !matches!(
            reception.admit(&made[0], from, now, &mut random),
            Admission::Limited
        ) {}
    }
    // One each 20 ms needs no cookie, and one each millisecond gets one.
    let interval = Duration::from_millis(match kind {
        "unknown key" | "peer" => 20,
        "code" => 1,
        _ => 0,
    });
    now = now + interval;
    let begin = time::Instant::now();
    let last = admit_all(reception, &made, now, interval);
    let nanos = begin.elapsed().as_nanos() as f64 / f64::from(count);
    let is_right = match kind {
        "wrong code" | "unknown key" => matches!(last, Some(Admission::Refused(_))),
        "code" => matches!(last, Some(Admission::Cookie(_) | Admission::Refused(_))),
        "code beyond the rate" | "cookie" => matches!(last, Some(Admission::Limited)),
        _ => matches!(last, Some(Admission::Opened(..))),
    };
    assert!(is_right, "{kind}: {last:?}");
    nanos
}

/// The measured part: `valgrind --tool=callgrind --toggle-collect='*admit_all*'`.
#[inline(never)]
fn admit_all(
    reception: &mut Reception,
    made: &[Initiation],
    mut now: Instant,
    interval: Duration,
) -> Option<Admission> {
    let from = SocketAddr::from(([192, 0, 2, 1], 5_000));
    let (mut random, mut last) = (Mixed(6), None);
    for one in made {
        last = Some(reception.admit(one, from, now, &mut random));
        now = now + interval;
    }
    last
}

fn cost(peers: u32, only: Option<&str>) {
    let mut random = Mixed(7);
    let privates: Vec<[u8; 32]> = (0..peers).map(|_| random.draw()).collect();
    for kind in KINDS
        .iter()
        .filter(|kind| only.is_none_or(|only| only == **kind))
    {
        let mut reception = Reception::new(Identity::new(OWN), Instant::START, &mut random);
        for (number, private) in (0..).zip(&privates) {
            reception.insert(public_key(private), number);
        }
        let last = *privates.last().expect("a peer");
        let count = if only.is_some() { 1_000 } else { 2_000 };
        let nanos = receive(&mut reception, last, kind, count);
        println!("{peers} peers, {kind}: {nanos:.0} ns");
    }
}

fn flood(words: &[String]) {
    let [to, key, rate, kind, sources @ ..] = words else {
        panic!("flood ADDRESS:PORT PUBLIC_KEY RATE KIND SOURCE…");
    };
    let octet = |at: usize| u8::from_str_radix(&key[2 * at..2 * at + 2], 16).expect("hexadecimal");
    let public: [u8; 32] = std::array::from_fn(octet);
    let rate: u64 = rate.parse().expect("a number");
    let forged = noise([9; 32], public, &mut Mixed(11));
    let first = initiation(&public, &forged, None);
    let senders: Vec<(UdpSocket, [u8; 152])> = sources
        .iter()
        .map(|source| {
            let socket = UdpSocket::bind((source.as_str(), 0)).expect("a local address");
            socket.connect(to).expect("a route");
            let timeout = time::Duration::from_millis(20);
            socket.set_read_timeout(Some(timeout)).expect("a socket");
            let mut octets = first.encode();
            // No cookie is demanded of the first ones.
            for _ in 0..200 * u32::from(kind == "cookie") {
                socket.send(&octets).expect("it is sent");
            }
            if kind == "cookie" {
                let cookie = loop {
                    socket.send(&first.encode()).expect("it is sent");
                    let mut buffer = [0; 200];
                    let Ok(length) = socket.recv(&mut buffer) else {
                        continue;
                    };
                    let key = MacKey::of(&public);
                    if let Ok(Message::CookieReply(reply)) = Message::decode(&buffer[..length])
                        && let Some(cookie) = open_cookie(&key, &reply, &first.mac1)
                    {
                        break cookie;
                    }
                };
                octets = initiation(&public, &forged, Some(&cookie)).encode();
            }
            (socket, octets)
        })
        .collect();
    eprintln!("ready");
    let (begin, mut count) = (time::Instant::now(), 0_u64);
    loop {
        let due = u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX) * rate / 1_000_000;
        for number in count..due {
            let at = usize::try_from(number).unwrap_or(0) % senders.len();
            // A full buffer drops it, as a network does.
            let _ = senders[at].0.send(&senders[at].1);
        }
        count = count.max(due);
        std::thread::sleep(time::Duration::from_millis(2));
    }
}

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("cost") => {
            let peers = words.get(1).and_then(|peers| peers.parse().ok());
            cost(
                peers.expect("a number of peers"),
                words.get(2).map(String::as_str),
            );
        }
        Some("flood") => flood(&words[1..]),
        _ => panic!("cost or flood"),
    }
}
