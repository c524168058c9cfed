//! ECN-capable packets of a connection: all with DCTCP (RFC 8257 §3.5), all after the handshake
//! with L4S (RFC 9331 §4.1), otherwise new data only (RFC 3168 §6.1).

use crate::support;

use anabranch_core::{
    body::Length,
    packet::Ecn,
    units::{Duration, Instant},
};
use anabranch_tcp::{DelayedAck, EcnMode, Endpoint, Outgoing, Profile, Role, Settings};
use anabranch_wire::Flags;
use support::endpoint;

fn settings(mode: EcnMode) -> Settings {
    Settings {
        ecn: mode,
        mss: 1_000,
        delayed_ack: DelayedAck::Off,
        ..Profile::named("rfc").expect("it exists").settings
    }
}

/// Two endpoints and the clock; the test delivers the packets.
struct Pair {
    now: Instant,
    ends: [Endpoint<Length>; 2],
}

impl Pair {
    fn new(client: EcnMode, server: EcnMode) -> Self {
        Self {
            now: Instant::START,
            ends: [
                endpoint(&settings(client), Role::Active, 5),
                endpoint(&settings(server), Role::Passive, 77),
            ],
        }
    }
    fn take(&mut self, end: usize) -> Outgoing<Length> {
        self.ends[end]
            .poll_transmit(self.now)
            .expect("something to send")
    }
    fn give(&mut self, end: usize, packet: &Outgoing<Length>) {
        self.now = self.now + Duration::from_millis(5);
        self.ends[end].on_segment(self.now, &packet.segment, packet.ecn);
    }
    /// Whether SYN, SYN-ACK and the third segment are ECN-capable.
    fn open(&mut self) -> [bool; 3] {
        self.ends[0].open(self.now);
        let syn = self.take(0);
        self.give(1, &syn);
        let syn_ack = self.take(1);
        self.give(0, &syn_ack);
        let third = self.take(0);
        self.give(1, &third);
        [syn, syn_ack, third].map(|packet| packet.ecn.is_capable())
    }
    fn expire(&mut self, end: usize) {
        self.now = self.ends[end].deadline();
        assert!(self.now < Instant::NEVER, "no timer");
        self.ends[end].on_deadline(self.now);
    }
}

/// Every kind of packet, whether it is ECN-capable, and whether it is new data.
fn every_packet(mode: EcnMode) -> Vec<(&'static str, bool, bool)> {
    let mut pair = Pair::new(mode, mode);
    let mut seen = Vec::new();
    let [syn, syn_ack, third] = pair.open();
    seen.extend([
        ("SYN", syn, false),
        ("SYN-ACK", syn_ack, false),
        ("third segment", third, false),
    ]);

    pair.ends[0].write_all(Length(1_000));
    let data = pair.take(0);
    seen.push(("data", data.ecn.is_capable(), true));
    pair.expire(0);
    let again = pair.take(0);
    assert!(again.retransmission.is_some());
    seen.push(("retransmission", again.ecn.is_capable(), false));
    pair.give(1, &again);
    let ack = pair.take(1);
    assert_eq!(ack.segment.body.0, 0);
    seen.push(("pure acknowledgment", ack.ecn.is_capable(), false));

    // The peer closes its window: a probe.
    let mut closed = ack;
    closed.segment.window = 0;
    pair.give(0, &closed);
    pair.ends[0].write_all(Length(1_000));
    assert!(pair.ends[0].poll_transmit(pair.now).is_none());
    pair.expire(0);
    let probe = pair.take(0);
    assert_eq!(probe.segment.body.0, 0);
    seen.push(("window probe", probe.ecn.is_capable(), false));

    pair.ends[1].close();
    let fin = pair.take(1);
    assert!(fin.segment.flags.any(Flags::FIN));
    // New sequence space, but no data: RFC 3168 does not say, and Linux 6.18 does not treat it as
    // data.
    seen.push(("FIN", fin.ecn.is_capable(), false));

    pair.ends[0].abort(pair.now);
    let rst = pair.take(0);
    assert!(rst.segment.flags.any(Flags::RST));
    seen.push(("RST", rst.ecn.is_capable(), false));
    seen
}

#[test]
fn with_dctcp_every_packet_is_ecn_capable() {
    for (kind, capable, _) in every_packet(EcnMode::Dctcp) {
        assert!(capable, "{kind}");
    }
}

#[test]
fn without_dctcp_only_new_data_is_ecn_capable() {
    for mode in [EcnMode::Rfc3168, EcnMode::Accecn] {
        for (kind, capable, new) in every_packet(mode) {
            assert_eq!(capable, new, "{mode:?}: {kind}");
        }
    }
    assert!(every_packet(EcnMode::Off).iter().all(|packet| !packet.1));
}

#[test]
fn with_l4s_every_packet_after_the_handshake_is_ecn_capable() {
    for (kind, capable, _) in every_packet(EcnMode::L4s) {
        let opens_or_resets = ["SYN", "SYN-ACK", "RST"].contains(&kind);
        assert_eq!(capable, !opens_or_resets, "{kind}");
    }
}

#[test]
fn l4s_sends_ect1_to_a_peer_that_counts_marks_alone() {
    for (peer, expected) in [
        (EcnMode::L4s, Ecn::Ect1),
        (EcnMode::Accecn, Ecn::Ect1),
        (EcnMode::Rfc3168, Ecn::Ect0),
        (EcnMode::Off, Ecn::NotEct),
    ] {
        let mut pair = Pair::new(EcnMode::L4s, peer);
        pair.open();
        pair.ends[0].write_all(Length(1_000));
        let data = pair.take(0);
        assert_eq!(data.ecn, expected, "{peer:?}");
        // The peer's data is marked by the peer's mode.
        pair.give(1, &data);
        pair.ends[1].write_all(Length(1_000));
        let theirs = std::iter::from_fn(|| pair.ends[1].poll_transmit(pair.now))
            .find(|packet| packet.segment.body.0 > 0)
            .expect("data");
        let own = if peer == EcnMode::Accecn {
            Ecn::Ect0
        } else {
            expected
        };
        assert_eq!(theirs.ecn, own, "{peer:?}");
    }
}

/// A retransmitted SYN that no longer requests ECN stays ECN-capable, because the switch that drops
/// packets without ECN is still on the path.
#[test]
fn every_syn_of_dctcp_is_ecn_capable() {
    let mut pair = Pair::new(EcnMode::Dctcp, EcnMode::Dctcp);
    pair.ends[0].open(pair.now);
    assert!(pair.take(0).ecn.is_capable());
    for _ in 0..4 {
        pair.expire(0);
        assert!(pair.take(0).ecn.is_capable());
    }
}

#[test]
fn nothing_is_ecn_capable_after_a_peer_refuses_ecn() {
    let mut pair = Pair::new(EcnMode::Dctcp, EcnMode::Off);
    assert_eq!(pair.open(), [true, false, false]);
    pair.ends[0].write_all(Length(1_000));
    assert!(!pair.take(0).ecn.is_capable());
    pair.ends[0].abort(pair.now);
    assert!(!pair.take(0).ecn.is_capable());
    // A client without ECN, and a server with it.
    let mut pair = Pair::new(EcnMode::Off, EcnMode::Dctcp);
    assert_eq!(pair.open(), [false, false, false]);
    pair.ends[1].write_all(Length(1_000));
    assert!(!pair.take(1).ecn.is_capable());
}

/// RFC 8257 §3.2 echoes the marks of data only, and control packets are also marked with DCTCP.
#[test]
fn marks_of_control_packets_are_not_echoed() {
    let mut pair = Pair::new(EcnMode::Dctcp, EcnMode::Dctcp);
    pair.ends[0].open(pair.now);
    for (from, to) in [(0, 1), (1, 0), (0, 1)] {
        let mut packet = pair.take(from);
        packet.ecn = Ecn::Ce;
        pair.give(to, &packet);
    }
    pair.ends[0].write_all(Length(1_000));
    let data = pair.take(0);
    assert!(!data.segment.flags.any(Flags::ECE));
    pair.give(1, &data);
    assert!(!pair.take(1).segment.flags.any(Flags::ECE));
}

/// RFC 8257 §3.2: a segment whose mark differs from its predecessor's is acknowledged at once. A
/// separate acknowledgment covers the segments that were waiting before it. Detects an
/// acknowledgment that waits for a second segment after the change.
#[test]
fn a_change_of_marks_is_acknowledged_at_once() {
    let delayed = Settings {
        delayed_ack: Profile::named("rfc")
            .expect("it exists")
            .settings
            .delayed_ack,
        ..settings(EcnMode::Dctcp)
    };
    let mut pair = Pair::new(EcnMode::Dctcp, EcnMode::Dctcp);
    pair.ends[1] = endpoint(&delayed, Role::Passive, 77);
    pair.open();
    pair.ends[0].write_all(Length(6_000));
    let data: Vec<_> = std::iter::from_fn(|| pair.ends[0].poll_transmit(pair.now)).collect();
    let start = data[0].segment.seq;
    // The acknowledgments after each segment: the number of segments they cover in total, and ECE.
    let mut told = Vec::new();
    for (marked, mut packet) in [false, true, false, true, true, true].into_iter().zip(data) {
        if marked {
            packet.ecn = Ecn::Ce;
        }
        pair.give(1, &packet);
        let acks = std::iter::from_fn(|| pair.ends[1].poll_transmit(pair.now));
        told.push(
            acks.map(|ack| {
                let covered = ack.segment.ack.wrapping_sub(start) / 1_000;
                (covered, ack.segment.flags.any(Flags::ECE))
            })
            .collect::<Vec<_>>(),
        );
    }
    let expected: [&[(u32, bool)]; 6] = [
        &[],
        &[(1, false), (2, true)],
        &[(3, false)],
        &[(4, true)],
        &[],
        &[(6, true)],
    ];
    assert_eq!(told, expected);
}
