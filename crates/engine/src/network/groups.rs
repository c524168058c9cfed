//! Link groups in the network: the exchange between both directions of a group and the controller
//! of its members, and the report.

use anabranch_core::{
    body::Body,
    packet::Direction,
    units::{Duration, Instant, Rate, SerializationDelay},
};
use anabranch_path::{
    group::{
        Group, Members, control,
        control::Controller,
        energy::{PortTimes, PowerModel},
        lacp::pdu,
        members::Notice,
        overload::Overload,
        switching::{Action, Counters, Parts},
    },
    link::Window,
};

use super::{
    GroupId, GroupSpec, LinkId, Network,
    builder::{LinkSpec, MembersSpec},
    fabric::Fabric,
};
use crate::event_queue::{Class, Entry, Source};

/// The controller of a group's members.
#[derive(Debug)]
pub(super) struct GroupSlot {
    group: Group,
    /// Forward, then reverse.
    links: [usize; 2],
    power: PowerModel,
    overload: Overload,
    /// The timer in the event queue.
    armed: Instant,
}

impl GroupSlot {
    /// Records bytes that arrive before the queue in the forward direction.
    #[inline]
    pub(super) fn measure(&mut self, now: Instant, size: u32) {
        self.group.on_arrival(now, size);
        self.overload.on_arrival(now, size);
    }
}

/// A group without its links.
#[derive(Debug)]
pub(super) struct GroupParts {
    group: Group,
    power: PowerModel,
    overload: Overload,
}

impl GroupParts {
    /// Splits a specification into links with members and the group.
    ///
    /// # Panics
    /// If a member's rate is unlimited.
    pub(super) fn of(spec: GroupSpec, window: Window) -> ([LinkSpec; 2], Self) {
        let rate = spec.links[0].link.rate.expect("members have a rate");
        let control = spec.control.build(&control::Init {
            rate,
            members: spec.members,
            lead: lead(&spec, rate),
            arrivals: spec.arrivals.as_ref().map(|arrivals| &arrivals[..]),
        });
        let members = MembersSpec {
            members: spec.members,
            spread: spec.spread,
            idle: control.low_power_idle(),
        };
        let links = spec.links.map(|link| LinkSpec {
            group: Some(members),
            ..link
        });
        let parts = Parts {
            control,
            switches: spec.control.switches(),
            members: spec.members,
            wake_time: spec.wake_time,
            lacp_rate: spec.lacp_rate,
        };
        let group = Group::new(parts, window.start());
        let parts = Self {
            group,
            power: spec.power,
            overload: Overload::new(rate, spec.members, window.start()),
        };
        (links, parts)
    }
}

/// Time from the decision to the first packet on a sleeping member: it wakes up, and each end
/// receives two frames from the other.
fn lead(spec: &GroupSpec, rate: Rate) -> Duration {
    let one_way = |spec: &LinkSpec| {
        let rate = spec.link.rate.unwrap_or(rate);
        SerializationDelay::at(rate).of(pdu::SIZE) + spec.link.delay
    };
    let [forward, reverse] = [&spec.links[0], &spec.links[1]].map(one_way);
    spec.wake_time + (forward + reverse).max(reverse * 2)
}

impl<B: Body> Fabric<B> {
    pub(super) fn add_group(&mut self, links: [LinkId; 2], parts: GroupParts) {
        let number = self.groups.len();
        let links = links.map(|link| link.0 as usize);
        for (link, direction) in links.into_iter().zip(Direction::BOTH) {
            let number = u32::try_from(number).expect("groups are counted in 32 bits");
            self.links[link].served().group = Some((number, direction));
        }
        self.groups.push(GroupSlot {
            group: parts.group,
            links,
            power: parts.power,
            overload: parts.overload,
            armed: Instant::NEVER,
        });
        self.arm_group(number);
    }

    /// Processes the timer of a group.
    pub(super) fn group_timer(&mut self, index: usize) {
        let slot = &mut self.groups[index];
        if slot.armed != self.now {
            return;
        }
        slot.armed = Instant::NEVER;
        self.events += 1;
        let delays = slot
            .links
            .map(|link| self.links[link].served().link.delay());
        self.groups[index].group.advance(self.now, delays);
        self.settle_group(index);
    }

    /// Processes notices after a member has ended a transmission.
    #[inline]
    pub(super) fn after_member(&mut self, index: usize) {
        let links = self.groups[index].links;
        if links
            .into_iter()
            .any(|link| self.members(link).has_notices())
        {
            self.tell_group(index);
        }
    }

    #[inline]
    fn members(&mut self, link: usize) -> &mut Members {
        let members = self.links[link].served().link.members_mut();
        members.expect("a group's links have members")
    }

    #[inline(never)]
    fn tell_group(&mut self, index: usize) {
        let mut notices: Vec<Notice> = Vec::new();
        for end in 0..2 {
            let link = self.groups[index].links[end];
            self.members(link).take_notices(&mut notices);
            for notice in notices.drain(..) {
                self.groups[index].group.hear(end, notice);
            }
        }
        self.settle_group(index);
    }

    /// Carries out the actions of a group until none is left.
    fn settle_group(&mut self, index: usize) {
        let links = self.groups[index].links;
        let mut actions = Vec::new();
        loop {
            let drained = links.map(|link| self.members(link).drained());
            let delay = self.links[links[0]].served().link.delay();
            let group = &mut self.groups[index].group;
            group.settle(self.now, drained, delay);
            group.take_actions(&mut actions);
            if actions.is_empty() {
                break;
            }
            for action in actions.drain(..) {
                self.act(index, links, action);
            }
        }
        for link in links {
            self.arm_completion(link);
        }
        self.arm_group(index);
    }

    fn act(&mut self, index: usize, links: [usize; 2], action: Action) {
        let now = self.now;
        match action {
            Action::Distribute { end, set } => {
                let link = &mut self.links[links[end]].served().link;
                link.distribute(now, set);
                if end == 0 {
                    self.groups[index]
                        .overload
                        .set_members(now, set.count_ones());
                }
                let link = &mut self.links[links[end]].served().link;
                if link.has_outcomes() {
                    self.carry_out(links[end], None);
                }
            }
            Action::Send { end, port, frame } => {
                let link = &mut self.links[links[end]].served().link;
                link.send_frame(now, port, frame);
            }
            Action::Power { end, port, power } => {
                self.members(links[end]).set_power(now, port, power);
            }
            Action::Forget { end, port } => self.members(links[end]).forget_frames(port),
        }
    }

    fn arm_group(&mut self, index: usize) {
        let slot = &mut self.groups[index];
        // An overdue deadline is due now.
        let due = slot.group.due().max(self.now);
        if due < slot.armed {
            slot.armed = due;
            self.timers
                .push(Entry::new(due, Source::new(Class::GroupTimer, index)));
        }
    }
}

/// The report of a group.
#[derive(Debug, Clone)]
pub struct GroupReport {
    /// Time-weighted mean number of members that carry forward packets; `None` without measured
    /// time.
    pub mean_active_members: Option<f64>,
    /// The time of each port in each state: the first end's, then the second's.
    pub ports: [Vec<PortTimes>; 2],
    /// The energy of all ports.
    pub energy_joules: f64,
    /// Bits sent in both directions.
    pub sent_bits: u64,
    /// Its counters.
    pub counters: Counters,
    /// The share of milliseconds in which the arrivals exceeded the capacity of the active members;
    /// `None` before the first has ended.
    pub overloaded_share: Option<f64>,
}

/// A group at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupState {
    /// The number of members that the controller requests.
    pub wanted: u32,
    /// The number of members that carry packets, forward and in reverse.
    pub active: [u32; 2],
    /// The number of sleeping ports at each end.
    pub sleeping: [u32; 2],
}

impl<B: Body> Network<B> {
    /// Returns the report of a group until now.
    pub fn group_report(&mut self, group: GroupId) -> GroupReport {
        let now = self.fabric.now;
        let measured = self.fabric.window.overlap(Instant::START, now);
        let slot = &self.fabric.groups[group.0 as usize];
        let (links, power, counters) = (slot.links, slot.power, slot.group.counters());
        let ports = links.map(|link| self.fabric.members(link).times(now));
        let energy_joules = ports.iter().flatten().map(|port| power.joules(port)).sum();
        let active = self.fabric.members(links[0]).distributing_seconds(now);
        let mut sent = 0;
        for link in links {
            sent += self.fabric.links[link].served().link.counters().sent_bytes;
        }
        GroupReport {
            mean_active_members: (!measured.is_zero()).then(|| active / measured.as_secs_f64()),
            ports,
            energy_joules,
            sent_bits: sent * 8,
            counters,
            overloaded_share: self.fabric.groups[group.0 as usize].overload.share(now),
        }
    }
    /// Returns the state of a group now.
    pub fn group_state(&mut self, group: GroupId) -> GroupState {
        let slot = &self.fabric.groups[group.0 as usize];
        let (links, wanted) = (slot.links, slot.group.wanted());
        GroupState {
            wanted,
            active: links.map(|link| self.fabric.members(link).distributing().count_ones()),
            sleeping: links.map(|link| self.fabric.members(link).sleeping()),
        }
    }
    /// Returns the arrivals per bin recorded by a group's controller, if it requires them in
    /// advance.
    #[must_use]
    pub fn group_arrivals(&self, group: GroupId) -> Option<Vec<u64>> {
        let slot = &self.fabric.groups[group.0 as usize];
        slot.group.control().recorded()
    }
}
