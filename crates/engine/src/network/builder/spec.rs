//! The specification of a network: links, flows and their traffic.

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
    link::{Properties, service::Service},
    middlebox::Middlebox,
    queue,
};
use anabranch_tcp::Settings;

use super::super::{App, Datagrams, HostId, LinkId, MiddleboxId};
use anabranch_scenario::workload::{Profile, RequestResponse, Sizes};

/// One direction of a link.
#[derive(Debug)]
pub struct LinkSpec {
    /// The element's name, which keys its random stream: `link.NAME.DIRECTION`.
    pub name: String,
    /// Its properties; of a group, one member's.
    pub link: Properties,
    /// The node at which it begins, by the numbers of [`FlowSpec::ends`].
    pub router: u32,
    /// A service instead of that of its properties.
    pub service: Option<Box<dyn Service>>,
    /// Whether it may change in mid-run.
    pub may_change: bool,
    /// The members of a group. Set by [`Builder::group`](super::Builder::group).
    pub group: Option<MembersSpec>,
}

/// The members of one direction of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MembersSpec {
    /// The number of members.
    pub members: u32,
    /// The choice of the member for the next packet.
    pub spread: Spread,
    /// The idle mode of members without traffic, if any.
    pub idle: Option<LowPowerIdle>,
}

/// A link group: both directions, and the controller of its members.
#[derive(Debug)]
pub struct GroupSpec {
    /// Forward, then reverse; `rate` is one member's, and not unlimited.
    pub links: [LinkSpec; 2],
    /// The number of its links.
    pub members: u32,
    /// The choice of the member for the next packet.
    pub spread: Spread,
    /// The controller that decides how many members are on.
    pub control: control::Config,
    /// The time to wake up a member.
    pub wake_time: Duration,
    /// How often the ends send LACPDUs.
    pub lacp_rate: lacp::LacpRate,
    /// The power of one port.
    pub power: PowerModel,
    /// Bytes that will arrive per bin, for a controller that requires them.
    pub arrivals: Option<Arc<Vec<u64>>>,
}

impl LinkSpec {
    /// A plain link: unlimited FIFO, no impairment.
    #[must_use]
    pub fn new(name: impl Into<String>, rate: Option<Rate>, delay: Duration) -> Self {
        Self {
            name: name.into(),
            link: Properties::new(rate, delay),
            router: 0,
            service: None,
            may_change: false,
            group: None,
        }
    }
    /// The rate of all members together.
    pub(super) fn total_rate(&self) -> Option<Rate> {
        let members = self.group.map_or(1, |group| group.members);
        Rate::new(
            self.link
                .rate?
                .bits_per_s()
                .saturating_mul(u64::from(members)),
        )
    }
    /// Sets a drop-tail queue with a limit of `packets`.
    #[must_use]
    pub fn limit(mut self, packets: u64) -> Self {
        self.link.queue = queue::Config::DropTail(queue::drop_tail::Params {
            limit: Limit::Packets(packets),
        });
        self
    }
    /// Sets the queue discipline.
    #[must_use]
    pub fn queue(mut self, queue: queue::Config) -> Self {
        self.link.queue = queue;
        self
    }
    /// Adds an impairment.
    #[must_use]
    pub fn impair(mut self, impairment: impair::Config) -> Self {
        self.link.impair.push(impairment);
        self
    }
    /// Sets a service.
    #[must_use]
    pub fn service(mut self, service: Box<dyn Service>) -> Self {
        self.service = Some(service);
        self
    }
    /// The queue's limit, if the link is plain.
    pub(super) fn plain_limit(&self) -> Option<Limit> {
        let plain = self.service.is_none() && !self.may_change && self.group.is_none();
        self.link.plain_limit().filter(|_| plain)
    }
}

/// An element of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Over a link.
    Link(LinkId),
    /// Through a middlebox.
    Middlebox(MiddleboxId),
    /// The processing delay of a host, at the beginning of a route.
    Processing(HostId),
}

impl Stop {
    /// The index of the link, if it is one.
    pub(super) const fn link(self) -> Option<usize> {
        match self {
            Self::Link(LinkId(link)) => Some(link as usize),
            Self::Middlebox(_) | Self::Processing(_) => None,
        }
    }
}

/// The traffic of a flow.
#[derive(Debug)]
pub enum Traffic<B: Body> {
    /// Our TCP with an application.
    Tcp {
        /// Switches of the stack.
        settings: Arc<Settings>,
        /// Congestion control.
        control: cc::Config,
        /// The application.
        app: App,
    },
    /// Transfers at Poisson times, each on a separate TCP connection.
    Poisson {
        /// Switches of the stack.
        settings: Arc<Settings>,
        /// Congestion control.
        control: cc::Config,
        /// Mean transfers per second, positive.
        rate: f64,
        /// Their sizes.
        sizes: Sizes,
        /// The variation of the rate.
        profile: Option<Profile>,
    },
    /// Requests of a client at the far end and responses of a server, over one TCP connection.
    Exchange {
        /// Switches of the stack.
        settings: Arc<Settings>,
        /// Congestion control.
        control: cc::Config,
        /// The sizes of requests and responses; neither is empty.
        what: RequestResponse,
        /// Flows with the same name send their requests together.
        together: Option<String>,
    },
    /// UDP.
    Datagrams(Datagrams),
    /// Two hosts supplied by the caller.
    Hosts([Box<dyn Host<B>>; 2]),
}

/// A flow: one copy, with one route in each direction.
#[derive(Debug)]
pub struct FlowSpec<B: Body> {
    /// Its name, which keys its random stream and appears in results.
    pub name: String,
    /// The hosts at its ends, by numbers for queues.
    pub ends: [u32; 2],
    /// From sender to receiver.
    pub route: Vec<Stop>,
    /// From receiver to sender.
    pub return_route: Vec<Stop>,
    /// The start time.
    pub start: Instant,
    /// The time at which its application stops, if before the end of the run.
    pub stop: Option<Instant>,
    /// The differentiated services code point of packets for which their host sets none.
    pub dscp: u8,
    /// Its traffic.
    pub traffic: Traffic<B>,
    /// Error correction around our TCP.
    pub fec: fec::Config,
    /// Delays from the arrival of data to the read of the receiving application, each drawn with
    /// equal probability; empty if it reads at once. Only for our TCP, and not for exchanges.
    pub read_delays: Arc<[Duration]>,
    /// The same for the first read, and after 10 ms without a read.
    pub idle_read_delays: Arc<[Duration]>,
    /// Likewise the delays from the establishment of a connection to the first write of the sending
    /// application.
    pub first_write_delays: Arc<[Duration]>,
}

/// A middlebox.
#[derive(Debug)]
pub(super) struct MiddleboxSpec<B: Body> {
    /// The element's name.
    pub(super) name: String,
    pub(super) middlebox: Box<dyn Middlebox<B>>,
    /// The links of its ports.
    pub(super) ports: Vec<LinkId>,
    /// The middlebox at the other end of its ports, which receives the packets that it originates.
    pub(super) onward: Option<MiddleboxId>,
    /// Another middlebox whose timer depends on the packets handled here.
    pub(super) wakes: Option<MiddleboxId>,
    /// Whether its timer runs from the start of the run.
    pub(super) begins: bool,
    /// Bytes that it adds to each packet.
    pub(super) overhead: u32,
}
