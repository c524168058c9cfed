//! Effects of a router's Packet Too Big report (RFC 1191, RFC 8201, RFC 5927 §4).

use anabranch_core::body::Length;
use anabranch_tcp::{Endpoint, MtuDiscovery, RetransmitCause, Settings};

use crate::support::plain::{ack, drain, established, ms, settings};

/// Five full segments of 1,000 octets are outstanding.
fn five() -> (Settings, Endpoint<Length>) {
    let s = Settings {
        initial_cwnd: 5,
        ..settings()
    };
    let mut end = established(&s);
    end.write_all(Length(20_000));
    assert_eq!(drain(&mut end, ms(50)).len(), 5);
    (s, end)
}

#[test]
fn larger_segments_are_retransmitted_at_once_in_pieces() {
    let (_, mut end) = five();
    let before = (end.cwnd(), end.stats());
    // IP and TCP have 40 octets.
    assert!(end.on_packet_too_big(ms(60), 101, 640));
    let out: Vec<_> = std::iter::from_fn(|| end.poll_transmit(ms(60))).collect();
    let pieces: Vec<_> = out
        .iter()
        .map(|out| (out.segment.seq, out.segment.body.0, out.retransmission))
        .collect();
    let cause = Some(RetransmitCause::PathMtu);
    // The window has room for whole segments only; the last, shorter piece waits for an
    // acknowledgment.
    let expected: Vec<_> = (0..5)
        .flat_map(|n| [(101 + 1000 * n, 600, cause), (701 + 1000 * n, 400, cause)])
        .take(9)
        .collect();
    assert_eq!(pieces, expected);
    assert!(out.iter().all(|out| out.size <= 640));
    // RFC 1191 §6.5: the report does not indicate congestion.
    assert_eq!(end.cwnd(), before.0);
    let since = end.stats().since(&before.1);
    assert_eq!((since.timeouts, since.fast_recoveries), (0, 0));
    assert_eq!(since.retransmitted_packets, 9);
    end.on_segment(
        ms(110),
        &ack(&end, 600),
        anabranch_core::packet::Ecn::NotEct,
    );
    let last = drain(&mut end, ms(110));
    assert_eq!((last[0].seq, last[0].body.0), (4701, 400));
}

#[test]
fn new_data_is_sent_in_the_smaller_size() {
    let (_, mut end) = five();
    end.on_packet_too_big(ms(60), 101, 640);
    drain(&mut end, ms(60));
    end.on_segment(
        ms(110),
        &ack(&end, 5000),
        anabranch_core::packet::Ecn::NotEct,
    );
    let new = drain(&mut end, ms(110));
    assert!(!new.is_empty() && new.iter().all(|segment| segment.body.0 == 600));
}

#[test]
fn the_same_report_again_changes_nothing() {
    let (_, mut end) = five();
    assert!(end.on_packet_too_big(ms(60), 101, 640));
    drain(&mut end, ms(60));
    for seq in [1101, 2101, 3101, 4101] {
        assert!(!end.on_packet_too_big(ms(61), seq, 640));
        assert!(drain(&mut end, ms(61)).is_empty());
    }
}

#[test]
fn a_report_for_data_not_outstanding_is_ignored() {
    let (_, mut end) = five();
    for seq in [100, 5101, 0, u32::MAX] {
        assert!(!end.on_packet_too_big(ms(60), seq, 640), "{seq}");
    }
    end.on_segment(
        ms(100),
        &ack(&end, 2000),
        anabranch_core::packet::Ecn::NotEct,
    );
    assert!(!end.on_packet_too_big(ms(101), 101, 640));
}

#[test]
fn a_report_of_a_larger_mtu_is_ignored() {
    let (_, mut end) = five();
    for mtu in [1040, 1500, u32::MAX] {
        assert!(!end.on_packet_too_big(ms(60), 101, mtu), "{mtu}");
    }
}

#[test]
fn no_report_goes_below_the_floor() {
    // RFC 1191 §3: 68 octets.
    let (_, mut end) = five();
    assert!(end.on_packet_too_big(ms(60), 101, 0));
    let out = drain(&mut end, ms(60));
    assert!(out.iter().all(|segment| segment.body.0 <= 28));
    // All except one piece, for which the window has no room.
    assert_eq!(out.iter().map(|segment| segment.body.0).sum::<u32>(), 4_980);
    assert!(!end.on_packet_too_big(ms(61), 101, 40));
}

#[test]
fn a_closed_end_ignores_reports() {
    let (s, _) = five();
    let mut fresh = crate::support::endpoint::<Length>(&s, anabranch_tcp::Role::Active, 100);
    assert!(!fresh.on_packet_too_big(ms(1), 100, 640));
    fresh.open(ms(1));
    drain(&mut fresh, ms(1));
    assert!(!fresh.on_packet_too_big(ms(2), 100, 640));
}

#[test]
fn without_discovery_reports_are_ignored() {
    let s = Settings {
        mtu_discovery: MtuDiscovery::Off,
        ..settings()
    };
    let mut end = established(&s);
    end.write_all(Length(5000));
    drain(&mut end, ms(50));
    assert!(!end.on_packet_too_big(ms(60), 101, 640));
}

#[test]
fn the_third_consecutive_timeout_reduces_the_mss() {
    let s = Settings {
        mss: 1400,
        mtu_discovery: MtuDiscovery::BlackHole,
        ..settings()
    };
    for (discovery, expected) in [(MtuDiscovery::BlackHole, 1024), (MtuDiscovery::Icmp, 1400)] {
        let s = Settings {
            mtu_discovery: discovery,
            ..s.clone()
        };
        let mut net = crate::support::plain::net(&s, crate::support::Link::default());
        net.open();
        net.run_until(ms(100));
        let end = &mut net.ends[0];
        end.write_all(Length(14_000));
        drain(end, ms(100));
        let mut sizes = Vec::new();
        for _ in 0..3 {
            let at = end.deadline();
            end.on_deadline(at);
            sizes = drain(end, at);
        }
        assert_eq!(end.stats().timeouts, 3);
        assert_eq!(sizes[0].body.0, expected, "{discovery:?}");
    }
}
