//! Two directions of a group and its switching, driven without a network.

#![allow(dead_code, reason = "each test uses a part")]

use std::collections::{BTreeMap, VecDeque};

use anabranch_core::{
    packet::{ConnectionId, Direction, Ecn, FlowId, PacketId},
    rng::Stream,
    units::{Duration, Instant, Rate, text::Limit},
};
use anabranch_path::{
    group::{
        Group, Members, Spread,
        control::{AnyController, Controller},
        lacp,
        members::{Load, LowPowerIdle, Notice, PortPower},
        switching::{Action, Parts},
    },
    impair::Config as Impairment,
    link::{
        Properties, ServedLink, Window, served,
        served::{Completed, Impaired},
        service::{AnyService, Fixed},
    },
    queue::{self, Discipline, Item, Outcome},
};

/// A controller with predefined decisions.
#[derive(Debug)]
pub struct Scripted(pub VecDeque<(Instant, u32)>);

impl Controller for Scripted {
    fn on_arrival(&mut self, _now: Instant, _bytes: u32) {}
    fn next_decision(&self) -> Instant {
        self.0.front().map_or(Instant::NEVER, |(at, _)| *at)
    }
    fn decide(&mut self, _now: Instant) -> u32 {
        self.0.pop_front().expect("asked when one is due").1
    }
}

#[derive(Debug, Clone)]
pub struct Setup {
    pub members: u32,
    pub spread: Spread,
    pub delay: Duration,
    pub wake_time: Duration,
    pub limit: Limit,
    pub impair: Vec<Impairment>,
    pub idle: Option<LowPowerIdle>,
    pub decisions: Vec<(Instant, u32)>,
    pub end: Instant,
    pub seed: u64,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            members: 4,
            spread: Spread::PerPacket,
            delay: Duration::from_micros(700),
            wake_time: Duration::from_millis(3),
            limit: Limit::Unlimited,
            impair: Vec::new(),
            idle: None,
            decisions: Vec::new(),
            end: Instant::from_millis(2_000),
            seed: 1,
        }
    }
}

pub const RATE: Rate = Rate::from_mbit_per_s(10);

/// A packet to be sent.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    pub at: Instant,
    pub end: usize,
    pub connection: u32,
    pub size: u32,
}

/// A packet that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    pub at: Instant,
    pub end: usize,
    pub connection: u32,
    /// Its number among all packets.
    pub number: u32,
    /// The member that carried it.
    pub member: usize,
}

#[derive(Debug)]
pub struct Rig {
    pub links: [ServedLink; 2],
    pub group: Group,
    pub now: Instant,
    pub arrived: Vec<Arrived>,
    pub dropped: u64,
    pub lost: u64,
    /// Packets that arrived at a sleeping port.
    pub missed: u64,
    /// Power changes of each port: (time, end, port, power).
    pub powers: Vec<(Instant, usize, usize, PortPower)>,
    coming: BTreeMap<(Instant, u32), Arrived>,
    end: Instant,
}

fn drop_tail(limit: Limit) -> Discipline {
    let init = queue::Init {
        rate: None,
        flows: &[],
        hosts: &[],
    };
    queue::Config::DropTail(queue::drop_tail::Params { limit }).build(&init)
}

impl Rig {
    pub fn new(setup: &Setup) -> Self {
        let window = Window::new(Instant::START, setup.end);
        let link = |end: u64| {
            let impairments = setup.impair.iter().zip(0..).map(|(config, k)| {
                let stream = Stream::new(setup.seed, &format!("impair.{end}.{k}"));
                Impaired::new(anabranch_core::trace::ElementId(0), config.build(), stream)
            });
            let group = Members::new(setup.members, setup.spread, setup.idle, window);
            let parts = served::Parts {
                queue: drop_tail(setup.limit),
                service: AnyService::Fixed(Fixed::new(Some(RATE))),
                impairments: impairments.collect(),
                may_change: false,
                stream: Stream::new(setup.seed, "link"),
                window,
                records_waits: false,
                group: Some(group),
            };
            ServedLink::new(Properties::new(Some(RATE), setup.delay), parts)
        };
        let control = AnyController::Boxed(Box::new(Scripted(setup.decisions.clone().into())));
        let parts = Parts {
            control,
            switches: setup.idle.is_none(),
            members: setup.members,
            wake_time: setup.wake_time,
            lacp_rate: lacp::LacpRate::Fast,
        };
        Self {
            links: [link(0), link(1)],
            group: Group::new(parts, Instant::START),
            now: Instant::START,
            arrived: Vec::new(),
            dropped: 0,
            lost: 0,
            missed: 0,
            powers: Vec::new(),
            coming: BTreeMap::new(),
            end: setup.end,
        }
    }

    pub fn members(&self, end: usize) -> &Members {
        self.links[end].members().expect("it is a group")
    }

    /// Sends these packets, in order of time, and continues to the end.
    pub fn run(&mut self, sent: &[Sent]) {
        self.run_watched(sent, &mut |_| {});
    }

    /// Like [`Rig::run`]; calls `watch` after every event.
    pub fn run_watched(&mut self, sent: &[Sent], watch: &mut dyn FnMut(&Self)) {
        let mut sent = sent.iter().zip(0..).peekable();
        loop {
            let next_sent = sent.peek().map_or(Instant::NEVER, |(packet, _)| packet.at);
            let next_coming = self
                .coming
                .first_key_value()
                .map_or(Instant::NEVER, |((at, _), _)| *at);
            let completion = self.links[0].completion().min(self.links[1].completion());
            let due = self.group.due();
            let next = next_sent.min(next_coming).min(completion).min(due);
            if next > self.end {
                break;
            }
            assert!(next >= self.now, "time goes on");
            self.now = next;
            if next == next_coming {
                let (_, arrived) = self.coming.pop_first().expect("there is one");
                let there = self.members(1 - arrived.end).power(arrived.member);
                self.missed += u64::from(there == PortPower::Sleeping);
                self.arrived.push(arrived);
            } else if next == due {
                self.group
                    .advance(next, [self.links[0].delay(), self.links[1].delay()]);
                self.settle();
            } else if next == completion {
                let end = usize::from(self.links[0].completion() != next);
                self.complete(end);
            } else {
                let (packet, number) = sent.next().expect("there is one");
                if packet.end == 0 {
                    self.group.on_arrival(next, packet.size);
                }
                let item = Item {
                    packet: PacketId(number),
                    size: packet.size,
                    flow: FlowId(0),
                    connection: ConnectionId(packet.connection),
                    arrived: next,
                    ecn: Ecn::NotEct,
                    dscp: 0,
                    has_data: true,
                    direction: Direction::Forward,
                    order: 0,
                };
                let told = self.links[packet.end].arrive(next, item, &mut Vec::new());
                assert!(told.is_none(), "members tell fates at the end");
                self.count_drops(packet.end);
            }
            watch(self);
        }
        self.now = self.end;
    }

    fn count_drops(&mut self, end: usize) {
        let mut outcomes = Vec::new();
        self.links[end].take_outcomes(&mut outcomes);
        let drops = outcomes.iter().filter(|o| matches!(o, Outcome::Dropped(_)));
        self.dropped += drops.count() as u64;
    }

    fn complete(&mut self, end: usize) {
        // Current transmissions, before one is removed.
        let members = self.members(end);
        let sending: Vec<(PacketId, u32, usize)> = (0..members.len())
            .filter_map(|member| match members.load(member) {
                Some(Load::Packet(item)) => Some((item.packet, item.connection.0, member)),
                _ => None,
            })
            .collect();
        let of = |packet: PacketId| {
            let found = sending.iter().find(|(sent, ..)| *sent == packet);
            *found.expect("a member sent it")
        };
        match self.links[end].complete(self.now, &mut Vec::new()) {
            Some(Completed::Exit(exit)) => {
                let (packet, connection, member) = of(exit.packet);
                let arrived = Arrived {
                    at: exit.at,
                    end,
                    connection,
                    number: packet.0,
                    member,
                };
                self.coming.insert((exit.at, packet.0), arrived);
            }
            Some(Completed::Lost { .. }) => self.lost += 1,
            Some(_) => unreachable!("no link here sends again"),
            None => {}
        }
        self.count_drops(end);
        if self.members(0).has_notices() || self.members(1).has_notices() {
            self.settle();
        }
    }

    fn settle(&mut self) {
        let mut actions = Vec::new();
        for end in 0..2 {
            let mut notices: Vec<Notice> = Vec::new();
            let members = self.links[end].members_mut().expect("it is a group");
            members.take_notices(&mut notices);
            for notice in notices {
                self.group.hear(end, notice);
            }
        }
        loop {
            let drained = [0, 1].map(|end| self.members(end).drained());
            self.group.settle(self.now, drained, self.links[0].delay());
            self.group.take_actions(&mut actions);
            if actions.is_empty() {
                return;
            }
            for action in actions.drain(..) {
                match action {
                    Action::Distribute { end, set } => {
                        self.links[end].distribute(self.now, set);
                        self.count_drops(end);
                    }
                    Action::Send { end, port, frame } => {
                        self.links[end].send_frame(self.now, port, frame);
                    }
                    Action::Power { end, port, power } => {
                        let members = self.links[end].members_mut().expect("it is a group");
                        members.set_power(self.now, port, power);
                        self.powers.push((self.now, end, port, power));
                    }
                    Action::Forget { end, port } => {
                        let members = self.links[end].members_mut().expect("it is a group");
                        members.forget_frames(port);
                    }
                }
            }
        }
    }

    /// Packets that wait or are in flight.
    pub fn in_flight(&self) -> u64 {
        let at_links: usize = (0..2)
            .map(|end| {
                let members = self.members(end);
                let sending = (0..members.len())
                    .filter(|m| matches!(members.load(*m), Some(Load::Packet(_))))
                    .count();
                self.links[end].queue_packets() + sending
            })
            .sum();
        (at_links + self.coming.len()) as u64
    }
}
