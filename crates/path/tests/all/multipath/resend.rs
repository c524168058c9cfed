//! Retransmission of a route's losses: two entrances and two exits, with data one way and
//! acknowledgments the other.

use std::collections::BTreeMap;

use anabranch_core::{
    body::{Body, Octets},
    packet::{ConnectionId, Direction, Ecn, Packet, PacketId, WaitAccount},
    rng::Stream,
    trail::Trail,
    tunnel::{Header, Report},
    units::{Duration, Instant, Rate},
};
use anabranch_path::{
    link::Window,
    middlebox::{Held, Middlebox, Output},
    multipath::{
        Entrance, EntranceParts, Exit, ExitParts, Meter, Peer, Report as Counts, RestoreReport,
        params::Keep,
        restore,
        restore::{Arrived, Restore, TcpPlace, adaptive},
        split,
        split::{AnySplit, Missing, Split, View, earliest_arrival},
    },
};
use anabranch_wire::{Flags, Segment, Transport};

const ROUTES: usize = 2;
/// One-way delays in steps of a quarter of a millisecond; acknowledgments have the same.
const DELAYS: [u64; ROUTES] = [40, 60];
const DATA: u32 = 400;
const MEASURED: Window = Window::new(Instant::START, Instant::from_millis(1_000_000));

fn splitter(keep: u16) -> split::Config {
    split::Config::EarliestArrival(earliest_arrival::Params {
        keep: Keep::try_from(keep).expect("within bounds"),
        ..earliest_arrival::Params::default()
    })
}

fn build(config: &split::Config) -> AnySplit {
    config.build(&split::Init {
        rates: vec![Rate::new(20_000_000); ROUTES],
        names: Vec::new(),
    })
}

/// One end of the pair: packets of one direction enter, and packets of the other leave.
struct End {
    entrance: Entrance<Octets>,
    exit: Exit<Octets>,
}

impl End {
    fn new(keep: u16) -> Self {
        let peer = Some(Peer::new(ROUTES));
        let config = splitter(keep);
        let restore = restore::Config::Adaptive(adaptive::Params::default());
        Self {
            entrance: Entrance::new(EntranceParts {
                split: build(&config),
                overhead: 52,
                routes: ROUTES,
                keeps: config.keeps(),
                peer: peer.clone(),
                window: MEASURED,
                meter: Meter::default(),
            }),
            exit: Exit::new(ExitParts {
                restore: restore.build(&restore::Init { routes: ROUTES }),
                overhead: 52,
                peer,
                window: MEASURED,
                meter: Meter::default(),
            }),
        }
    }
}

/// A segment with `len` octets.
fn packet(index: u32, len: u32) -> Held<Octets> {
    let body = Octets::filler(len);
    Packet {
        connection: ConnectionId(0),
        index,
        size: 40 + body.len(),
        hop: 0,
        direction: Direction::Forward,
        retransmission: false,
        ecn: Ecn::NotEct,
        dscp: 0,
        trail: Trail::default(),
        waits: WaitAccount::NONE,
        tunnel: Header::default(),
        payload: Transport::Tcp(Segment {
            seq: 1_000 * index,
            flags: Flags::ACK,
            body,
            ..Segment::default()
        }),
    }
}

/// Result for the data: the order of release, and the exit's counters.
struct Outcome {
    order: Vec<u32>,
    report: RestoreReport,
    /// Number of packets lost on the forward routes.
    lost: u32,
}

/// Sends data; the routes lose the forward packets for whose number `loses` returns true.
fn run(keep: u16, loses: impl Fn(u32) -> bool) -> Outcome {
    let [mut near, mut far] = [keep, keep].map(End::new);
    let mut on_way: BTreeMap<(u64, u32), (bool, Held<Octets>)> = BTreeMap::new();
    let (mut order, mut sent, mut lost, mut acks) = (Vec::new(), 0, 0, 0);
    for step in 0..8_000_u64 {
        let now = Instant::START + Duration::from_micros(250 * step);
        let mut out = [Output::default(), Output::default()];
        let later = on_way.split_off(&(step + 1, 0));
        let arriving = std::mem::replace(&mut on_way, later).into_values();
        let mut delivered = Output::default();
        for (forward, packet) in arriving {
            if forward {
                far.exit.on_packet(now, packet, &mut delivered);
            } else {
                near.exit.on_packet(now, packet, &mut Output::default());
            }
        }
        if far.exit.timer().is_some_and(|due| due <= now) {
            far.exit.on_timer(now, &mut delivered);
        }
        // An acknowledgment for each packet when it is released.
        for (_, packet, _) in delivered.drain() {
            order.push(packet.index);
            far.entrance
                .on_packet(now, self::packet(acks, 0), &mut out[1]);
            acks += 1;
        }
        if step % 4 == 0 && step / 4 < u64::from(DATA) {
            let index = u32::try_from(step / 4).expect("few");
            near.entrance
                .on_packet(now, packet(index, 960), &mut out[0]);
        }
        for (end, out) in [&mut near, &mut far].into_iter().zip(&mut out) {
            if end.entrance.timer().is_some_and(|due| due <= now) {
                end.entrance.on_timer(now, out);
            }
        }
        for (forward, out) in [true, false].into_iter().zip(&mut out) {
            for (port, packet, _) in out.drain() {
                sent += 1;
                if forward && loses(sent) {
                    lost += 1;
                } else {
                    let port = usize::from(port.expect("an entrance names a port"));
                    on_way.insert((step + DELAYS[port], sent), (forward, packet));
                }
            }
        }
    }
    let Some(Counts::Restore(report)) = Middlebox::report(&far.exit) else {
        panic!("an exit counts");
    };
    Outcome {
        order,
        report: *report,
        lost,
    }
}

/// One packet in fifty is lost, including copies: all arrive, once and in order. An entrance
/// without stored packets is detected.
#[test]
fn lost_packets_are_retransmitted_in_order() {
    for seed in 0..20 {
        let draws = Stream::new(seed, "losses");
        // Losses of the last packets cannot be detected, because no packet follows them.
        let loses = |sent: u32| sent < DATA && draws.at(u64::from(sent)).uniform() < 0.02;
        let all: Vec<u32> = (0..DATA).collect();
        let outcome = run(1_024, loses);
        assert!(outcome.lost > 0);
        assert_eq!(outcome.order, all, "seed {seed}");
        assert_eq!(outcome.report.gaps_given_up, 0, "seed {seed}");
        let without = run(0, loses);
        assert!(without.order.len() < all.len(), "seed {seed}");
    }
}

/// A packet after a gap is released a round trip and a check later, not after the limit.
#[test]
fn a_loss_costs_a_round_trip() {
    let outcome = run(1_024, |sent| sent == 150);
    assert_eq!(outcome.order.len(), DATA as usize);
    let waits = outcome.report.p95_wait().expect("packets went on");
    assert!(waits <= Duration::from_millis(40), "{waits}");
}

fn view(index: u32) -> View {
    View {
        size: 1_250,
        connection: ConnectionId(0),
        index,
    }
}

/// A splitter for which both routes have a known round trip time.
fn known(round_trip_ms: u64) -> AnySplit {
    let mut split = build(&splitter(1_024));
    let mut chosen = Vec::new();
    split.split(Instant::START, view(0), &mut chosen);
    assert_eq!(chosen, [0, 1], "the second is a probe");
    for route in 0..2 {
        let report = Report {
            route,
            loss: 0,
            route_number: 0,
            missing: 0,
            delay: 1_000,
        };
        split.hear(Instant::from_millis(round_trip_ms), &report);
    }
    split
}

/// A round trip's capacity may wait: 50 ms of 2 times 20 Mbit/s are 200 packets of 1,250 bytes.
#[test]
fn losses_of_full_routes_are_left_to_the_sender() {
    let mut split = known(50);
    let now = Instant::from_millis(50);
    let mut chosen = Vec::new();
    let kept = (0..400).take_while(|index| {
        split.split(now, view(*index), &mut chosen);
        split.keeps()
    });
    let kept = kept.count();
    assert!((200..=202).contains(&kept), "{kept}");
}

/// A route that loses more than a twentieth has more than random losses.
#[test]
fn at_most_a_twentieth_is_retransmitted() {
    let mut split = known(50);
    let (mut sent, mut again) = (0.0, 0.0);
    let mut chosen = Vec::new();
    for k in 0..5_000_u64 {
        let now = Instant::from_millis(50 + k);
        split.split(now, view(0), &mut chosen);
        sent += 1.0;
        let missing = Missing {
            route: chosen[0],
            route_number: 0,
            size: 1_250,
        };
        chosen.clear();
        again += f64::from(u8::from(split.resend(now, missing).is_some()));
    }
    let most = earliest_arrival::RESENT * (sent + again) + 2.0 * earliest_arrival::RESENT_AT_ONCE;
    assert!(
        again > 0.9 * most - 40.0 && again <= most,
        "{again} of {sent}"
    );
}

/// Pure acknowledgments are released as they arrive; data waits for missing data, and not for them.
#[test]
fn acknowledgments_do_not_wait() {
    let config = restore::Config::Adaptive(adaptive::Params::default());
    let mut restore = config.build(&restore::Init { routes: ROUTES });
    let mut arrive = |number: u32, len: u32| {
        let arrived = Arrived {
            packet: PacketId(number),
            size: 40 + len,
            connection: ConnectionId(0),
            tunnel: Header {
                number,
                kept: true,
                ..Header::default()
            },
            tcp: Some(TcpPlace {
                seq: 0,
                len,
                opens: false,
                ends: false,
            }),
        };
        let mut released = Vec::new();
        restore.arrive(Instant::from_millis(1), arrived, &mut released);
        released.iter().map(|id| id.0).collect::<Vec<u32>>()
    };
    assert_eq!(arrive(0, 100), [0]);
    assert_eq!(arrive(2, 0), [2]);
    assert!(arrive(3, 100).is_empty());
    assert_eq!(arrive(4, 0), [4]);
    assert_eq!(arrive(1, 100), [1, 3]);
    assert_eq!(arrive(5, 100), [5]);
}

#[test]
fn the_number_of_kept_packets_is_bounded() {
    assert_eq!(Keep::try_from(Keep::MAX).map(Keep::get), Ok(Keep::MAX));
    let refused = Keep::try_from(Keep::MAX + 1);
    assert_eq!(
        refused.map(Keep::get),
        Err("2049 is out of range; expected 0 to 2048".to_owned())
    );
}
