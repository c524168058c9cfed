//! Timers: retransmission (RFC 6298 §5), persist (RFC 9293 §3.8.6.1), TIME-WAIT.
//!
//! The three exclude each other, so they share one deadline; the delayed acknowledgment has its
//! own ([`AckPolicy`](crate::ack::AckPolicy)).

use anabranch_core::{
    body::Body,
    units::{Bytes, Instant},
};

use super::{Retransmit, Sender};
use crate::{ack::next_tick, recovery::window_log::WindowChange};
use anabranch_congestion::{CongestionControl, Rto};

/// What the deadline is for.
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

impl<B: Body> Sender<B> {
    /// RFC 6298 (5.1), (5.3): the timer runs for one timeout from now.
    #[inline]
    pub(crate) fn restart_retransmission_timer(&mut self, now: Instant) {
        self.timer = Timer::Retransmit;
        self.timer_at = now.saturating_add(self.rtt.rto());
        if self.agreed.racked() | self.agreed.attended() {
            self.timer_at = self.timeout_from(now);
            self.note_retransmission_timer();
        }
    }

    /// When a timeout from now ends: with a coarse clock, with a tick.
    fn timeout_from(&self, now: Instant) -> Instant {
        if !self.settings.timers.count_ticks() {
            return now.saturating_add(self.rtt.rto());
        }
        let tick = self.settings.clock_tick;
        let ticks = self.rtt.rto().as_picos() / tick.as_picos();
        next_tick(now, tick, ticks.max(1))
    }

    /// The timeout counts from now on, while the reordering timer, which comes before it, goes on: what that waits for has
    /// nothing to do with what has just been retransmitted (RFC 8985 §6.3).
    pub(super) fn put_off_timeout(&mut self, now: Instant) {
        let at = self.timeout_from(now);
        if let Some(watch) = &mut self.cold.watch {
            watch.rto_at = at;
        }
    }

    #[inline]
    pub(crate) fn stop_timer(&mut self) {
        self.timer = Timer::Off;
        self.timer_at = Instant::NEVER;
    }

    /// The window is closed and nothing is outstanding that could open it.
    pub(crate) fn start_persist_timer(&mut self, now: Instant) {
        if self.timer == Timer::Off {
            self.timer = Timer::Persist;
            let interval = self
                .peer
                .probe_interval(self.rtt.rto(), self.settings.max_rto);
            self.timer_at = now.saturating_add(interval);
        }
    }

    pub(crate) fn start_time_wait(&mut self, now: Instant) {
        self.timer = Timer::TimeWait;
        self.timer_at = now.saturating_add(self.settings.time_wait);
    }

    /// The retransmission timer of an open connection has expired.
    pub(crate) fn on_retransmission_timeout(&mut self, now: Instant) {
        if self.retries.on_timeout(now, &self.settings) {
            return;
        }
        // The expiry that gives up retransmits nothing (Linux: `tcpi_total_rto` leaves it out).
        self.stats.timeouts += 1;
        // RFC 6298 (5.5)
        self.rtt.back_off(&self.settings.rto_bounds());
        // RFC 5681 §3.1: FlightSize before anything is retransmitted.
        let before = self.window();
        let prior = self.recovery.phase;
        let reduced = prior.reduces() && !self.settings.window_rules.timeout_reduces_again();
        self.control.on_rto(&Rto {
            now,
            in_flight: Bytes::new(self.flight_size_at_timeout()),
            // To a control the recovery's reduction is this one's first.
            consecutive: u32::from(self.retries.expiries()) + u32::from(reduced),
        });
        if self.validating {
            self.validate_timeout();
        }
        self.recovery.lose(self.nxt);
        self.log_window(now, WindowChange::Timeout, before);
        if !self.lose_by_time(now) {
            self.board.mark_all_lost();
        }
        self.suspect_black_hole(now);
        self.watch_timeout(now, prior);
        // RFC 6298 (5.4)
        self.retransmit = Retransmit::FirstLost;
        self.paced_until = Instant::NEVER;
        // RFC 6298 (5.6)
        self.restart_retransmission_timer(now);
    }

    /// Nothing more will be sent or retransmitted by itself.
    pub(crate) fn stop(&mut self) {
        self.stop_timer();
        self.paced_until = Instant::NEVER;
        self.retransmit = Retransmit::Nothing;
    }

    /// FlightSize (RFC 5681 §2), less what limited transmit sent (RFC 5681 §3.2 step 2).
    pub(super) const fn flight_size(&self) -> u64 {
        self.nxt
            .since(self.peer.una())
            .saturating_sub(self.recovery.limited as u64)
    }

    /// FlightSize as a timeout sees it. One segment whose retransmission was lost too holds SND.UNA
    /// back while a recovery goes on sending, so what SACK reports as arrived can be many windows;
    /// it is not in the network and says nothing about how much fits. Never less than cwnd leaves,
    /// if that much is outstanding: a recovery under way has reduced it already.
    fn flight_size_at_timeout(&self) -> u64 {
        let flight = self.flight_size();
        let missing = flight.saturating_sub(self.board.sacked());
        flight.min(missing.max(self.control.cwnd().get()))
    }
}
