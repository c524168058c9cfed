//! The frame of classic controls that count in segments: slow start, recovery, timeouts, undo, pauses and window
//! validation are written once, and a [`Law`] says the rest.

use std::fmt;

use anabranch_core::units::Bytes;

use super::{
    Ack, Congestion, CongestionControl, Idle, Recovered, Rto, Spurious, Unvalidated,
    window::{Standard, Window},
};

/// What tells one classic control from another. Windows are in segments.
pub trait Law: fmt::Debug + Send {
    /// What a reduction changes besides the window, and undo restores.
    type Memory: fmt::Debug + Clone + Copy + Send;

    /// An acknowledgment has come; whether it may let the window grow. By default it does outside of recoveries, while cwnd is
    /// the limit, and if it acknowledges new data.
    fn observe(&mut self, _window: &mut Window, ack: &Ack) -> bool {
        !ack.in_recovery && ack.cwnd_limited && ack.acked != Bytes::ZERO
    }
    /// Whether slow start grows with this acknowledgment.
    fn slow_start_grows(&self) -> bool {
        true
    }
    /// Congestion avoidance; `acked` segments have been acknowledged.
    fn avoid_congestion(&mut self, window: &mut Window, acked: f64);
    /// What a loss, a mark or a timeout leaves of `flight` segments.
    fn reduced(&self, window: &Window, flight: f64) -> f64;
    /// A loss or a mark reduces the window to so many segments, which it has not yet.
    fn on_reduction(&mut self, _window: &Window, _reduced: f64) {}
    /// The window has changed other than by growth.
    fn on_break(&mut self) {}
    /// What the reduction to come changes.
    fn memory(&self) -> Self::Memory;
    /// The reduction was spurious.
    fn recall(&mut self, memory: Self::Memory);
    /// Names and values of inner state for traces.
    fn state(&self) -> Vec<(&'static str, f64)>;
}

/// A classic control at work.
#[derive(Debug)]
pub struct Classic<L: Law> {
    standard: Standard,
    window: Window,
    /// What a spurious reduction is taken back to.
    undo: Option<(Window, L::Memory)>,
    law: L,
}

impl<L: Law> Classic<L> {
    /// A control before its first acknowledgment.
    pub(super) fn with(standard: Standard, law: L) -> Self {
        Self {
            window: standard.initial_window(),
            undo: None,
            standard,
            law,
        }
    }

    fn remember(&mut self) {
        self.undo = Some((self.window, self.law.memory()));
    }
}

impl<L: Law> CongestionControl for Classic<L> {
    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        if !self.law.observe(&mut self.window, ack) {
            return;
        }
        if !self.window.in_slow_start() {
            let acked = ack.acked.segments(self.standard.smss);
            self.law.avoid_congestion(&mut self.window, acked);
        } else if self.law.slow_start_grows() {
            self.standard.slow_start(&mut self.window, ack);
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        self.remember();
        let flight = self.standard.flight(event, self.cwnd());
        let reduced = self.law.reduced(&self.window, flight);
        self.law.on_reduction(&self.window, reduced);
        self.window = Window {
            cwnd: reduced,
            ssthresh: reduced,
        };
        self.law.on_break();
        self.standard.leave_slow_start();
    }

    fn on_rto(&mut self, event: &Rto) {
        if let Some(flight) = self.standard.flight_at_timeout(event, self.cwnd()) {
            self.remember();
            self.window.ssthresh = self.law.reduced(&self.window, flight);
        }
        self.window.cwnd = 1.0;
        self.law.on_break();
        self.standard.leave_slow_start();
    }

    fn on_recovered(&mut self, event: &Recovered) {
        if let Some(limit) = event.cwnd_limit {
            let limit = limit.segments(self.standard.smss);
            self.window.cwnd = self.window.cwnd.min(limit);
        }
    }

    fn on_spurious(&mut self, _event: &Spurious) {
        if let Some((window, memory)) = self.undo.take()
            && self.window.cwnd < window.cwnd
        {
            self.window = window;
            self.law.recall(memory);
            self.law.on_break();
        }
    }

    fn on_lost_syns(&mut self) {
        self.window.cwnd = 1.0;
    }
    fn on_idle(&mut self, event: &Idle) {
        self.window.on_idle(event, self.standard.initial_cwnd);
        self.law.on_break();
    }
    fn on_unvalidated(&mut self, event: &Unvalidated) {
        let standard = &self.standard;
        self.window
            .on_unvalidated(event, standard.initial_cwnd, standard.smss);
        self.law.on_break();
    }

    #[inline]
    fn cwnd(&self) -> Bytes {
        Bytes::from_segments(self.window.cwnd, self.standard.smss)
    }
    fn ssthresh(&self) -> Option<Bytes> {
        self.window.ssthresh_in(self.standard.smss)
    }
    fn state(&self) -> Vec<(&'static str, f64)> {
        self.law.state()
    }
}
