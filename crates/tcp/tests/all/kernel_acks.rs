//! A sender without SACK that receives the acknowledgments of a Linux kernel's connection sends the
//! kernel's segments.
//!
//! Each line of the data is an acknowledgment: nanoseconds since the first data, segments
//! acknowledged, and the numbers of the segments that the kernel sent until the next one. They are
//! from Linux 6.12 in virtual time, on the path of `studies/reordering/live.toml` without SACK,
//! timestamps and F-RTO: one packet in eleven is late by ten places, with Reno and with CUBIC; and
//! Reno with one in 31 late by 30 and 0.4 % random loss.

use anabranch_congestion::Config;
use anabranch_core::{
    body::Length,
    packet::Ecn,
    units::{Bytes, Duration, Instant},
};
use anabranch_tcp::{Endpoint, Profile, Role, settings::Overrides};
use anabranch_wire::{Flags, Options, Segment};
use std::sync::Arc;

use crate::support::plain::drain;

const MSS: u32 = 1448;
const RTT: Duration = Duration::from_micros(70_093);
/// The receive window, in segments.
const WINDOW: u32 = 158;

/// Recoveries of a sender that answers every acknowledgment of `data` as the kernel does.
fn recoveries(control: &Config, data: &str) -> u64 {
    let over = Overrides {
        sack: Some(false),
        timestamps: Some(false),
        frto: Some(false),
        mss: Some(Bytes::new(u64::from(MSS))),
        send_autotuning_start: Some(Bytes::new(4 << 20)),
        ..Overrides::default()
    };
    let profile = Profile::named("linux-6.12").expect("it exists");
    let settings = profile.settings.with(&over).expect("they agree");
    let mut end: Endpoint<Length> = Endpoint::new(
        &Arc::new(settings.clone()),
        control.build(&settings.init()),
        Role::Active,
        0,
    );
    end.write_endless();
    end.open(Instant::START);
    assert_eq!(drain(&mut end, Instant::START).len(), 1);
    let mut answer = Segment {
        seq: 0,
        ack: 1,
        window: 65_535,
        flags: Flags::SYN | Flags::ACK,
        timestamps: None,
        options: Options::Syn {
            mss: 1460,
            window_scale: Some(2),
            sack_permitted: false,
            accecn: None,
            fast_open: None,
        },
        body: Length(0),
    };
    let begin = Instant::START + RTT;
    end.on_segment(begin, &answer, Ecn::NotEct);
    let sent = |end: &mut Endpoint<Length>, now| -> Vec<u32> {
        let sent = drain(end, now);
        let data = sent.iter().filter(|segment| segment.body.0 > 0);
        data.map(|segment| (segment.seq - 1) / MSS).collect()
    };
    assert_eq!(sent(&mut end, begin), (0..10).collect::<Vec<_>>());
    answer.seq = 1;
    answer.flags = Flags::ACK;
    answer.options = Options::None;
    answer.window = u16::try_from((WINDOW * MSS) >> 2).expect("it fits");
    for (number, line) in data.lines().enumerate() {
        let numbers: Vec<u64> = line
            .split(' ')
            .map(|word| word.parse().expect("a number"))
            .collect();
        let now = begin + Duration::from_nanos(numbers[0]);
        assert!(
            end.deadline() > now,
            "no timer expires: line {}",
            number + 1
        );
        answer.ack = 1 + u32::try_from(numbers[1]).expect("a segment") * MSS;
        end.on_segment(now, &answer, Ecn::NotEct);
        let found: Vec<u64> = sent(&mut end, now).into_iter().map(u64::from).collect();
        assert_eq!(found, numbers[2..], "line {}: {line}", number + 1);
    }
    end.stats().fast_recoveries
}

#[test]
fn reno_answers_reordering_as_the_kernel() {
    let control = Config::Reno(anabranch_congestion::reno::Params::default());
    let data = include_str!("../data/linux-6.12-reno.txt");
    assert_eq!(recoveries(&control, data), 3);
}

#[test]
fn cubic_answers_reordering_as_the_kernel() {
    let control = Config::Cubic(anabranch_congestion::cubic::Params::default());
    let data = include_str!("../data/linux-6.12-cubic.txt");
    assert_eq!(recoveries(&control, data), 10);
}

#[test]
fn reno_answers_losses_as_the_kernel() {
    let control = Config::Reno(anabranch_congestion::reno::Params::default());
    let data = include_str!("../data/linux-6.12-loss.txt");
    assert_eq!(recoveries(&control, data), 5);
}
