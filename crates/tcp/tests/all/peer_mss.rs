//! The congestion window if the peer's MSS is smaller than ours.
//!
//! RFC 5681 §2: "The SMSS is the size of the largest segment that the sender can transmit. This
//! value can be based on the maximum transmission unit of the network, the path MTU discovery
//! [RFC1191, RFC4821] algorithm, RMSS (see next item), or other factors."

use std::sync::Arc;

use anabranch_congestion::{Config, registry};
use anabranch_core::{body::Length, packet::Ecn, units::Bytes};
use anabranch_tcp::{Endpoint, Profile, Role, Settings};
use anabranch_wire::{Flags, Options, Segment, Timestamps};

use crate::support::plain::{drain, ms};

/// The MSS option of the peer, and the payload of a segment with timestamps.
const OPTION: u16 = 500;
const SMSS: u32 = 488;

fn settings(profile: &str) -> Settings {
    let s = Profile::named(profile).expect("it exists").settings;
    assert!(s.mss > SMSS && s.timestamps);
    s
}

/// An open connection whose peer has the MSS [`OPTION`]. Its stream begins at 101, the peer's at 1.
fn open(settings: &Settings, config: &Config, role: Role) -> Endpoint<Length> {
    let mut end = Endpoint::controlled_by(&Arc::new(settings.clone()), config, role, 100);
    let mut segment = Segment {
        seq: 0,
        ack: 101,
        window: 65_535,
        flags: Flags::SYN | Flags::ACK,
        timestamps: Some(Timestamps { value: 1, echo: 0 }),
        options: Options::Syn {
            mss: OPTION,
            window_scale: None,
            sack_permitted: true,
            accecn: None,
            fast_open: None,
        },
        body: Length(0),
    };
    if role == Role::Active {
        end.open(ms(0));
        assert_eq!(drain(&mut end, ms(0)).len(), 1);
        end.on_segment(ms(50), &segment, Ecn::NotEct);
    } else {
        segment.flags = Flags::SYN;
        end.on_segment(ms(0), &segment, Ecn::NotEct);
        assert_eq!(drain(&mut end, ms(0)).len(), 1);
        end.on_segment(ms(50), &ack(0), Ecn::NotEct);
    }
    drain(&mut end, ms(50));
    assert_eq!(end.smss(), SMSS);
    end
}

/// Acknowledges `segments` full segments.
fn ack(segments: u32) -> Segment<Length> {
    Segment {
        seq: 1,
        ack: 101 + segments * SMSS,
        window: 65_535,
        flags: Flags::ACK,
        timestamps: Some(Timestamps { value: 1, echo: 0 }),
        options: Options::None,
        body: Length(0),
    }
}

fn segments(bytes: Bytes) -> u64 {
    assert_eq!(bytes.get() % u64::from(SMSS), 0, "{bytes:?}");
    bytes.get() / u64::from(SMSS)
}

/// RFC 6928 §2: the initial window is "min (10*MSS, max (2*MSS, 14600))". 28 segments of 488 octets
/// are less than ten of the MSS before the handshake.
#[test]
fn initial_window_has_ten_segments_of_the_agreed_mss() {
    for (meta, config, ..) in registry() {
        for role in [Role::Active, Role::Passive] {
            let mut end = open(&settings("linux"), &config, role);
            assert_eq!(segments(end.cwnd()), 10, "{} {role:?}", meta.name);
            if meta.name != "bbr" && meta.name != "bbr3" {
                end.write_all(Length(100 * SMSS));
                let sent = drain(&mut end, ms(50));
                assert_eq!(sent.len(), 10, "{} {role:?}", meta.name);
                assert!(sent.iter().all(|segment| segment.body.0 == SMSS));
            }
        }
    }
}

/// RFC 5681 §3.1: "During slow start, a TCP increments cwnd by at most SMSS bytes for each ACK
/// received that cumulatively acknowledges new data."
#[test]
fn slow_start_grows_by_the_agreed_mss() {
    let config = Config::Reno(anabranch_congestion::reno::Params::default());
    let mut end = open(&settings("rfc"), &config, Role::Active);
    end.write_all(Length(100 * SMSS));
    drain(&mut end, ms(50));
    for n in 1..=10 {
        end.on_segment(ms(100), &ack(2 * n), Ecn::NotEct);
        assert_eq!(segments(end.cwnd()), 10 + u64::from(n));
        drain(&mut end, ms(100));
    }
}

/// RFC 5681 §3.1 equation 4: ssthresh is "max (FlightSize / 2, 2*SMSS)", and cwnd after a timeout
/// is the loss window of one full-sized segment.
#[test]
fn least_ssthresh_has_two_segments_of_the_agreed_mss() {
    for profile in ["rfc", "linux"] {
        let config = Config::Reno(anabranch_congestion::reno::Params::default());
        let mut end = open(&settings(profile), &config, Role::Active);
        end.write_all(Length(3 * SMSS));
        assert_eq!(drain(&mut end, ms(50)).len(), 3);
        while end.stats().timeouts == 0 {
            let now = end.deadline();
            end.on_deadline(now);
            drain(&mut end, now);
        }
        assert_eq!(segments(end.cwnd()), 1, "{profile}");
        let least = if profile == "rfc" { 2 } else { 5 };
        assert_eq!(
            end.snapshot().ssthresh.map(segments),
            Some(least),
            "{profile}"
        );
    }
}

/// A control that its caller has made keeps its MSS.
#[test]
fn a_smaller_mss_of_ours_is_unchanged() {
    let s = Settings {
        mss: 400,
        ..settings("rfc")
    };
    let config = Config::Reno(anabranch_congestion::reno::Params::default());
    let end: Endpoint<Length> = Endpoint::controlled_by(&Arc::new(s), &config, Role::Active, 100);
    assert_eq!(end.cwnd().get(), 4_000);
}
