//! Route estimates of a splitter, from line rates, its own packets, and reports of the other end.
//!
//! The predicted delay of a packet is the backlog (the splitter's own packets at the line rate; a
//! route carries no other traffic), its transmission time, and the rest: propagation, jitter, and
//! all delay that the line rate does not explain. The rest is measured as the reported delay of a
//! packet minus the delay predicted at its departure. The clocks of the two ends differ by an
//! unknown amount that is the same for all routes, so only differences between rests are
//! meaningful.

use anabranch_core::{
    tunnel::{Content, Report},
    units::{Duration, Instant, Rate, SerializationDelay},
};

use super::{
    Init,
    earliest_arrival::{RESENT, RESENT_AT_ONCE},
    liveness::{Due, Fallen, Rank, Reported, Smoothed, State, Timing},
};

/// Initial number of packets recorded per route. It grows with the number of unreported packets, up
/// to the range of their 16-bit numbers; otherwise no report of a route with more packets in flight
/// could be matched.
const REMEMBERED: usize = 2_048;
const MOST_REMEMBERED: usize = 1 << 16;
/// Weight of a new rest if reports arrive in quick succession, and the interval after which a new
/// rest replaces the old one.
const WEIGHT: f64 = 0.25;
const FORGOTTEN: Duration = Duration::from_millis(200);
/// Assumed maximum delay of a report until the first one arrives.
const UNKNOWN_ROUND_TRIP: Duration = Duration::from_millis(1_000);
/// Backlog below which an alive route has room for copies of packets that another route may not
/// deliver.
const IDLE_BACKLOG: Duration = Duration::from_millis(10);

/// State of a route.
#[derive(Debug)]
pub(super) struct Route {
    sending: Option<SerializationDelay>,
    /// Bytes per second, as a weight.
    weight: f64,
    /// Time at which the last packet sent has left at the line rate.
    free: Instant,
    /// Number of the next packet on the route; its header has the low 16 bits.
    next: u64,
    /// Indexed by number modulo the length, a power of two.
    sent: Vec<Departure>,
    /// Time and number of the last packet that requires a report.
    last: Option<(Instant, u64)>,
    /// Predicted departure of the oldest packet that requires a report and has none.
    oldest_unreported: Option<Instant>,
    /// The rest in microseconds relative to that of the first report; `None` before the first
    /// report.
    rest: Option<f64>,
    /// Time of the last report of a newer packet, or the time it was due.
    heard: Instant,
    /// The last packet reported (extended number), and its number and delay as received.
    reported: Option<u64>,
    last_report: Option<(u16, u32)>,
    /// Minimum time from the departure of a packet to its report.
    round_trip: Option<Duration>,
    /// That time minus the delay predicted for the packet.
    answers: Option<Smoothed>,
    state: State,
    /// A report was overdue at the last check.
    is_late: bool,
    /// Number of packets that may be retransmitted.
    allowance: f64,
}

/// Record of a sent packet.
#[derive(Debug, Clone, Copy)]
struct Departure {
    at: Instant,
    /// Predicted backlog and transmission time in microseconds.
    predicted: u32,
}

impl Departure {
    const NONE: Self = Self {
        at: Instant::START,
        predicted: 0,
    };
    fn left(self) -> Instant {
        self.at + Duration::from_micros(u64::from(self.predicted))
    }
}

/// All routes of a splitter.
#[derive(Debug)]
pub(super) struct Routes {
    pub(super) all: Vec<Route>,
    timing: Timing,
    /// Delay of the first report, the reference of the rests.
    origin: Option<u32>,
    /// Time of the next check, and the end of the checks if no further packet is sent.
    tick: Option<Instant>,
    active: Instant,
}

impl Route {
    fn new(rate: Option<Rate>) -> Self {
        Self {
            sending: rate.map(SerializationDelay::at),
            weight: rate.map_or(0.0, |rate| rate.bits_per_s() as f64 / 8.0),
            free: Instant::START,
            next: 0,
            sent: vec![Departure::NONE; REMEMBERED],
            last: None,
            oldest_unreported: None,
            rest: None,
            heard: Instant::START,
            reported: None,
            last_report: None,
            round_trip: None,
            answers: None,
            state: State::Unknown,
            is_late: false,
            allowance: RESENT_AT_ONCE,
        }
    }
    /// Time that a packet sent now would wait for earlier packets.
    pub(super) fn backlog(&self, now: Instant) -> Duration {
        self.free.saturating_since(now)
    }
    /// Whether no packet that requires a report has been sent for `span`.
    fn is_idle(&self, now: Instant, span: Duration) -> bool {
        self.last
            .is_none_or(|(last, _)| now.saturating_since(last) >= span)
    }
    /// Time until a packet of this size sent now has left.
    pub(super) fn leaving(&self, now: Instant, size: u32) -> Duration {
        let sending = self
            .sending
            .map_or(Duration::ZERO, |sending| sending.of(size));
        self.backlog(now) + sending
    }
    /// Records the departure of a packet of this size.
    fn send(&mut self, now: Instant, size: u32, wants_report: bool) {
        let leaving = self.leaving(now, size);
        self.free = now + leaving;
        let predicted = u32::try_from(leaving.as_nanos() / 1_000).unwrap_or(u32::MAX);
        let departure = Departure { at: now, predicted };
        let place = self.place(self.next);
        self.sent[place] = departure;
        if wants_report {
            self.last = Some((now, self.next));
            self.oldest_unreported.get_or_insert(departure.left());
        }
        self.next += 1;
        if self.next - self.reported.unwrap_or(0) >= self.sent.len() as u64 {
            self.grow();
        }
        self.allowance = (self.allowance + RESENT).min(RESENT_AT_ONCE);
    }
    /// Doubles the number of recorded packets.
    #[cold]
    fn grow(&mut self) {
        let len = self.sent.len();
        if len < MOST_REMEMBERED {
            // The recorded packets whose index changes with the doubled length are copied to the
            // same offset in the new half.
            self.sent.extend_from_within(..);
        }
    }
    #[expect(clippy::cast_possible_truncation, reason = "modulo the length")]
    fn place(&self, number: u64) -> usize {
        number as usize & (self.sent.len() - 1)
    }
    /// Returns the last packet sent with these low 16 bits; `None` if it is no longer recorded.
    #[expect(clippy::cast_possible_truncation, reason = "modulo 2^16")]
    fn full(&self, number: u16) -> Option<u64> {
        let newest = self.next.checked_sub(1)?;
        let age = u64::from((newest as u16).wrapping_sub(number));
        newest
            .checked_sub(age)
            .filter(|_| age < self.sent.len() as u64)
    }
    /// Returns the route's [`Rank`].
    pub(super) const fn rank(&self) -> Rank {
        self.state.rank()
    }
    /// Whether another packet of this route may be retransmitted.
    pub(super) fn can_afford(&self) -> bool {
        self.allowance >= 1.0
    }
    /// The same as [`Route::can_afford`], and deducts the packet from the allowance.
    pub(super) fn afford(&mut self) -> bool {
        let affords = self.can_afford();
        if affords {
            self.allowance -= 1.0;
        }
        affords
    }
    /// Maximum time from a packet's departure to its report; `None` before the first report.
    fn answer(&self, timing: &Timing) -> Option<Duration> {
        self.answers.map(|answers| answers.most(timing))
    }
    /// Number of the first unreported packet, and the number of unreported packets.
    #[expect(clippy::cast_possible_truncation, reason = "modulo 2^16")]
    fn unreported(&self) -> (u16, u16) {
        let first = self.reported.map_or(0, |reported| reported + 1);
        let packets = (self.next - first).min(u64::from(u16::MAX));
        ((self.next - packets) as u16, packets as u16)
    }
    /// Processes the report of a packet newer than the last one reported. `delay` is relative to
    /// the delay of the first report.
    fn progress(&mut self, now: Instant, (number, delay): (u64, f64), timing: &Timing) {
        let departure = self.sent[self.place(number)];
        let rest = delay - f64::from(departure.predicted);
        let before = self.rest.unwrap_or(rest);
        let since = now.saturating_since(self.heard).as_secs_f64() / FORGOTTEN.as_secs_f64();
        self.rest = Some(before + since.clamp(WEIGHT, 1.0) * (rest - before));
        let grown = Duration::from_secs_f64((rest - before).max(0.0) / 1e6);
        // If the packet was not delayed but its report was, the report counts as of the time it was
        // due.
        let in_time = self
            .answer(timing)
            .map(|answer| departure.left() + answer + grown);
        let late = in_time.filter(|at| now.saturating_since(*at) > timing.step());
        self.heard = late.map_or(now, |at| at.max(self.heard));
        self.reported = Some(number);
        let waits = self.last.is_some_and(|(_, last)| last > number);
        self.oldest_unreported = waits.then(|| self.sent[self.place(number + 1)].left());
        let round_trip = now.saturating_since(departure.at);
        let least = self.round_trip.unwrap_or(round_trip);
        self.round_trip = Some(least.min(round_trip));
        let answer = now.saturating_since(departure.left()).as_secs_f64();
        self.answers = Some(match self.answers {
            None => Smoothed::first(answer),
            Some(before) => before.next(answer),
        });
        let packet = Reported {
            number,
            sent: departure.at,
            left: departure.left(),
            grown,
        };
        self.state = self.state.reported(now, packet, timing);
        self.is_late = false;
    }
}

impl Routes {
    pub(super) fn new(timing: Timing, init: &Init) -> Self {
        Self {
            all: init.rates.iter().map(|rate| Route::new(*rate)).collect(),
            timing,
            origin: None,
            tick: None,
            active: Instant::START,
        }
    }

    /// A packet takes a route.
    pub(super) fn send(&mut self, now: Instant, route: usize, size: u32) {
        self.all[route].send(now, size, true);
        self.schedule_checks(now);
    }

    /// Content of a packet that reports traffic: from time to time it is a probe as well, so that
    /// an end that sends only reports learns whether they arrive.
    pub(super) fn content(&self, now: Instant, chosen: usize) -> Content {
        if self.all[chosen].is_idle(now, self.timing.urgent()) {
            Content::Probe
        } else {
            Content::Report
        }
    }

    /// Routes a packet of the tunnel: over the chosen route, or over all routes if none is alive.
    pub(super) fn own(
        &mut self,
        now: Instant,
        size: u32,
        chosen: usize,
        content: Content,
        routes: &mut Vec<u16>,
    ) {
        let is_probe = content == Content::Probe;
        let is_alone = self.all[chosen].rank() != Rank::Silent;
        for route in 0..self.all.len() {
            if is_alone && route != chosen {
                continue;
            }
            self.all[route].send(now, size, is_probe);
            routes.push(number(route));
        }
        if is_probe {
            self.schedule_checks(now);
        }
    }

    /// Schedules checks of the routes for a limited time.
    fn schedule_checks(&mut self, now: Instant) {
        self.active = now + self.timing.attention();
        if self.tick.is_none() {
            self.tick = Some(now + self.timing.step());
        }
    }

    /// If the chosen route may be dead, sends a copy over other routes that have room: over alive
    /// routes that are nearly idle, or over all routes if no other is alive.
    pub(super) fn copy(&mut self, now: Instant, size: u32, chosen: usize, routes: &mut Vec<u16>) {
        if self.all[chosen].rank() == Rank::Silent || self.all[chosen].is_late {
            self.copy_over(now, size, chosen, routes);
        }
    }

    #[cold]
    fn copy_over(&mut self, now: Instant, size: u32, chosen: usize, routes: &mut Vec<u16>) {
        let room = self.timing.room();
        let mut others = (0..self.all.len()).filter(|route| *route != chosen);
        let over_all = !others.any(|route| self.all[route].rank() == Rank::Alive);
        for (route, known) in self.all.iter_mut().enumerate() {
            // An alive route may be late only because its reports returned over the chosen route's
            // reverse direction.
            let may_deliver = over_all || known.rank() == Rank::Alive;
            let room = match known.state {
                // A single packet in flight suffices to learn about an unknown route.
                State::Unknown => Duration::ZERO,
                _ if over_all => room,
                _ => IDLE_BACKLOG,
            };
            let has_room = known.backlog(now).is_zero() || known.backlog(now) < room;
            if route != chosen && may_deliver && has_room {
                known.send(now, size, true);
                routes.push(number(route));
            }
        }
    }

    /// Whether a route takes no traffic because it is silent.
    pub(super) fn is_silent(&self, route: u16) -> bool {
        let route = self.all.get(usize::from(route));
        route.is_some_and(|route| matches!(route.state, State::Silent { .. }))
    }

    /// Whether the chosen route has room for retransmissions, which must not fill the queue that
    /// flows need to recover.
    pub(super) fn has_room(&self, now: Instant, chosen: usize) -> bool {
        self.all[chosen].backlog(now) < self.timing.room()
    }

    /// Processes a report of the other end.
    pub(super) fn hear(&mut self, now: Instant, report: &Report) {
        let origin = *self.origin.get_or_insert(report.delay);
        let Some(route) = self.all.get_mut(usize::from(report.route)) else {
            return;
        };
        // Repeated reports are ignored, even if the numbers have wrapped in between.
        let told = (report.route_number, report.delay);
        if route.last_report == Some(told) {
            return;
        }
        let Some(number) = route.full(report.route_number) else {
            return;
        };
        if route.reported.is_some_and(|before| number <= before) {
            return;
        }
        route.last_report = Some(told);
        let delay = f64::from(report.delay.wrapping_sub(origin).cast_signed());
        route.progress(now, (number, delay), &self.timing);
    }

    /// Time of the next check.
    pub(super) const fn timer(&self) -> Option<Instant> {
        self.tick
    }

    /// Checks the routes (see [`liveness`](super::liveness)). `size` is the size of a probe.
    pub(super) fn on_timer(&mut self, now: Instant, size: u32, due: &mut Due) {
        if self.tick.is_none_or(|tick| tick > now) {
            return;
        }
        let timing = self.timing;
        let is_active = now < self.active;
        let mut waits = false;
        let is_any_alive = self.all.iter().any(|route| route.rank() != Rank::Silent);
        for place in 0..self.all.len() {
            let answer = self.answer(place);
            let route = &mut self.all[place];
            let late = route
                .oldest_unreported
                .map(|left| route.heard.max(left + answer));
            if route.rank() != Rank::Silent
                && late.is_some_and(|late| now.saturating_since(late) >= timing.silence)
            {
                let (first, packets) = route.unreported();
                due.silent.push(Fallen {
                    route: number(place),
                    first,
                    packets,
                });
                route.state = State::Silent {
                    since: now,
                    from: route.next,
                };
            }
            route.state = route.state.held(now, route.heard, &timing);
            route.is_late = late.is_some_and(|late| now >= late);
            let pause = match route.rank() {
                Rank::Alive if route.is_late => timing.urgent(),
                Rank::Returning => timing.urgent(),
                Rank::Silent if !is_any_alive => timing.urgent(),
                Rank::Alive | Rank::Silent => timing.probe,
            };
            if is_active && route.is_idle(now, pause) {
                route.send(now, size, true);
                due.probes.push(number(place));
            }
            waits |= route.rank() != Rank::Silent && route.oldest_unreported.is_some();
        }
        self.tick = (is_active || waits).then(|| now + timing.step());
    }

    /// Maximum time from departure to report on this route. If it has not reported yet, that of the
    /// slowest other route.
    fn answer(&self, route: usize) -> Duration {
        let known = |route: &Route| route.answer(&self.timing);
        known(&self.all[route])
            .or_else(|| self.all.iter().filter_map(known).max())
            .unwrap_or(UNKNOWN_ROUND_TRIP)
    }

    /// Deadline for the other end's report of an arrival.
    pub(super) fn reports_within(&self) -> Duration {
        self.timing.step()
    }

    /// Whether the backlog of all routes together exceeds the data they carry in a round trip of
    /// each. A halved congestion window then still keeps them busy.
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

    /// Smallest rest over all routes; 0 before the first report.
    pub(super) fn least(&self) -> f64 {
        let rests = self.all.iter().filter_map(|route| route.rest);
        let least = rests.fold(f64::INFINITY, f64::min);
        if least.is_finite() { least } else { 0.0 }
    }
}

impl Route {
    /// The rest above the smallest, in microseconds. An unknown rest counts as 0, so that the route
    /// is tried.
    pub(super) fn rest(&self, least: f64) -> f64 {
        self.rest.map_or(0.0, |rest| rest - least)
    }
}

/// Converts the index of a route.
pub(super) fn number(route: usize) -> u16 {
    u16::try_from(route).expect("routes are counted in 16 bits")
}
