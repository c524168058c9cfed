//! Outputs of the model: the pacing rate, the size of a burst and the window (draft 00 §4.2,
//! "control parameters").

use anabranch_core::units::Duration;

use super::{Ack, Model, mode::Mode};

/// Largest burst in bytes (draft 00 §4.2.2).
const MAX_QUANTUM: f64 = 65_536.0;
/// A burst is the data of 1/1024 s, like a TSO burst (Linux: `tcp_tso_rtt_log` in ip-sysctl.rst).
const BURSTS_PER_S: f64 = 1024.0;

/// The current fast recovery or timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repair {
    /// None.
    No,
    /// Recovery was entered and nothing has been acknowledged since.
    Entered,
    /// The first round trip: as much data is sent as is delivered.
    Conserving,
    /// Later round trips.
    Growing,
    /// After a timeout, until the data outstanding at the timeout is delivered.
    Timeout,
}

impl Model {
    /// BBRInflight: `gain` bandwidth-delay products, and room for three bursts, in whole pairs of
    /// packets.
    pub(super) fn inflight(&self, gain: f64) -> f64 {
        let Some(rt_prop) = self.rt_prop else {
            return self.initial_cwnd;
        };
        let bdp = self.btl_bw.max() * rt_prop.as_secs_f64();
        let pair = 2.0 * self.smss;
        let mut inflight = ((gain * bdp + 3.0 * self.send_quantum()) / pair).ceil() * pair;
        if matches!(self.mode, Mode::ProbeBw { phase: 0, .. }) {
            // Probing for more bandwidth must be possible on the shortest paths, too.
            inflight += pair;
        }
        inflight.max(self.min_window())
    }

    /// Draft 00 §4.2.2: one packet below 1.2 Mbit/s, two below 24, else a millisecond of data; here
    /// 1/1024 s, in whole packets.
    pub(super) fn send_quantum(&self) -> f64 {
        if self.pacing_rate < 1.2e6 / 8.0 {
            self.smss
        } else if self.pacing_rate < 24e6 / 8.0 {
            2.0 * self.smss
        } else {
            let packets = (self.pacing_rate / BURSTS_PER_S).min(MAX_QUANTUM) / self.smss;
            packets.floor().max(2.0) * self.smss
        }
    }

    /// Draft 00 §4.2.1
    pub(super) fn set_pacing_rate(&mut self, srtt: Duration) {
        let below = 1.0 - self.params.pacing_margin.get();
        if !self.rate_from_rtt && !srtt.is_zero() {
            self.rate_from_rtt = true;
            let bw = self.initial_cwnd / srtt.as_secs_f64();
            self.pacing_rate = self.params.high_gain.get() * bw * below;
        }
        let bw = self.btl_bw.max();
        if bw > 0.0 {
            let rate = self.pacing_gain() * bw * below;
            if self.filled_pipe || rate > self.pacing_rate {
                self.pacing_rate = rate;
            }
        }
    }

    /// BBRSaveCwnd
    pub(super) fn save_cwnd(&mut self) {
        self.prior_cwnd =
            if self.repair == Repair::No && !matches!(self.mode, Mode::ProbeRtt { .. }) {
                self.cwnd
            } else {
                self.prior_cwnd.max(self.cwnd)
            };
    }

    /// Draft 00 §4.2.3
    pub(super) fn set_cwnd(&mut self, ack: &Ack, delivered: f64, round_start: bool) {
        let in_flight = ack.in_flight.get() as f64;
        self.cwnd = (self.cwnd - ack.lost.get() as f64).max(self.smss);
        match self.repair {
            Repair::Entered => {
                self.cwnd = in_flight + delivered;
                self.repair = Repair::Conserving;
                self.next_round_delivered = self.delivered;
            }
            Repair::Conserving if round_start => self.repair = Repair::Growing,
            Repair::Timeout if self.delivered >= self.repair_delivered => {
                self.repair = Repair::No;
                self.cwnd = self.cwnd.max(self.prior_cwnd);
            }
            _ => {}
        }
        if self.repair == Repair::Conserving {
            self.cwnd = self.cwnd.max(in_flight + delivered);
        } else {
            let mut target = self.inflight(self.cwnd_gain());
            if self.filled_pipe {
                target += self.params.extra_acked_gain.get() * self.extra.max.max();
                self.cwnd = (self.cwnd + delivered).min(target);
            } else if self.cwnd < target || self.delivered < self.initial_cwnd {
                self.cwnd += delivered;
            }
            if self.repair != Repair::Timeout {
                self.cwnd = self.cwnd.max(self.min_window());
            }
        }
        if matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.cwnd = self.cwnd.min(self.min_window());
        }
        self.cwnd = self.cwnd.max(self.smss);
    }
}
