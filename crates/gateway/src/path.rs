//! A path: its address, its liveness, its outstanding packets, and its received packets.

mod allowance;
mod ledger;
mod liveness;
mod loss;
mod mtu;
mod paths;
mod rate;
mod received;
mod round_trip;
mod train;
mod worth;

pub use allowance::Allowance;
pub use ledger::{Kept, Ledger, Outcome, Sent};
pub use liveness::{Liveness, State, Usable};
pub use loss::{Loss, Pattern};
pub use mtu::{BASE, CEILING, Mtu};
pub use paths::Paths;
pub use rate::RateControl;
pub use received::Received;
pub use round_trip::RoundTrip;
pub use train::Train;
pub use worth::Worth;

use core::net::SocketAddr;

use crate::{policy::Role, time::Instant};

/// The destination of a path's datagrams: a local socket, by the number that the shell assigned,
/// and the other end's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The shell's number of the socket.
    pub local: u32,
    /// The address of the other end.
    pub remote: SocketAddr,
}

/// One path of the tunnel, as seen from this end.
#[derive(Debug)]
pub struct Path {
    /// The route; unknown at an end that only answers, until data has arrived.
    pub route: Option<Route>,
    /// The roles that this end and the other end chose.
    pub roles: [Role; 2],
    /// Whether it delivers datagrams from this end.
    pub liveness: Liveness,
    /// Round-trip times: forward on this path, back on the path that was fastest.
    pub round_trip: RoundTrip,
    /// Packets sent by this end.
    pub ledger: Ledger,
    /// Packets received by this end, and the reports about them.
    pub received: Received,
    /// The size of datagrams that the path delivers.
    pub mtu: Mtu,
    /// The sending rate.
    pub rate: RateControl,
    /// A first estimate of the rate.
    pub train: Train,
    /// Whether the path raised the throughput when it was used for that.
    pub worth: Worth,
    /// The loss without congestion.
    pub loss: Loss,
    /// The newest report of the other end, which must be acknowledged.
    pub peer_report: Option<u16>,
    /// Whether a control message is due on this path.
    pub control_due: bool,
    /// The time from which the path's share for control messages allows the next one.
    pub control_after: Instant,
    /// Whether a probe under a session to be confirmed is due.
    pub confirm_due: bool,
    /// The other end's cookie for this path's address.
    pub cookie: Option<[u8; 16]>,
    /// The initiations that the path may carry while paths of better roles have a route.
    pub initiations: Allowance,
    /// Whether the interface has lost its carrier, as far as the shell has said.
    pub is_down: bool,
    /// Number of changes of the other end's address.
    pub roamed: u64,
}

impl Path {
    /// A path without history.
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
            train: Train::default(),
            worth: Worth::default(),
            loss: Loss::default(),
            peer_report: None,
            control_due: false,
            control_after: Instant::START,
            confirm_due: false,
            cookie: None,
            initiations: Allowance::default(),
            is_down: false,
            roamed: 0,
        }
    }

    /// Whether control messages are sent on this path. If no path is live, they are sent on all. Spare
    /// paths carry them if the other ones do not deliver them (`is_unanswered`).
    #[must_use]
    pub const fn carries_control(&self, is_any_live: bool, is_unanswered: bool) -> bool {
        let is_used = is_unanswered || !self.liveness.is_spare();
        let is_live = self.liveness.usable().is_some() && is_used;
        self.route.is_some() && (is_live || !is_any_live)
    }

    /// Applies the other end's role if it has changed.
    pub fn on_peer_role(&mut self, role: Role) {
        if self.roles[1] != role {
            self.roles[1] = role;
            self.liveness.set_role(self.roles[0].max(role));
        }
    }

    /// Handles a restart of the other end: its reports and numbers begin again.
    pub fn restart(&mut self) {
        self.received = Received::default();
        self.peer_report = None;
        self.ledger.forget();
        self.rate.clear_flight();
        self.rate.forget_delay();
        self.mtu.restart();
        self.train = Train::default();
    }

    /// Handles a change of the other end's address. The state of the old route is discarded.
    pub fn move_to(&mut self, route: Route) {
        if self.route.is_some() {
            self.roamed += 1;
            self.mtu = Mtu::default();
            self.rate = self.rate.renewed();
            self.train = Train::default();
            self.worth = Worth::default();
            self.cookie = None;
        }
        self.route = Some(route);
    }
}
