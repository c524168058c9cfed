//! The tunnel's header as octets: golden bytes, round trips, and validation.

use anabranch_core::tunnel::{Content, Header, Report};
use anabranch_path::multipath::header::{DecodeError, OCTETS, SIZE, decode, encode};
use proptest::prelude::*;

const HEADER: Header = Header {
    route: 3,
    flow: 0x0102,
    number: 0x0304_0506,
    route_number: 0x0708,
    sent: 0x090a_0b0c,
    kept: false,
    content: Content::Packet,
    report: Some(Report {
        route: 5,
        loss: 0x0d0e,
        route_number: 0x0f10,
        missing: 0,
        delay: 0x1112_1314,
    }),
};

/// Version 1 never changes.
#[test]
fn golden_bytes() {
    let with_report = [
        0x11, 3, 1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 7, 8, 5, 0, 13, 14, 15, 16, 17, 18, 19, 20,
    ];
    assert_eq!(encode(&HEADER), with_report);
    // Requests packets, and allows requests.
    let asking = Header {
        kept: true,
        report: HEADER.report.map(|report| Report {
            missing: 0x15,
            ..report
        }),
        ..HEADER
    };
    let mut asks = with_report;
    (asks[0], asks[15]) = (0x13, 0x15);
    assert_eq!(encode(&asking), asks);
    let mut without = [0; OCTETS];
    without[..14].copy_from_slice(&with_report[..14]);
    without[0] = 0x10;
    let header = Header {
        report: None,
        ..HEADER
    };
    assert_eq!(encode(&header), without);
    assert_eq!(SIZE as usize, OCTETS);
}

#[test]
fn invalid_headers_are_rejected() {
    let good = encode(&HEADER);
    let with = |octet: u8| {
        let mut octets = good;
        octets[0] = octet;
        decode(&octets).map(|(header, _)| header)
    };
    assert_eq!(with(0x11), Ok(HEADER));
    assert_eq!(with(0x21), Err(DecodeError::Version(2)));
    assert_eq!(with(0x01), Err(DecodeError::Version(0)));
    let alone = |content| Ok(Header { content, ..HEADER });
    assert_eq!(with(0x15), alone(Content::Report));
    assert_eq!(with(0x19), alone(Content::Probe));
    assert_eq!(with(0x1d), alone(Content::GivenUp));
    for length in 0..OCTETS {
        assert_eq!(decode(&good[..length]), Err(DecodeError::TooShort(length)));
    }
}

fn any_header() -> impl Strategy<Value = Header> {
    let report =
        any::<(u8, u16, u16, u8, u32)>().prop_map(|(route, loss, route_number, missing, delay)| {
            Report {
                route,
                loss,
                route_number,
                missing,
                delay,
            }
        });
    (
        any::<(u8, u16, u32, u16, u32, bool)>(),
        prop::sample::select(vec![
            Content::Packet,
            Content::Report,
            Content::Probe,
            Content::GivenUp,
        ]),
        prop::option::of(report),
    )
        .prop_map(
            |((route, flow, number, route_number, sent, kept), content, report)| Header {
                route,
                flow,
                number,
                route_number,
                sent,
                kept,
                content,
                report,
            },
        )
}

proptest! {
    #[test]
    fn headers_round_trip(header in any_header(), packet in prop::collection::vec(any::<u8>(), 0..100)) {
        let mut octets = encode(&header).to_vec();
        octets.extend(&packet);
        prop_assert_eq!(decode(&octets), Ok((header, &packet[..])));
    }

    #[test]
    fn any_octets_are_decoded_or_rejected(octets in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Ok((header, rest)) = decode(&octets) {
            prop_assert_eq!(rest.len(), octets.len() - OCTETS);
            let again = encode(&header);
            prop_assert_eq!(decode(&again), Ok((header, &[][..])));
        }
    }
}
