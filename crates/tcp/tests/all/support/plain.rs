//! Endpoints with round numbers, on a link with a fixed delay or opened by hand.

use anabranch_congestion::TimerRule;
use anabranch_core::{
    body::{Body, Length},
    packet::Ecn,
    units::{Duration, Instant},
};
use anabranch_tcp::{DelayedAck, Endpoint, Profile, Recovery, Role, Settings};
use anabranch_wire::{Flags, Options, Segment};

use super::{Link, Net, endpoint};

pub const MSS: u64 = 1000;

pub fn ms(n: u64) -> Instant {
    Instant::from_millis(n)
}

/// The switches of profile `rfc` with round numbers: segments of 1,000 octets, each acknowledged.
pub fn settings() -> Settings {
    let mut s = Profile::named("rfc").expect("it exists").settings;
    s.mss = 1000;
    s.delayed_ack = DelayedAck::Off;
    s
}

pub fn without_sack(recovery: Recovery) -> Settings {
    Settings {
        sack: false,
        dsack: false,
        recovery,
        ..settings()
    }
}

pub fn net(s: &Settings, link: Link) -> Net<Length> {
    Net::new(s, s, link, [u32::MAX - 5000, 77])
}

/// 10 ms each way, 0.1 ms between packets.
pub fn link(lose: &[u32]) -> Link {
    Link {
        lose: lose.to_vec(),
        gap: Duration::from_micros(100),
        ..Link::default()
    }
}

pub fn file(s: &Settings, link: Link, segments: u64) -> Net<Length> {
    let mut net = net(s, link);
    net.open();
    net.ends[0].write_all(Length(u32::try_from(segments * MSS).unwrap()));
    net
}

/// An end opened by hand against a peer without options. Its stream begins at 101, the peer's at 1.
pub fn established(s: &Settings) -> Endpoint<Length> {
    let mut end: Endpoint<Length> = endpoint(
        &Settings {
            timestamps: false,
            ..s.clone()
        },
        Role::Active,
        100,
    );
    end.open(Instant::START);
    assert!(end.poll_transmit(Instant::START).is_some());
    let answer = Segment {
        seq: 0,
        ack: 101,
        window: 65_535,
        flags: Flags::SYN | Flags::ACK,
        timestamps: None,
        options: Options::Syn {
            mss: 1000,
            window_scale: None,
            sack_permitted: s.sack,
            accecn: None,
            fast_open: None,
        },
        body: Length(0),
    };
    end.on_segment(ms(50), &answer, Ecn::NotEct);
    while end.poll_transmit(ms(50)).is_some() {}
    end
}

/// The peer acknowledges the stream up to octet `n`.
pub fn ack(_end: &Endpoint<Length>, n: u32) -> Segment<Length> {
    Segment {
        seq: 1,
        ack: 101 + n,
        window: 65_535,
        flags: Flags::ACK,
        timestamps: None,
        options: Options::None,
        body: Length(0),
    }
}

pub fn drain<B: Body>(end: &mut Endpoint<B>, now: Instant) -> Vec<Segment<B>> {
    std::iter::from_fn(|| end.poll_transmit(now))
        .map(|out| out.segment)
        .collect()
}

pub const RULE: TimerRule = TimerRule {
    initial_reo_wnd: Duration::from_millis(1),
    reo_wnd_min_rtt_share: 0.25,
};
