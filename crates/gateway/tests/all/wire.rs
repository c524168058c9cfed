//! The wire format: golden octets of `docs/gateway/protocol.md`, round trips, and arbitrary octets.

use anabranch_gateway::{
    policy::Role,
    wire::{
        Arrivals, COOKIE_REPLY, Control, CookieReply, Entry, HEADER, Header, INITIATION,
        Initiation, Inner, Kind, Message, OVERHEAD, PathId, Place, RESPONSE, Repair, Report,
        Response, STAMP_REPLY, StampReply, WORDS, WireError,
    },
};
use proptest::prelude::*;
use std::fmt::Write as _;

fn path(number: u8) -> PathId {
    PathId::new(number).expect("a small number")
}

fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::new(), |mut text, octet| {
        write!(text, "{octet:02x}").expect("writing to a string");
        text
    })
}

/// A report of these words, the first of which is adjusted to end with `highest`.
fn report_of(highest: u64, mut words: Vec<u64>) -> Report {
    let last = 1 << (highest % 64);
    if let Some(newest) = words.first_mut() {
        *newest = *newest & (last - 1) | last;
    }
    Report {
        version: 7,
        loss: 8,
        highest,
        arrived: 9,
        held: 10,
        arrivals: Arrivals::new(words),
    }
}

fn report() -> Report {
    Report {
        version: 0x0102,
        loss: 0x0a0b,
        highest: 0x1112_1314_1516_1718,
        arrived: 0x2122_2324,
        held: 0x3132_3334,
        arrivals: Arrivals::new([0x0142_4344, 0, 0x5152_5354_5556_5758]),
    }
}

#[test]
fn golden_octets() {
    let header = Header {
        path: path(3),
        block: 0x0a0b,
        receiver: 0x0102_0304,
        number: 0x1112_1314_1516_1718,
    };
    assert_eq!(hex(&header.encode()), "04030a0b010203041112131415161718");
    let packet = Inner {
        kind: Kind::Packet(Place {
            flow: 0x0102,
            number: 0x0304_0506,
        }),
    };
    assert_eq!(hex(&packet.encode()), "0000010203040506");
    assert_eq!(
        hex(&Inner {
            kind: Kind::MtuProbe
        }
        .encode()),
        "0300000000000000"
    );
    let place = Place {
        flow: 0x0102,
        number: 0x0304_0506,
    };
    let kind = Kind::Protected {
        place,
        block: 1,
        index: 7,
    };
    assert_eq!(hex(&Inner { kind }.encode()), "0407010203040506");
    let kind = Kind::Repair(Repair {
        block: 1,
        key: 2,
        of: 3,
        count: 4,
        place: [5, 6, 7, 8],
    });
    assert_eq!(hex(&Inner { kind }.encode()), "0502030405060708");
    let mut control = Vec::new();
    let entries = vec![Entry {
        path: path(1),
        role: Role::Active,
        report: Some(report()),
        acknowledged: Some(0x0506),
    }];
    Control { entries }.encode(&mut control);
    assert_eq!(
        hex(&control),
        concat!(
            "0133010205060a0b11121314151617182122232431323334",
            "0000000001424344",
            "0000000000000000",
            "5152535455565758"
        )
    );
    let response = Response {
        path: path(2),
        sender: 0x0102_0304,
        receiver: 0x0506_0708,
        noise: [0xaa; 56],
        mac1: [0xbb; 16],
    };
    let expected = format!(
        "020302000102030405060708{}{}",
        "aa".repeat(56),
        "bb".repeat(16)
    );
    assert_eq!(hex(&response.encode()), expected);
}

#[test]
fn overhead_is_forty_octets_and_replies_are_shorter_than_initiations() {
    assert_eq!(OVERHEAD, 40);
    let (initiation, replies) = (INITIATION, [RESPONSE, COOKIE_REPLY, STAMP_REPLY]);
    assert!(replies.iter().all(|&reply| reply < initiation));
}

#[test]
fn a_path_occurs_once_in_a_control_message() {
    let entry = Entry {
        path: path(5),
        role: Role::Active,
        report: None,
        acknowledged: None,
    };
    let mut octets = Vec::new();
    let entries = vec![entry, entry];
    Control { entries }.encode(&mut octets);
    assert_eq!(Control::decode(&octets), Err(WireError::Twice(5)));
}

/// An entry of path 1 with these words, whose report has the highest number 70.
fn entry_of(words: &[u64]) -> Vec<u8> {
    let mut octets = vec![0; 24];
    octets[0] = 1;
    octets[1] = 1 | u8::try_from(words.len()).expect("a few words") << 4;
    octets[15] = 70;
    octets.extend(words.iter().flat_map(|word| word.to_be_bytes()));
    octets
}

#[test]
fn words_of_a_report_have_one_encoding() {
    let highest = 1 << (70 % 64);
    let numbers = |words: &[u64]| {
        let control = Control::decode(&entry_of(words))?;
        let report = control.entries[0].report.expect("a report");
        Ok(report.arrivals.numbers(report.highest).collect::<Vec<_>>())
    };
    assert_eq!(numbers(&[highest]), Ok(vec![70]));
    assert_eq!(
        numbers(&[highest | 1, 1 << 63 | 2]),
        Ok(vec![1, 63, 64, 70])
    );
    let refused: [&[u64]; 6] = [
        &[],
        // The highest bit of the first word is not `highest`.
        &[0],
        &[highest >> 1],
        &[highest << 1 | highest],
        // Trailing zero words.
        &[highest, 0],
        &[highest, 1, 0, 0],
    ];
    for words in refused {
        assert_eq!(numbers(words), Err(WireError::Reserved), "{words:x?}");
    }
}

#[test]
fn words_before_the_number_zero_are_refused() {
    let highest = 1 << (70 % 64);
    let octets = entry_of(&[highest, 1, 1]);
    assert_eq!(Control::decode(&octets), Err(WireError::Reserved));
}

#[test]
fn an_entry_cut_short_is_refused() {
    let octets = entry_of(&[1 << (70 % 64), 1]);
    for length in 1..octets.len() {
        let decoded = Control::decode(&octets[..length]);
        assert!(matches!(decoded, Err(WireError::Length { .. })), "{length}");
    }
}

#[test]
fn words_without_a_report_are_refused() {
    let mut octets = entry_of(&[1 << (70 % 64)]);
    octets[1] = 1 << 4;
    octets[15] = 0;
    assert_eq!(Control::decode(&octets), Err(WireError::Reserved));
}

#[test]
fn an_entry_has_one_of_four_roles() {
    let roles = [0, 4, 8, 4 | 8].map(|flags| {
        let mut octets = entry_of(&[1 << (70 % 64)]);
        octets[1] |= flags;
        Control::decode(&octets).expect("it is valid").entries[0].role
    });
    let expected = [Role::Active, Role::Backup, Role::Metered, Role::Overflow];
    assert_eq!(roles, expected);
}

fn encoded(message: &Message, original: &[u8]) -> Vec<u8> {
    match message {
        Message::Initiation(message) => message.encode().to_vec(),
        Message::Response(message) => message.encode().to_vec(),
        Message::CookieReply(message) => message.encode().to_vec(),
        Message::StampReply(message) => message.encode().to_vec(),
        Message::Data(header) => [&header.encode(), &original[HEADER..]].concat(),
    }
}

fn array<const N: usize>() -> impl Strategy<Value = [u8; N]> {
    proptest::collection::vec(any::<u8>(), N)
        .prop_map(|octets| octets.try_into().expect("N octets"))
}

proptest! {
    #[test]
    fn any_octets_are_refused_or_re_encoded_identically(octets in proptest::collection::vec(any::<u8>(), 0..200), first in 0_u8..6) {
        let mut octets = octets;
        if let Some(kind) = octets.first_mut() {
            *kind = first;
        }
        if let Ok(message) = Message::decode(&octets) {
            prop_assert_eq!(encoded(&message, &octets), octets);
        }
    }

    #[test]
    fn any_sealed_octets_are_refused_or_re_encoded_identically(octets in proptest::collection::vec(any::<u8>(), 0..130), kind in 0_u8..8, block in 0_u16..3) {
        let mut octets = octets;
        if let Some(first) = octets.first_mut() {
            *first = kind;
        }
        if let Ok((inner, rest)) = Inner::decode(&octets, block) {
            prop_assert_eq!(inner.kind.block(), block);
            prop_assert_eq!([&inner.encode(), rest].concat(), octets.clone());
        }
        if let Ok(control) = Control::decode(&octets) {
            let mut again = Vec::new();
            control.encode(&mut again);
            prop_assert_eq!(again, octets);
        }
    }

    #[test]
    fn handshake_messages_round_trip(
        number in 0_u8..16, sender: u32, receiver: u32, noise in array::<112>(), short in array::<56>(),
        mac1 in array::<16>(), mac2 in array::<16>(), nonce in array::<24>(), sealed in array::<32>(),
        stamp in array::<24>(),
    ) {
        let path = path(number);
        let initiation = Initiation { path, sender, noise, mac1, mac2 };
        prop_assert_eq!(Message::decode(&initiation.encode()), Ok(Message::Initiation(initiation)));
        let response = Response { path, sender, receiver, noise: short, mac1 };
        prop_assert_eq!(Message::decode(&response.encode()), Ok(Message::Response(response)));
        let reply = CookieReply { path, receiver, nonce, sealed };
        prop_assert_eq!(Message::decode(&reply.encode()), Ok(Message::CookieReply(reply)));
        let reply = StampReply { path, receiver, nonce, sealed: stamp };
        prop_assert_eq!(Message::decode(&reply.encode()), Ok(Message::StampReply(reply)));
    }

    #[test]
    fn control_messages_round_trip(
        present in proptest::collection::vec((any::<bool>(), 960_u64.., proptest::collection::vec(any::<u64>(), 1..=WORDS), any::<Option<u16>>()), 0..=16),
    ) {
        // With more entries each has fewer words, so that all fit in the datagram that every path
        // delivers.
        let most = 1_160;
        let words = (most / present.len().max(1)).saturating_sub(24) / 8;
        let entries = (0_u8..).zip(present).map(|(number, (reported, highest, words, acknowledged))| Entry {
            path: path(number),
            role: [Role::Active, Role::Overflow, Role::Backup, Role::Metered][usize::from(number % 4)],
            report: reported.then(|| report_of(highest, words)),
            acknowledged,
        });
        let mut control = Control { entries: entries.collect() };
        let mut octets = Vec::new();
        control.encode(&mut octets);
        prop_assert!(octets.len() <= most);
        for report in control.entries.iter_mut().filter_map(|entry| entry.report.as_mut()) {
            report.arrivals = report.arrivals.cut(words);
        }
        prop_assert_eq!(Control::decode(&octets), Ok(control));
    }

    #[test]
    fn a_shortened_handshake_message_is_refused(cut in 0_usize..INITIATION) {
        let initiation = Initiation { path: path(0), sender: 1, noise: [1; 112], mac1: [2; 16], mac2: [3; 16] };
        prop_assert!(Message::decode(&initiation.encode()[..cut]).is_err());
    }
}
