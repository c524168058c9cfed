//! A path: its address, whether it delivers, what is outstanding on it, and what arrived on it.

mod ledger;
mod liveness;
mod loss;
mod mtu;
mod paths;
mod rate;
mod received;
mod round_trip;

pub use ledger::{Kept, Ledger, Outcome, Sent};
pub use liveness::{Liveness, State, Usable};
pub use loss::{Loss, Pattern};
pub use mtu::{BASE, CEILING, Mtu};
pub use paths::Paths;
pub use rate::RateControl;
pub use received::Received;
pub use round_trip::RoundTrip;

use core::net::SocketAddr;

use crate::policy::Role;

/// Where the datagrams of a path go: a local socket, by the number that the shell gave it, and the other end's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The shell's number of the socket.
    pub local: u32,
    /// The other end.
    pub remote: SocketAddr,
}

/// A path.
#[derive(Debug)]
pub struct Path {
    /// Where it goes; unknown to an end that only answers, until data has arrived.
    pub route: Option<Route>,
    /// This end's decision, and the other's.
    pub roles: [Role; 2],
    /// Whether it delivers what this end sends.
    pub liveness: Liveness,
    /// Round trips: there on this path, back on whichever was first.
    pub round_trip: RoundTrip,
    /// What this end sent.
    pub ledger: Ledger,
    /// What arrived here, and what has been reported of it.
    pub received: Received,
    /// How large a datagram it delivers.
    pub mtu: Mtu,
    /// How fast it is sent on.
    pub rate: RateControl,
    /// What it loses without congestion.
    pub loss: Loss,
    /// The newest report of the other end: to be acknowledged.
    pub peer_report: Option<u16>,
    /// A control message is due on this path.
    pub control_due: bool,
    /// The cookie of the other end for this path's address.
    pub cookie: Option<[u8; 16]>,
    /// How often the other end's address changed.
    pub roamed: u64,
}

impl Path {
    /// A path of which nothing is known but, perhaps, where it goes.
    #[must_use]
    pub fn new(route: Option<Route>, role: Role) -> Self {
        Self {
            route,
            roles: [role, Role::Active],
            liveness: Liveness::new(role),
            round_trip: RoundTrip::default(),
            ledger: Ledger::default(),
            received: Received::default(),
            mtu: Mtu::default(),
            rate: RateControl::default(),
            loss: Loss::default(),
            peer_report: None,
            control_due: false,
            cookie: None,
            roamed: 0,
        }
    }

    /// The other end's decision, if it is another than before.
    pub fn on_peer_role(&mut self, role: Role) {
        if self.roles[1] != role {
            self.roles[1] = role;
            self.liveness.set_role(self.roles[0].max(role));
        }
    }

    /// The other end has restarted: its reports and numbers begin again.
    pub fn restart(&mut self) {
        self.received = Received::default();
        self.peer_report = None;
        self.ledger.forget();
        self.rate.clear_flight();
        self.rate.forget_delay();
    }

    /// The other end has moved to another address. What was learned of the way there holds no longer.
    pub fn move_to(&mut self, route: Route) {
        if self.route.is_some() {
            self.roamed += 1;
            self.mtu = Mtu::default();
            self.rate = RateControl::default();
            self.cookie = None;
        }
        self.route = Some(route);
    }
}
