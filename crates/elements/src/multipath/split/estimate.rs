//! What a splitter knows of its routes: their line rates, what it has sent itself, and what the other end reports.
//!
//! The time that a packet will take is what waits before it (the splitter's own packets, sent at the line rate: a route carries
//! nothing else), its own transmission, and the rest: propagation, jitter, and whatever the line rate does not explain. The rest
//! is a measurement, the reported delay of a packet less what was predicted for it when it left. The two ends' clocks differ by
//! an unknown amount, the same for all routes, so rests can be compared and not told.

use anabranch_core::{
    tunnel::Report,
    units::{Duration, Instant, Rate, SerializationDelay},
};

use super::{
    Init,
    earliest_arrival::{RESENT, RESENT_AT_ONCE},
};

/// Packets of a route whose predictions are remembered: reports of older ones are not used.
const REMEMBERED: u16 = 2_048;
/// Weight of a new rest where reports follow each other closely, and the time after which one counts alone.
const WEIGHT: f64 = 0.25;
const FORGOTTEN: Duration = Duration::from_millis(200);

/// One route.
#[derive(Debug)]
pub(super) struct Route {
    sending: Option<SerializationDelay>,
    /// Bytes per second, as a weight.
    weight: f64,
    /// When all that was sent will have left, at the line rate.
    free: Instant,
    /// The number of the next packet on the route.
    next: u16,
    /// By number.
    sent: Vec<Departure>,
    /// When the last packet was sent, and the first of which nothing has been heard.
    last: Option<Instant>,
    unheard: Option<Instant>,
    /// The rest, in microseconds above that of the first report; `None` while nothing has been reported.
    rest: Option<f64>,
    /// When that was heard.
    heard: Instant,
    /// The number that was heard of last.
    reported: Option<u16>,
    /// The least time from a packet's departure until something was heard of it.
    round_trip: Option<Duration>,
    /// Packets that may be sent again.
    allowance: f64,
}

/// What is remembered of a packet.
#[derive(Debug, Clone, Copy)]
struct Departure {
    at: Instant,
    /// How long it was to wait and be sent, in microseconds.
    predicted: u32,
}

/// All routes of a splitter.
#[derive(Debug)]
pub(super) struct Routes {
    pub(super) all: Vec<Route>,
    /// The delay of the first report: rests are counted from it.
    origin: Option<u32>,
    /// When the latest packet was sent of which something has been heard.
    heard: Option<Instant>,
}

impl Route {
    fn new(rate: Option<Rate>) -> Self {
        Self {
            sending: rate.map(SerializationDelay::at),
            weight: rate.map_or(0.0, |rate| rate.bits_per_s() as f64 / 8.0),
            free: Instant::START,
            next: 0,
            sent: vec![
                Departure {
                    at: Instant::START,
                    predicted: 0,
                };
                usize::from(REMEMBERED)
            ],
            last: None,
            unheard: None,
            rest: None,
            heard: Instant::START,
            reported: None,
            round_trip: None,
            allowance: RESENT_AT_ONCE,
        }
    }
    /// How long a packet sent now would wait for those before it.
    pub(super) fn backlog(&self, now: Instant) -> Duration {
        self.free.saturating_since(now)
    }
    /// Whether nothing has been sent for so long.
    pub(super) fn is_idle(&self, now: Instant, span: Duration) -> bool {
        self.last
            .is_none_or(|last| now.saturating_since(last) >= span)
    }
    /// How long until a packet of this size sent now has left.
    pub(super) fn leaving(&self, now: Instant, size: u32) -> Duration {
        let sending = self
            .sending
            .map_or(Duration::ZERO, |sending| sending.of(size));
        self.backlog(now) + sending
    }
    /// A packet of this size is sent.
    pub(super) fn send(&mut self, now: Instant, size: u32) {
        let leaving = self.leaving(now, size);
        self.free = now + leaving;
        let predicted = u32::try_from(leaving.as_nanos() / 1_000).unwrap_or(u32::MAX);
        self.sent[usize::from(self.next % REMEMBERED)] = Departure { at: now, predicted };
        self.last = Some(now);
        self.unheard.get_or_insert(now);
        self.next = self.next.wrapping_add(1);
        self.allowance = (self.allowance + RESENT).min(RESENT_AT_ONCE);
    }
    /// How many packets ago this number was sent, from 1; `None` if that is not remembered.
    fn age(&self, number: u16) -> Option<u16> {
        let age = self.next.wrapping_sub(number);
        (1..=REMEMBERED).contains(&age).then_some(age)
    }
    /// Whether one more of its packets may be sent again.
    pub(super) fn can_afford(&self) -> bool {
        self.allowance >= 1.0
    }
    /// The same, and it is counted.
    pub(super) fn afford(&mut self) -> bool {
        let affords = self.can_afford();
        if affords {
            self.allowance -= 1.0;
        }
        affords
    }
}

impl Routes {
    pub(super) fn new(init: &Init) -> Self {
        Self {
            all: init.rates.iter().map(|rate| Route::new(*rate)).collect(),
            origin: None,
            heard: None,
        }
    }

    /// The other end reports.
    pub(super) fn hear(&mut self, now: Instant, report: &Report) {
        let origin = *self.origin.get_or_insert(report.delay);
        let Some(route) = self.all.get_mut(usize::from(report.route)) else {
            return;
        };
        let Some(age) = route.age(report.route_number) else {
            return;
        };
        // What is asked for twice comes with what was known the first time. Of numbers that are forgotten nobody knows which is later.
        let before = route.reported.and_then(|before| route.age(before));
        if before.is_some_and(|before| age >= before) {
            return;
        }
        route.reported = Some(report.route_number);
        let Departure {
            at: sent,
            predicted,
        } = route.sent[usize::from(report.route_number % REMEMBERED)];
        let following = report.route_number.wrapping_add(1);
        let next = route.sent[usize::from(following % REMEMBERED)].at;
        route.unheard = (age > 1).then_some(next);
        self.heard = self.heard.max(Some(sent));
        let round_trip = now.saturating_since(sent);
        let least = route.round_trip.unwrap_or(round_trip);
        route.round_trip = Some(least.min(round_trip));
        let delay = report.delay.wrapping_sub(origin).cast_signed();
        let rest = f64::from(delay) - f64::from(predicted);
        let since = now.saturating_since(route.heard).as_secs_f64() / FORGOTTEN.as_secs_f64();
        route.rest = Some(match route.rest {
            None => rest,
            Some(before) => before + since.clamp(WEIGHT, 1.0) * (rest - before),
        });
        route.heard = now;
    }

    /// Whether a route is silent: of a packet sent there nothing has been heard, though something has of one sent `silence`
    /// later elsewhere, besides what the route is known to take longer. Where nothing at all is heard no route is silent.
    pub(super) fn is_silent(&self, route: usize, silence: Duration) -> bool {
        let longer = Duration::from_secs_f64(self.rest(route) * 1e-6);
        match (self.all[route].unheard, self.heard) {
            (Some(unheard), Some(heard)) => heard.saturating_since(unheard) > silence + longer,
            _ => false,
        }
    }

    /// Whether so much waits in front of all routes together as they carry in a round trip of each. A window of congestion
    /// control that is halved then keeps them busy.
    pub(super) fn are_full(&self, now: Instant) -> bool {
        let (mut waiting, mut carried) = (0.0, 0.0);
        for route in &self.all {
            let Some(round_trip) = route.round_trip else {
                return false;
            };
            waiting += route.weight * route.backlog(now).as_secs_f64();
            carried += route.weight * round_trip.as_secs_f64();
        }
        waiting > carried
    }

    /// The smallest rest that has been reported of any route.
    fn least(&self) -> f64 {
        let rests = self.all.iter().filter_map(|route| route.rest);
        rests.fold(f64::INFINITY, f64::min)
    }

    /// The rest of a route above the smallest, in microseconds. Nothing known counts as nothing, so that it becomes known.
    pub(super) fn rest(&self, route: usize) -> f64 {
        let rest = self.all[route].rest;
        rest.map_or(0.0, |rest| rest - self.least())
    }
}

/// The number of a route.
pub(super) fn number(route: usize) -> u16 {
    u16::try_from(route).expect("routes are counted in 16 bits")
}
