//! The hot path leaves the state of the general path.

use crate::{
    support::{Link, Net, octets},
    transfer::{link, settings},
};

use std::sync::Arc;

use anabranch_congestion::{Ack, Config, Congestion, CongestionControl, Control, IdleRestart, Rto};
use anabranch_core::{
    body::Octets,
    packet::Ecn,
    units::{Bytes, Duration, Instant},
};
use anabranch_tcp::{
    DelayedAck, EcnMode, Endpoint, MtuDiscovery, Profile, Role, Settings, profiles,
};
use anabranch_wire::{Flags, Options, SackBlock, Segment, segment::Timestamps};
use proptest::{prelude::*, sample::select};

/// Any stack, with features that the hot path does not have.
fn stack() -> impl Strategy<Value = Settings> {
    let ecn = select(vec![EcnMode::Off, EcnMode::Off, EcnMode::Rfc3168]);
    let idle = select(vec![
        IdleRestart::Off,
        IdleRestart::Rfc5681,
        IdleRestart::Rfc7661,
    ]);
    let mtu = select(vec![MtuDiscovery::Icmp, MtuDiscovery::BlackHole]);
    let changed = (
        select(profiles()),
        ecn,
        idle,
        mtu,
        any::<bool>(),
        any::<bool>(),
    );
    let changed = changed.prop_map(
        |(profile, ecn, idle_restart, mtu_discovery, pacing, at_once)| {
            let mut settings = profile.settings;
            if at_once {
                settings.delayed_ack = DelayedAck::Off;
            }
            settings.cwnd_validation |= idle_restart == IdleRestart::Rfc7661;
            Settings {
                ecn,
                idle_restart,
                mtu_discovery,
                pacing,
                ..settings
            }
        },
    );
    prop_oneof![settings(), changed]
}

/// An event other than the arrival of a packet or the end of a timer.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// A segment in flight is changed.
    OnTheWay(u8, u32),
    /// The last segment arrives again, changed.
    Again(u8, u32),
    Write(usize),
    WriteEndlessly,
    Close,
    AutoRead(bool),
    Read,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0_u8..12, 0_u32..4).prop_map(|(field, by)| Event::OnTheWay(field, by)),
        2 => (0_u8..12, 0_u32..4).prop_map(|(field, by)| Event::Again(field, by)),
        2 => (1_usize..9_000).prop_map(Event::Write),
        1 => Just(Event::WriteEndlessly),
        1 => Just(Event::Close),
        1 => any::<bool>().prop_map(Event::AutoRead),
        1 => Just(Event::Read),
    ]
}

/// Changes a segment in one field.
fn change(segment: &mut Segment<Octets>, ecn: &mut Ecn, field: u8, by: u32) {
    match field {
        0 => segment.seq = segment.seq.wrapping_add(by),
        1 => segment.ack = segment.ack.wrapping_add(by),
        2 => segment.window = segment.window.wrapping_add(u16::try_from(by % 3).unwrap()),
        3 => segment.flags |= Flags::PSH,
        4 => segment.flags |= [Flags::FIN, Flags::SYN, Flags::URG, Flags::ECE][by as usize % 4],
        5 => {
            segment.timestamps = segment.timestamps.map(|old| Timestamps {
                value: old.value.wrapping_sub(by),
                ..old
            });
        }
        6 => segment.timestamps = None,
        7 => segment.body = octets(3, by as usize * 1_000),
        8 => *ecn = Ecn::Ce,
        9 => segment.ack = segment.seq,
        10 => segment.body = octets(3, 80_000),
        _ => segment.options = Options::Sack(1, [SackBlock::default(); 4]),
    }
}

fn apply(net: &mut Net<Octets>, to: usize, event: Event) {
    let end = &mut net.ends[to];
    match event {
        Event::OnTheWay(field, by) => {
            net.change_next(to, |segment, ecn| change(segment, ecn, field, by));
        }
        Event::Again(field, by) => {
            if let Some(mut segment) = net.last_delivered(to) {
                change(&mut segment, &mut Ecn::NotEct, field, by);
                net.inject(to, &segment);
            }
        }
        Event::Write(len) => {
            end.write(octets(5, len));
        }
        Event::WriteEndlessly => end.write_repeating(octets(1, 251)),
        Event::Close => end.close(),
        Event::AutoRead(on) => end.set_auto_read(on),
        Event::Read => {
            end.read(net.now, u64::MAX);
        }
    }
    net.flush();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Detects a hot function that leaves out a step of the general path, or takes a segment that
    /// it must not take.
    #[test]
    fn the_hot_path_leaves_the_state_of_the_general_path(
        settings in stack(),
        control in select(vec!["reno", "cubic", "cubic", "cubic-plus", "bbr", "bbr3", "vegas", "dctcp", "prague"]),
        link in link(), clean in any::<bool>(),
        events in proptest::collection::vec((0_u64..300, 0_usize..2, event()), 0..16),
    ) {
        let link = Link {
            loss: if clean { 0.0 } else { link.loss / 10.0 },
            jitter: if clean { Duration::ZERO } else { link.jitter },
            duplicate: if clean { 0.0 } else { link.duplicate },
            ..link
        };
        let settings = Arc::new(settings);
        let end = |role, iss| {
            let config = Config::named(control).expect("it exists");
            let control = config.build(&settings.init());
            Endpoint::new(&settings, control, role, iss).with_timer_rule(config.timer_rule())
        };
        let mut nets = [false, true].map(|hot| {
            let mut net: Net<Octets> = Net::new(&settings, &settings, link.clone(), [0, 0]);
            net.ends = [end(Role::Active, 7), end(Role::Passive, u32::MAX - 9)];
            net.hot = hot;
            net.open();
            net
        });
        for number in 0..=300 {
            for net in &mut nets {
                if number == 10 {
                    apply(net, 0, Event::WriteEndlessly);
                }
                for (_, to, event) in events.iter().filter(|(at, _, _)| *at == number) {
                    apply(net, *to, *event);
                }
                net.step();
            }
            if number % 50 == 0 {
                let [general, hot] = nets.each_ref().map(|net| format!("{:#?}", net.ends));
                let difference = general.lines().zip(hot.lines()).find(|(a, b)| a != b);
                prop_assert_eq!(difference, None, "after {} events", number);
            }
        }
    }
}

/// A bulk transfer without losses is hot.
#[test]
fn most_segments_of_a_bulk_transfer_are_hot() {
    for stack in ["rfc", "linux"] {
        let settings = Profile::named(stack).expect("it exists").settings;
        let link = Link {
            gap: Duration::from_micros(100),
            ..Link::default()
        };
        let mut net: Net<Octets> = Net::new(&settings, &settings, link, [1, 2]);
        net.hot = true;
        net.open();
        net.ends[0].write_repeating(octets(1, 251));
        while net.events < 2_000 {
            net.step();
        }
        assert!(net.taken_hot > 1_500, "{stack}: {}", net.taken_hot);
    }
}

/// A bulk transfer in its middle, with these controls of sender and receiver.
fn bulk(controls: [Control; 2]) -> Net<Octets> {
    let settings = Arc::new(rfc());
    let mut net: Net<Octets> = Net::new(&settings, &settings, Link::default(), [1, 2]);
    let [sender, receiver] = controls;
    net.ends = [
        Endpoint::new(&settings, sender, Role::Active, 1),
        Endpoint::new(&settings, receiver, Role::Passive, 2),
    ];
    net.open();
    net.ends[0].write_repeating(octets(1, 251));
    while net.events < 200 {
        net.step();
    }
    net
}

fn rfc() -> Settings {
    Profile::named("rfc").expect("it exists").settings
}

fn reno() -> Control {
    let control = Config::named("reno").expect("it exists");
    control.build(&rfc().init())
}

/// Detects an end that counts as hot although it may have a segment to send.
#[test]
fn an_end_that_has_to_be_polled_is_not_hot() {
    let mut net = bulk([reno(), reno()]);
    assert!(net.ends[0].is_hot_sender() && net.ends[1].is_hot_receiver());
    for end in &mut net.ends {
        end.wake();
    }
    assert!(!net.ends[0].is_hot_sender() && !net.ends[1].is_hot_receiver());
}

/// A control with a window of 50,000 octets and a timer.
#[derive(Debug)]
struct Timed(Option<Instant>);

impl CongestionControl for Timed {
    fn on_ack(&mut self, _ack: &Ack) {}
    fn on_congestion(&mut self, _event: &Congestion) {}
    fn on_rto(&mut self, _event: &Rto) {}
    fn cwnd(&self) -> Bytes {
        Bytes::new(50_000)
    }
    fn ssthresh(&self) -> Option<Bytes> {
        None
    }
    fn timer(&self) -> Option<Instant> {
        self.0
    }
}

/// Detects a hot path that leaves out the timer of a control, or its other events.
#[test]
fn an_end_with_a_users_control_is_hot_only_as_a_receiver_without_a_timer() {
    for timer in [None, Some(Instant::from_millis(60_000))] {
        let timed = || Control::Boxed(Box::new(Timed(timer)));
        let net = bulk([timed(), reno()]);
        assert!(!net.ends[0].is_hot_sender());
        let net = bulk([reno(), timed()]);
        assert_eq!(net.ends[1].is_hot_receiver(), timer.is_none());
    }
}
