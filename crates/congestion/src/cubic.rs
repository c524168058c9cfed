//! CUBIC (RFC 9438): the window follows a cubic function of the time since the last reduction,
//! and never falls behind what Reno would reach.
//!
//! The older forms are parameters. Ha, Rhee and Xu (SIGOPS 2008) and early kernels take 0.2 of the
//! window away and call that β; here, as in the RFC, `beta` is what is left, so write
//! `beta = 0.8`. `tcp_friendly = false` leaves out the Reno-friendly region, as in ns-3 up to 3.37
//! (with `beta = 0.7`).
//!
//! # Differs from Linux
//! The stack profile `linux-6.18` sets what the defaults, which are the RFC's, do differently:
//! - The reduction is taken from FlightSize (§4.6); Linux takes it from cwnd
//!   (`reduce_from = "cwnd"`).
//! - Before the first loss the window follows the cubic function alone; Linux adds 5 % per round
//!   trip at least (`first_epoch_growth = 0.05`).
//! - Slow start adds one segment per ACK at most; Linux adds all that was acknowledged
//!   (`slow_start_limit`).
//! - The Reno-friendly region is RFC 9438's; Linux has RFC 8312's (`reno_friendly = "rfc8312"`).
//! - A reduction that proves spurious is forgotten (§4.9); Linux gives window and ssthresh back, but W_max
//!   stays that of the reduction, and it counts as the first loss (`undo_restores_w_max`).
//! - The window is counted in bytes; Linux counts whole segments (`count = "segments"`, see
//!   [`segments`]), and looks its function up every 32nd of a second (`cubic_interval`).
//!
//! Else:
//! - Where the cubic function stands still the window counted in bytes does, too; Linux adds 1 %
//!   per round trip.
//! - Times are real numbers; Linux counts milliseconds.
//! - A congestion avoidance stage begins at the first ACK that may grow the window; so in Linux.
//!
//! # Differs from RFC 9438
//! - §4.4, §4.5: an ACK counts by the segments that it acknowledges, so that delayed ACKs do not
//!   slow the window down; §4.3 counts so in any case.
//! - §4.3: where W_est is below cwnd in the Reno-friendly region, cwnd is kept.
//!
//! # Not implemented
//! - A smaller reduction at marks (RFC 8511).

mod law;
mod params;
mod segments;

use anabranch_core::{
    math::cbrt,
    registry::{Meta, Source},
    units::{Bytes, Instant},
};

use self::law::Epoch;
pub use self::params::Params;
pub(super) use self::{law::Law, params::cubic_params};
use super::{
    Ack, Congestion, CongestionControl, Idle, Init, Recovered, Rto, Signal, Spurious, Unvalidated,
    hystart::{Exit, Verdict},
    params::WindowCount,
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "cubic",
    title: "CUBIC",
    summary: "A cubic function of the time since the last loss: fast up to the window of then, \
              careful around it, fast again beyond. The default of Linux, Windows and macOS.",
    sources: &[
        Source {
            id: "RFC 9438",
            items: &["§4", "§5.8"],
        },
        Source {
            id: "Ha and Rhee, Computer Networks 55 (2011)",
            items: &["HyStart"],
        },
    ],
};

/// CUBIC at work. Windows are in segments, as the RFC's equations have them.
#[derive(Debug)]
pub struct Cubic {
    law: Law,
    smss: Bytes,
    initial_cwnd: f64,
    window: Window,
    /// What a spurious reduction is taken back to (§4.9).
    undo: Option<Window>,
    /// Boxed: most runs have none, and slow start is short.
    hystart: Option<Box<Exit>>,
}

/// All that a reduction changes, and that §4.9 therefore restores.
#[derive(Debug, Clone, Copy)]
struct Window {
    cwnd: f64,
    /// Infinite before the first reduction.
    ssthresh: f64,
    /// Where the cubic function has its plateau. `None`: wherever the next stage of congestion
    /// avoidance begins (§4.8, §4.10).
    w_max: Option<f64>,
    /// cwnd before the last reduction.
    cwnd_prior: f64,
    /// The stage of congestion avoidance under way.
    epoch: Option<Epoch>,
    /// No loss and no mark so far.
    first_epoch: bool,
    /// Segments acknowledged since the window last grew by one ([`WindowCount::Segments`] only).
    acked_count: u32,
}

impl Cubic {
    /// A control before its first acknowledgment.
    #[must_use]
    pub fn new(params: &Params, init: &Init) -> Self {
        Self::with_law(params.law(init), params.exit(init), init)
    }

    pub(super) fn with_law(law: Law, hystart: Option<Box<Exit>>, init: &Init) -> Self {
        let initial_cwnd = law.whole(init.initial_cwnd.segments(init.smss).max(1.0));
        Self {
            law,
            smss: init.smss,
            initial_cwnd,
            window: Window {
                cwnd: initial_cwnd,
                ssthresh: f64::INFINITY,
                w_max: None,
                cwnd_prior: initial_cwnd,
                epoch: None,
                first_epoch: true,
                acked_count: 0,
            },
            undo: None,
            hystart,
        }
    }

    fn segments(&self, bytes: Bytes) -> f64 {
        bytes.segments(self.smss)
    }

    /// Slow start (§4.10). `acked` is in segments. Whether it goes on, or `HyStart` has ended it.
    fn slow_start(&mut self, ack: &Ack, acked: f64) -> bool {
        let window = &mut self.window;
        let mut growth = acked.min(self.law.slow_start_limit);
        if let Some(hystart) = &mut self.hystart {
            match hystart.on_ack(ack, window.cwnd) {
                Verdict::Grow(share) => growth *= share,
                Verdict::End => {
                    window.ssthresh = window.cwnd;
                    if window.first_epoch {
                        window.cwnd_prior = window.cwnd;
                    }
                    return false;
                }
            }
        }
        window.cwnd = (window.cwnd + growth).min(window.ssthresh);
        true
    }

    /// Data was delivered out of order: it measures the path as any other does.
    #[cold]
    fn look_at_round_trip(&mut self, ack: &Ack) {
        let window = &mut self.window;
        if ack.rtt.is_some()
            && window.cwnd < window.ssthresh
            && let Some(hystart) = &mut self.hystart
            && hystart.on_ack(ack, window.cwnd) == Verdict::End
        {
            window.ssthresh = window.cwnd;
            if window.first_epoch {
                window.cwnd_prior = window.cwnd;
            }
        }
    }

    /// Congestion avoidance (§4.2 to §4.5). `acked` is in segments.
    fn avoid_congestion(&mut self, ack: &Ack, acked: f64) {
        let law = self.law;
        let window = &mut self.window;
        let cwnd = window.cwnd;
        let mut epoch = window
            .epoch
            .unwrap_or_else(|| window.begin_epoch(&law, ack.now));
        epoch.resume(ack.now);

        let t = epoch.elapsed(ack.now);
        // §4.2: neither shrinks nor grows faster than slow start would.
        let target = law
            .w_cubic(&epoch, t + ack.srtt.as_secs_f64())
            .max(cwnd)
            .min(1.5 * cwnd);
        window.cwnd = (cwnd + acked * (target - cwnd) / cwnd).min(target);
        if law.tcp_friendly {
            epoch.w_est += law.alpha(&epoch, window.cwnd_prior) * acked / cwnd;
            if law.w_cubic(&epoch, t) < epoch.w_est {
                window.cwnd = cwnd.max(epoch.w_est);
            }
        }
        if window.first_epoch {
            window.cwnd = window.cwnd.max(cwnd + acked * law.first_epoch_growth);
        }
        window.epoch = Some(epoch);
    }

    /// The window falls to `to` segments and slow start begins, after a timeout (§4.8) or at a
    /// restart. `flight`, in segments, is what ssthresh is taken from; `None` keeps ssthresh.
    pub(super) fn collapse(&mut self, to: f64, flight: Option<f64>, forget_w_max: bool) {
        let window = &mut self.window;
        if let Some(flight) = flight {
            self.undo = Some(*window);
            window.cwnd_prior = window.cwnd;
            if !self.law.count_outlives {
                window.acked_count = 0;
            }
            window.ssthresh = self.law.whole(flight * self.law.beta).max(2.0);
        }
        if forget_w_max {
            window.w_max = None;
        }
        window.cwnd = to.min(window.cwnd);
        window.first_epoch = false;
        self.leave_epoch();
    }

    fn leave_epoch(&mut self) {
        self.window.epoch = None;
        if let Some(hystart) = &mut self.hystart {
            hystart.reset();
        }
    }
}

impl Window {
    /// A stage of congestion avoidance begins with the window as it is (§4.2).
    fn begin_epoch(&mut self, law: &Law, now: Instant) -> Epoch {
        let w_max = self.w_max.unwrap_or(self.cwnd).max(self.cwnd);
        self.w_max = Some(w_max);
        Epoch {
            start: now,
            paused: None,
            w_max,
            k: cbrt((w_max - self.cwnd) / law.c),
            w_est: self.cwnd,
            acked: 0.0,
            looked_up: None,
        }
    }
}

impl CongestionControl for Cubic {
    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        if ack.in_recovery {
            return;
        }
        if ack.acked == Bytes::ZERO {
            self.look_at_round_trip(ack);
            return;
        }
        if !ack.cwnd_limited {
            if let Some(epoch) = &mut self.window.epoch {
                epoch.paused.get_or_insert(ack.now);
            }
            return;
        }
        let acked = self.segments(ack.acked);
        let slow_start = self.window.cwnd < self.window.ssthresh;
        match self.law.count {
            WindowCount::Bytes if slow_start => {
                self.slow_start(ack, acked);
            }
            WindowCount::Bytes => self.avoid_congestion(ack, acked),
            WindowCount::Segments => {
                // A segment that is not full is one, too.
                let acked = acked.ceil();
                let is_over = if slow_start {
                    !self.slow_start(ack, acked) && self.law.counts_end_of_slow_start()
                } else {
                    true
                };
                if is_over {
                    self.avoid_congestion_in_segments(ack, acked);
                }
            }
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        let flight = self
            .law
            .reduce_from
            .on_congestion(event.in_flight, self.cwnd());
        let flight = self.segments(flight);
        let window = &mut self.window;
        self.undo = Some(*window);
        // §4.7.
        window.w_max = Some(match window.w_max {
            Some(w_max) if self.law.fast_convergence && window.cwnd < w_max => {
                self.law.whole(window.cwnd * (1.0 + self.law.beta) / 2.0)
            }
            _ => window.cwnd,
        });
        // §4.6.
        window.cwnd_prior = window.cwnd;
        if !self.law.count_outlives {
            window.acked_count = 0;
        }
        let reduced = self.law.whole(flight * self.law.beta);
        window.cwnd = reduced.max(match event.signal {
            Signal::Loss => 2.0,
            Signal::EcnCe => 1.0,
        });
        window.ssthresh = reduced.max(2.0);
        window.first_epoch = false;
        // HyStart goes on where it was should this prove spurious; slow start begins anew nowhere
        // else.
        window.epoch = None;
    }

    fn on_rto(&mut self, event: &Rto) {
        // RFC 5681 §3.1: ssthresh is held when the timer expires again for the same segment.
        let flight = (event.consecutive <= 1)
            .then(|| self.segments(self.law.reduce_from.on_rto(event.in_flight, self.cwnd())));
        self.collapse(1.0, flight, true);
    }

    fn on_recovered(&mut self, event: &Recovered) {
        if let Some(limit) = event.cwnd_limit {
            let limit = self.law.whole(self.segments(limit));
            self.window.cwnd = self.window.cwnd.min(limit);
        }
    }

    fn on_spurious(&mut self, _event: &Spurious) {
        // §4.9: not where the window has outgrown the old one in the meantime.
        if let Some(undo) = self.undo.take()
            && self.window.cwnd < undo.cwnd
        {
            if self.law.undo_restores_w_max {
                self.window = undo;
            } else {
                (self.window.cwnd, self.window.ssthresh) = (undo.cwnd, undo.ssthresh);
            }
        }
    }

    fn on_lost_syns(&mut self) {
        self.window.cwnd = 1.0;
    }
    fn on_idle(&mut self, event: &Idle) {
        if event.idle > event.rto {
            let window = &mut self.window;
            window.ssthresh = event.restart_ssthresh(window.cwnd, window.ssthresh);
            window.cwnd = event.restart_window(window.cwnd, self.initial_cwnd);
            self.leave_epoch();
        } else if let Some(epoch) = &mut self.window.epoch {
            let began = Instant::START.saturating_add(
                event
                    .now
                    .saturating_since(Instant::START)
                    .saturating_sub(event.idle),
            );
            epoch.paused.get_or_insert(began);
        }
    }

    fn on_unvalidated(&mut self, event: &Unvalidated) {
        match event {
            Unvalidated::PeriodOver => {
                let window = &mut self.window;
                window.ssthresh = window.ssthresh.max(window.cwnd * 0.75);
                let least = self.initial_cwnd.min(window.cwnd);
                window.cwnd = self.law.whole(window.cwnd / 2.0).max(least);
            }
            Unvalidated::Recovered { window: most } => {
                let most = self.law.whole(self.segments(*most)).max(2.0);
                let window = &mut self.window;
                window.cwnd = window.cwnd.min(most);
                window.ssthresh = window.ssthresh.min(most);
            }
        }
        self.leave_epoch();
    }

    #[inline]
    fn cwnd(&self) -> Bytes {
        Bytes::from_segments(self.window.cwnd, self.smss)
    }
    fn ssthresh(&self) -> Option<Bytes> {
        let ssthresh = self.window.ssthresh;
        ssthresh
            .is_finite()
            .then(|| Bytes::from_segments(ssthresh, self.smss))
    }

    /// `w_max`, `w_est` in segments, `k` in seconds; those that are undefined are left out.
    fn state(&self) -> Vec<(&'static str, f64)> {
        let mut state = Vec::new();
        state.extend(self.window.w_max.map(|w_max| ("w_max", w_max)));
        if let Some(epoch) = &self.window.epoch {
            state.push(("k", epoch.k));
            if self.law.tcp_friendly {
                state.push(("w_est", epoch.w_est));
            }
        }
        state
    }
}
