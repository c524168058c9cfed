//! The state machine: states, their gains, and the transitions between them (draft 00 §4.3).

use anabranch_core::units::{Bytes, Duration, Instant};

use super::{Ack, Model};

/// Phases of ProbeBW.
const CYCLE_LEN: u8 = 8;

/// State of BBR.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Mode {
    Startup,
    Drain,
    /// Phase of the cycle, and its start.
    ProbeBw {
        phase: u8,
        since: Instant,
    },
    /// Once the window is reduced: the time from which it may grow again, and the delivered count
    /// at the start of the round trip that must also have ended.
    ProbeRtt {
        until: Option<(Instant, f64)>,
    },
}

impl Model {
    pub(super) fn pacing_gain(&self) -> f64 {
        let params = &self.params;
        match self.mode {
            Mode::Startup => params.high_gain.get(),
            Mode::Drain => 1.0 / params.high_gain.get(),
            Mode::ProbeBw { phase: 0, .. } => params.probe_up_gain.get(),
            Mode::ProbeBw { phase: 1, .. } => params.probe_down_gain.get(),
            Mode::ProbeBw { .. } | Mode::ProbeRtt { .. } => 1.0,
        }
    }

    pub(super) fn cwnd_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup | Mode::Drain => self.params.high_gain.get(),
            Mode::ProbeBw { .. } => self.params.cwnd_gain.get(),
            Mode::ProbeRtt { .. } => 1.0,
        }
    }

    /// Draft 00 §4.3.4.3
    pub(super) fn update_cycle(&mut self, ack: &Ack) {
        let Mode::ProbeBw { phase, since } = self.mode else {
            return;
        };
        let rt_prop = self.rt_prop.unwrap_or(Duration::ZERO);
        let long = ack.now.saturating_since(since) > rt_prop;
        let prior = ack.prior_in_flight.get() as f64;
        let over = match phase {
            0 => long && (ack.lost > Bytes::ZERO || self.has_probed(prior)),
            1 => long || prior <= self.inflight(1.0),
            _ => long,
        };
        if over {
            self.mode = Mode::ProbeBw {
                phase: (phase + 1) % CYCLE_LEN,
                since: ack.now,
            };
        }
    }

    /// Whether the target of the phase is in flight, including the burst that is about to be sent.
    fn has_probed(&self, in_flight: f64) -> bool {
        in_flight + self.send_quantum() >= self.inflight(self.pacing_gain())
    }

    pub(super) fn check_drain(&mut self, ack: &Ack) {
        if self.mode == Mode::Startup && self.filled_pipe {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && ack.in_flight.get() as f64 <= self.inflight(1.0) {
            self.enter_probe_bw(ack.now);
        }
    }

    /// Enters any phase except the one that drains (draft 00 §4.3.4.2).
    pub(super) fn enter_probe_bw(&mut self, now: Instant) {
        // Fibonacci hashing: the upper bits depend on all bits of the time.
        let mixed = now.as_picos().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let phase = match mixed % u64::from(CYCLE_LEN - 1) {
            0 => 0,
            #[expect(clippy::cast_possible_truncation, reason = "below 8")]
            n => n as u8 + 1,
        };
        self.mode = Mode::ProbeBw { phase, since: now };
    }

    /// The first RTprop is the RTT of the handshake (draft 00 §4.3.1).
    pub(super) fn take_first_rtt(&mut self, now: Instant, rtt: Duration) {
        if self.rt_prop.is_none() && !rtt.is_zero() {
            self.rt_prop = Some(rtt);
            self.rt_prop_stamp = now;
        }
    }

    /// Draft 00 §4.3.5 and §4.1.2
    pub(super) fn update_rt_prop(&mut self, ack: &Ack) {
        let age = ack.now.saturating_since(self.rt_prop_stamp);
        let expired = self.rt_prop.is_some() && age > self.params.min_rtt_window;
        if let Some(rtt) = ack.rtt
            && !rtt.is_zero()
            && (expired || self.rt_prop.is_none_or(|rt_prop| rtt <= rt_prop))
        {
            self.rt_prop = Some(rtt);
            self.rt_prop_stamp = ack.now;
        }
        if expired && !self.idle_restart && !matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.save_cwnd();
            self.mode = Mode::ProbeRtt { until: None };
        }
        let Mode::ProbeRtt { until } = self.mode else {
            return;
        };
        let in_flight = ack.in_flight.get() as f64;
        self.app_limited_until = self.delivered + in_flight;
        match until {
            None if in_flight <= self.min_window() => {
                let until = ack.now.saturating_add(self.params.probe_rtt_duration);
                self.mode = Mode::ProbeRtt {
                    until: Some((until, self.delivered)),
                };
                self.next_round_delivered = self.delivered;
            }
            // A round trip that began with the reduced window has ended as well.
            Some((until, began)) if ack.now >= until && self.next_round_delivered > began => {
                self.rt_prop_stamp = ack.now;
                self.cwnd = self.cwnd.max(self.prior_cwnd);
                if self.filled_pipe {
                    self.enter_probe_bw(ack.now);
                } else {
                    self.mode = Mode::Startup;
                }
            }
            _ => {}
        }
    }
}
