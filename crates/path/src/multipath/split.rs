//! Splitters: choose the route of each packet of a gateway.
//!
//! To add a splitter, add a file in `split/` and a line in the registry below. A splitter from
//! outside the workspace implements [`Split`] and is passed as [`AnySplit::Boxed`].

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

/// Properties of a packet that a splitter may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Size on the route in bytes: the IP packet and the tunnel's overhead.
    pub size: u32,
    /// Its connection.
    pub connection: ConnectionId,
    /// Its number within the connection and direction.
    pub index: u32,
}

/// A packet that the other end requests again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// The route that lost it.
    pub route: u16,
    /// See [`Header::route_number`](anabranch_core::tunnel::Header::route_number).
    pub route_number: u16,
    /// Its size on the route in bytes.
    pub size: u32,
}

/// A splitter of one direction. It sees only packets and the time, not the network.
pub trait Split: fmt::Debug + Send {
    /// Appends the routes of this packet to `routes`, each less than the length of [`Init::rates`]:
    /// usually one, several for copies, at least one.
    fn split(&mut self, now: Instant, packet: View, routes: &mut Vec<u16>);
    /// The other end reports a route. Called before [`Split::split`] of the packet that depends on
    /// the report.
    fn hear(&mut self, _now: Instant, _report: &Report) {}
    /// Deadline after an arrival for the other end's report, which is sent in a packet of the
    /// tunnel if no other packet carries it. `None` if reports are carried only by other packets.
    fn reports_within(&self) -> Option<Duration> {
        None
    }
    /// Appends the routes of a packet of the tunnel of this size that carries a report. With
    /// `for_traffic`, it reports packets of flows. Returns [`Content::Probe`] if it is also a
    /// probe, else [`Content::Report`].
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
    /// The time returned by [`Split::timer`] is reached. `size` is the size of a probe.
    fn on_timer(&mut self, _now: Instant, _size: u32, _due: &mut Due) {}
    /// Returns when to call [`Split::on_timer`]. Queried after every other call.
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
    /// Whether the route of the next retransmission has room for it in addition to other traffic.
    fn has_room(&self, _now: Instant) -> bool {
        true
    }
    /// The other end requests a stored packet. Returns the route of its retransmission; `None`
    /// leaves the loss to the sender.
    fn resend(&mut self, _now: Instant, _missing: Missing) -> Option<u16> {
        None
    }
}

/// Inputs of a splitter other than its own parameters.
#[derive(Debug, Clone)]
pub struct Init {
    /// Line rate of each route in this direction at the start; `None` if unlimited.
    pub rates: Vec<Option<Rate>>,
    /// The name of each route.
    pub names: Vec<String>,
}

/// Makes a splitter from outside the workspace.
pub type Factory = Arc<dyn Fn(&Init) -> Box<dyn Split> + Send + Sync>;

/// A splitter from outside the workspace in a scenario.
pub type Custom = component::Custom<Factory>;

components! {
    enum AnySplit: Split(init: &Init);

    weighted_round_robin::WeightedRoundRobin,
    deficit::Deficit,
    earliest_arrival::EarliestArrival,
    redundant::Redundant,
}

impl Config {
    /// Whether every route must have a rate.
    #[must_use]
    pub const fn needs_rates(&self) -> bool {
        match self {
            Self::WeightedRoundRobin(_) | Self::Deficit(_) | Self::EarliestArrival(_) => true,
            Self::Redundant(_) | Self::Custom(_) => false,
        }
    }
    /// Whether the tunnel must write its header, which carries reports and identifies duplicates.
    #[must_use]
    pub const fn needs_header(&self) -> bool {
        match self {
            Self::WeightedRoundRobin(_) | Self::Deficit(_) => false,
            Self::EarliestArrival(_) | Self::Redundant(_) | Self::Custom(_) => true,
        }
    }
    /// Number of packets stored per route for retransmission on request of the other end.
    #[must_use]
    pub fn keeps(&self) -> u16 {
        match self {
            Self::EarliestArrival(params) => params.keep.get(),
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
