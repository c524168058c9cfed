//! What a network is built from: links, flows and what runs over them.

use std::sync::Arc;

use anabranch_congestion::{self as cc};
use anabranch_core::{
    body::Body,
    units::{Duration, Instant, Rate, text::Limit},
};
use anabranch_fec::{self as fec};
use anabranch_path::{
    group::{Spread, control, energy::PowerModel, lacp, members::LowPowerIdle},
    host::Host,
    impair,
    link::{propagation::Delays, service::Service},
    middlebox::Middlebox,
    queue,
    queue::reorder::Reorder,
};
use anabranch_tcp::Settings;

use super::super::{App, Datagrams, HostId, LinkId, MiddleboxId, Mtu};
use anabranch_scenario::workload::{Profile, RequestResponse, Sizes};

/// One direction of a link.
#[derive(Debug)]
pub struct LinkSpec {
    /// The element's name, which keys its random stream: `link.NAME.DIRECTION`.
    pub name: String,
    /// `None`: packets take no time to send.
    pub rate: Option<Rate>,
    /// Propagation delay. Where it follows a table, its mean.
    pub delay: Duration,
    /// The table that it follows.
    pub delays: Option<Arc<Delays>>,
    /// Whether a packet that leaves after the delay has fallen may overtake those under way.
    pub overtake: bool,
    /// Queue discipline.
    pub queue: queue::Config,
    /// Reordering inside the queue.
    pub reorder: Option<Reorder>,
    /// How much it may hold in all: waiting, being sent and propagating.
    pub held_limit: Limit,
    /// Impairments in order.
    pub impairments: Vec<impair::Config>,
    /// A service instead of the fixed rate.
    pub service: Option<Box<dyn Service>>,
    /// Whether it works at the start.
    pub up: bool,
    /// Whether it may change in mid-run.
    pub may_change: bool,
    /// The members of a group, whose rate `rate` is one's. [`Builder::group`](super::Builder::group)
    /// writes it.
    pub group: Option<MembersSpec>,
    /// The largest packet that it carries.
    pub mtu: Option<Mtu>,
}

/// The members of one direction of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MembersSpec {
    /// How many there are.
    pub members: u32,
    /// Who gets the next packet.
    pub spread: Spread,
    /// Whether they rest whenever they have nothing to send.
    pub idle: Option<LowPowerIdle>,
}

/// A link group: both directions, and what switches its members.
#[derive(Debug)]
pub struct GroupSpec {
    /// Forward, then reverse; `rate` is one member's, and not unlimited.
    pub links: [LinkSpec; 2],
    /// How many links it has.
    pub members: u32,
    /// Who gets the next packet.
    pub spread: Spread,
    /// What decides how many members are on.
    pub control: control::Config,
    /// How long a member takes to wake up.
    pub wake_time: Duration,
    /// How often the ends tell each other how they are.
    pub lacp_rate: lacp::LacpRate,
    /// What one port draws.
    pub power: PowerModel,
    /// What will arrive, bin by bin, for a controller that knows it.
    pub arrivals: Option<Arc<Vec<u64>>>,
}

impl LinkSpec {
    /// A plain link: unlimited FIFO, no impairment.
    #[must_use]
    pub fn new(name: impl Into<String>, rate: Option<Rate>, delay: Duration) -> Self {
        Self {
            name: name.into(),
            rate,
            delay,
            delays: None,
            overtake: false,
            queue: queue::Config::DropTail(queue::drop_tail::Params::default()),
            reorder: None,
            held_limit: Limit::Unlimited,
            impairments: Vec::new(),
            service: None,
            up: true,
            may_change: false,
            group: None,
            mtu: None,
        }
    }
    /// How fast all of it sends.
    pub(super) fn total_rate(&self) -> Option<Rate> {
        let members = self.group.map_or(1, |group| group.members);
        Rate::new(self.rate?.bits_per_s().saturating_mul(u64::from(members)))
    }
    /// The same with a drop-tail queue of so many packets.
    #[must_use]
    pub fn limit(mut self, packets: u64) -> Self {
        self.queue = queue::Config::DropTail(queue::drop_tail::Params {
            limit: Limit::Packets(packets),
        });
        self
    }
    /// The same with another queue discipline.
    #[must_use]
    pub fn queue(mut self, queue: queue::Config) -> Self {
        self.queue = queue;
        self
    }
    /// The same with one impairment more.
    #[must_use]
    pub fn impair(mut self, impairment: impair::Config) -> Self {
        self.impairments.push(impairment);
        self
    }
    /// The same with reordering inside the queue.
    #[must_use]
    pub fn reorder(mut self, reorder: Reorder) -> Self {
        self.reorder = Some(reorder);
        self
    }
    /// The same with an MTU.
    #[must_use]
    pub fn mtu(mut self, mtu: Mtu) -> Self {
        self.mtu = Some(mtu);
        self
    }
    /// The same with a service of its own.
    #[must_use]
    pub fn service(mut self, service: Box<dyn Service>) -> Self {
        self.service = Some(service);
        self
    }
    /// The same, free to change in mid-run.
    #[must_use]
    pub fn changing(mut self) -> Self {
        self.may_change = true;
        self
    }

    /// The queue's limit, if the link is plain.
    pub(super) fn plain_limit(&self) -> Option<Limit> {
        let queue::Config::DropTail(params) = &self.queue else {
            return None;
        };
        let plain = self.reorder.is_none()
            && self.impairments.is_empty()
            && self.service.is_none()
            && self.delays.is_none()
            && self.held_limit == Limit::Unlimited
            && self.up
            && !self.may_change
            && self.group.is_none();
        plain.then_some(params.limit)
    }
}

/// A place on a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Over a link.
    Link(LinkId),
    /// Through a middlebox.
    Middlebox(MiddleboxId),
    /// Out of a host that takes its time: where a route begins.
    Processing(HostId),
}

/// What runs over a flow.
#[derive(Debug)]
pub enum Traffic<B: Body> {
    /// Our TCP with an application.
    Tcp {
        /// Switches of the stack.
        settings: Arc<Settings>,
        /// Congestion control.
        control: cc::Config,
        /// What is sent.
        app: App,
    },
    /// Transfers one by one, each on its own TCP connection.
    Poisson {
        /// Switches of the stack.
        settings: Arc<Settings>,
        /// Congestion control.
        control: cc::Config,
        /// Mean transfers per second, positive.
        rate: f64,
        /// Their sizes.
        sizes: Sizes,
        /// How the rate varies.
        profile: Option<Profile>,
    },
    /// A client at the far end that asks, and a server that answers, over one TCP connection.
    Exchange {
        /// Switches of the stack.
        settings: Arc<Settings>,
        /// Congestion control.
        control: cc::Config,
        /// What is asked and answered; neither is empty.
        what: RequestResponse,
        /// The flows of one name ask together.
        together: Option<String>,
    },
    /// UDP.
    Datagrams(Datagrams),
    /// Two hosts from outside.
    Hosts([Box<dyn Host<B>>; 2]),
}

/// A flow: one copy, one route each way.
#[derive(Debug)]
pub struct FlowSpec<B: Body> {
    /// Its name, which keys its random stream and stands in results.
    pub name: String,
    /// The hosts that it goes from and to, by numbers of their own.
    pub ends: [u32; 2],
    /// From sender to receiver.
    pub route: Vec<Stop>,
    /// From receiver to sender.
    pub return_route: Vec<Stop>,
    /// When it starts.
    pub start: Instant,
    /// When its application stops, if before the end of the run.
    pub stop: Option<Instant>,
    /// The differentiated services code point of packets that their host gives none.
    pub dscp: u8,
    /// What runs over it.
    pub traffic: Traffic<B>,
    /// Error correction around our TCP.
    pub fec: fec::Config,
    /// How long after data the receiving application reads, each as often as any other; at once where there is
    /// none. Not of exchanges, and of nothing but our TCP.
    pub read_delays: Arc<[Duration]>,
    /// The same for the first read, and where it has read nothing for 10 ms.
    pub idle_read_delays: Arc<[Duration]>,
    /// Likewise how long after a connection stands the sending application first writes.
    pub first_write_delays: Arc<[Duration]>,
}

/// A middlebox.
#[derive(Debug)]
pub(super) struct MiddleboxSpec<B: Body> {
    /// The element's name.
    pub(super) name: String,
    pub(super) middlebox: Box<dyn Middlebox<B>>,
    /// The links that its ports lead into.
    pub(super) ports: Vec<LinkId>,
    /// Where the packets that it sends for itself come out, behind its ports.
    pub(super) onward: Option<MiddleboxId>,
    /// Another whose timer depends on what happens here.
    pub(super) wakes: Option<MiddleboxId>,
    /// Its timer counts from the start of the run.
    pub(super) begins: bool,
    /// Bytes that it adds to each packet.
    pub(super) overhead: u32,
}
