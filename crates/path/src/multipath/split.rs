//! Splitters: which of a gateway's routes a packet takes.
//!
//! Adding one is a file in `split/` and a line in the registry below; one from outside the
//! workspace implements [`Split`] and travels as [`AnySplit::Boxed`].

use std::{fmt, sync::Arc};

use anabranch_core::{
    component, components,
    packet::ConnectionId,
    tunnel::{Content, Report},
    units::{Duration, Instant, Rate},
};

mod estimate;
mod liveness;

pub use liveness::{Due, Fallen};

/// What a splitter may see of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Size on the route in bytes: the IP packet and what the tunnel adds.
    pub size: u32,
    /// The connection it belongs to.
    pub connection: ConnectionId,
    /// Its number within the connection and direction.
    pub index: u32,
}

/// A packet that the other end asks for again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// The route that lost it, and its number there.
    pub route: u16,
    /// See [`Header::route_number`](anabranch_core::tunnel::Header::route_number).
    pub route_number: u16,
    /// Its size on the route in bytes.
    pub size: u32,
}

/// A splitter of one direction. It sees packets and the time, never the network.
pub trait Split: fmt::Debug + Send {
    /// Adds the routes that this packet takes to `routes`, each a number below [`Init::rates`]'s
    /// length: one as a rule, several for copies, never none.
    fn split(&mut self, now: Instant, packet: View, routes: &mut Vec<u16>);
    /// The other end reports a route; comes before the [`Split::split`] of the packet that goes by it.
    fn hear(&mut self, _now: Instant, _report: &Report) {}
    /// Within what time of an arrival the other end must report it, with a packet of its own if no other travels; `None`: reports
    /// come only with packets that travel anyway.
    fn reports_within(&self) -> Option<Duration> {
        None
    }
    /// Adds the routes of a packet of the tunnel's own with a report, of this size; `for_traffic`: it reports packets of flows.
    /// Whether it is a probe as well, [`Content::Probe`], or not, [`Content::Report`].
    fn split_own(
        &mut self,
        now: Instant,
        size: u32,
        _for_traffic: bool,
        routes: &mut Vec<u16>,
    ) -> Content {
        let view = View {
            size,
            connection: ConnectionId::NONE,
            index: 0,
        };
        self.split(now, view, routes);
        Content::Report
    }
    /// The time asked for has come. A probe has this size.
    fn on_timer(&mut self, _now: Instant, _size: u32, _due: &mut Due) {}
    /// When to call [`Split::on_timer`]; asked after every other call.
    fn timer(&self) -> Option<Instant> {
        None
    }
    /// Whether the packet that was split last would be retransmitted if its route lost it.
    fn keeps(&self) -> bool {
        false
    }
    /// Whether a route takes no traffic because it is silent.
    fn is_silent(&self, _route: u16) -> bool {
        false
    }
    /// Whether the route that takes the next retransmission has room for it beside what else travels.
    fn has_room(&self, _now: Instant) -> bool {
        true
    }
    /// The other end asks for a packet that is kept. The route that it takes this time; `None`: the loss is the sender's to notice.
    fn resend(&mut self, _now: Instant, _missing: Missing) -> Option<u16> {
        None
    }
}

/// What a splitter is made from besides its own parameters.
#[derive(Debug, Clone)]
pub struct Init {
    /// The line rate of each route in this direction at the start; `None` where it is unlimited.
    pub rates: Vec<Option<Rate>>,
    /// The name of each route.
    pub names: Vec<String>,
}

/// Makes a splitter from outside the workspace.
pub type Factory = Arc<dyn Fn(&Init) -> Box<dyn Split> + Send + Sync>;

/// A splitter from outside the workspace, as a scenario carries it.
pub type Custom = component::Custom<Factory>;

components! {
    enum AnySplit: Split(init: &Init);

    weighted_round_robin::WeightedRoundRobin,
    deficit::Deficit,
    lowest_delay::LowestDelay,
    earliest_arrival::EarliestArrival,
    redundant::Redundant,
    standby::Standby,
}

impl Config {
    /// Whether every route must have a rate.
    #[must_use]
    pub const fn needs_rates(&self) -> bool {
        match self {
            Self::WeightedRoundRobin(_)
            | Self::Deficit(_)
            | Self::LowestDelay(_)
            | Self::EarliestArrival(_) => true,
            Self::Redundant(_) | Self::Standby(_) | Self::Custom(_) => false,
        }
    }
    /// Whether the tunnel must write its header: reports come in it, and copies are told by it.
    #[must_use]
    pub const fn needs_header(&self) -> bool {
        match self {
            Self::WeightedRoundRobin(_) | Self::Deficit(_) => false,
            Self::LowestDelay(_)
            | Self::EarliestArrival(_)
            | Self::Redundant(_)
            | Self::Standby(_)
            | Self::Custom(_) => true,
        }
    }
    /// How many packets of each route are kept, to be retransmitted where the other end asks for them.
    #[must_use]
    pub fn keeps(&self) -> u16 {
        match self {
            Self::EarliestArrival(params) => params.keep.get(),
            Self::LowestDelay(params) => params.keep.get(),
            Self::Standby(params) => params.keep.get(),
            Self::WeightedRoundRobin(_)
            | Self::Deficit(_)
            | Self::Redundant(_)
            | Self::Custom(_) => 0,
        }
    }
}

impl Split for AnySplit {
    fn split(&mut self, now: Instant, packet: View, routes: &mut Vec<u16>) {
        each!(self, s => s.split(now, packet, routes));
    }
    fn hear(&mut self, now: Instant, report: &Report) {
        each!(self, s => s.hear(now, report));
    }
    fn reports_within(&self) -> Option<Duration> {
        each!(self, s => s.reports_within())
    }
    fn split_own(
        &mut self,
        now: Instant,
        size: u32,
        for_traffic: bool,
        routes: &mut Vec<u16>,
    ) -> Content {
        each!(self, s => s.split_own(now, size, for_traffic, routes))
    }
    fn on_timer(&mut self, now: Instant, size: u32, due: &mut Due) {
        each!(self, s => s.on_timer(now, size, due));
    }
    fn timer(&self) -> Option<Instant> {
        each!(self, s => s.timer())
    }
    fn keeps(&self) -> bool {
        each!(self, s => s.keeps())
    }
    fn is_silent(&self, route: u16) -> bool {
        each!(self, s => s.is_silent(route))
    }
    fn has_room(&self, now: Instant) -> bool {
        each!(self, s => s.has_room(now))
    }
    fn resend(&mut self, now: Instant, missing: Missing) -> Option<u16> {
        each!(self, s => s.resend(now, missing))
    }
}
