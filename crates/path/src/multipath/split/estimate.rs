//! What a splitter knows of its routes: their line rates, what it has sent itself, and what the other end reports.
//!
//! The time that a packet will take is what waits before it (the splitter's own packets, sent at the line rate: a route carries
//! nothing else), its own transmission, and the rest: propagation, jitter, and whatever the line rate does not explain. The rest
//! is a measurement, the reported delay of a packet less what was predicted for it when it left. The two ends' clocks differ by
//! an unknown amount, the same for all routes, so only differences between rests mean something.

use anabranch_core::{
    tunnel::{Content, Report},
    units::{Duration, Instant, Rate, SerializationDelay},
};

use super::{
    Init, Missing,
    earliest_arrival::{RESENT, RESENT_AT_ONCE},
    liveness::{Due, Fallen, Rank, Reported, Smoothed, State, Timing},
};

/// Packets of a route that are remembered at first. As many as have not been reported are, up to the most that their numbers
/// tell apart: otherwise a route that holds more would never be heard of.
const REMEMBERED: usize = 2_048;
const MOST_REMEMBERED: usize = 1 << 16;
/// Weight of a new rest where reports follow each other closely, and the time after which one counts alone.
const WEIGHT: f64 = 0.25;
const FORGOTTEN: Duration = Duration::from_millis(200);
/// How long a report may take as long as none has come.
const UNKNOWN_ROUND_TRIP: Duration = Duration::from_millis(1_000);
/// The backlog below which a route that is alive has room for copies of what another may not deliver.
const IDLE_BACKLOG: Duration = Duration::from_millis(10);

/// One route.
#[derive(Debug)]
pub(super) struct Route {
    sending: Option<SerializationDelay>,
    /// Bytes per second, as a weight.
    weight: f64,
    /// When all that was sent will have left, at the line rate.
    free: Instant,
    /// The number of the next packet on the route; the low 16 bits are in its header.
    next: u64,
    /// By number, modulo the length: a power of two.
    sent: Vec<Departure>,
    /// When a packet was sent last that wants a report, and its number.
    last: Option<(Instant, u64)>,
    /// When the oldest packet that wants a report and has none was to have left.
    unheard: Option<Instant>,
    /// The rest, in microseconds above that of the first report; `None` while nothing has been reported.
    rest: Option<f64>,
    /// When something newer was last reported, or was to have been.
    heard: Instant,
    /// The number that was reported last, and number and delay as they came.
    reported: Option<u64>,
    last_report: Option<(u16, u32)>,
    /// The least time from a packet's departure until it was reported.
    round_trip: Option<Duration>,
    /// The same time less what was predicted for the packet.
    answers: Option<Smoothed>,
    state: State,
    /// The report of a packet is overdue, as of the last look.
    is_late: bool,
    /// Packets that may be retransmitted.
    allowance: f64,
}

/// What is remembered of a packet.
#[derive(Debug, Clone, Copy)]
struct Departure {
    at: Instant,
    /// How long it was to wait and be sent, in microseconds.
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
    /// The delay of the first report: rests are counted from it.
    origin: Option<u32>,
    /// When to look after the routes, and until when while no packet comes.
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
            unheard: None,
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
    /// How long a packet sent now would wait for those before it.
    pub(super) fn backlog(&self, now: Instant) -> Duration {
        self.free.saturating_since(now)
    }
    /// Whether nothing that wants a report has been sent for so long.
    fn is_idle(&self, now: Instant, span: Duration) -> bool {
        self.last
            .is_none_or(|(last, _)| now.saturating_since(last) >= span)
    }
    /// How long until a packet of this size sent now has left.
    pub(super) fn leaving(&self, now: Instant, size: u32) -> Duration {
        let sending = self
            .sending
            .map_or(Duration::ZERO, |sending| sending.of(size));
        self.backlog(now) + sending
    }
    /// A packet of this size is sent.
    fn send(&mut self, now: Instant, size: u32, wants_report: bool) {
        let leaving = self.leaving(now, size);
        self.free = now + leaving;
        let predicted = u32::try_from(leaving.as_nanos() / 1_000).unwrap_or(u32::MAX);
        let departure = Departure { at: now, predicted };
        let place = self.place(self.next);
        self.sent[place] = departure;
        if wants_report {
            self.last = Some((now, self.next));
            self.unheard.get_or_insert(departure.left());
        }
        self.next += 1;
        if self.next - self.reported.unwrap_or(0) >= self.sent.len() as u64 {
            self.grow();
        }
        self.allowance = (self.allowance + RESENT).min(RESENT_AT_ONCE);
    }
    /// Remembers twice as many packets.
    #[cold]
    fn grow(&mut self) {
        let len = self.sent.len();
        if len < MOST_REMEMBERED {
            // Of the packets that are remembered, those whose place changes are where the next half begins.
            self.sent.extend_from_within(..);
        }
    }
    #[expect(clippy::cast_possible_truncation, reason = "modulo the length")]
    fn place(&self, number: u64) -> usize {
        number as usize & (self.sent.len() - 1)
    }
    /// The packet with these low 16 bits that was sent last; `None` if it is not remembered.
    #[expect(clippy::cast_possible_truncation, reason = "modulo 2^16")]
    fn full(&self, number: u16) -> Option<u64> {
        let newest = self.next.checked_sub(1)?;
        let age = u64::from((newest as u16).wrapping_sub(number));
        newest
            .checked_sub(age)
            .filter(|_| age < self.sent.len() as u64)
    }
    /// See [`Rank`].
    pub(super) const fn rank(&self) -> Rank {
        self.state.rank()
    }
    /// Whether one more of its packets may be retransmitted.
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
    /// How long after it has left a packet is to be reported.
    fn answer(&self, timing: &Timing) -> Option<Duration> {
        self.answers.map(|answers| answers.most(timing))
    }
    /// The packets that were not reported.
    #[expect(clippy::cast_possible_truncation, reason = "modulo 2^16")]
    fn unreported(&self) -> (u16, u16) {
        let first = self.reported.map_or(0, |reported| reported + 1);
        let packets = (self.next - first).min(u64::from(u16::MAX));
        ((self.next - packets) as u16, packets as u16)
    }
    /// A packet is reported that is newer than what was reported before; `delay` is its delay above that of the first report.
    fn progress(&mut self, now: Instant, (number, delay): (u64, f64), timing: &Timing) {
        let departure = self.sent[self.place(number)];
        let rest = delay - f64::from(departure.predicted);
        let before = self.rest.unwrap_or(rest);
        let since = now.saturating_since(self.heard).as_secs_f64() / FORGOTTEN.as_secs_f64();
        self.rest = Some(before + since.clamp(WEIGHT, 1.0) * (rest - before));
        let grown = Duration::from_secs_f64((rest - before).max(0.0) / 1e6);
        // Of a packet that was not delayed itself the report was, and it says as much as it would have said in time.
        let in_time = self
            .answer(timing)
            .map(|answer| departure.left() + answer + grown);
        let late = in_time.filter(|at| now.saturating_since(*at) > timing.step());
        self.heard = late.map_or(now, |at| at.max(self.heard));
        self.reported = Some(number);
        let waits = self.last.is_some_and(|(_, last)| last > number);
        self.unheard = waits.then(|| self.sent[self.place(number + 1)].left());
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
        self.look_after(now);
    }

    /// A packet of the tunnel's own takes the chosen route, and as long as none is alive, all. A report of traffic is a probe
    /// from time to time, so that a sender of nothing but reports learns whether they arrive.
    pub(super) fn own(
        &mut self,
        now: Instant,
        size: u32,
        (chosen, for_traffic): (usize, bool),
        routes: &mut Vec<u16>,
    ) -> Content {
        let is_probe = for_traffic && self.all[chosen].is_idle(now, self.timing.urgent());
        let is_alone = self.all[chosen].rank() != Rank::Silent;
        for route in 0..self.all.len() {
            if is_alone && route != chosen {
                continue;
            }
            self.all[route].send(now, size, is_probe);
            routes.push(number(route));
        }
        if is_probe {
            self.look_after(now);
        }
        if is_probe {
            Content::Probe
        } else {
            Content::Report
        }
    }

    /// Looks after the routes for a while.
    fn look_after(&mut self, now: Instant) {
        self.active = now + self.timing.attention();
        if self.tick.is_none() {
            self.tick = Some(now + self.timing.step());
        }
    }

    /// If the chosen route may be dead, sends a copy over each other route that has room: over those that are alive and as good as
    /// idle, and where none is, over all.
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
            // It may be late itself only because its reports came by the chosen route's other direction.
            let may_deliver = over_all || known.rank() == Rank::Alive;
            let room = match known.state {
                // One packet at a time is enough to learn of it.
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

    /// Whether the chosen route has room for retransmissions: they must not fill the queue that the flows need to recover.
    pub(super) fn has_room(&self, now: Instant, chosen: usize) -> bool {
        self.all[chosen].backlog(now) < self.timing.room()
    }

    /// A packet that a route has lost takes another, as long as the lossy route's share allows.
    pub(super) fn resend(&mut self, now: Instant, missing: Missing, chosen: usize) -> Option<u16> {
        let lost = self.all.get_mut(usize::from(missing.route))?;
        if !lost.afford() {
            return None;
        }
        self.send(now, chosen, missing.size);
        Some(number(chosen))
    }

    /// The other end reports.
    pub(super) fn hear(&mut self, now: Instant, report: &Report) {
        let origin = *self.origin.get_or_insert(report.delay);
        let Some(route) = self.all.get_mut(usize::from(report.route)) else {
            return;
        };
        // A report that is repeated is no news, also when numbers have gone round meanwhile.
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

    /// When to look after the routes.
    pub(super) const fn timer(&self) -> Option<Instant> {
        self.tick
    }

    /// Looks after the routes: see [`liveness`](super::liveness). Probes have this size.
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
            let late = route.unheard.map(|left| route.heard.max(left + answer));
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
            waits |= route.rank() != Rank::Silent && route.unheard.is_some();
        }
        self.tick = (is_active || waits).then(|| now + timing.step());
    }

    /// The same; of a route that has not answered yet as of the slowest other.
    fn answer(&self, route: usize) -> Duration {
        let known = |route: &Route| route.answer(&self.timing);
        known(&self.all[route])
            .or_else(|| self.all.iter().filter_map(known).max())
            .unwrap_or(UNKNOWN_ROUND_TRIP)
    }

    /// Within what time the other end reports an arrival.
    pub(super) fn reports_within(&self) -> Duration {
        self.timing.step()
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

    /// The smallest rest that has been reported of any route; 0 while none has been.
    pub(super) fn least(&self) -> f64 {
        let rests = self.all.iter().filter_map(|route| route.rest);
        let least = rests.fold(f64::INFINITY, f64::min);
        if least.is_finite() { least } else { 0.0 }
    }
}

impl Route {
    /// The rest above the smallest, in microseconds. Nothing known counts as nothing, so that it becomes known.
    pub(super) fn rest(&self, least: f64) -> f64 {
        self.rest.map_or(0.0, |rest| rest - least)
    }
}

/// The number of a route.
pub(super) fn number(route: usize) -> u16 {
    u16::try_from(route).expect("routes are counted in 16 bits")
}
