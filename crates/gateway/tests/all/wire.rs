//! The wire format: golden octets of `docs/design/027-gateway-protocol.md`, round trips, and any octets at all.

use anabranch_gateway::{
    policy::Role,
    wire::{
        COOKIE_REPLY, Control, CookieReply, Entry, HEADER, Header, INITIATION, Initiation, Inner,
        Kind, Message, OVERHEAD, PathId, Place, RESPONSE, Repair, Report, Response, WireError,
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

fn report() -> Report {
    Report {
        version: 0x0102,
        loss: 0x0a0b,
        highest: 0x1112_1314_1516_1718,
        arrived: 0x2122_2324,
        held: 0x3132_3334,
        received: 0x4142_4344_4546_4748,
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
        "0103010205060a0b111213141516171821222324313233344142434445464748"
    );
    let response = Response {
        path: path(2),
        sender: 0x0102_0304,
        receiver: 0x0506_0708,
        noise: [0xaa; 56],
        mac1: [0xbb; 16],
    };
    let expected = format!(
        "020102000102030405060708{}{}",
        "aa".repeat(56),
        "bb".repeat(16)
    );
    assert_eq!(hex(&response.encode()), expected);
}

#[test]
fn overhead_is_forty_octets_and_replies_are_shorter_than_initiations() {
    assert_eq!(OVERHEAD, 40);
    let (initiation, replies) = (INITIATION, [RESPONSE, COOKIE_REPLY]);
    assert!(replies.iter().all(|&reply| reply < initiation));
}

#[test]
fn a_path_stands_once_in_a_control_message() {
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

fn encoded(message: &Message, original: &[u8]) -> Vec<u8> {
    match message {
        Message::Initiation(message) => message.encode().to_vec(),
        Message::Response(message) => message.encode().to_vec(),
        Message::CookieReply(message) => message.encode().to_vec(),
        Message::Data(header) => [&header.encode(), &original[HEADER..]].concat(),
    }
}

fn array<const N: usize>() -> impl Strategy<Value = [u8; N]> {
    proptest::collection::vec(any::<u8>(), N)
        .prop_map(|octets| octets.try_into().expect("N octets"))
}

proptest! {
    #[test]
    fn any_octets_are_refused_or_written_as_they_were(octets in proptest::collection::vec(any::<u8>(), 0..200), first in 0_u8..6) {
        let mut octets = octets;
        if let Some(kind) = octets.first_mut() {
            *kind = first;
        }
        if let Ok(message) = Message::decode(&octets) {
            prop_assert_eq!(encoded(&message, &octets), octets);
        }
    }

    #[test]
    fn any_sealed_octets_are_refused_or_written_as_they_were(octets in proptest::collection::vec(any::<u8>(), 0..130), kind in 0_u8..8, block in 0_u16..3) {
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
        number in 0_u8..16, sender: u32, receiver: u32, noise in array::<104>(), short in array::<56>(),
        mac1 in array::<16>(), mac2 in array::<16>(), nonce in array::<24>(), sealed in array::<32>(),
    ) {
        let path = path(number);
        let initiation = Initiation { path, sender, noise, mac1, mac2 };
        prop_assert_eq!(Message::decode(&initiation.encode()), Ok(Message::Initiation(initiation)));
        let response = Response { path, sender, receiver, noise: short, mac1 };
        prop_assert_eq!(Message::decode(&response.encode()), Ok(Message::Response(response)));
        let reply = CookieReply { path, receiver, nonce, sealed };
        prop_assert_eq!(Message::decode(&reply.encode()), Ok(Message::CookieReply(reply)));
    }

    #[test]
    fn control_messages_round_trip(present in proptest::collection::vec(any::<(bool, Option<u16>)>(), 0..16)) {
        let entries = (0_u8..).zip(present).map(|(number, (reported, acknowledged))| Entry {
            path: path(number),
            role: [Role::Active, Role::Backup, Role::Metered][usize::from(number % 3)],
            report: reported.then(report),
            acknowledged,
        });
        let control = Control { entries: entries.collect() };
        let mut octets = Vec::new();
        control.encode(&mut octets);
        prop_assert_eq!(Control::decode(&octets), Ok(control));
    }

    #[test]
    fn a_shortened_handshake_message_is_refused(cut in 0_usize..INITIATION) {
        let initiation = Initiation { path: path(0), sender: 1, noise: [1; 104], mac1: [2; 16], mac2: [3; 16] };
        prop_assert!(Message::decode(&initiation.encode()[..cut]).is_err());
    }
}
