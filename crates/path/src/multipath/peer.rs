//! What the two elements at one end of a gateway share.
//!
//! The exit of one direction and the entrance of the other stand in the same box. The exit sees how long packets took on each
//! route and how many were lost; the entrance sends that in the headers of what it sends; the exit reads such reports of the
//! other box, and the entrance's splitter goes by them.
//!
//! A report is state, not an event: the newest of every route is repeated until a newer one replaces it, since the packet that
//! carried it may have taken a route that is dead. Reports that were not sent yet go first, but one in [`REPEATS`] is a
//! repetition in any case. What is not sent within the time that the splitters set goes with a packet of the tunnel's own (see
//! [`Owed`]).
//!
//! Where the other end keeps what it sends, numbers that a route has skipped are asked for at once and once more: a report is as
//! likely to be lost as a packet. Not on a route that lets packets overtake each other, where what was skipped mostly comes.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use anabranch_core::{
    tunnel::{Content, Header, Report},
    units::Instant,
};

use super::order::Order;

/// Packets of a route over which its loss is counted.
const LOSS_BLOCK: u16 = 128;
/// Most askings that wait to be sent; the oldest goes where there are more.
const MOST_ASKINGS: usize = 64;

/// One report in so many is a repetition, however many new ones there are.
const REPEATS: u32 = 4;

/// A route as the exit sees it.
#[derive(Debug, Default)]
struct Seen {
    begun: bool,
    /// The highest number that has arrived, and when that packet left, by the other end's clock.
    top: u16,
    departed: u32,
    /// Where the block that is being counted began, and what has arrived since.
    block: u16,
    arrived: u16,
    /// Share lost lately.
    loss: f64,
    order: Order,
    /// What there is to report, and whether it has not been sent yet.
    news: Option<Report>,
    is_fresh: bool,
}

/// Arrivals that the other end must be told of, with a packet of the tunnel's own if no other travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owed {
    /// When the first of them arrived.
    pub(super) since: Instant,
    /// One of them was a packet of a flow, not only a probe.
    pub(super) is_traffic: bool,
}

#[derive(Debug, Default)]
struct Shared {
    seen: Vec<Seen>,
    /// The route that was reported last, as new and as a repetition.
    reported: usize,
    repeated: usize,
    /// How many reports of routes were sent.
    sent: u32,
    owed: Option<Owed>,
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
    pub(super) fn arrived(&self, now: Instant, clock: u32, header: &Header) {
        self.with(|shared| {
            shared.heard.extend(header.report);
            let Some(route) = shared.seen.get_mut(usize::from(header.route)) else {
                return;
            };
            let is_later = header.sent.wrapping_sub(route.departed).cast_signed() > 0;
            let ahead = header.route_number.wrapping_sub(route.top).cast_signed();
            // Numbers that go back although the packet left later have gone round while nothing arrived.
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
            // A packet that others have overtaken is no news of what the route has delivered.
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

    /// What is owed.
    pub(super) fn owed(&self) -> Option<Owed> {
        self.with(|shared| shared.owed)
    }

    /// A route of this end may have lost the reports that it was given: none counts as sent.
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

    /// Whether there is something to ask for.
    pub(super) fn asks(&self) -> bool {
        self.with(|shared| !shared.askings.is_empty())
    }

    /// What is to be reported next: what is asked for, then each route in turn, and those with news first.
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

    /// The next repetition, for a packet that may be lost: nothing counts as sent by it.
    pub(super) fn repetition(&self) -> Option<Report> {
        self.with(Shared::repeat)
    }

    /// Gives the reports of the other end to `hear`.
    pub(super) fn hear(&self, mut hear: impl FnMut(&Report)) {
        self.with(|shared| shared.heard.drain(..).for_each(|report| hear(&report)));
    }
}

impl Shared {
    /// The report of the next route in turn that is fresh. It counts as sent.
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

    /// The report of the next route in turn that has one.
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
