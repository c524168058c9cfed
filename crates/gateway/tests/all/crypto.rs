//! Handshakes, seals, replay windows and cookies.

use super::Seeded;
use anabranch_core::units::Duration;
use anabranch_gateway::{
    crypto::{
        Answer, Entropy as _, Identity, Jar, Keys, MacKey, Meter, Pending, Session, StampKey,
        Stamps, Window, open, open_cookie, public_key, with_mac2,
    },
    time::Instant,
    wire::{Initiation, Inner, Kind, Message, PathId, Response},
};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn path(number: u8) -> PathId {
    PathId::new(number).expect("a small number")
}

/// The keys of two ends, each with the public key of the other.
fn keys(seed: u64, psk: Option<[u8; 32]>) -> (Keys, Keys) {
    let mut random = Seeded::new(seed, "keys");
    let (a, b): ([u8; 32], [u8; 32]) = (random.draw(), random.draw());
    let end = |private: [u8; 32], peer: [u8; 32]| Keys {
        private,
        peer: public_key(&peer),
        psk,
    };
    (end(a, b), end(b, a))
}

/// Begins a handshake with boot number 77 and stamp 99.
fn begin(keys: &Keys, random: &mut Seeded) -> Pending {
    let identity = Identity::new(keys.private);
    Pending::begin(&identity, keys, 1, [77, 99], random).expect("valid keys")
}

/// Answers an initiation with boot number 88.
fn respond(keys: &Keys, initiation: &Initiation, random: &mut Seeded) -> Option<Answer> {
    let opened = open(&Identity::new(keys.private), initiation, |_| true, random).ok()?;
    assert_eq!((opened.boot, opened.stamp), (77, 99));
    opened.answer(keys.psk.as_ref(), 88)
}

fn initiation(pending: &Pending, key: &MacKey) -> Initiation {
    with_mac2(path(0), pending.index, &pending.noise, key, None)
}

fn response(sender: u32, receiver: u32, noise: [u8; 56]) -> Response {
    Response {
        path: path(0),
        sender,
        receiver,
        noise,
        mac1: [0; 16],
    }
}

fn sessions(seed: u64, psk: Option<[u8; 32]>) -> (Session, Session) {
    let (a, b) = keys(seed, psk);
    let mut random = Seeded::new(seed, "handshake");
    let mut pending = begin(&a, &mut random);
    let first = initiation(&pending, &MacKey::of(&a.peer));
    let answer = respond(&b, &first, &mut random).expect("an answer");
    let finished = pending
        .finish(&response(2, 1, answer.noise))
        .expect("authentic");
    assert_eq!((finished.peer_boot, answer.keys.peer_boot), (88, 77));
    let now = Instant::START;
    (
        Session::new(&finished, 1, 2, true, now),
        Session::new(&answer.keys, 2, 1, false, now),
    )
}

fn sealed(session: &mut Session, number: u8, content: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    let inner = Inner {
        kind: Kind::Control,
    };
    session
        .seal(path(number), inner, content, &mut datagram)
        .expect("numbers are left");
    datagram
}

fn opened(session: &mut Session, datagram: &[u8]) -> Option<Vec<u8>> {
    let mut datagram = datagram.to_vec();
    let Ok(Message::Data(header)) = Message::decode(&datagram) else {
        return None;
    };
    session.open(header, &mut datagram).map(<[u8]>::to_vec)
}

#[test]
fn both_ends_derive_matching_keys() {
    for psk in [None, Some([9; 32])] {
        let (mut a, mut b) = sessions(1, psk);
        let forward = sealed(&mut a, 0, b"forward");
        assert_eq!(
            &opened(&mut b, &forward).expect("authentic")[8..],
            b"forward"
        );
        let reverse = sealed(&mut b, 3, b"reverse");
        assert_eq!(
            &opened(&mut a, &reverse).expect("authentic")[8..],
            b"reverse"
        );
    }
}

#[test]
fn another_key_or_shared_key_gets_no_session() {
    let (a, mut b) = keys(1, Some([1; 32]));
    let mut random = Seeded::new(1, "handshake");
    let mut pending = begin(&a, &mut random);
    let first = initiation(&pending, &MacKey::of(&a.peer));
    b.psk = Some([2; 32]);
    let answer =
        respond(&b, &first, &mut random).expect("the key shared is used in the second message");
    assert_eq!(pending.finish(&response(2, 1, answer.noise)), None);
    let opened = open(&Identity::new(b.private), &first, |_| true, &mut random).expect("authentic");
    assert_eq!(opened.peer, public_key(&a.private));
    b.private = [5; 32];
    assert!(respond(&b, &first, &mut random).is_none());
}

#[test]
fn a_forged_response_leaves_the_handshake_pending() {
    let (a, b) = keys(2, None);
    let mut random = Seeded::new(2, "handshake");
    let mut pending = begin(&a, &mut random);
    let first = initiation(&pending, &MacKey::of(&a.peer));
    let answer = respond(&b, &first, &mut random).expect("an answer");
    for at in [0, 31, 32, 55] {
        let mut forged = answer.noise;
        forged[at] ^= 1;
        assert_eq!(pending.finish(&response(2, 1, forged)), None);
    }
    assert!(pending.finish(&response(2, 1, answer.noise)).is_some());
}

#[test]
fn the_window_covers_the_skew_of_a_gigabit() {
    let skew = 35_000;
    let mut window = Window::default();
    assert!(window.mark(skew));
    assert!((0..skew).all(|number| window.mark(number)));
    assert!((0..=skew).all(|number| !window.mark(number)));
}

#[test]
fn a_cookie_is_bound_to_address_and_port() {
    let mut random = Seeded::new(3, "cookies");
    let now = Instant::START;
    let mut jar = Jar::new(now, &mut random);
    let key = MacKey::of(&[7; 32]);
    let from = "192.0.2.1:5000".parse().expect("an address");
    let without = with_mac2(path(0), 1, &[1; 112], &key, None);
    assert!(!jar.is_paid(&without, from, now, &mut random));
    let reply = jar
        .reply(&key, &without, from, &mut random)
        .expect("a reply");
    assert_eq!(open_cookie(&key, &reply, &[0; 16]), None);
    let cookie = open_cookie(&key, &reply, &without.mac1).expect("ours");
    let with = with_mac2(path(0), 1, &[1; 112], &key, Some(&cookie));
    assert!(jar.is_paid(&with, from, now, &mut random));
    for other in ["192.0.2.1:5001", "192.0.2.2:5000", "[2001:db8::1]:5000"] {
        assert!(!jar.is_paid(&with, other.parse().expect("an address"), now, &mut random));
    }
    let later = now + Duration::from_secs(130);
    assert!(
        jar.is_paid(&with, from, later, &mut random),
        "the last secret is still valid"
    );
    let latest = now + Duration::from_secs(400);
    assert!(!jar.is_paid(&with, from, latest, &mut random));
}

#[test]
fn a_flood_needs_cookies_and_a_pause_ends_that() {
    let mut meter = Meter::new(20.0, 20.0);
    let now = Instant::START;
    assert!((0..10).all(|_| meter.take(10.0, now)));
    assert!(!meter.take(10.0, now), "the rest is reserved");
    assert!((0..10).all(|_| meter.take(0.0, now)));
    assert!(!meter.take(0.0, now));
    assert!(meter.take(0.0, now + Duration::from_secs(1)));
}

#[test]
fn stamps_increase_also_if_the_clock_is_behind() {
    let [mut first, mut second] = [Stamps::new(1_000), Stamps::new(5)];
    let now = Instant::START;
    let stamps = [first.next(now), first.next(now)];
    assert_eq!(stamps, [1_000, 1_001]);
    assert!(second.take(stamps[1]));
    assert!(!second.take(stamps[1]) && !second.take(stamps[0]));
    let mut again = Stamps::new(7);
    assert!(!second.take(again.next(now)));
    again.raise(second.newest().expect("one was taken"));
    assert!(second.take(again.next(now)));
    again.raise(u64::MAX);
    assert_eq!(again.next(now), u64::MAX);
}

#[test]
fn a_stamp_reply_answers_one_initiation_of_one_end() {
    let (a, b) = keys(4, None);
    let mut random = Seeded::new(4, "stamps");
    let [of_a, of_b] = [a.private, b.private].map(Identity::new);
    let first = initiation(&begin(&a, &mut random), &MacKey::of(&a.peer));
    let sent = StampKey::of(&of_b, of_a.public(), of_b.public());
    let reply = sent.reply(&first, 7, &mut random).expect("a reply");
    let received = StampKey::of(&of_a, of_b.public(), of_b.public());
    assert_eq!(received.open(&reply, &first.mac1), Some(7));
    assert_eq!(received.open(&reply, &[0; 16]), None);
    let reflected = StampKey::of(&of_a, of_b.public(), of_a.public());
    assert_eq!(reflected.open(&reply, &first.mac1), None);
    let other = StampKey::of(&Identity::new([9; 32]), of_b.public(), of_b.public());
    assert_eq!(other.open(&reply, &first.mac1), None);
}

proptest! {
    #![proptest_config(super::cases(32))]

    #[test]
    fn the_window_is_a_set_of_numbers(numbers in proptest::collection::vec(0_u64..200_000, 0..400), dense: bool) {
        let mut window = Window::default();
        let mut seen = BTreeSet::new();
        let mut highest = 0;
        for number in numbers {
            let number = if dense { number % 600 } else { number };
            let marked = window.mark(number);
            if highest < number + 65_000 {
                prop_assert_eq!(marked, seen.insert(number));
            } else {
                prop_assert!(!(marked && seen.contains(&number)));
                seen.insert(number);
            }
            highest = highest.max(number);
        }
    }

    #[test]
    fn no_altered_message_is_opened_or_marked(seed: u64, at in 0_usize..48, flip in 1_u8..) {
        let (mut a, mut b) = sessions(seed, None);
        let original = sealed(&mut a, 0, b"contents");
        let mut altered = original.clone();
        altered[at] ^= flip;
        prop_assert_eq!(opened(&mut b, &altered), None);
        prop_assert!(opened(&mut b, &original).is_some());
        prop_assert_eq!(opened(&mut b, &original), None);
    }

    #[test]
    fn each_path_has_a_separate_number_space(numbers in proptest::collection::vec(0_u8..16, 1..60)) {
        let (mut a, mut b) = sessions(5, None);
        let mut nonces = BTreeSet::new();
        let datagrams: Vec<_> = numbers.iter().map(|&number| sealed(&mut a, number, &[number])).collect();
        for datagram in datagrams.iter().rev() {
            prop_assert!(nonces.insert((datagram[1], datagram[8..16].to_vec())));
            prop_assert!(opened(&mut b, datagram).is_some());
        }
    }
}
