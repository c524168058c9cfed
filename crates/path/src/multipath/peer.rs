//! State shared by the two elements at one end of a gateway.
//!
//! The exit of one direction and the entrance of the other are in the same box. The exit measures
//! delay and loss of each route. The entrance sends these reports to the other box in the headers
//! of its packets. The exit also reads the reports from the other box, and the entrance's splitter
//! uses them.
//!
//! A report describes a state, not an event. The newest report of every route is repeated until a
//! newer one replaces it, because the packet that carried it may have taken a dead route. Reports
//! that were not sent yet have precedence, but every [`REPEATS`]th report is a repetition. A report
//! that no packet carries within the splitter's deadline is sent in a packet of the tunnel (see
//! [`Owed`]).
//!
//! If the other end stores its packets, numbers missing on a route are requested at once, and once
//! more because a report is as likely to be lost as a packet. No request is made on a route that
//! reorders packets, where missing numbers mostly arrive late.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use anabranch_core::{
    tunnel::{Content, Header, Report},
    units::Instant,
};

use super::order::Order;

/// Number of packets per measurement of a route's loss.
const LOSS_BLOCK: u16 = 128;
/// Maximum number of requests that wait to be sent; beyond it, the oldest is discarded.
const MOST_ASKINGS: usize = 64;

/// Every `REPEATS`th report is a repetition, even if new reports are waiting.
const REPEATS: u32 = 4;

/// Observations of a route by the exit.
#[derive(Debug, Default)]
struct Seen {
    begun: bool,
    /// Highest number that has arrived, and the time that packet was sent, by the other end's
    /// clock.
    top: u16,
    departed: u32,
    /// First number of the current loss measurement, and the number of packets received since.
    block: u16,
    arrived: u16,
    /// Smoothed share of lost packets.
    loss: f64,
    order: Order,
    /// The latest report, and whether it still has to be sent.
    news: Option<Report>,
    is_fresh: bool,
}

/// Deadline state of reports: arrivals that must be reported, if necessary in a packet of the
/// tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owed {
    /// Arrival time of the first of them.
    pub(super) since: Instant,
    /// At least one of them was a packet of a flow, not a probe.
    pub(super) is_traffic: bool,
}

#[derive(Debug, Default)]
struct Shared {
    seen: Vec<Seen>,
    /// The last routes reported: as a new report, and as a repetition.
    reported: usize,
    repeated: usize,
    /// Number of route reports sent.
    sent: u32,
    owed: Option<Owed>,
    /// Reports of the other end that the splitter has not received yet.
    heard: Vec<Report>,
    /// Requests, and whether each has been sent before.
    askings: VecDeque<(Report, bool)>,
}

/// One end of a gateway; clones refer to the same end.
#[derive(Debug, Clone, Default)]
pub struct Peer(Arc<Mutex<Shared>>);

impl Peer {
    /// Creates an end at which `routes` routes arrive.
    #[must_use]
    pub fn new(routes: usize) -> Self {
        let seen = (0..routes).map(|_| Seen::default()).collect();
        Self(Arc::new(Mutex::new(Shared {
            seen,
            ..Shared::default()
        })))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Shared) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A packet has arrived at time `clock` of this end's clock, in microseconds.
    pub(super) fn arrived(&self, now: Instant, clock: u32, header: &Header) {
        self.with(|shared| {
            shared.heard.extend(header.report);
            let Some(route) = shared.seen.get_mut(usize::from(header.route)) else {
                return;
            };
            let is_later = header.sent.wrapping_sub(route.departed).cast_signed() > 0;
            let ahead = header.route_number.wrapping_sub(route.top).cast_signed();
            // A lower number in a packet that was sent later means that the numbers wrapped while
            // nothing arrived.
            if !route.begun || ahead < 0 && is_later {
                route.begun = true;
                (route.top, route.block) = (header.route_number, header.route_number);
                route.arrived = 0;
            }
            let ahead = header.route_number.wrapping_sub(route.top).cast_signed();
            route.order.arrived(ahead);
            if ahead >= 0 {
                (route.top, route.departed) = (header.route_number, header.sent);
            }
            route.arrived = route.arrived.saturating_add(1);
            let due = route.top.wrapping_sub(route.block);
            if due >= LOSS_BLOCK {
                let lost = f64::from(due.saturating_sub(route.arrived)) / f64::from(due);
                route.loss += (lost - route.loss) / 4.0;
                (route.block, route.arrived) = (route.top, 0);
            }
            let mut news = Report {
                route: header.route,
                loss: share(route.loss),
                route_number: header.route_number,
                missing: 0,
                delay: clock.wrapping_sub(header.sent),
            };
            // A reordered packet does not update the report of its route.
            if ahead >= 0 {
                (route.news, route.is_fresh) = (Some(news), true);
            }
            if route.is_fresh && matches!(header.content, Content::Packet | Content::Probe) {
                let owed = shared.owed.get_or_insert(Owed {
                    since: now,
                    is_traffic: false,
                });
                owed.is_traffic |= header.content == Content::Packet;
            }
            if header.kept && ahead > 1 && route.order.is_kept() {
                news.missing = u8::try_from(ahead - 1).unwrap_or(u8::MAX);
                if shared.askings.len() == MOST_ASKINGS {
                    shared.askings.pop_front();
                }
                shared.askings.push_back((news, false));
            }
        });
    }

    /// Reports that must be sent, if any.
    pub(super) fn owed(&self) -> Option<Owed> {
        self.with(|shared| shared.owed)
    }

    /// A silent route may have lost the reports it carried, so all reports are sent again.
    pub(super) fn renew(&self, now: Instant) {
        self.with(|shared| {
            let mut is_any = false;
            for route in &mut shared.seen {
                route.is_fresh = route.news.is_some();
                is_any |= route.is_fresh;
            }
            if is_any {
                shared.owed.get_or_insert(Owed {
                    since: now,
                    is_traffic: false,
                });
            }
        });
    }

    /// Whether requests are waiting.
    pub(super) fn asks(&self) -> bool {
        self.with(|shared| !shared.askings.is_empty())
    }

    /// Returns the next report: requests first, then the routes in turn, starting with new reports.
    pub(super) fn report(&self) -> Option<Report> {
        self.with(|shared| {
            if let Some((report, again)) = shared.askings.pop_front() {
                if !again {
                    shared.askings.push_back((report, true));
                }
                return Some(report);
            }
            shared.sent = shared.sent.wrapping_add(1);
            let repeats = shared.sent % REPEATS == 0;
            if !repeats && let Some(report) = shared.next(|route| route.is_fresh) {
                return Some(report);
            }
            shared.repeat()
        })
    }

    /// Returns the next repetition, for a packet that may be lost. No report counts as sent.
    pub(super) fn repetition(&self) -> Option<Report> {
        self.with(Shared::repeat)
    }

    /// Passes the reports of the other end to `hear`.
    pub(super) fn hear(&self, mut hear: impl FnMut(&Report)) {
        self.with(|shared| shared.heard.drain(..).for_each(|report| hear(&report)));
    }
}

impl Shared {
    /// Returns the report of the next route in turn that is due, and marks it as sent.
    fn next(&mut self, is_due: impl Fn(&Seen) -> bool) -> Option<Report> {
        let routes = self.seen.len();
        let places = (1..=routes).map(|step| (self.reported + step) % routes);
        let place = places
            .into_iter()
            .find(|place| is_due(&self.seen[*place]))?;
        self.reported = place;
        self.seen[place].is_fresh = false;
        if !self.seen.iter().any(|route| route.is_fresh) {
            self.owed = None;
        }
        self.seen[place].news
    }

    /// Returns the report of the next route in turn that has one.
    fn repeat(&mut self) -> Option<Report> {
        let routes = self.seen.len();
        let mut places = (1..=routes).map(|step| (self.repeated + step) % routes);
        let place = places.find(|place| self.seen[*place].news.is_some())?;
        self.repeated = place;
        self.seen[place].news
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of 1 at most"
)]
fn share(loss: f64) -> u16 {
    (loss * 65_536.0).clamp(0.0, 65_535.0) as u16
}
