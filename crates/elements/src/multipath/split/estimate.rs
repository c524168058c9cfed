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
/// Weight of a new rest where reports follow each other closely, and the time after which one counts alone.
const WEIGHT: f64 = 0.25;
const FORGOTTEN: Duration = Duration::from_millis(200);

/// One route.
#[derive(Debug)]
pub(super) struct Route {
    sending: Option<SerializationDelay>,
    /// When all that was sent will have left, at the line rate.
    free: Instant,
    /// The number of the next packet on the route.
    next: u16,
    /// By number: when it was sent, and what was predicted, in microseconds.
    sent: Vec<(Instant, u32)>,
    /// When the last packet was sent, and the first of which nothing has been heard.
    last: Option<Instant>,
    unheard: Option<Instant>,
    /// The rest, in microseconds above that of the first report; `None` while nothing has been reported.
    rest: Option<f64>,
    /// When that was heard.
    heard: Instant,
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
            free: Instant::START,
            next: 0,
            sent: vec![(Instant::START, 0); usize::from(REMEMBERED)],
            last: None,
            unheard: None,
            rest: None,
            heard: Instant::START,
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
        self.sent[usize::from(self.next % REMEMBERED)] = (now, predicted);
        self.last = Some(now);
        self.unheard.get_or_insert(now);
        self.next = self.next.wrapping_add(1);
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
        let age = route.next.wrapping_sub(report.route_number);
        if age == 0 || age > REMEMBERED {
            return;
        }
        let (sent, predicted) = route.sent[usize::from(report.route_number % REMEMBERED)];
        let following = report.route_number.wrapping_add(1);
        let next = route.sent[usize::from(following % REMEMBERED)].0;
        route.unheard = (age > 1).then_some(next);
        self.heard = self.heard.max(Some(sent));
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
