//! Sending ports of one direction: choice of the sender of each packet, and state of each port.
//!
//! *Per packet*, the head of the shared queue goes to the idle distributing member with the lowest
//! number. Packets of one flow overtake each other if their sizes differ.
//!
//! *Per flow*, the connection decides. Each distributing member gets a hash value for the
//! connection, and the highest wins (rendezvous hashing: Thaler and Ravishankar, IEEE/ACM ToN 6(1),
//! 1998). A change thus moves only flows that lose their member or that a new member takes. An idle
//! member takes the first waiting packet of its flows; earlier packets stay in line for their
//! members, and count as waiting. A flow that moves is sent over the new member only after the old
//! member has finished its transmission, so that no packet overtakes another of its flow (IEEE
//! 802.1AX-2014 §6.2.4: the order within a conversation is kept).
//!
//! LACPDUs precede all packets, over the port that they concern.

use std::collections::VecDeque;

use anabranch_core::{
    packet::ConnectionId,
    units::{Duration, Instant},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{energy::PortTimes, lacp::pdu};
use crate::{queue::Item, window::Window};

/// Maximum number of members of a group: one bit each.
pub const MAX: u32 = 64;

/// Distribution of packets over the members of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// The head of the queue goes to the idle member with the lowest number.
    #[default]
    PerPacket,
    /// All packets of a flow take the same member.
    PerFlow,
}

/// Times of low-power idle (IEEE 802.3-2018 §78).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LowPowerIdle {
    /// Time from the end of the last packet until a port rests.
    pub sleep_time: Duration,
    /// Time from waking until a port sends.
    pub wake_time: Duration,
}

/// Power state of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortPower {
    /// It can send.
    Awake,
    /// It cannot send.
    Sleeping,
    /// It cannot send yet.
    Waking,
}

/// Encoded LACPDU.
pub type Frame = [u8; pdu::OCTETS];

/// A transmission of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// A packet.
    Packet(Item),
    /// An LACPDU.
    Frame(Frame),
}

impl Load {
    /// Size in bytes, as links count it.
    #[must_use]
    pub const fn size(&self) -> u32 {
        match self {
            Self::Packet(item) => item.size,
            Self::Frame(_) => pdu::SIZE,
        }
    }
}

/// Notice to the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// An LACPDU is in transit to the other end.
    Left {
        /// The port.
        port: usize,
        /// Time of arrival.
        at: Instant,
        /// Number of copies: 2 if it is duplicated in transit.
        copies: u8,
        /// The LACPDU.
        frame: Frame,
    },
    /// An LACPDU was lost in transit.
    Lost,
    /// A port that does not distribute has sent all its data.
    Drained,
}

#[derive(Debug)]
struct Member {
    /// Current transmission. `done` is its end.
    sending: Option<Load>,
    done: Instant,
    /// Start of the current transmission; [`Instant::NEVER`] if there is none or the link is down.
    active_since: Instant,
    /// Remaining transmission time while the link is down.
    held_up: Duration,
    frames: VecDeque<Frame>,
    /// Packets in line for this member alone, numbered by their order of dequeue.
    staged: VecDeque<(u64, Item)>,
    power: PortPower,
    power_since: Instant,
    /// Start of the current idle period.
    idle_since: Instant,
    times: PortTimes,
}

/// The ports of one direction.
#[derive(Debug)]
pub struct Members {
    spread: Spread,
    idle: Option<LowPowerIdle>,
    window: Window,
    list: Vec<Member>,
    /// By bit: distributing members. `busy` are the members that send.
    distributing: u64,
    busy: u64,
    due: Instant,
    up: bool,
    staged_packets: u32,
    staged_bytes: u64,
    next_stage: u64,
    /// Flows that have moved while their last packet is being sent, and the member that sends it.
    moving: Vec<(ConnectionId, usize)>,
    notices: Vec<Notice>,
    distributing_since: Instant,
    /// Member-picoseconds of distribution.
    distributing_time: u128,
}

fn bit(member: usize) -> u64 {
    1 << member
}

/// Indices of the bits that are set, lowest first.
fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = set.trailing_zeros();
        (set != 0).then(|| {
            set &= set - 1;
            lowest as usize
        })
    })
}

/// Bit mask of all members.
#[must_use]
pub fn all(members: u32) -> u64 {
    u64::MAX >> (MAX - members.clamp(1, MAX))
}

impl Members {
    /// Creates `members` members that are on and idle.
    #[must_use]
    pub fn new(members: u32, spread: Spread, idle: Option<LowPowerIdle>, window: Window) -> Self {
        let member = || Member {
            sending: None,
            done: Instant::NEVER,
            active_since: Instant::NEVER,
            held_up: Duration::ZERO,
            frames: VecDeque::new(),
            staged: VecDeque::new(),
            power: PortPower::Awake,
            power_since: Instant::START,
            idle_since: Instant::START,
            times: PortTimes::default(),
        };
        Self {
            spread,
            idle,
            window,
            list: std::iter::repeat_with(member)
                .take(members as usize)
                .collect(),
            distributing: all(members),
            busy: 0,
            due: Instant::NEVER,
            up: true,
            staged_packets: 0,
            staged_bytes: 0,
            next_stage: 0,
            moving: Vec::new(),
            notices: Vec::new(),
            distributing_since: Instant::START,
            distributing_time: 0,
        }
    }

    /// Number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
    /// Distribution of packets.
    #[must_use]
    pub fn spread(&self) -> Spread {
        self.spread
    }
    /// Distributing members, by bit.
    #[must_use]
    pub fn distributing(&self) -> u64 {
        self.distributing
    }
    /// Packets and bytes in line for single members.
    #[must_use]
    #[inline]
    pub fn staged(&self) -> (u32, u64) {
        (self.staged_packets, self.staged_bytes)
    }
    /// End of the next transmission; [`Instant::NEVER`] if there is none.
    #[must_use]
    #[inline]
    pub fn completion(&self) -> Instant {
        self.due
    }
    /// Whether there is no transmission.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.busy == 0
    }
    /// Packets in transmission.
    #[must_use]
    pub fn sending_packets(&self) -> usize {
        let packets = |member: &&Member| matches!(member.sending, Some(Load::Packet(_)));
        self.list.iter().filter(packets).count()
    }
    /// Idle distributing members, by bit.
    #[inline]
    fn free(&self) -> u64 {
        self.distributing & !self.busy
    }

    /// Member that sends the head of the queue, per packet.
    #[must_use]
    #[inline]
    pub fn first_idle(&self) -> Option<usize> {
        let free = self.free();
        (free != 0).then_some(free.trailing_zeros() as usize)
    }
    /// Member of a connection, per flow.
    #[must_use]
    pub fn of_flow(&self, connection: ConnectionId) -> Option<usize> {
        bits(self.distributing)
            .max_by_key(|member| (hash(u64::from(connection.0), *member as u64), *member))
    }
    /// Whether an idle member has no packet in line, so that more should be dequeued (per flow).
    #[must_use]
    pub fn wants_more(&self) -> bool {
        bits(self.free()).any(|member| self.list[member].staged.is_empty())
    }
    /// Whether a packet may go straight to this member.
    #[must_use]
    pub fn may_start(&self, member: usize, connection: ConnectionId) -> bool {
        self.busy & bit(member) == 0
            && self.list[member].staged.is_empty()
            && !self.is_moving(connection)
    }
    #[inline]
    fn is_moving(&self, connection: ConnectionId) -> bool {
        !self.moving.is_empty() && self.moving.iter().any(|(moving, _)| *moving == connection)
    }

    /// Puts a packet in line for a member.
    pub fn stage(&mut self, member: usize, item: Item) {
        self.list[member].staged.push_back((self.next_stage, item));
        self.next_stage += 1;
        self.staged_packets += 1;
        self.staged_bytes += u64::from(item.size);
    }
    /// Next packet in line for an idle member that may send it, and the member.
    pub fn unstage(&mut self) -> Option<(usize, Item)> {
        let member = bits(self.free()).find(|member| {
            let first = self.list[*member].staged.front();
            first.is_some_and(|(_, item)| !self.is_moving(item.connection))
        })?;
        let (_, item) = self.list[member].staged.pop_front()?;
        self.staged_packets -= 1;
        self.staged_bytes -= u64::from(item.size);
        Some((member, item))
    }

    /// Start of a transmission that is given to a member at `now`.
    #[must_use]
    #[inline]
    pub fn ready(&self, member: usize, now: Instant) -> Instant {
        match self.idle {
            None => now,
            Some(idle) => self.ready_from_rest(member, now, idle),
        }
    }
    fn ready_from_rest(&self, member: usize, now: Instant, idle: LowPowerIdle) -> Instant {
        let since = self.list[member].idle_since;
        if since == now {
            // The port has not begun to become quiet.
            return now;
        }
        now.max(since + idle.sleep_time) + idle.wake_time
    }

    /// Starts a transmission of an idle member from `begin`, as [`Self::ready`] returned, to
    /// `done`.
    #[inline]
    pub fn start(&mut self, number: usize, load: Load, begin: Instant, done: Instant) {
        let member = &mut self.list[number];
        debug_assert!(member.sending.is_none(), "one at a time");
        debug_assert!(member.power == PortPower::Awake, "a port sends when awake");
        if let Some(idle) = self.idle
            && begin != member.idle_since
        {
            let woken = Instant::from_picos(begin.as_picos() - idle.wake_time.as_picos());
            let rest = self
                .window
                .overlap(member.idle_since + idle.sleep_time, woken);
            member.times.sleeping += rest;
            member.times.waking += self.window.overlap(woken, begin);
        }
        member.sending = Some(load);
        member.done = done;
        member.active_since = begin;
        self.busy |= bit(number);
        if self.up {
            self.due = self.due.min(done);
        } else {
            member.held_up = done - begin;
            member.active_since = Instant::NEVER;
        }
    }

    /// Ends a transmission; returns the member and its load.
    ///
    /// # Panics
    /// If no transmission has ended.
    pub fn complete(&mut self, now: Instant) -> (usize, Load) {
        let number = bits(self.busy)
            .find(|member| self.list[*member].done <= now)
            .expect("a completion belongs to a transmission");
        let member = &mut self.list[number];
        let load = member
            .sending
            .take()
            .expect("a busy member sends something");
        let sent = self.window.overlap(member.active_since, now);
        member.times.active += sent;
        member.active_since = Instant::NEVER;
        member.done = Instant::NEVER;
        member.idle_since = now;
        self.busy &= !bit(number);
        self.due = self.earliest();
        if !self.moving.is_empty() {
            self.moving.retain(|(_, by)| *by != number);
        }
        (number, load)
    }
    #[inline]
    fn earliest(&self) -> Instant {
        if !self.up {
            return Instant::NEVER;
        }
        let due = bits(self.busy).map(|member| self.list[member].done);
        due.min().unwrap_or(Instant::NEVER)
    }

    /// Notifies the group if a member that does not distribute has no data left.
    #[inline]
    pub fn note_drained(&mut self, member: usize) {
        if (self.distributing | self.busy) & bit(member) == 0 && self.list[member].frames.is_empty()
        {
            self.notices.push(Notice::Drained);
        }
    }
    /// Members that do not distribute and have no data left, by bit.
    #[must_use]
    pub fn drained(&self) -> u64 {
        let quiet = |member: &usize| self.list[*member].frames.is_empty();
        (0..self.list.len())
            .filter(|member| (self.distributing | self.busy) & bit(*member) == 0)
            .filter(quiet)
            .fold(0, |set, member| set | bit(member))
    }

    /// Queues an LACPDU.
    pub fn queue_frame(&mut self, member: usize, frame: Frame) {
        self.list[member].frames.push_back(frame);
    }
    /// Next LACPDU of an idle member.
    #[inline]
    pub fn next_frame(&mut self, member: usize) -> Option<Frame> {
        if self.busy & bit(member) != 0 {
            return None;
        }
        self.list[member].frames.pop_front()
    }
    /// Discards LACPDUs that have not been sent.
    pub fn forget_frames(&mut self, member: usize) {
        self.list[member].frames.clear();
    }

    /// Sets the distributing members (bit mask). Packets in line for single members are assigned
    /// again.
    pub fn distribute(&mut self, now: Instant, set: u64) {
        self.account_distributing(now);
        self.distributing = set;
        self.moving.clear();
        if self.spread == Spread::PerPacket {
            return;
        }
        for member in bits(self.busy) {
            if let Some(Load::Packet(item)) = self.list[member].sending
                && self.of_flow(item.connection) != Some(member)
            {
                self.moving.push((item.connection, member));
            }
        }
        let mut staged: Vec<(u64, Item)> = Vec::with_capacity(self.staged_packets as usize);
        for member in &mut self.list {
            staged.extend(member.staged.drain(..));
        }
        staged.sort_unstable_by_key(|(number, _)| *number);
        for entry in staged {
            // If no member distributes, the first keeps the packets in order until one does.
            let member = self.of_flow(entry.1.connection).unwrap_or(0);
            self.list[member].staged.push_back(entry);
        }
    }
    /// Member-seconds of distribution in the window up to `now`.
    pub fn distributing_seconds(&mut self, now: Instant) -> f64 {
        self.account_distributing(now);
        self.distributing_time as f64 / 1e12
    }
    fn account_distributing(&mut self, now: Instant) {
        let time = self.window.overlap(self.distributing_since, now).as_picos();
        self.distributing_time += u128::from(time) * u128::from(self.distributing.count_ones());
        self.distributing_since = now;
    }

    /// Sets the power state of a port.
    pub fn set_power(&mut self, now: Instant, member: usize, power: PortPower) {
        self.account_power(now, member);
        self.list[member].power = power;
    }
    /// Current transmission of a member.
    #[must_use]
    pub fn load(&self, member: usize) -> Option<&Load> {
        self.list[member].sending.as_ref()
    }
    /// Number of sleeping ports.
    #[must_use]
    pub fn sleeping(&self) -> u32 {
        let sleeps = |member: &Member| u32::from(member.power == PortPower::Sleeping);
        self.list.iter().map(sleeps).sum()
    }
    /// Power state of a port.
    #[must_use]
    pub fn power(&self, member: usize) -> PortPower {
        self.list[member].power
    }
    fn account_power(&mut self, now: Instant, number: usize) {
        let member = &mut self.list[number];
        let time = self.window.overlap(member.power_since, now);
        let of = match member.power {
            PortPower::Awake => None,
            PortPower::Sleeping => Some(&mut member.times.sleeping),
            PortPower::Waking => Some(&mut member.times.waking),
        };
        if let Some(of) = of {
            *of += time;
        }
        member.power_since = now;
    }

    /// Time of each port in each state, in the window up to `now`.
    #[must_use]
    pub fn times(&self, now: Instant) -> Vec<PortTimes> {
        let measured = self.window.overlap(Instant::START, now);
        let one = |member: &Member| {
            let mut times = member.times;
            let since = |since: Instant| self.window.overlap(since.min(now), now);
            match member.power {
                PortPower::Sleeping => times.sleeping += since(member.power_since),
                PortPower::Waking => times.waking += since(member.power_since),
                PortPower::Awake => {}
            }
            times.active += since(member.active_since);
            match self.idle {
                Some(idle) if member.sending.is_none() => {
                    times.sleeping += since(member.idle_since + idle.sleep_time);
                }
                _ => {}
            }
            times.idle = measured
                .saturating_sub(times.active)
                .saturating_sub(times.sleeping)
                .saturating_sub(times.waking);
            times
        };
        self.list.iter().map(one).collect()
    }

    /// Takes the link down or up: transmissions are suspended and then resumed.
    pub fn set_up(&mut self, now: Instant, up: bool) {
        self.up = up;
        for number in bits(self.busy) {
            let member = &mut self.list[number];
            if up {
                member.done = now + member.held_up;
                member.active_since = now;
            } else {
                member.held_up = member.done.saturating_since(now);
                if member.active_since != Instant::NEVER {
                    let sent = self.window.overlap(member.active_since, now);
                    member.times.active += sent;
                }
                member.active_since = Instant::NEVER;
                member.done = Instant::NEVER;
            }
        }
        self.due = self.earliest();
    }

    /// Adds a notice for the group.
    pub fn notify(&mut self, notice: Notice) {
        self.notices.push(notice);
    }
    /// Whether there are notices for the group.
    #[must_use]
    #[inline]
    pub fn has_notices(&self) -> bool {
        !self.notices.is_empty()
    }
    /// Moves the notices to `into`.
    pub fn take_notices(&mut self, into: &mut Vec<Notice>) {
        into.append(&mut self.notices);
    }
}

/// Hash of a connection for a member: a bijection in which each bit of either argument changes
/// about half of the result's bits (a multiply and xor-shift finalizer).
#[inline]
const fn hash(connection: u64, member: u64) -> u64 {
    let mut x = connection ^ (member << 40) ^ 0x243f_6a88_85a3_08d3;
    x = x.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^= x >> 29;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 32;
    x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 29)
}
