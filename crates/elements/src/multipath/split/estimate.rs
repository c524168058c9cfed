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

use super::Init;

/// Packets of a route whose predictions are remembered: reports of older ones are not used.
const REMEMBERED: u16 = 2_048;
/// Weight of a new rest.
const WEIGHT: f64 = 0.25;

/// One route.
#[derive(Debug)]
pub(super) struct Route {
    sending: Option<SerializationDelay>,
    /// When all that was sent will have left, at the line rate.
    free: Instant,
    /// The number of the next packet on the route.
    next: u16,
    /// By number: what was predicted, in microseconds.
    predicted: Vec<u32>,
    /// The rest, in microseconds above that of the first report; `None` while nothing has been reported.
    rest: Option<f64>,
    /// When that was heard.
    heard: Instant,
    /// Share of packets lost lately, 0 to 1.
    pub(super) loss: f64,
}

/// All routes of a splitter.
#[derive(Debug)]
pub(super) struct Routes {
    pub(super) routes: Vec<Route>,
    /// The delay of the first report: rests are counted from it.
    origin: Option<u32>,
}

impl Route {
    fn new(rate: Option<Rate>) -> Self {
        Self {
            sending: rate.map(SerializationDelay::at),
            free: Instant::START,
            next: 0,
            predicted: vec![0; usize::from(REMEMBERED)],
            rest: None,
            heard: Instant::START,
            loss: 0.0,
        }
    }
    /// How long a packet sent now would wait for those before it.
    pub(super) fn backlog(&self, now: Instant) -> Duration {
        self.free.saturating_since(now)
    }
    /// How long until a packet of this size sent now has left.
    pub(super) fn leaving(&self, now: Instant, size: u32) -> Duration {
        let sending = self.sending.map_or(Duration::ZERO, |sending| sending.of(size));
        self.backlog(now) + sending
    }
    /// A packet of this size is sent.
    pub(super) fn send(&mut self, now: Instant, size: u32) {
        let leaving = self.leaving(now, size);
        self.free = now + leaving;
        let place = usize::from(self.next % REMEMBERED);
        self.predicted[place] = u32::try_from(leaving.as_nanos() / 1_000).unwrap_or(u32::MAX);
        self.next = self.next.wrapping_add(1);
    }
}

impl Routes {
    pub(super) fn new(init: &Init) -> Self {
        Self {
            routes: init.rates.iter().map(|rate| Route::new(*rate)).collect(),
            origin: None,
        }
    }

    /// The other end reports.
    pub(super) fn hear(&mut self, now: Instant, report: &Report) {
        let origin = *self.origin.get_or_insert(report.delay);
        let Some(route) = self.routes.get_mut(usize::from(report.route)) else {
            return;
        };
        route.loss = f64::from(report.loss) / 65_536.0;
        let age = route.next.wrapping_sub(report.route_number);
        if age == 0 || age > REMEMBERED {
            return;
        }
        let predicted = route.predicted[usize::from(report.route_number % REMEMBERED)];
        let delay = report.delay.wrapping_sub(origin).cast_signed();
        let rest = f64::from(delay) - f64::from(predicted);
        route.rest = Some(match route.rest {
            None => rest,
            Some(before) => before + WEIGHT * (rest - before),
        });
        route.heard = now;
    }

    /// The smallest rest that has been reported of any route.
    fn least(&self) -> f64 {
        let rests = self.routes.iter().filter_map(|route| route.rest);
        rests.fold(f64::INFINITY, f64::min)
    }

    /// The rest of a route above the smallest, in microseconds. Nothing known counts as nothing, so that it becomes known.
    /// What a queue that the line rate does not explain adds goes by as fast as time does, so what was heard long ago is
    /// believed less: otherwise a route that looked bad once would never be tried again.
    pub(super) fn rest(&self, now: Instant, route: usize) -> f64 {
        let route = &self.routes[route];
        let Some(rest) = route.rest else {
            return 0.0;
        };
        let age = now.saturating_since(route.heard).as_secs_f64() * 1e6;
        (rest - self.least() - age * AGING).max(0.0)
    }
}

/// How much of the time since the last report is taken off a rest.
const AGING: f64 = 0.05;

/// The number of a route.
pub(super) fn number(route: usize) -> u16 {
    u16::try_from(route).expect("routes are counted in 16 bits")
}
