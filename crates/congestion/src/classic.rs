//! The frame of the window-based controls.
//!
//! [`Classic`] owns cwnd, ssthresh, slow start with HyStart, the undo of a spurious reduction, the
//! timeout, the end of a recovery, the restart after an idle time and window validation. A control
//! is its [`Law`]: the growth of the window in congestion avoidance, its reduction, and its value
//! after a timeout. The frame counts the window as the law does ([`Count`]): in whole octets or in
//! segments.

use std::fmt;

use anabranch_core::units::Bytes;

pub use super::window::{Count, Window};
use super::{
    Ack, Congestion, CongestionControl, Idle, Init, Recovered, Rto, Signal, Spurious, Unvalidated,
    Wants,
    hystart::{Exit, Kind, Settings, Verdict},
    params::{OrStack, ReductionBase, SlowStartLimit},
    slow_start::{FirstOnly, Observed, SlowStart},
};

/// The part of a window-based control that differs between controls.
pub trait Law: fmt::Debug + Send + Sized {
    /// Parameters of the control.
    type Params;
    /// How the window is counted.
    type Count: Count;
    /// State of the law that the undo of a spurious reduction restores.
    type Saved: Copy + fmt::Debug + Send;

    /// The law and its frame before the first acknowledgment.
    fn new(params: &Self::Params, init: &Init) -> (Self, Setup);

    /// Rounds `window` down to whole segments, if the law counts in whole segments.
    fn whole(&self, window: Self::Count) -> Self::Count {
        window
    }
    /// The amount that an acknowledgment of `acked` counts for.
    #[inline]
    fn counted(&self, acked: Self::Count) -> Self::Count {
        acked
    }

    /// Measures the path. Called for every acknowledgment.
    #[inline]
    fn measure(&mut self, _ack: &Ack) {}
    /// The window also grows while the sender is not limited by cwnd.
    fn grows_unused(&self) -> bool {
        false
    }
    /// New data is acknowledged outside a recovery while the sender is not limited by cwnd.
    #[inline]
    fn on_unused(&mut self, _ack: &Ack) {}
    /// Whether this acknowledgment, which may grow the window, grows it by slow start.
    #[inline]
    fn slow_starts(&mut self, window: &mut Window<Self::Count>, _ack: &Ack) -> bool {
        window.in_slow_start()
    }
    /// Slow start grew the window or ended.
    #[inline]
    fn on_slow_start(&mut self, _window: &Window<Self::Count>) {}
    /// HyStart ended slow start. Returns whether the acknowledgment also counts in congestion
    /// avoidance.
    fn on_hystart_exit(&mut self, _window: &Window<Self::Count>) -> bool {
        false
    }
    /// Congestion avoidance.
    fn avoid_congestion(&mut self, window: &mut Window<Self::Count>, ack: &Ack, acked: Self::Count);

    /// Returns the window and ssthresh after a reduction. `flight` is the base of the reduction.
    fn reduce(
        &mut self,
        window: &Window<Self::Count>,
        flight: Self::Count,
        signal: Signal,
    ) -> Window<Self::Count>;
    /// Returns ssthresh after a timeout. `flight` is the base of the reduction.
    fn ssthresh_at_timeout(
        &mut self,
        window: &Window<Self::Count>,
        flight: Self::Count,
    ) -> Self::Count;
    /// A timeout reduced the window to one segment.
    fn on_timeout(&mut self) {}
    /// The stage of congestion avoidance ended, by a reduction, a timeout, a restart or window
    /// validation.
    fn end_stage(&mut self) {}
    /// The frame lowered the window to `window.cwnd`, if it was larger.
    fn on_limited(&mut self, _window: &Window<Self::Count>) {}
    /// Recovery ended.
    fn on_recovered(&mut self, _window: &mut Window<Self::Count>) {}
    /// Sending resumes.
    fn on_idle(&mut self, _event: &Idle) {}

    /// See [`CongestionControl::wants`].
    fn wants(&self) -> Wants {
        Wants::default()
    }

    /// State of the law before a reduction.
    fn saved(&self) -> Self::Saved;
    /// The reduction was spurious. `restored`: cwnd and ssthresh are restored, because the window
    /// has not outgrown the old one.
    fn restore(&mut self, _saved: Self::Saved, _restored: bool) {}

    /// ssthresh as reported.
    #[inline]
    fn ssthresh(&self, window: &Window<Self::Count>) -> Self::Count {
        window.ssthresh
    }
    /// See [`CongestionControl::state`].
    fn state(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

/// Settings of the frame that a law requests.
#[derive(Debug)]
pub struct Setup {
    /// Largest growth by one acknowledgment in slow start, in segments.
    pub slow_start_limit: f64,
    /// The base of a reduction.
    pub reduce_from: ReductionBase,
    /// Early end of slow start. Boxed: most runs have none, and slow start is short.
    pub hystart: Option<Box<Exit>>,
}

impl Setup {
    /// Slow start of RFC 5681 with the stack's defaults. `exits_early`: the stack's HyStart++
    /// applies.
    #[must_use]
    pub fn new(
        limit: SlowStartLimit,
        reduce_from: OrStack<ReductionBase>,
        exits_early: bool,
        init: &Init,
    ) -> Self {
        // Only CUBIC has Linux's variant.
        let hystart = match init.stack.hystart {
            Kind::Rfc9406 if exits_early => Kind::Rfc9406,
            _ => Kind::Off,
        };
        Self {
            slow_start_limit: limit.segments(init, OrStack::Own(hystart)),
            reduce_from: reduce_from.or(init.stack.reduce_from),
            hystart: Exit::new(hystart, Settings::LINUX, init.stack.paced),
        }
    }
}

/// Window and state of a law before a reduction.
type Before<L> = (Window<<L as Law>::Count>, <L as Law>::Saved);

/// A window-based control: the frame around its law. `HyStart` observes the slow starts
/// of `O`.
#[derive(Debug)]
pub struct Classic<L: Law, O: Observed = FirstOnly> {
    pub(super) law: L,
    window: Window<L::Count>,
    /// Window and state of the law before the last reduction (RFC 4015 §3). Boxed, because a
    /// control on a path without losses has none.
    undo: Option<Box<Before<L>>>,
    smss: Bytes,
    initial_cwnd: L::Count,
    reduce_from: ReductionBase,
    /// In the law's count.
    slow_start_limit: f64,
    slow_start: SlowStart<O>,
}

impl<L: Law, O: Observed> Classic<L, O> {
    /// A control before its first acknowledgment.
    #[must_use]
    pub fn new(params: &L::Params, init: &Init) -> Self {
        let (law, setup) = L::new(params, init);
        Self::with_law(law, setup, init)
    }

    pub(super) fn with_law(law: L, setup: Setup, init: &Init) -> Self {
        let smss = init.smss;
        let initial = L::Count::of(init.initial_cwnd, smss);
        let initial_cwnd = law.whole(initial.at_least(L::Count::of(smss, smss)));
        Self {
            law,
            window: Window {
                cwnd: initial_cwnd,
                ssthresh: L::Count::UNLIMITED,
            },
            undo: None,
            smss,
            initial_cwnd,
            reduce_from: setup.reduce_from,
            slow_start_limit: L::Count::segment(smss) * setup.slow_start_limit,
            slow_start: SlowStart::new(setup.hystart),
        }
    }

    fn segment(&self) -> L::Count {
        L::Count::of(self.smss, self.smss)
    }

    fn save(&mut self) {
        self.undo = Some(Box::new((self.window, self.law.saved())));
    }

    /// RFC 5681 §3.1 equation 2. Returns whether the acknowledgment also counts in congestion
    /// avoidance.
    #[inline]
    fn slow_start(&mut self, ack: &Ack, acked: L::Count) -> bool {
        let growth = acked.real().min(self.slow_start_limit);
        let cwnd = self.window.cwnd;
        let counts = match self.slow_start.on_ack(ack, cwnd.segments(self.smss)) {
            Verdict::Grow(share) => {
                let grown = cwnd + L::Count::from_real(growth * share);
                self.window.cwnd = grown.at_most(self.window.ssthresh);
                false
            }
            Verdict::End => {
                self.window.ssthresh = cwnd;
                self.law.on_hystart_exit(&self.window)
            }
        };
        self.law.on_slow_start(&self.window);
        counts
    }

    /// Takes a round-trip time sample of SACKed data, as of acknowledged data.
    #[cold]
    fn measure_sacked(&mut self, ack: &Ack) {
        let cwnd = self.window.cwnd;
        if ack.rtt.is_some()
            && self.window.in_slow_start()
            && self.slow_start.on_sack(ack, cwnd.segments(self.smss)) == Verdict::End
        {
            self.window.ssthresh = cwnd;
            self.law.on_hystart_exit(&self.window);
        }
    }

    /// The base of a reduction by a timer.
    pub(super) fn flight_at_timeout(&self, in_flight: Bytes) -> L::Count {
        L::Count::of(self.reduce_from.on_rto(in_flight, self.cwnd()), self.smss)
    }

    /// Lowers the window to `to` and starts slow start. `flight` is the base of ssthresh; `None`
    /// keeps ssthresh.
    pub(super) fn collapse(&mut self, to: L::Count, flight: Option<L::Count>) {
        if let Some(flight) = flight {
            self.save();
            self.window.ssthresh = self.law.ssthresh_at_timeout(&self.window, flight);
        }
        self.window.cwnd = to.at_most(self.window.cwnd);
        self.law.on_limited(&self.window);
        self.law.on_timeout();
        self.law.end_stage();
        self.slow_start.on_timeout();
    }

    /// A restart or window validation ended the stage of congestion avoidance.
    fn end_stage(&mut self) {
        self.law.end_stage();
        self.slow_start.on_restart();
    }
}

impl<L: Law, O: Observed> CongestionControl for Classic<L, O> {
    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        self.law.measure(ack);
        if ack.in_recovery {
            return;
        }
        if ack.acked == Bytes::ZERO {
            self.measure_sacked(ack);
            return;
        }
        if !ack.cwnd_limited && !self.law.grows_unused() {
            self.law.on_unused(ack);
            return;
        }
        let acked = self.law.counted(L::Count::of(ack.acked, self.smss));
        if !self.law.slow_starts(&mut self.window, ack) || self.slow_start(ack, acked) {
            self.law.avoid_congestion(&mut self.window, ack, acked);
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        let flight = self.reduce_from.on_congestion(event.in_flight, self.cwnd());
        let flight = L::Count::of(flight, self.smss);
        self.save();
        self.window = self.law.reduce(&self.window, flight, event.signal);
        self.law.end_stage();
        self.slow_start.on_reduction();
    }

    fn on_rto(&mut self, event: &Rto) {
        // RFC 5681 §3.1: ssthresh is held when the timer expires again for the same segment.
        let flight = (event.consecutive <= 1).then(|| self.flight_at_timeout(event.in_flight));
        self.collapse(self.segment(), flight);
    }

    fn on_recovered(&mut self, event: &Recovered) {
        self.law.on_recovered(&mut self.window);
        if let Some(limit) = event.cwnd_limit {
            let limit = self.law.whole(L::Count::of(limit, self.smss));
            self.window.cwnd = self.window.cwnd.at_most(limit);
            self.law.on_limited(&self.window);
        }
    }

    fn on_spurious(&mut self, _event: &Spurious) {
        if let Some((window, saved)) = self.undo.take().map(|undo| *undo) {
            let restored = self.window.cwnd < window.cwnd;
            if restored {
                self.window = window;
            }
            self.law.restore(saved, restored);
        }
    }

    fn on_lost_syns(&mut self) {
        self.window.cwnd = self.segment();
        self.law.on_limited(&self.window);
    }

    fn on_idle(&mut self, event: &Idle) {
        if event.idle > event.rto {
            let cwnd = self.window.cwnd;
            let ssthresh = event.restart_ssthresh(cwnd.segments(self.smss), 0.0);
            let ssthresh = L::Count::from_real(ssthresh * L::Count::segment(self.smss));
            let restart = event.restart_window(cwnd.real(), self.initial_cwnd.real());
            self.window.ssthresh = self.window.ssthresh.at_least(ssthresh);
            self.window.cwnd = L::Count::from_real(restart).at_least(self.segment());
            self.law.on_limited(&self.window);
            self.end_stage();
        }
        self.law.on_idle(event);
    }

    fn on_unvalidated(&mut self, event: &Unvalidated) {
        let window = &mut self.window;
        match event {
            Unvalidated::PeriodOver => {
                let least = self.initial_cwnd.at_most(window.cwnd);
                window.ssthresh = window.ssthresh.at_least(window.cwnd.three_quarters());
                window.cwnd = self.law.whole(window.cwnd.half()).at_least(least);
            }
            Unvalidated::Recovered { window: most } => {
                let two = L::Count::of(self.smss * 2, self.smss);
                let most = self.law.whole(L::Count::of(*most, self.smss)).at_least(two);
                window.cwnd = window.cwnd.at_most(most);
                window.ssthresh = window.ssthresh.at_most(most);
            }
        }
        self.law.on_limited(&self.window);
        self.end_stage();
    }

    #[inline]
    fn cwnd(&self) -> Bytes {
        self.window.cwnd.bytes(self.smss)
    }
    fn ssthresh(&self) -> Option<Bytes> {
        let ssthresh = self.law.ssthresh(&self.window);
        (ssthresh < L::Count::UNLIMITED).then(|| ssthresh.bytes(self.smss))
    }
    fn wants(&self) -> Wants {
        Wants {
            sent: false,
            ..self.law.wants()
        }
    }
    fn state(&self) -> Vec<(&'static str, f64)> {
        self.law.state()
    }
}
