//! Any octets as an IP packet, and as input of an endpoint: nothing panics, and no stream is
//! corrupted. Headers are read in place, changed, and answered by ICMP messages with correct
//! checksums; a decoded segment is encoded and decoded again.
//!
//! The checksums are corrected first if there is room for them; otherwise hardly any input would
//! pass the check. The first octet has options. Bit 0: leave the checksums unchanged. Bit 1: use an
//! endpoint with an open connection. Bit 2: use the profile `linux` with all loss recovery
//! mechanisms instead of `rfc`.
#![cfg_attr(feature = "libfuzzer", no_main)]

use std::sync::Arc;

use anabranch_congestion::{self as cc};
use anabranch_core::{
    body::{Body, Octets},
    packet::Ecn,
    units::Instant,
};
use anabranch_fuzz::fuzz_target;
use anabranch_tcp::{Endpoint, Profile, Role, State};
use anabranch_wire::{
    self as wire, Checksum, Flags, IpHeader, IpPacket, Options, Protocol, Segment, TcpHeader,
    clamp_mss,
    icmp::{Reaction, at_router},
    iter_options, set_ecn, take_hops,
};

fuzz_target!(|bytes: &[u8]| {
    let Some((&how, rest)) = bytes.split_first() else {
        return;
    };
    let mut packet = rest.to_vec();
    if how & 1 == 0 {
        mend(&mut packet);
    }
    in_place(&packet);
    let Ok(decoded) = wire::decode(&packet) else {
        return;
    };
    let mut again = Vec::new();
    if wire::encode(&decoded.ip, decoded.ports, &decoded.segment, &mut again).is_ok() {
        let twice = wire::decode(&again).expect("we wrote it");
        assert_eq!(twice.segment, decoded.segment);
    }
    if how & 2 != 0 {
        let profile = if how & 4 == 0 { "rfc" } else { "linux" };
        into_endpoint(profile, &decoded.segment, decoded.ip.ecn);
    }
});

/// Calls readers without verification, header changes, and ICMP messages about the packet.
fn in_place(packet: &[u8]) {
    let mut changed = packet.to_vec();
    set_ecn(&mut changed, Ecn::Ce);
    take_hops(&mut changed, 3);
    let router = [[192, 0, 2, 1].into(), [9; 16].into()];
    if let Reaction::Answer(message) | Reaction::Error(message) = at_router(packet, router) {
        wire::decode_ip(&message).expect("we wrote it");
    }
    let Ok(ip) = IpPacket::read(packet) else {
        return;
    };
    let _ = (ip.ports(), ip.source(), IpHeader::of(&ip));
    let segment = ip.payload().unwrap_or_default();
    if let Ok((_, length)) = TcpHeader::read(segment) {
        let _ = iter_options(TcpHeader::options(segment, length)).count();
    }
    let mut clamped = segment.to_vec();
    if !clamp_mss(&mut clamped, 1_000) {
        assert_eq!(clamped, segment);
    }
    let ip = IpPacket::read(&changed).expect("the same headers");
    assert_eq!(
        (ip.ecn(), ip.payload()),
        (Ecn::Ce, Some(segment).filter(|_| ip.payload().is_some()))
    );
}

/// Corrects lengths and checksums.
fn mend(packet: &mut [u8]) {
    let len = packet.len();
    if len < 20 || packet[0] >> 4 != 4 {
        return;
    }
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes());
    packet[6..8].fill(0);
    packet[9] = 6;
    packet[10..12].fill(0);
    let sum = Checksum::of(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.finish().to_be_bytes());
    let Ok((ip, ..)) = wire::decode_ip(packet) else {
        return;
    };
    if len >= 40 {
        packet[36..38].fill(0);
        let mut sum = ip.pseudo_header(Protocol::Tcp, len - 20);
        sum.add(&packet[20..]);
        packet[36..38].copy_from_slice(&sum.finish().to_be_bytes());
    }
}

/// Delivers a segment to an open connection, with its sequence numbers moved near the connection's.
fn into_endpoint(profile: &str, segment: &Segment<Octets>, ecn: Ecn) {
    let settings = Arc::new(Profile::named(profile).expect("it exists").settings);
    let control = cc::Config::Reno(cc::reno::Params::default()).build(&settings.init());
    let mut end: Endpoint<Octets> = Endpoint::new(&settings, control, Role::Passive, 7);
    let now = Instant::from_millis(1);
    let first = |seq, flags, options| Segment {
        seq,
        ack: 8,
        window: 60_000,
        flags,
        timestamps: None,
        options,
        body: Octets::default(),
    };
    let options = Options::Syn {
        mss: 1460,
        window_scale: Some(3),
        sack_permitted: true,
        accecn: None,
        fast_open: None,
    };
    end.on_segment(now, &first(0, Flags::SYN, options), Ecn::NotEct);
    while end.poll_transmit(now).is_some() {}
    end.on_segment(now, &first(1, Flags::ACK, Options::None), Ecn::NotEct);
    assert_eq!(end.state(), State::Established);
    end.write_all(Octets::filler(20_000));
    let mut sent = 0;
    while end.poll_transmit(now).is_some() {
        sent += 1;
        assert!(sent < 1000);
    }
    let before = end.stats().delivered_bytes;
    end.on_segment(now, segment, ecn);
    let mut sent = 0;
    while end.poll_transmit(now).is_some() {
        sent += 1;
        assert!(sent < 1000, "one segment lets the end send without end");
    }
    let delivered = end.stats().delivered_bytes - before;
    assert!(
        delivered <= u64::from(segment.body.len()),
        "octets from nowhere"
    );
}
