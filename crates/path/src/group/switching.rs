//! Both ends of a group that switches its members.
//!
//! The first end leads. It queries the controller for the number of members and selects the ports
//! with the lowest numbers. A port is then switched as follows:
//!
//! - *Out*: the leading end stops distributing to the port and sends an LACPDU over it. The other
//!   end also stops and answers over the same port, and so after its last packet. After the answer
//!   has arrived and all data is sent, the port goes to sleep; the other end detects the loss of
//!   carrier and sleeps too.
//! - *In*: the port wakes up, which the other end's port detects by its carrier. Both take
//!   `wake_time`. Then both announce that they are ready, and an end distributes to the port as
//!   soon as it has received that the other collects.
//!
//! An end never distributes if the other sleeps, and no port sleeps with data left to send:
//! switching loses no packets. A lost LACPDU is retransmitted after a second (or 30); until then an
//! end distributes less, or a port sleeps later, than possible.
//!
//! The owner carries out the [`Action`]s, reports their results, and calls [`Group::advance`] at
//! [`Group::due`].

use std::{cmp::Reverse, collections::BinaryHeap};

use anabranch_core::units::{Duration, Instant};

use super::{
    control::{AnyController, Controller},
    lacp::{self, Lacpdu, Port, Role},
    members::{self, Frame, Notice, PortPower},
};

/// Request to the owner at an end: 0 sends forward, 1 in reverse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Distribute packets to these members (bit mask).
    Distribute {
        /// The end.
        end: usize,
        /// The members.
        set: u64,
    },
    /// Send an LACPDU over a port.
    Send {
        /// The end.
        end: usize,
        /// The port.
        port: usize,
        /// The LACPDU.
        frame: Frame,
    },
    /// Put a port into another state.
    Power {
        /// The end.
        end: usize,
        /// The port.
        port: usize,
        /// The new state.
        power: PortPower,
    },
    /// Drop LACPDUs that a port has not sent: the other port is asleep.
    Forget {
        /// The end.
        end: usize,
        /// The port.
        port: usize,
    },
}

/// An event in transit to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Coming {
    /// The other port wakes up.
    Carrier,
    /// The other port has gone to sleep.
    NoCarrier,
    /// The port has woken up.
    Awake,
    /// An LACPDU.
    Pdu(Frame),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at: Instant,
    /// Sequence number: simultaneous events keep the order of their requests.
    number: u64,
    end: usize,
    port: usize,
    what: Coming,
}

/// Components of a group.
#[derive(Debug)]
pub struct Parts {
    /// Controller.
    pub control: AnyController,
    /// Whether it ever removes members.
    pub switches: bool,
    /// Number of members.
    pub members: u32,
    /// Time that a port takes to wake up.
    pub wake_time: Duration,
    /// Interval of periodic LACPDUs.
    pub lacp_rate: lacp::LacpRate,
}

/// Counters of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Decisions that changed the number of members.
    pub changes: u64,
    /// LACPDUs sent, by both ends.
    pub lacpdus_sent: u64,
    /// LACPDUs lost or damaged in flight.
    pub lacpdus_lost: u64,
}

/// Both ends of a group.
#[derive(Debug)]
pub struct Group {
    control: AnyController,
    wake_time: Duration,
    members: u32,
    /// Number of members that the controller requests.
    wanted: u32,
    /// By end, then by port; empty if no member is ever switched.
    ports: [Vec<Port>; 2],
    /// By end and bit: ports that are not asleep. `waking` is the subset that is waking up.
    awake: [u64; 2],
    waking: [u64; 2],
    /// By bit: ports at the second end that sleep as soon as their data is sent.
    closing: u64,
    /// By end: the last set given to the owner.
    distributing: [u64; 2],
    coming: BinaryHeap<Reverse<Event>>,
    events: u64,
    due: Instant,
    actions: Vec<Action>,
    /// Start of the measurement; earlier changes do not count.
    counted_from: Instant,
    counters: Counters,
}

impl Group {
    /// Creates a group with all members on, measured from `counted_from`.
    #[must_use]
    pub fn new(parts: Parts, counted_from: Instant) -> Self {
        let ports_of = |role: Role| {
            let count = if parts.switches { parts.members } else { 0 };
            let port = |number: u16| Port::working(Instant::START, role, number, parts.lacp_rate);
            (1..).take(count as usize).map(port).collect::<Vec<_>>()
        };
        let all = members::all(parts.members);
        let mut group = Self {
            wanted: parts.members,
            members: parts.members,
            control: parts.control,
            wake_time: parts.wake_time,
            ports: [ports_of(Role::Leads), ports_of(Role::Follows)],
            awake: [all; 2],
            waking: [0; 2],
            closing: 0,
            distributing: [all; 2],
            coming: BinaryHeap::new(),
            events: 0,
            due: Instant::NEVER,
            actions: Vec::new(),
            counted_from,
            counters: Counters::default(),
        };
        group.set_due();
        group
    }

    /// Counts bytes that arrive before the queue in the forward direction.
    #[inline]
    pub fn on_arrival(&mut self, now: Instant, bytes: u32) {
        self.control.on_arrival(now, bytes);
    }
    /// When to call [`Self::advance`].
    #[must_use]
    pub fn due(&self) -> Instant {
        self.due
    }
    /// Number of members that the controller requests.
    #[must_use]
    pub fn wanted(&self) -> u32 {
        self.wanted
    }
    /// Counters.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }
    /// The controller.
    #[must_use]
    pub fn control(&self) -> &AnyController {
        &self.control
    }
    /// A port's state machine, if members are switched.
    #[must_use]
    pub fn port(&self, end: usize, port: usize) -> Option<&Port> {
        self.ports[end].get(port)
    }

    /// Handles a notice of the link in which `end` sends. Call [`Self::settle`] afterwards.
    pub fn hear(&mut self, end: usize, notice: Notice) {
        match notice {
            Notice::Left {
                port,
                at,
                copies,
                frame,
            } => {
                for _ in 0..copies {
                    self.expect(at, 1 - end, port, Coming::Pdu(frame));
                }
            }
            Notice::Lost => self.counters.lacpdus_lost += 1,
            Notice::Drained => {}
        }
    }

    /// Handles all events that are due. `delays` are the propagation delays of both directions.
    /// Call [`Self::settle`] afterwards.
    pub fn advance(&mut self, now: Instant, delays: [Duration; 2]) {
        while self.control.next_decision() <= now {
            let wanted = self.control.decide(now).clamp(1, self.members);
            if wanted != self.wanted {
                self.wanted = wanted;
                self.counters.changes += u64::from(now >= self.counted_from);
                self.select(now, delays[0]);
            }
        }
        while let Some(Reverse(event)) = self.coming.peek()
            && event.at <= now
        {
            let event = *event;
            self.coming.pop();
            self.arrive(now, &event);
        }
        for port in self.ports.iter_mut().flatten() {
            if port.deadline() <= now {
                port.on_deadline(now);
            }
        }
    }

    /// Selects or deselects ports to match the requested number.
    fn select(&mut self, now: Instant, delay: Duration) {
        for port in 0..self.ports[0].len() {
            let on = port < self.wanted as usize;
            if self.ports[0][port].is_selected() != on {
                self.ports[0][port].select(on);
            }
            if on && self.awake[0] & bit(port) == 0 {
                self.wake(now, 0, port);
                self.expect(now + delay, 1, port, Coming::Carrier);
            }
        }
    }

    fn wake(&mut self, now: Instant, end: usize, port: usize) {
        self.awake[end] |= bit(port);
        self.waking[end] |= bit(port);
        let power = PortPower::Waking;
        self.actions.push(Action::Power { end, port, power });
        self.expect(now + self.wake_time, end, port, Coming::Awake);
    }

    fn arrive(&mut self, now: Instant, event: &Event) {
        let (end, port) = (event.end, event.port);
        match event.what {
            Coming::Carrier => {
                self.closing &= !bit(port);
                if self.awake[end] & bit(port) == 0 {
                    self.wake(now, end, port);
                } else {
                    // The port had not gone to sleep yet: it stays awake until the other port is
                    // awake.
                    self.expect(now + self.wake_time, end, port, Coming::Awake);
                }
            }
            Coming::NoCarrier => {
                self.ports[end][port].disable();
                self.actions.push(Action::Forget { end, port });
                self.closing |= bit(port);
            }
            Coming::Awake => {
                self.waking[end] &= !bit(port);
                self.actions.push(Action::Power {
                    end,
                    port,
                    power: PortPower::Awake,
                });
                self.ports[end][port].enable(now);
            }
            Coming::Pdu(frame) => {
                // A sleeping port receives nothing; damaged PDUs do not arrive.
                if self.awake[end] & !self.waking[end] & bit(port) != 0
                    && let Ok(pdu) = Lacpdu::decode(&frame)
                {
                    self.ports[end][port].on_pdu(now, &pdu);
                }
            }
        }
    }

    fn expect(&mut self, at: Instant, end: usize, port: usize, what: Coming) {
        let number = self.events;
        self.events += 1;
        self.coming.push(Reverse(Event {
            at,
            number,
            end,
            port,
            what,
        }));
    }

    /// Derives actions from the received events. `drained` is the set, by end and bit, of members
    /// that do not distribute and have no data left; `delay` is the forward link's. Call it until
    /// [`Self::take_actions`] returns no actions.
    pub fn settle(&mut self, now: Instant, drained: [u64; 2], delay: Duration) {
        for end in 0..2 {
            let mut set = 0;
            for port in 0..self.ports[end].len() {
                if self.ports[end][port].distributes() {
                    set |= bit(port);
                }
            }
            if !self.ports[end].is_empty() && set != self.distributing[end] {
                self.distributing[end] = set;
                self.actions.push(Action::Distribute { end, set });
            }
            for port in 0..self.ports[end].len() {
                if let Some(pdu) = self.ports[end][port].take_pdu() {
                    self.counters.lacpdus_sent += 1;
                    let frame = pdu.encode();
                    self.actions.push(Action::Send { end, port, frame });
                }
            }
        }
        if self.actions.is_empty() {
            self.put_to_sleep(now, drained, delay);
        }
        self.set_due();
    }

    fn put_to_sleep(&mut self, now: Instant, drained: [u64; 2], delay: Duration) {
        for port in 0..self.ports[0].len() {
            let on = bit(port);
            if self.awake[0] & !self.waking[0] & drained[0] & on != 0
                && self.ports[0][port].may_sleep()
            {
                self.ports[0][port].disable();
                self.sleep(0, port);
                self.expect(now + delay, 1, port, Coming::NoCarrier);
            }
            if self.closing & !self.waking[1] & drained[1] & on != 0 {
                self.closing &= !on;
                self.sleep(1, port);
            }
        }
    }
    fn sleep(&mut self, end: usize, port: usize) {
        self.awake[end] &= !bit(port);
        let power = PortPower::Sleeping;
        self.actions.push(Action::Power { end, port, power });
    }

    /// Moves the pending actions to `into`, in order.
    pub fn take_actions(&mut self, into: &mut Vec<Action>) {
        into.append(&mut self.actions);
    }

    fn set_due(&mut self) {
        let coming = self.coming.peek().map_or(Instant::NEVER, |Reverse(e)| e.at);
        let ports = self.ports.iter().flatten().map(Port::deadline).min();
        self.due = coming
            .min(ports.unwrap_or(Instant::NEVER))
            .min(self.control.next_decision());
    }
}

fn bit(port: usize) -> u64 {
    1 << port
}
