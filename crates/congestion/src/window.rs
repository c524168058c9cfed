//! What controls that count in segments have in common: slow start, and where a reduction is taken
//! from; and how those that count in floating-point octets answer.

use anabranch_core::units::{Bytes, Rate};

use super::{
    Ack, Congestion, Idle, Init, Rto, Unvalidated,
    hystart::{Exit, Kind, Settings, Verdict},
    params::{OrStack, ReductionBase, SlowStartLimit},
};

/// What a model-based control counts in octets, cut to whole ones.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float-to-int cast saturates"
)]
pub(super) const fn whole_bytes(octets: f64) -> Bytes {
    Bytes::new(octets as u64)
}

/// What a model-based control paces at, in octets per second; at least a bit per second.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float-to-int cast saturates"
)]
pub(super) fn whole_rate(octets: f64) -> Option<Rate> {
    Rate::new((octets * 8.0).max(1.0) as u64)
}

/// Both in segments.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// The congestion window.
    pub cwnd: f64,
    /// Infinite before the first reduction.
    pub ssthresh: f64,
}

impl Window {
    /// RFC 5681 §3.1.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// For [`super::CongestionControl::on_idle`], with the initial window.
    pub fn on_idle(&mut self, event: &Idle, initial: f64) {
        self.ssthresh = event.restart_ssthresh(self.cwnd, self.ssthresh);
        self.cwnd = event.restart_window(self.cwnd, initial);
    }

    /// For [`super::CongestionControl::on_unvalidated`], with the initial window.
    pub fn on_unvalidated(&mut self, event: &Unvalidated, initial: f64, smss: Bytes) {
        match event {
            Unvalidated::PeriodOver => {
                self.ssthresh = self.ssthresh.max(self.cwnd * 0.75);
                self.cwnd = (self.cwnd / 2.0).max(initial.min(self.cwnd));
            }
            Unvalidated::Recovered { window } => {
                let most = window.segments(smss).max(2.0);
                self.cwnd = self.cwnd.min(most);
                self.ssthresh = self.ssthresh.min(most);
            }
        }
    }

    /// For [`super::CongestionControl::ssthresh`].
    pub fn ssthresh_in(&self, smss: Bytes) -> Option<Bytes> {
        self.ssthresh
            .is_finite()
            .then(|| Bytes::from_segments(self.ssthresh, smss))
    }
}

/// Slow start of RFC 5681 with the stack's habits.
#[derive(Debug)]
pub(super) struct Standard {
    pub smss: Bytes,
    /// In segments.
    pub initial_cwnd: f64,
    reduce_from: ReductionBase,
    /// In segments.
    slow_start_limit: f64,
    /// Boxed: most runs have none, and slow start is short.
    hystart: Option<Box<Exit>>,
}

impl Standard {
    /// `exits_early`: the stack's HyStart++ applies.
    pub fn new(
        limit: SlowStartLimit,
        reduce_from: OrStack<ReductionBase>,
        exits_early: bool,
        init: &Init,
    ) -> Self {
        // Linux's variant is CUBIC's alone.
        let hystart = match init.stack.hystart {
            Kind::Rfc9406 if exits_early => Kind::Rfc9406,
            _ => Kind::Off,
        };
        Self {
            smss: init.smss,
            initial_cwnd: init.initial_cwnd.segments(init.smss).max(1.0),
            reduce_from: reduce_from.or(init.stack.reduce_from),
            slow_start_limit: limit.segments(init, OrStack::Own(hystart)),
            hystart: Exit::new(hystart, Settings::LINUX, init.stack.paced),
        }
    }

    /// The window before the first acknowledgment.
    pub fn initial_window(&self) -> Window {
        Window {
            cwnd: self.initial_cwnd,
            ssthresh: f64::INFINITY,
        }
    }

    /// RFC 5681 §3.1 equation 2.
    pub fn slow_start(&mut self, window: &mut Window, ack: &Ack) {
        let mut growth = ack.acked.segments(self.smss).min(self.slow_start_limit);
        if let Some(hystart) = &mut self.hystart {
            match hystart.on_ack(ack, window.cwnd) {
                Verdict::Grow(share) => growth *= share,
                Verdict::End => {
                    window.ssthresh = window.cwnd;
                    return;
                }
            }
        }
        window.cwnd = (window.cwnd + growth).min(window.ssthresh);
    }

    /// The window was reduced.
    pub fn leave_slow_start(&mut self) {
        if let Some(hystart) = &mut self.hystart {
            hystart.reset();
        }
    }

    /// What a reduction is taken from, in segments.
    pub fn flight(&self, event: &Congestion, cwnd: Bytes) -> f64 {
        let flight = self.reduce_from.on_congestion(event.in_flight, cwnd);
        flight.segments(self.smss)
    }

    /// What a reduction by a timeout is taken from, in segments; none where ssthresh is held because
    /// the timer expires again for the same segment (RFC 5681 §3.1).
    pub fn flight_at_timeout(&self, event: &Rto, cwnd: Bytes) -> Option<f64> {
        let flight = self.reduce_from.on_rto(event.in_flight, cwnd);
        (event.consecutive <= 1).then(|| flight.segments(self.smss))
    }
}
