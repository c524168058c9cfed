//! A pair of gateways on bytes, the routes between them, and the laws of every restorer.

pub mod naive;

use std::collections::{BTreeMap, BTreeSet};

use anabranch_core::{
    body::{Body, Octets},
    packet::{ConnectionId, Direction, Ecn, Packet, WaitAccount},
    trail::Trail,
    tunnel::Header,
    units::{Duration, Instant, Rate},
};
use anabranch_path::{
    link::Window,
    middlebox::{Held, Middlebox, Output},
    multipath::{
        Entrance, EntranceParts, Exit, ExitParts, Meter, Peer, Report, RestoreReport,
        restore::AnyRestore,
        split::{Init, weighted_round_robin},
    },
};
use anabranch_wire::{Flags, Segment, Transport};
use proptest::prelude::*;

/// A packet in flight, and the network's effects on it. Times in microseconds.
#[derive(Debug, Clone)]
pub struct Step {
    pub flow: u32,
    pub len: u32,
    /// Time since the previous packet.
    pub pause: u64,
    /// Delay in addition to its route's delay; `None` if it is lost.
    pub delay: Option<u64>,
    /// A copy follows after this time.
    pub copy: Option<u64>,
    /// It repeats the contents of the flow's last packet.
    pub again: bool,
}

/// A trial.
#[derive(Debug, Clone)]
pub struct Trial {
    pub routes: usize,
    /// Delay of each route, in microseconds.
    pub delays: Vec<u64>,
    /// Routes keep their order.
    pub fifo: bool,
    pub steps: Vec<Step>,
}

/// Loss, copies, reordering and pauses, over several flows and routes.
pub fn trials() -> impl Strategy<Value = Trial> {
    let delay = prop_oneof![
        4 => Just(Some(0)),
        2 => (0_u64..60_000).prop_map(Some),
        1 => Just(None),
    ];
    let copy = prop_oneof![8 => Just(None), 1 => (0_u64..20_000).prop_map(Some)];
    let pause = prop_oneof![3 => 0_u64..50, 3 => 50_u64..5_000, 1 => Just(80_000)];
    let step = (
        0_u32..4,
        1_u32..60,
        pause,
        delay,
        copy,
        prop::bool::weighted(0.1),
    )
        .prop_map(|(flow, len, pause, delay, copy, again)| Step {
            flow,
            len,
            pause,
            delay,
            copy,
            again,
        });
    (
        2_usize..5,
        prop::collection::vec(0_u64..30_000, 4),
        any::<bool>(),
        prop::collection::vec(step, 1..120),
    )
        .prop_map(|(routes, delays, fifo, steps)| Trial {
            routes,
            delays,
            fifo,
            steps,
        })
}

/// Criterion of the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The tunnel's numbers, for datagrams.
    Tunnel,
    /// The tunnel's numbers, for TCP: packets may pass a gap.
    TunnelOfTcp,
    /// TCP sequence numbers.
    Tcp,
}

/// Guarantees of a restorer.
#[derive(Debug, Clone, Copy)]
pub struct Promise {
    pub order: Order,
    /// Maximum waiting time.
    pub wait: Duration,
    /// Maximum number of packets that wait at once.
    pub memory: u64,
}

/// Result of a trial.
#[derive(Debug)]
pub struct Outcome {
    pub report: RestoreReport,
    /// Released packets: time, flow, and number in the flow.
    pub out: Vec<(Instant, u32, u32)>,
}

const NONE_YET: Window = Window::new(Instant::START, Instant::from_millis(1_000_000));

/// Position of a packet in its flow: start and end.
#[derive(Debug, Clone, Copy)]
struct Known {
    at: u64,
    end: u64,
}

/// Sends all packets through and checks the guarantees.
pub fn run(trial: &Trial, restore: AnyRestore, promise: Promise) -> Result<Outcome, String> {
    let header = promise.order != Order::Tcp;
    let peers = [(); 2].map(|()| header.then(|| Peer::new(trial.routes)));
    let rates = vec![Rate::new(1_000_000); trial.routes];
    let split = weighted_round_robin::Params::default();
    let split = anabranch_path::multipath::split::Config::WeightedRoundRobin(split);
    let meter = Meter::default();
    let mut entrance = Entrance::new(EntranceParts {
        split: split.build(&Init {
            rates,
            names: Vec::new(),
        }),
        overhead: 52,
        routes: trial.routes,
        keeps: 0,
        peer: peers[0].clone(),
        window: NONE_YET,
        meter: meter.clone(),
    });
    let mut exit: Exit<Octets> = Exit::new(ExitParts {
        restore,
        overhead: 52,
        peer: peers[1].clone(),
        window: NONE_YET,
        meter,
    });
    let (arrivals, known) = send(trial, &mut entrance, promise.order);
    receive(&mut exit, arrivals, &known, promise)
}

type Arrivals = Vec<(Instant, u32, Held<Octets>)>;
type Places = BTreeMap<(u32, u32), (Known, Octets)>;

/// Opening steps: a TCP connection sends nothing until its SYN has arrived.
fn opening(trial: &Trial, order: Order) -> Vec<Step> {
    if order != Order::Tcp {
        return Vec::new();
    }
    let flows: BTreeSet<u32> = trial.steps.iter().map(|step| step.flow).collect();
    let syn = |flow| Step {
        flow,
        len: 1,
        pause: 1_000_000,
        delay: Some(0),
        copy: None,
        again: false,
    };
    let mut all: Vec<Step> = flows.into_iter().map(syn).collect();
    // A step of an unused flow, which only lets time pass.
    all.push(syn(u32::MAX));
    all
}

/// Arrivals at the exit in order, and the packets sent.
fn send(trial: &Trial, entrance: &mut Entrance<Octets>, order: Order) -> (Arrivals, Places) {
    let mut now = Instant::from_millis(1);
    let mut known = Places::new();
    let mut arrivals = Arrivals::new();
    let mut busy = vec![Instant::START; trial.routes];
    let mut flows: BTreeMap<u32, (u32, u64, u64)> = BTreeMap::new();
    let mut out = Output::default();
    for step in opening(trial, order).iter().chain(&trial.steps) {
        now = now + Duration::from_micros(step.pause);
        // Streams begin where sequence numbers wrap.
        let start = u64::from(u32::MAX - 40 * (step.flow % 8));
        let (index, last, next) = flows.entry(step.flow).or_insert((0, start, start));
        let opens = *index == 0;
        let seq = if step.again { *last } else { *next };
        let (body, len) = if opens {
            (Octets::default(), 1)
        } else {
            (Octets::filler(step.len), u64::from(step.len))
        };
        let place = match order {
            Order::Tunnel | Order::TunnelOfTcp => (u64::from(*index), u64::from(*index) + 1),
            Order::Tcp => (seq, seq + len),
        };
        let packet = Packet {
            connection: ConnectionId(step.flow),
            index: *index,
            size: 40 + body.len(),
            hop: 0,
            direction: Direction::Forward,
            retransmission: false,
            ecn: Ecn::NotEct,
            dscp: 0,
            trail: Trail::default(),
            waits: WaitAccount::NONE,
            tunnel: Header::default(),
            payload: if order == Order::Tunnel {
                Transport::Datagram(body.clone())
            } else {
                Transport::Tcp(Segment {
                    seq: u32::try_from(seq % (1 << 32)).expect("the low half"),
                    flags: if opens { Flags::SYN } else { Flags::ACK },
                    body: body.clone(),
                    ..Segment::default()
                })
            },
        };
        let (at, end) = place;
        known.insert((step.flow, *index), (Known { at, end }, body));
        *index += 1;
        *last = seq;
        *next = (*next).max(seq + len);
        entrance.on_packet(now, packet, &mut out);
        for (port, mut packet, _) in out.drain() {
            let route = usize::from(port.expect("an entrance names a port"));
            // Sets arbitrarily whether lost packets can be requested; no packet is retransmitted
            // here.
            packet.tunnel.kept = step.len % 2 == 1;
            let copies = [step.delay, step.delay.and(step.copy)];
            let mut at = now + Duration::from_micros(trial.delays[route]);
            for delay in copies.into_iter().flatten() {
                at = at + Duration::from_micros(delay);
                if trial.fifo {
                    at = at.max(busy[route]);
                    busy[route] = at;
                }
                let order = u32::try_from(arrivals.len()).expect("few");
                arrivals.push((at, order, packet.clone()));
            }
        }
    }
    arrivals.sort_by_key(|(at, order, _)| (*at, *order));
    (arrivals, known)
}

/// Laws, checked while packets pass.
struct Ledger<'a> {
    promise: Promise,
    known: &'a Places,
    /// Arrival times of held packets, by flow, position and number.
    held: BTreeMap<(u32, u64, u32), Vec<Instant>>,
    /// Next position of each flow.
    next: BTreeMap<u32, u64>,
    /// Number of arrivals and releases of each packet.
    counts: BTreeMap<(u32, u32), (u64, u64)>,
    skipped: u64,
    out: Vec<(Instant, u32, u32)>,
}

impl Ledger<'_> {
    /// Records an arrival; returns whether it counts as new.
    fn arrives(&mut self, now: Instant, flow: u32, index: u32) -> bool {
        let (arrived, _) = self.counts.entry((flow, index)).or_default();
        *arrived += 1;
        let counts = self.promise.order == Order::Tcp || *arrived == 1;
        if counts {
            let at = self.known[&(flow, index)].0.at;
            self.held.entry((flow, at, index)).or_default().push(now);
        }
        counts
    }

    fn goes(&mut self, now: Instant, packet: &Held<Octets>) -> Result<(), String> {
        let (flow, index) = (packet.connection.0, packet.index);
        let (place, body) = &self.known[&(flow, index)];
        let (Transport::Tcp(Segment { body: carried, .. }) | Transport::Datagram(carried)) =
            &packet.payload
        else {
            return Err(format!("flow {flow}, packet {index}: made of nothing"));
        };
        if carried != body {
            return Err(format!("flow {flow}, packet {index}: other octets"));
        }
        let key = (flow, place.at, index);
        let Some(since) = self.held.get_mut(&key).and_then(Vec::pop) else {
            return Err(format!(
                "flow {flow}, packet {index} went on once too often"
            ));
        };
        if self.held[&key].is_empty() {
            self.held.remove(&key);
        }
        if now.saturating_since(since) > self.promise.wait {
            return Err(format!("flow {flow}, packet {index} waited too long"));
        }
        let lowest = self.held.range((flow, 0, 0)..(flow, place.at, 0)).next();
        if let Some(((_, at, _), _)) = lowest {
            return Err(format!(
                "flow {flow}: place {} overtakes {at}, which was there",
                place.at
            ));
        }
        let first = self.first(flow);
        let next = self.next.entry(flow).or_insert(first);
        self.skipped += u64::from(place.at > *next);
        *next = (*next).max(place.end);
        self.counts.entry((flow, index)).or_default().1 += 1;
        self.out.push((now, flow, index));
        Ok(())
    }

    /// First position of a flow.
    fn first(&self, flow: u32) -> u64 {
        self.known[&(flow, 0)].0.at
    }

    /// Checks after every call that no packet that is due is held, and that the memory is bounded.
    fn settled(&self) -> Result<(), String> {
        let in_order = self.promise.order != Order::TunnelOfTcp;
        for (flow, at, index) in self.held.keys().filter(|_| in_order) {
            let next = self.next.get(flow).copied();
            if *at <= next.unwrap_or_else(|| self.first(*flow)) {
                return Err(format!("flow {flow}, packet {index} is due and waits"));
            }
        }
        let held: usize = self.held.values().map(Vec::len).sum();
        if held as u64 > self.promise.memory {
            return Err(format!("{held} packets wait"));
        }
        Ok(())
    }
}

fn receive(
    exit: &mut Exit<Octets>,
    arrivals: Arrivals,
    known: &Places,
    promise: Promise,
) -> Result<Outcome, String> {
    let mut ledger = Ledger {
        promise,
        known,
        held: BTreeMap::new(),
        next: BTreeMap::new(),
        counts: BTreeMap::new(),
        skipped: 0,
        out: Vec::new(),
    };
    let mut out = Output::default();
    let mut arrivals = arrivals.into_iter().peekable();
    let mut now = Instant::START;
    loop {
        let next = arrivals.peek().map(|(at, ..)| *at);
        let due = Middlebox::<Octets>::timer(exit);
        match (next, due) {
            (None, None) => break,
            (next, Some(due)) if next.is_none_or(|next| due < next) => {
                // A timer that never expires would be a stall.
                if due.saturating_since(now) > Duration::from_secs(100) {
                    return Err(format!("a timer stands at {due:?}"));
                }
                now = now.max(due);
                exit.on_timer(now, &mut out);
            }
            _ => {
                let (at, _, packet) = arrivals.next().expect("it was seen");
                now = at;
                ledger.arrives(now, packet.connection.0, packet.index);
                exit.on_packet(now, packet, &mut out);
            }
        }
        for (port, packet, made) in out.drain() {
            if port.is_some() || made.is_some() {
                return Err("an exit forwards and does nothing else".to_owned());
            }
            ledger.goes(now, &packet)?;
        }
        ledger.settled()?;
    }
    if !ledger.held.is_empty() {
        return Err(format!("left behind: {:?}", ledger.held));
    }
    let Some(Report::Restore(report)) = Middlebox::<Octets>::report(exit) else {
        return Err("no report".to_owned());
    };
    let copies: u64 = ledger.counts.values().map(|(arrived, _)| arrived - 1).sum();
    let dropped = if promise.order == Order::Tcp {
        0
    } else {
        copies
    };
    if promise.order == Order::TunnelOfTcp {
        // Packets that pass a gap look like an abandoned gap.
        ledger.skipped = report.gaps_given_up;
    }
    let checks = [
        ("gaps given up", report.gaps_given_up, ledger.skipped),
        ("duplicates", report.duplicates, dropped),
        ("released", report.released, ledger.out.len() as u64),
    ];
    for (what, told, seen) in checks {
        if told != seen {
            return Err(format!("{what}: {told} told, {seen} seen"));
        }
    }
    if report.max_held_packets > promise.memory {
        return Err(format!("{} packets were held", report.max_held_packets));
    }
    Ok(Outcome {
        report: *report,
        out: ledger.out,
    })
}
