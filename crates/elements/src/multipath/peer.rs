//! What the two elements at one end of a gateway tell each other.
//!
//! The exit of one direction and the entrance of the other stand in the same box. The exit sees how long packets took on each
//! route and how many were lost, and the entrance sends that along in the headers of what it sends; the exit reads such reports
//! of the other box, and the entrance's splitter goes by them. Where no packets flow in the other direction nothing is reported.
//!
//! Where the other end keeps what it sends, numbers that a route has skipped are asked for at once and once more: a report is as
//! likely to be lost as a packet. Not on a route that lets packets overtake each other, where what was skipped mostly comes.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use anabranch_core::tunnel::{Header, Report};

use super::order::Order;

/// Packets of a route over which its loss is counted.
const LOSS_BLOCK: u16 = 128;
/// Most askings that wait to be sent; the oldest goes where there are more.
const MOST_ASKINGS: usize = 64;

/// A route as the exit sees it.
#[derive(Debug, Default)]
struct Seen {
    begun: bool,
    /// The highest number that has arrived.
    top: u16,
    /// Where the block that is being counted began, and what has arrived since.
    block: u16,
    arrived: u16,
    /// Share lost lately.
    loss: f64,
    order: Order,
    /// What has not been reported.
    news: Option<Report>,
}

#[derive(Debug, Default)]
struct Shared {
    seen: Vec<Seen>,
    /// The route that was reported last.
    reported: usize,
    /// Reports of the other end that the splitter has not heard.
    heard: Vec<Report>,
    /// Reports that ask for something, and whether they have been sent before.
    askings: VecDeque<(Report, bool)>,
}

/// One end of a gateway; clones are the same end.
#[derive(Debug, Clone, Default)]
pub struct Peer(Arc<Mutex<Shared>>);

impl Peer {
    /// One end, where so many routes arrive.
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

    /// A packet has arrived, at this time of the end's own clock in microseconds.
    pub(super) fn arrived(&self, clock: u32, header: &Header) {
        self.with(|shared| {
            shared.heard.extend(header.report);
            let Some(route) = shared.seen.get_mut(usize::from(header.route)) else {
                return;
            };
            if !route.begun {
                route.begun = true;
                (route.top, route.block) = (header.route_number, header.route_number);
            }
            let ahead = header.route_number.wrapping_sub(route.top).cast_signed();
            route.order.arrived(ahead);
            if ahead > 0 {
                route.top = header.route_number;
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
            route.news = Some(news);
            if header.kept && ahead > 1 && route.order.is_kept() {
                news.missing = u8::try_from(ahead - 1).unwrap_or(u8::MAX);
                if shared.askings.len() == MOST_ASKINGS {
                    shared.askings.pop_front();
                }
                shared.askings.push_back((news, false));
            }
        });
    }

    /// Whether there is something to ask for.
    pub(super) fn asks(&self) -> bool {
        self.with(|shared| !shared.askings.is_empty())
    }

    /// What is to be told next: what is asked for, then each route in turn.
    pub(super) fn report(&self) -> Option<Report> {
        self.with(|shared| {
            if let Some((report, again)) = shared.askings.pop_front() {
                if !again {
                    shared.askings.push_back((report, true));
                }
                return Some(report);
            }
            let routes = shared.seen.len();
            for step in 1..=routes {
                let route = (shared.reported + step) % routes;
                if let Some(report) = shared.seen[route].news.take() {
                    shared.reported = route;
                    return Some(report);
                }
            }
            None
        })
    }

    /// Gives the reports of the other end to `hear`.
    pub(super) fn hear(&self, mut hear: impl FnMut(&Report)) {
        self.with(|shared| shared.heard.drain(..).for_each(|report| hear(&report)));
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
