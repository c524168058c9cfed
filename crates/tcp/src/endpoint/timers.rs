//! Expiry of timers.

use anabranch_core::{body::Body, units::Instant};

use super::Endpoint;
use crate::{
    recovery::{Recovery, Timer},
    state::{Event, State},
};

impl<B: Body> Endpoint<B> {
    /// Handles the timers that have expired, at [`Self::deadline`]. Early calls have no effect.
    pub fn on_deadline(&mut self, now: Instant) {
        self.snd.wake = true;
        self.rcv.ack.expire(now);
        if now >= self.snd.pacer.deadline() {
            self.snd.pacer.release();
        }
        self.snd.window.on_deadline(now);
        if now >= self.snd.recovery.deadline() {
            match self.snd.recovery.timer() {
                Timer::Off => {}
                Timer::Retransmit | Timer::RetransmitAtTick => {
                    self.on_retransmission_timeout(now);
                }
                Timer::Reorder | Timer::Probe if self.is_early() => {
                    self.on_retransmission_timeout(now);
                }
                Timer::Reorder | Timer::Probe => self.snd.with_recovery(now, Recovery::on_timer),
                Timer::Persist => {
                    if self.snd.peer.is_probing_over(self.settings.retries) {
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
            if self.snd.recovery.retries.are_exhausted() {
                self.give_up(now);
            }
            self.snd.report_losses(now);
        }
    }

    pub(super) fn on_retransmission_timeout(&mut self, now: Instant) {
        if matches!(self.state, State::SynSent | State::SynReceived) {
            self.on_opening_timeout(now);
        } else {
            self.snd.with_recovery(now, Recovery::on_timer);
        }
    }

    /// The SYN or SYN/ACK was not acknowledged in time.
    fn on_opening_timeout(&mut self, now: Instant) {
        // Linux compares times: with linear timeouts the number of SYNs may differ from
        // `syn_retries`.
        let by_time =
            self.state == State::SynSent && self.settings.timers.retries_base_rto().is_some();
        let has_retry_left = !self.has_no_retry_left();
        self.snd.recovery.retries.on_expiry();
        let last = if by_time {
            self.snd.recovery.retries.end_syn(now, &self.settings)
        } else {
            !has_retry_left
        };
        if last {
            self.give_up(now);
            return;
        }
        self.snd.stats.timeouts += 1;
        // RFC 6298 (5.5), except for the linear timeouts of a SYN.
        let linear = self.settings.timers.syn_linear_timeouts();
        if self.state != State::SynSent || u32::from(self.snd.recovery.retries.expiries()) > linear
        {
            self.snd.rtt.back_off(&self.settings.rto_bounds());
        }
        self.cold.failure().opening.timed_out = true;
        self.want_syn();
        // RFC 6298 (5.6)
        self.snd.restart_retransmission_timer(now);
    }

    /// Stops all timers and pending segments.
    pub(super) fn stop(&mut self) {
        self.snd.stop();
        self.rcv.ack.sent();
        self.wanted.syn = false;
        self.wanted.probe = false;
    }
}
