//! Two endpoints and a small link between them that loses, delays, reorders and duplicates packets.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod plain;
pub mod receiver;
pub mod remedies;
pub mod scripted;

use std::{collections::BTreeMap, sync::Arc};

use anabranch_congestion::{Config, TimerRule};
use anabranch_core::{
    body::{Body, Octets},
    packet::Ecn,
    rng::Stream,
    units::{Duration, Instant},
};
use anabranch_tcp::{Endpoint, HotData, HotSend, Outgoing, Role, Settings, State};
use anabranch_wire::{Flags, Options, SackBlock, Segment};

/// Behavior of the link, equal in both directions.
#[derive(Debug, Clone)]
pub struct Link {
    pub seed: u64,
    pub delay: Duration,
    pub jitter: Duration,
    pub loss: f64,
    pub duplicate: f64,
    /// Packets of the first direction to drop, by index.
    pub lose: Vec<u32>,
    /// Time between packets, per direction.
    pub gap: Duration,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            seed: 1,
            delay: Duration::from_millis(10),
            jitter: Duration::ZERO,
            loss: 0.0,
            duplicate: 0.0,
            lose: Vec::new(),
            gap: Duration::ZERO,
        }
    }
}

#[expect(clippy::struct_excessive_bools, reason = "each is a switch of a test")]
pub struct Net<B: Body> {
    pub now: Instant,
    pub ends: [Endpoint<B>; 2],
    pub link: Link,
    pub sent: [u32; 2],
    pub data_sent: [u32; 2],
    free_at: [Instant; 2],
    flying: BTreeMap<(Instant, u64), (usize, Segment<B>, Ecn)>,
    counter: u64,
    pub log: Vec<(Instant, usize, Flags, u32, u32, u32)>,
    pub logging: bool,
    /// Whether ECN-capable packets are currently marked.
    pub mark: bool,
    /// Whether the AccECN option is currently removed from segments.
    pub strip: bool,
    /// Octets of payload that arrived marked, per end.
    pub marked: [u64; 2],
    pub events: u64,
    /// Hot ends take segments on the hot path.
    pub hot: bool,
    /// Segments taken on it.
    pub taken_hot: u64,
    delivered: [Option<Segment<B>>; 2],
}

pub fn endpoint<B: Body>(settings: &Settings, role: Role, iss: u32) -> Endpoint<B> {
    let control =
        Config::Reno(anabranch_congestion::reno::Params::default()).build(&settings.init());
    Endpoint::new(&Arc::new(settings.clone()), control, role, iss)
}

impl<B: Body> Net<B> {
    pub fn new(client: &Settings, server: &Settings, link: Link, iss: [u32; 2]) -> Self {
        Self {
            now: Instant::START,
            ends: [
                endpoint(client, Role::Active, iss[0]),
                endpoint(server, Role::Passive, iss[1]),
            ],
            link,
            sent: [0; 2],
            data_sent: [0; 2],
            free_at: [Instant::START; 2],
            flying: BTreeMap::new(),
            counter: 0,
            log: Vec::new(),
            logging: false,
            mark: false,
            strip: false,
            marked: [0; 2],
            events: 0,
            hot: false,
            taken_hot: 0,
            delivered: [None, None],
        }
    }

    pub fn with_timer_rule(mut self, rule: TimerRule) -> Self {
        self.ends = self.ends.map(|end| end.with_timer_rule(Some(rule)));
        self
    }

    pub fn open(&mut self) {
        self.ends[0].open(self.now);
        self.flush();
    }

    /// Sends all packets that the ends have ready.
    pub fn flush(&mut self) {
        for from in 0..2 {
            let mut n = 0;
            while let Some(out) = self.ends[from].poll_transmit(self.now) {
                n += 1;
                assert!(n < 100_000, "an endpoint sends without end");
                self.send(from, &out);
            }
        }
    }

    fn send(&mut self, from: usize, out: &Outgoing<B>) {
        assert_eq!(out.size, out.segment.ip_size());
        let mut segment = out.segment.clone();
        if self.strip {
            segment.options = without_accecn(segment.options);
        }
        let index = self.sent[from];
        self.sent[from] += 1;
        if self.logging {
            self.log.push((
                self.now,
                from,
                out.segment.flags,
                out.segment.seq,
                out.segment.ack,
                out.segment.body.len(),
            ));
        }
        let mut draw =
            Stream::new(self.link.seed, if from == 0 { "a" } else { "b" }).at(u64::from(index));
        let mut lost = draw.chance(self.link.loss);
        if out.segment.body.len() > 0 {
            let data = self.data_sent[from];
            self.data_sent[from] += 1;
            lost |= from == 0 && self.link.lose.contains(&data);
        }
        let leave = self.now.max(self.free_at[from]);
        self.free_at[from] = leave + self.link.gap;
        let copies = if lost {
            0
        } else {
            1 + usize::from(draw.chance(self.link.duplicate))
        };
        for _ in 0..copies {
            let jitter = draw.uniform_duration(self.link.jitter + Duration::from_picos(1));
            self.counter += 1;
            self.flying.insert(
                (leave + self.link.delay + jitter, self.counter),
                (
                    1 - from,
                    segment.clone(),
                    if self.mark && out.ecn.is_capable() {
                        Ecn::Ce
                    } else {
                        out.ecn
                    },
                ),
            );
        }
    }

    /// Processes one event; `false` if there is none.
    pub fn step(&mut self) -> bool {
        let arrival = self.flying.keys().next().map_or(Instant::NEVER, |k| k.0);
        let deadline = self.ends[0].deadline().min(self.ends[1].deadline());
        let next = arrival.min(deadline);
        if next == Instant::NEVER {
            return false;
        }
        assert!(next >= self.now || deadline == next, "time goes on");
        self.now = self.now.max(next);
        self.events += 1;
        if arrival <= deadline {
            let (_, (to, segment, ecn)) = self.flying.pop_first().expect("it was there");
            if ecn == Ecn::Ce {
                self.marked[to] += u64::from(segment.body.len());
            }
            self.deliver(to, &segment, ecn);
        } else {
            for end in &mut self.ends {
                if end.deadline() <= self.now {
                    end.on_deadline(self.now);
                }
            }
        }
        self.flush();
        true
    }

    /// The segment that an end received last.
    pub fn last_delivered(&self, to: usize) -> Option<Segment<B>> {
        self.delivered[to].clone()
    }

    /// Changes the next segment in flight to an end.
    pub fn change_next(&mut self, to: usize, change: impl FnOnce(&mut Segment<B>, &mut Ecn)) {
        let mut flying = self.flying.values_mut();
        if let Some((_, segment, ecn)) = flying.find(|(end, _, _)| *end == to) {
            change(segment, ecn);
        }
    }

    fn deliver(&mut self, to: usize, segment: &Segment<B>, ecn: Ecn) {
        self.delivered[to] = Some(segment.clone());
        if self.hot && self.takes_hot(to, segment, ecn) {
            self.taken_hot += 1;
        } else {
            self.ends[to].on_segment(self.now, segment, ecn);
        }
    }

    /// Passes a segment to a hot end as the engine does.
    fn takes_hot(&mut self, to: usize, segment: &Segment<B>, ecn: Ecn) -> bool {
        let now = self.now;
        let mut place = segment.clone();
        let end = &mut self.ends[to];
        if end.is_hot_receiver() {
            assert_eq!(end.hot_receiver_deadline(), end.deadline());
            let result = end.hot_data(now, &mut place, ecn);
            if let HotData::Answered(size) = result {
                self.send_hot(to, &place, size);
            }
            return result != HotData::NotHot;
        }
        if !end.is_hot_sender() {
            return false;
        }
        assert_eq!(end.hot_sender_deadline(), end.deadline());
        if !end.hot_ack(now, segment, ecn) {
            return end.hot_other_ack(now, segment, ecn);
        }
        while let HotSend::Sent(size) | HotSend::SentLast(size) =
            self.ends[to].hot_send(now, &mut place)
        {
            self.send_hot(to, &place, size);
        }
        true
    }

    fn send_hot(&mut self, from: usize, segment: &Segment<B>, size: u32) {
        let out = Outgoing {
            segment: segment.clone(),
            size,
            ecn: Ecn::NotEct,
            retransmission: None,
        };
        self.send(from, &out);
    }

    pub fn run_until(&mut self, at: Instant) {
        while self.flying.keys().next().is_some_and(|k| k.0 <= at)
            || self.ends[0].deadline().min(self.ends[1].deadline()) <= at
        {
            self.step();
        }
        self.now = at;
    }

    /// Runs until no event is left.
    pub fn run(&mut self, most_events: u64) {
        while self.step() {
            assert!(
                self.events < most_events,
                "it does not end: {:?} {:?}",
                self.ends[0].state(),
                self.ends[1].state()
            );
        }
    }

    pub fn inject(&mut self, to: usize, segment: &Segment<B>) {
        self.inject_marked(to, segment, Ecn::NotEct);
    }

    /// The same in a packet with `ecn`.
    pub fn inject_marked(&mut self, to: usize, segment: &Segment<B>, ecn: Ecn) {
        self.deliver(to, segment, ecn);
        self.flush();
    }

    pub fn states(&self) -> [State; 2] {
        [self.ends[0].state(), self.ends[1].state()]
    }
}

fn without_accecn(options: Options) -> Options {
    match options {
        Options::AccEcn(_) => Options::None,
        Options::SackAccEcn(n, [a, b, c], _) => Options::Sack(n, [a, b, c, SackBlock::default()]),
        Options::Syn {
            mss,
            window_scale,
            sack_permitted,
            ..
        } => Options::Syn {
            mss,
            window_scale,
            sack_permitted,
            accecn: None,
            fast_open: None,
        },
        other => other,
    }
}

pub fn octets(seed: u64, len: usize) -> Octets {
    let mut state = seed | 1;
    Octets(
        (0..len)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                state.to_le_bytes()[5]
            })
            .collect(),
    )
}
