//! Timers: retransmission (RFC 6298 §5), persist (RFC 9293 §3.8.6.1), TIME-WAIT.
//!
//! The three exclude each other, so they share one deadline; the delayed acknowledgment has its
//! own ([`AckPolicy`](crate::ack::AckPolicy)).

use anabranch_core::{
    body::Body,
    units::{Bytes, Instant},
};

use super::{Endpoint, Retransmit};
use crate::{
    ack::next_tick,
    persist,
    recovery::window_log::WindowChange,
    state::{Event, State},
};
use anabranch_congestion::{CongestionControl, Rto};

/// What the deadline is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timer {
    Off,
    Retransmit,
    /// RACK's reordering timer (RFC 8985 §6.3); the retransmission timer comes later.
    Reorder,
    /// The probe timer (RFC 8985 §7.2), likewise.
    Probe,
    Persist,
    TimeWait,
}

impl<B: Body> Endpoint<B> {
    /// The time asked for with [`Self::deadline`] has come. Early calls do nothing.
    pub fn on_deadline(&mut self, now: Instant) {
        self.wanted.wake = true;
        self.rcv.ack.expire(now);
        if now >= self.snd.paced_until {
            self.snd.paced_until = Instant::NEVER;
        }
        if self.snd.control.timer().is_some_and(|at| now >= at) {
            self.snd.control.on_timer(now);
        }
        if now >= self.timer_at {
            match self.timer {
                Timer::Off => {}
                Timer::Retransmit => self.on_retransmission_timeout(now),
                Timer::Reorder => self.on_reordering_timeout(now),
                Timer::Probe => self.on_probe_timeout(now),
                Timer::Persist => {
                    if self.gives_up_probing() {
                        self.give_up(now);
                    } else {
                        self.wanted.probe = true;
                        self.wanted.urgent = true;
                    }
                }
                Timer::TimeWait => {
                    self.transit(Event::TimeWaitOver);
                    self.stop();
                }
            }
            if self.snd.rated {
                self.report_losses(now);
            }
        }
    }

    /// RFC 6298 (5.1), (5.3): the timer runs for one timeout from now.
    #[inline]
    pub(super) fn restart_retransmission_timer(&mut self, now: Instant) {
        self.timer = Timer::Retransmit;
        self.timer_at = now.saturating_add(self.snd.rtt.rto());
        if self.agreed.racked() | self.agreed.attended() {
            self.timer_at = self.timeout_from(now);
            self.note_retransmission_timer();
        }
    }

    /// When a timeout from now ends: with a coarse clock, with a tick.
    fn timeout_from(&self, now: Instant) -> Instant {
        if !self.settings.timers.count_ticks() {
            return now.saturating_add(self.snd.rtt.rto());
        }
        let tick = self.settings.clock_tick;
        let ticks = self.snd.rtt.rto().as_picos() / tick.as_picos();
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
    pub(super) fn stop_timer(&mut self) {
        self.timer = Timer::Off;
        self.timer_at = Instant::NEVER;
    }

    /// The window is closed and nothing is outstanding that could open it.
    pub(super) fn start_persist_timer(&mut self, now: Instant) {
        if self.timer == Timer::Off {
            self.timer = Timer::Persist;
            let interval = persist::interval(
                self.snd.rtt.rto(),
                self.cold.probes.into(),
                self.settings.max_rto,
            );
            self.timer_at = now.saturating_add(interval);
        }
    }

    pub(super) fn start_time_wait(&mut self, now: Instant) {
        self.timer = Timer::TimeWait;
        self.timer_at = now.saturating_add(self.settings.time_wait);
    }

    pub(super) fn on_retransmission_timeout(&mut self, now: Instant) {
        let bounds = self.settings.rto_bounds();
        self.expiries = self.expiries.saturating_add(1);
        let opening = matches!(self.state, State::SynSent | State::SynReceived);
        if self.gives_up(now) {
            self.give_up(now);
            return;
        }
        // The expiry that gives up retransmits nothing (Linux: `tcpi_total_rto` leaves it out).
        self.stats.timeouts += 1;
        // RFC 6298 (5.5), but for the linear timeouts of a SYN.
        if self.state != State::SynSent
            || u32::from(self.expiries) > self.settings.timers.syn_linear_timeouts()
        {
            self.snd.rtt.back_off(&bounds);
        }
        if opening {
            self.cold.trouble().opening.timed_out = true;
            self.want_syn();
        } else {
            // RFC 5681 §3.1: FlightSize before anything is retransmitted.
            let before = self.window();
            let prior = self.snd.recovery.phase;
            let reduced = prior.reduces() && !self.settings.window_rules.timeout_reduces_again();
            self.snd.control.on_rto(&Rto {
                now,
                in_flight: Bytes::new(self.flight_size_at_timeout()),
                // To a control the recovery's reduction is this one's first.
                consecutive: u32::from(self.expiries) + u32::from(reduced),
            });
            if self.snd.validating {
                self.validate_timeout();
            }
            self.snd.recovery.lose(self.snd.nxt);
            self.log_window(now, WindowChange::Timeout, before);
            if !self.lose_by_time(now) {
                self.snd.board.mark_all_lost();
            }
            self.watch_timeout(now, prior);
            // RFC 6298 (5.4)
            self.wanted.retransmit = Retransmit::FirstLost;
            self.snd.paced_until = Instant::NEVER;
        }
        // RFC 6298 (5.6)
        self.restart_retransmission_timer(now);
    }

    /// FlightSize (RFC 5681 §2), less what limited transmit sent (RFC 5681 §3.2 step 2).
    pub(super) const fn flight_size(&self) -> u64 {
        self.snd
            .nxt
            .since(self.snd.una)
            .saturating_sub(self.snd.recovery.limited as u64)
    }

    /// FlightSize as a timeout sees it. One segment whose retransmission was lost too holds SND.UNA
    /// back while a recovery goes on sending, so what SACK reports as arrived can be many windows;
    /// it is not in the network and says nothing about how much fits. Never less than cwnd leaves,
    /// if that much is outstanding: a recovery under way has reduced it already.
    fn flight_size_at_timeout(&self) -> u64 {
        let flight = self.flight_size();
        let missing = flight.saturating_sub(self.snd.board.sacked());
        flight.min(missing.max(self.snd.control.cwnd().get()))
    }

    /// Nothing will happen any more by itself.
    pub(super) fn stop(&mut self) {
        self.stop_timer();
        self.rcv.ack.sent();
        self.snd.paced_until = Instant::NEVER;
        self.wanted.retransmit = Retransmit::Nothing;
        self.wanted.syn = false;
        self.wanted.probe = false;
    }
}
