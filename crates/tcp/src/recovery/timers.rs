//! Timers of the sender: retransmission (RFC 6298 §5), RACK's reordering timer and the probe timer
//! (RFC 8985 §6.3, §7.2), persist (RFC 9293 §3.8.6.1), and TIME-WAIT.
//!
//! They exclude each other, so they share one deadline. The retransmission timer always expires
//! after the two timers of RACK-TLP. The delayed acknowledgment has a separate deadline
//! ([`AckPolicy`](crate::ack::AckPolicy)).

use anabranch_congestion::Rto;
use anabranch_core::units::{Bytes, Duration, Instant};

use super::{
    Detection, Pending, Phase, Recovery, Scope,
    frto::Frto,
    tlp::{Probing, Tlp},
};
use crate::{ack::next_tick, rtt::RttEstimator, scoreboard::Record, settings::Settings};

/// Time that a clock with ticks adds to a timer of RACK or TLP ([`Timers`](crate::policy::Timers)).
const SLACK: Duration = Duration::from_millis(2);
/// Ticks added for the current, partly elapsed one.
const BEGUN: u64 = 1;
/// The minimum wait before retransmission to a peer suspected of reneging.
const RENEGING_DELAY: Duration = Duration::from_millis(10);

/// Purpose of the deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timer {
    Off,
    Retransmit,
    /// The time is over, and the timer waits for a tick
    /// ([`Timers::Linux`](crate::policy::Timers::Linux)).
    RetransmitAtTick,
    /// RACK's reordering timer (RFC 8985 §6.3); the retransmission timer expires later.
    Reorder,
    /// The probe timer (RFC 8985 §7.2); the retransmission timer expires later.
    Probe,
    Persist,
    TimeWait,
}

impl Timer {
    /// Whether the retransmission timer runs, alone or after another timer.
    #[inline]
    pub(crate) const fn waits_for_ack(self) -> bool {
        matches!(
            self,
            Self::Retransmit | Self::RetransmitAtTick | Self::Reorder | Self::Probe
        )
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

    /// Restarts the retransmission timer for one timeout from now (RFC 6298 (5.1), (5.3)).
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

    /// Extends the retransmission timer to at least twice the lifetime of segments, so that it
    /// expires after them.
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

    /// Stops the timers, because all data is acknowledged (RFC 6298 (5.2)).
    #[inline]
    pub(crate) const fn stop_loss_timers(&mut self) {
        if self.timer.waits_for_ack() {
            self.stop_timer();
        }
    }

    /// Starts the persist timer: the window is closed and no outstanding data could open it. The
    /// next probe is sent in `interval`.
    pub(crate) fn start_persist_timer(&mut self, now: Instant, interval: Duration) {
        self.timer = Timer::Persist;
        self.timer_at = now.saturating_add(interval);
    }

    pub(crate) fn start_time_wait(&mut self, now: Instant, lasts: Duration) {
        self.timer = Timer::TimeWait;
        self.timer_at = now.saturating_add(lasts);
    }

    /// Restarts the timers: new data is acknowledged and more is outstanding (RFC 6298 (5.3)).
    #[expect(
        clippy::inline_always,
        reason = "measured: it is a step of the hot path"
    )]
    #[inline(always)]
    pub(crate) fn restart_timers(&mut self, now: Instant, rtt: &RttEstimator, settings: &Settings) {
        self.restart_timer(now, rtt, settings);
        if self.tlp {
            self.start_probe_timer(now, rtt, settings);
        }
    }

    /// Restarts the retransmission timer. While one of RACK runs before it, it counts from the
    /// oldest segment's last copy, and stays.
    pub(crate) fn restart_timeout(
        &mut self,
        now: Instant,
        rtt: &RttEstimator,
        settings: &Settings,
    ) {
        if self.timer.waits_for_ack() && self.timer != Timer::Reorder {
            self.restart_timers(now, rtt, settings);
        }
    }

    /// Starts the timers for a new segment. A probe waits for its acknowledgment, too (RFC 8985
    /// §7.2).
    #[inline]
    pub(super) fn on_new_segment(&mut self, now: Instant, rtt: &RttEstimator, settings: &Settings) {
        if !self.tlp {
            if !self.timer.waits_for_ack() {
                // RFC 6298 (5.1)
                self.restart_timer(now, rtt, settings);
            }
            return;
        }
        match self.timer {
            Timer::Off | Timer::Persist | Timer::TimeWait => {
                self.restart_timers(now, rtt, settings);
            }
            Timer::Retransmit | Timer::RetransmitAtTick => {
                self.start_probe_timer(now, rtt, settings);
            }
            Timer::Probe => {
                // Usually the acknowledgment that permitted this segment has set the timer at the
                // same instant. From the second segment on the receiver does not delay its
                // acknowledgment.
                if self.board.len() == 2
                    || self.timer_at < now.saturating_add(rtt.srtt().saturating_mul(2))
                {
                    self.start_probe_timer(now, rtt, settings);
                }
            }
            Timer::Reorder => {}
        }
    }

    /// Starts the probe timer, which expires before the retransmission timer, if a probe is needed
    /// (RFC 8985 §7.2).
    #[inline(never)]
    fn start_probe_timer(&mut self, now: Instant, rtt: &RttEstimator, settings: &Settings) {
        let wanted = self.state.phase.repairs_nothing()
            && self.board.is_plain()
            && !self.board.is_empty()
            && self.probing != Probing::UnderWay;
        if wanted {
            let pto = Tlp::pto(rtt.srtt(), self.board.len() == 1);
            self.timer = Timer::Probe;
            self.timer_at = if settings.timers.end_with_ticks() {
                self.probe_at_tick(now, pto, rtt, settings)
            } else {
                now.saturating_add(pto).min(self.rto_at)
            };
        }
    }

    /// End of a probe timer with ticks. A timeout after the oldest segment was sent bounds it, not one
    /// that begins now (measured of Linux 6.12 by the probes after an outage).
    fn probe_at_tick(
        &self,
        now: Instant,
        pto: Duration,
        rtt: &RttEstimator,
        settings: &Settings,
    ) -> Instant {
        let age = self.board.front().map_or(Duration::ZERO, |oldest| {
            now.saturating_since(oldest.sent_at)
        });
        let left = Duration::from_picos(rtt.rto().as_picos().saturating_sub(age.as_picos()));
        ended_at_tick(now, (pto + SLACK).min(left), settings)
    }

    /// Starts the reordering timer, which expires before the retransmission timer (RFC 8985 §6.3).
    /// Stops it if `at` is `None` or not before the retransmission timeout.
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

    /// Returns to the retransmission timer after an earlier timer has expired or is no longer
    /// needed.
    const fn resume_retransmission_timer(&mut self) {
        self.timer = Timer::Retransmit;
        self.timer_at = self.rto_at;
    }

    /// Handles the timers after a retransmission; `first`: the timeout restarts.
    pub(super) fn on_retransmission_timed(&mut self, scope: &Scope<'_>, first: bool) {
        let Scope { now, settings, .. } = *scope;
        if first && self.timer == Timer::Reorder {
            // The timeout restarts now. The reordering timer continues, because it waits for other
            // segments (RFC 8985 §6.3).
            self.rto_at = timeout_from(now, scope.rtt, settings);
        } else if first || !self.timer.waits_for_ack() {
            self.restart_timer(now, scope.rtt, settings);
        }
    }

    /// Detects reneging (RFC 2018 §8): the peer awaits data that it has SACKed. The timer
    /// retransmits it, unless the next acknowledgment corrects the misunderstanding.
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

    /// Handles an expiry of a timer of loss recovery.
    pub(crate) fn on_timer(&mut self, scope: &mut Scope<'_>) {
        match self.timer {
            Timer::Retransmit if scope.settings.timers.end_with_ticks() => {
                let rto = scope.rtt.rto();
                let set = self.timer_at.as_picos().saturating_sub(rto.as_picos());
                let set = Instant::START.saturating_add(Duration::from_picos(set));
                self.timer = Timer::RetransmitAtTick;
                self.timer_at = ended_at_tick(set, rto, scope.settings);
            }
            Timer::Retransmit | Timer::RetransmitAtTick => self.on_timeout(scope),
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
            // Nothing was delivered, so only the first retransmission is permitted.
            let limit = self.board.in_flight() + u64::from(scope.smss);
            if let Some(pace) = self.pace_mut() {
                pace.limit(limit);
            }
        }
    }

    /// Handles an expiry of the probe timer (RFC 8985 §7.3).
    fn on_probe_timeout(&mut self, scope: &mut Scope<'_>) {
        if self.probing == Probing::Free {
            self.resume_retransmission_timer();
            self.pending = Pending::Probe;
        } else {
            self.restart_timer(scope.now, scope.rtt, scope.settings);
        }
    }

    /// Handles an expiry of the retransmission timer of an open connection.
    pub(super) fn on_timeout(&mut self, scope: &mut Scope<'_>) {
        if self.retries.on_timeout(scope.now, scope.settings) {
            return;
        }
        // The last expiry, which aborts the connection, retransmits nothing (Linux:
        // `tcpi_total_rto` does not count it).
        scope.stats.timeouts += 1;
        // RFC 6298 (5.5)
        scope.rtt.back_off(&scope.settings.rto_bounds());
        let prior = if self.is_counted_complete(scope.una) {
            Phase::Open
        } else {
            self.state.phase
        };
        let counted = self.counted();
        let reduced = prior.reduces() && !scope.settings.window_rules.timeout_reduces_again();
        // RFC 5681 §3.1: FlightSize before any retransmission.
        let in_flight = self.flight_size_at_timeout(scope);
        scope.window.on_timeout(&Rto {
            now: scope.now,
            in_flight: Bytes::new(in_flight),
            // The control counts the recovery's reduction as the first of this series.
            consecutive: u32::from(self.retries.expiries()) + u32::from(reduced),
        });
        self.state.lose(scope.nxt);
        if !self.lose_by_time(scope) {
            self.board.mark_all_lost();
        }
        self.suspect_black_hole(scope);
        if scope.settings.adapts_dupthresh()
            && self.board.sacked_segments() + counted >= scope.settings.dupthresh
            && let Some(extensions) = &mut self.extensions
        {
            extensions.reordering.on_timeout();
        }
        self.begin_timeout_recovery(scope, prior, reduced);
        // RFC 6298 (5.4)
        self.pending = Pending::FirstLost;
        scope.timed_out = true;
        // RFC 6298 (5.6)
        self.restart_timer(scope.now, scope.rtt, scope.settings);
    }

    /// FlightSize at a timeout. A segment whose retransmission was also lost holds SND.UNA while a
    /// recovery continues to send, so SACK can cover many windows of data. That data has left the
    /// network and does not indicate how much the network holds, so it is excluded. The result is
    /// at least cwnd, if that much is outstanding, because a recovery in progress has already
    /// reduced cwnd.
    fn flight_size_at_timeout(&self, scope: &Scope<'_>) -> u64 {
        let flight = self.flight_size(scope);
        let missing = flight.saturating_sub(self.board.sacked());
        flight.min(missing.max(scope.window.cwnd().get()))
    }

    /// Checks for a black hole after all outstanding data was marked lost: full segments may be
    /// dropped silently (RFC 4821 §7.7).
    fn suspect_black_hole(&mut self, scope: &mut Scope<'_>) {
        if !scope.mtu.suspects() {
            return;
        }
        self.on_lost_mtu_probe(scope);
        let payload = self.board.front().map_or(0, Record::payload);
        let expiries = self.retries.expiries();
        if let Some(low) = scope.mtu.on_timeout(expiries, payload, scope.smss) {
            scope.smss = low;
            self.split_segments(scope);
        }
    }

    /// Handles a timeout in the algorithms beyond RFC 6675. `prior` is the phase before it.
    /// `reduced`: the reduction of a recovery continues.
    fn begin_timeout_recovery(&mut self, scope: &mut Scope<'_>, prior: Phase, reduced: bool) {
        let expiries = self.retries.expiries();
        let Some(extensions) = &mut self.extensions else {
            return;
        };
        extensions.tlp.cancel();
        self.probing = extensions.tlp.probing();
        extensions.pace = None;
        if expiries == 1 {
            self.remedy_on_timeout(scope);
        }
        let Some(extensions) = &mut self.extensions else {
            return;
        };
        // The reduction of a recovery can still be undone, together with its first retransmissions.
        // The acknowledgment of one of these does not prove the recovery spurious.
        if expiries == 1 && !reduced {
            extensions.undo.begin(scope.una, scope.nxt, true);
        }
        // RFC 5682 §2.1 step 1: F-RTO does not begin within a recovery, which has retransmitted too
        // many segments for a decision.
        let begins = prior.repairs_nothing() || expiries > 1;
        extensions.frto = if scope.settings.frto && begins {
            Frto::First
        } else {
            Frto::Off
        };
    }

    /// Handles a measured round-trip time: the next probe may be sent, unless one is in flight.
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

    /// Handles the opening of a connection whose round-trip time is not known.
    #[cold]
    pub(crate) fn on_unmeasured_start(&mut self) {
        if let Some(extensions) = self.extensions.as_mut().filter(|_| self.tlp) {
            extensions.tlp.on_unmeasured_start();
            self.probing = extensions.tlp.probing();
        }
    }
}

/// End of a timer of RACK that lasts for `lasts`.
pub(super) fn with_tick(now: Instant, lasts: Duration, settings: &Settings) -> Instant {
    if !settings.timers.end_with_ticks() {
        return now.saturating_add(lasts);
    }
    ended_at_tick(now, lasts + SLACK, settings)
}

/// Ticks of a timer from which on it ends at a multiple of eight ticks, and again at eight times as
/// many at a multiple of 64 (the timer wheel since Linux 4.8).
const FINE_TICKS: u64 = 63;

/// End of a timer that is set at `set` and lasts for `lasts`, by a clock with ticks.
fn ended_at_tick(set: Instant, lasts: Duration, settings: &Settings) -> Instant {
    let tick = settings.clock_tick.as_picos().max(1);
    let ticks = lasts.as_picos().div_ceil(tick);
    let over = set.as_picos() / tick + ticks;
    let level = (0..7)
        .find(|level| ticks < FINE_TICKS << (3 * level))
        .unwrap_or(7);
    let end = ((over >> (3 * level)) + BEGUN) << (3 * level);
    Instant::START.saturating_add(settings.clock_tick.saturating_mul(end))
}

/// End of a timeout that begins now; on a tick if the clock is coarse.
fn timeout_from(now: Instant, rtt: &RttEstimator, settings: &Settings) -> Instant {
    if !settings.timers.count_ticks() {
        return now.saturating_add(rtt.rto());
    }
    let tick = settings.clock_tick;
    let ticks = rtt.rto().as_picos() / tick.as_picos();
    next_tick(now, tick, ticks.max(1))
}
