//! The timers of the sender: retransmission (RFC 6298 §5), RACK's reordering timer and the probe timer (RFC 8985 §6.3, §7.2),
//! persist (RFC 9293 §3.8.6.1), and TIME-WAIT.
//!
//! They exclude each other, so they share one deadline; the retransmission timer always expires after the two of RACK-TLP. The
//! delayed acknowledgment has a separate deadline ([`AckPolicy`](crate::ack::AckPolicy)).

use anabranch_congestion::Rto;
use anabranch_core::units::{Bytes, Duration, Instant};

use super::{
    Detection, Pending, Phase, Recovery, Scope,
    frto::Frto,
    tlp::{Probing, Tlp},
};
use crate::{ack::next_tick, rtt::RttEstimator, scoreboard::Record, settings::Settings};

/// Time by which a clock that ticks extends a timer of RACK or TLP ([`Timers`](crate::policy::Timers)),
const SLACK: Duration = Duration::from_millis(2);
/// and the ticks that are added for the one under way.
const BEGUN: u64 = 1;
/// The least time that a peer suspected of reneging is given.
const RENEGING_DELAY: Duration = Duration::from_millis(10);

/// Purpose of the deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timer {
    Off,
    Retransmit,
    /// RACK's reordering timer (RFC 8985 §6.3); the retransmission timer comes later.
    Reorder,
    /// The probe timer (RFC 8985 §7.2), likewise.
    Probe,
    Persist,
    TimeWait,
}

impl Timer {
    /// Whether the retransmission timer runs, possibly after another.
    #[inline]
    const fn waits_for_ack(self) -> bool {
        matches!(self, Self::Retransmit | Self::Reorder | Self::Probe)
    }
}

impl Recovery {
    #[inline]
    pub(crate) const fn timer(&self) -> Timer {
        self.timer
    }

    /// When the timer expires; [`Instant::NEVER`] if it is off.
    #[inline]
    pub(crate) const fn deadline(&self) -> Instant {
        self.timer_at
    }

    /// RFC 6298 (5.1), (5.3): the timer runs for one timeout from now.
    #[inline]
    pub(crate) fn restart_timer(&mut self, now: Instant, rtt: &RttEstimator, settings: &Settings) {
        self.timer = Timer::Retransmit;
        self.timer_at = now.saturating_add(rtt.rto());
        if self.needs_all {
            self.adjust_timeout(now, rtt, settings);
        }
        self.rto_at = self.timer_at;
    }

    #[cold]
    #[inline(never)]
    fn adjust_timeout(&mut self, now: Instant, rtt: &RttEstimator, settings: &Settings) {
        self.timer_at = timeout_from(now, rtt, settings);
        self.extend_by_lifetime(rtt);
    }

    /// The retransmission timer expires after the segments' own time, twice their lifetime at least.
    fn extend_by_lifetime(&mut self, rtt: &RttEstimator) {
        if self.detection == Detection::Age
            && let Some(lifetime) = self.lifetime()
        {
            let (least, rto) = (lifetime.saturating_mul(2), rtt.rto());
            if least > rto {
                self.timer_at = self.timer_at.saturating_add(least - rto);
            }
        }
    }

    #[inline]
    pub(crate) const fn stop_timer(&mut self) {
        self.timer = Timer::Off;
        self.timer_at = Instant::NEVER;
    }

    /// RFC 6298 (5.2): everything is acknowledged.
    #[inline]
    pub(crate) const fn stop_loss_timers(&mut self) {
        if self.timer.waits_for_ack() {
            self.stop_timer();
        }
    }

    /// The window is closed and nothing is outstanding that could open it: the next probe is sent in `interval`.
    pub(crate) fn start_persist_timer(&mut self, now: Instant, interval: Duration) {
        self.timer = Timer::Persist;
        self.timer_at = now.saturating_add(interval);
    }

    pub(crate) fn start_time_wait(&mut self, now: Instant, lasts: Duration) {
        self.timer = Timer::TimeWait;
        self.timer_at = now.saturating_add(lasts);
    }

    /// New data is acknowledged and more is outstanding (RFC 6298 (5.3)).
    #[inline]
    pub(crate) fn restart_timers(&mut self, now: Instant, rtt: &RttEstimator, settings: &Settings) {
        self.restart_timer(now, rtt, settings);
        if self.tlp {
            self.start_probe_timer(now, rtt, settings);
        }
    }

    /// A segment not sent before has left. A probe waits for its acknowledgment, too (RFC 8985 §7.2).
    #[inline]
    pub(super) fn on_new_segment(&mut self, now: Instant, rtt: &RttEstimator, settings: &Settings) {
        if !self.tlp {
            if !matches!(self.timer, Timer::Retransmit | Timer::Reorder) {
                // RFC 6298 (5.1)
                self.restart_timer(now, rtt, settings);
            }
            return;
        }
        match self.timer {
            Timer::Off | Timer::Persist | Timer::TimeWait => {
                self.restart_timers(now, rtt, settings);
            }
            Timer::Retransmit => self.start_probe_timer(now, rtt, settings),
            Timer::Probe => {
                // Most often the acknowledgment that let it leave has set the timer at this very
                // time. With the second segment the receiver no longer delays.
                if self.board.len() == 2
                    || self.timer_at < now.saturating_add(rtt.srtt().saturating_mul(2))
                {
                    self.start_probe_timer(now, rtt, settings);
                }
            }
            Timer::Reorder => {}
        }
    }

    /// The probe timer runs ahead of the retransmission timer, if a probe is called for (RFC 8985 §7.2).
    #[inline(never)]
    fn start_probe_timer(&mut self, now: Instant, rtt: &RttEstimator, settings: &Settings) {
        let wanted = self.state.phase.repairs_nothing()
            && self.board.is_plain()
            && !self.board.is_empty()
            && self.probing != Probing::UnderWay;
        if wanted {
            let pto = Tlp::pto(rtt.srtt(), self.board.len() == 1);
            self.timer = Timer::Probe;
            self.timer_at = with_tick(now, pto, settings).min(self.rto_at);
        }
    }

    /// The reordering timer runs ahead of the retransmission timer (RFC 8985 §6.3), or no longer.
    pub(super) fn start_reordering_timer(&mut self, at: Option<Instant>) {
        if !self.timer.waits_for_ack() {
            return;
        }
        let keeps_probing = self.timer == Timer::Probe
            && self.state.phase.repairs_nothing()
            && self.board.is_plain();
        match at {
            Some(at) if at < self.rto_at => {
                self.timer = Timer::Reorder;
                self.timer_at = at;
            }
            _ if keeps_probing => {}
            _ => self.resume_retransmission_timer(),
        }
    }

    /// The timer ahead of the retransmission timer has expired, or is not needed any more.
    const fn resume_retransmission_timer(&mut self) {
        self.timer = Timer::Retransmit;
        self.timer_at = self.rto_at;
    }

    /// The first segment, or any segment in a recovery by counted pipe, is retransmitted.
    pub(super) fn on_retransmission_timed(&mut self, scope: &Scope<'_>, first: bool) {
        let Scope { now, settings, .. } = *scope;
        if first && self.timer == Timer::Reorder {
            // The timeout counts from now on, while the reordering timer, which comes before it, goes on: the segments that it
            // waits for are others (RFC 8985 §6.3).
            self.rto_at = timeout_from(now, scope.rtt, settings);
        } else if first || !self.timer.waits_for_ack() {
            self.restart_timer(now, scope.rtt, settings);
        }
    }

    /// RFC 2018 §8: the peer waits for data that it has reported. Unless that is a misunderstanding that the next
    /// acknowledgment clears up, the timer retransmits it.
    pub(super) fn check_reneging(&mut self, scope: &mut Scope<'_>) {
        if self.board.front().is_some_and(Record::is_sacked) {
            scope.stats.reneged = scope.stats.reneged.wrapping_add(1);
            let delay = (scope.rtt.srtt() / 2).max(RENEGING_DELAY);
            let at = scope.now.saturating_add(delay);
            if at < self.timer_at {
                self.timer = Timer::Retransmit;
                self.timer_at = at;
                self.extend_by_lifetime(scope.rtt);
                self.rto_at = self.timer_at;
            }
        }
    }

    /// The timer has expired, and is one of loss recovery.
    pub(crate) fn on_timer(&mut self, scope: &mut Scope<'_>) {
        match self.timer {
            Timer::Retransmit => self.on_timeout(scope),
            Timer::Reorder => self.on_reordering_timeout(scope),
            Timer::Probe => self.on_probe_timeout(scope),
            Timer::Off | Timer::Persist | Timer::TimeWait => {}
        }
    }

    fn on_reordering_timeout(&mut self, scope: &mut Scope<'_>) {
        self.resume_retransmission_timer();
        if self.detection == Detection::Age {
            self.detect_by_age(scope, 0);
        } else if self.detect_by_time(scope, 0, false) > 0 {
            // Nothing was delivered, so no more than the retransmission that begins it.
            let limit = self.board.in_flight() + u64::from(scope.smss);
            if let Some(pace) = self.pace_mut() {
                pace.limit(limit);
            }
        }
    }

    /// The probe timer has expired (RFC 8985 §7.3).
    fn on_probe_timeout(&mut self, scope: &mut Scope<'_>) {
        if self.probing == Probing::Free {
            self.resume_retransmission_timer();
            self.pending = Pending::Probe;
        } else {
            self.restart_timer(scope.now, scope.rtt, scope.settings);
        }
    }

    /// The retransmission timer of an open connection has expired.
    pub(super) fn on_timeout(&mut self, scope: &mut Scope<'_>) {
        if self.retries.on_timeout(scope.now, scope.settings) {
            return;
        }
        // The expiry that gives up retransmits nothing (Linux: `tcpi_total_rto` leaves it out).
        scope.stats.timeouts += 1;
        // RFC 6298 (5.5)
        scope.rtt.back_off(&scope.settings.rto_bounds());
        let prior = self.state.phase;
        let reduced = prior.reduces() && !scope.settings.window_rules.timeout_reduces_again();
        // RFC 5681 §3.1: FlightSize before anything is retransmitted.
        let in_flight = self.flight_size_at_timeout(scope);
        scope.window.on_timeout(&Rto {
            now: scope.now,
            in_flight: Bytes::new(in_flight),
            // To a control the recovery's reduction is this one's first.
            consecutive: u32::from(self.retries.expiries()) + u32::from(reduced),
        });
        self.state.lose(scope.nxt);
        if !self.lose_by_time(scope) {
            self.board.mark_all_lost();
        }
        self.suspect_black_hole(scope);
        self.begin_timeout_recovery(scope, prior, reduced);
        // RFC 6298 (5.4)
        self.pending = Pending::FirstLost;
        scope.timed_out = true;
        // RFC 6298 (5.6)
        self.restart_timer(scope.now, scope.rtt, scope.settings);
    }

    /// FlightSize as a timeout sees it. One segment whose retransmission was lost too holds SND.UNA
    /// back while a recovery goes on sending, so SACK can report many windows as arrived; they are not in the
    /// network and say nothing about how much fits. Never less than cwnd leaves, if that much is outstanding: a
    /// recovery under way has reduced it already.
    fn flight_size_at_timeout(&self, scope: &Scope<'_>) -> u64 {
        let flight = self.flight_size(scope);
        let missing = flight.saturating_sub(self.board.sacked());
        flight.min(missing.max(scope.window.cwnd().get()))
    }

    /// Everything outstanding is marked lost: full segments may vanish in a black hole (RFC 4821 §7.7).
    fn suspect_black_hole(&mut self, scope: &mut Scope<'_>) {
        if !scope.mtu.suspects() {
            return;
        }
        self.is_probe_loss(scope);
        let payload = self.board.front().map_or(0, Record::payload);
        let expiries = self.retries.expiries();
        if let Some(low) = scope.mtu.on_timeout(expiries, payload, scope.smss) {
            scope.smss = low;
            self.split_segments(scope);
        }
    }

    /// The algorithms beyond RFC 6675 at a timeout; before, the phase was `prior`. `reduced`: its reduction goes on.
    fn begin_timeout_recovery(&mut self, scope: &mut Scope<'_>, prior: Phase, reduced: bool) {
        let expiries = self.retries.expiries();
        let Some(extensions) = &mut self.extensions else {
            return;
        };
        extensions.tlp.cancel();
        self.probing = extensions.tlp.probing();
        extensions.pace = None;
        if scope.settings.adapts_dupthresh()
            && self.board.sacked_segments() >= scope.settings.dupthresh
        {
            extensions.reordering.on_timeout();
        }
        if expiries == 1 {
            self.remedy_on_timeout(scope);
        }
        let Some(extensions) = &mut self.extensions else {
            return;
        };
        // The reduction of a recovery stays at stake, with the retransmissions that began it: the
        // answer to one of those does not prove the recovery spurious.
        if expiries == 1 && !reduced {
            extensions.undo.begin(scope.una, scope.nxt, true);
        }
        // RFC 5682 §2.1 step 1: not within a recovery, which has retransmitted too much for a decision.
        let begins = prior.repairs_nothing() || expiries > 1;
        extensions.frto = if scope.settings.frto && begins {
            Frto::First
        } else {
            Frto::Off
        };
    }

    /// A round-trip time has been measured: the next probe may leave, unless one is under way.
    #[inline]
    pub(crate) fn on_rtt_sample(&mut self) {
        if self.probing != Probing::Free {
            self.end_unmeasured();
        }
    }

    #[cold]
    fn end_unmeasured(&mut self) {
        if let Some(extensions) = &mut self.extensions {
            extensions.tlp.on_measured();
            self.probing = extensions.tlp.probing();
        }
    }

    /// The connection is open and its round-trip time is not known.
    #[cold]
    pub(crate) fn on_unmeasured_start(&mut self) {
        if let Some(extensions) = self.extensions.as_mut().filter(|_| self.tlp) {
            extensions.tlp.on_unmeasured_start();
            self.probing = extensions.tlp.probing();
        }
    }
}

/// End of a timer of RACK or TLP that is to last for `lasts`.
pub(super) fn with_tick(now: Instant, lasts: Duration, settings: &Settings) -> Instant {
    let tick = settings.timer_tick();
    if tick.is_zero() {
        return now.saturating_add(lasts);
    }
    let ticks = (lasts + SLACK).as_picos().div_ceil(tick.as_picos());
    next_tick(now, tick, ticks.saturating_add(BEGUN))
}

/// End of a timeout that begins now: with a coarse clock, a tick.
fn timeout_from(now: Instant, rtt: &RttEstimator, settings: &Settings) -> Instant {
    if !settings.timers.count_ticks() {
        return now.saturating_add(rtt.rto());
    }
    let tick = settings.clock_tick;
    let ticks = rtt.rto().as_picos() / tick.as_picos();
    next_tick(now, tick, ticks.max(1))
}
