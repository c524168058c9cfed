//! CUBIC counted in whole segments by a kernel clock.
//!
//! With the stack's `clock_tick` this reproduces the window growth of a kernel's CUBIC, traced at
//! every acknowledgment (`docs/design/008-stack-habits.md`). Differences from [`super::segments`]:
//!
//! - Times are whole ticks, and the function is evaluated once per tick. A window that has grown
//!   within the tick keeps growing with the same `cnt`, or with a smaller one if W_est requires it.
//! - W_est is a whole number. It grows by one once more than `window ÷ α` segments have been
//!   acknowledged, with 1/α rounded down to eighths (15/8 for β = 0.7). It is updated when `cnt` is
//!   computed.
//! - The acknowledgment with which HyStart ends slow start already counts in congestion avoidance.
//! - The function is evaluated one smallest round-trip time ahead, as in the paper (`dMin`).
//!
//! # Differs from Linux
//! - The smallest round-trip time is a real number, not whole ticks.
//! - An ACK counts as at most one window: after a timeout it may acknowledge more.

use anabranch_core::units::Instant;

use super::{
    Ack, Growth, Segments, StackHabits, Window, segments::Evaluation, stage::Stage, ticks::Clock,
};

/// 1/α is rounded down to eighths.
const PARTS: f64 = 8.0;

/// State of growth by whole segments and a kernel clock.
#[derive(Debug, Clone, Copy)]
pub struct KernelSegments {
    segments: Segments,
    clock: Clock,
    /// Segments acknowledged since W_est last grew.
    acked: f64,
    /// End of the tick in which the function was last evaluated in this stage.
    tick_ends: Instant,
}

impl KernelSegments {
    /// Evaluates the function for this tick.
    fn evaluate(&mut self, stage: &Stage<'_>, ack: &Ack, cwnd: f64) -> Evaluation {
        let clock = self.clock;
        self.tick_ends = clock.after(ack.now, clock.tick);
        let elapsed = clock.between(stage.epoch.start, ack.now);
        let t = elapsed.as_secs_f64() + ack.min_rtt.as_secs_f64();
        Evaluation {
            cnt: stage.cnt(cwnd, t),
            cwnd,
            valid_until: clock.after(ack.now, self.segments.interval),
        }
    }

    /// Updates W_est by the segments acknowledged (RFC 9438 §4.3), and limits `cnt`.
    fn no_slower_than_reno(&mut self, cnt: f64, cwnd: f64, stage: &mut Stage<'_>) -> f64 {
        if stage.law.tcp_friendly {
            let alpha = stage.alpha();
            let each = (cwnd * (PARTS / alpha).floor() / PARTS).floor().max(1.0);
            while self.acked > each {
                self.acked -= each;
                stage.epoch.w_est += 1.0;
            }
        }
        stage.no_slower_than_reno(cnt, cwnd, 2.0)
    }
}

impl Growth for KernelSegments {
    const COUNTS_END_OF_SLOW_START: bool = true;

    fn new(stack: &StackHabits) -> Self {
        Self {
            segments: Segments::new(stack),
            clock: Clock::new(stack.clock_tick),
            acked: 0.0,
            tick_ends: Instant::START,
        }
    }

    fn grow(&mut self, window: &mut Window<f64>, mut stage: Stage<'_>, ack: &Ack, acked: f64) {
        let cwnd = window.cwnd;
        let acked = acked.min(cwnd);
        self.acked += acked;
        let cnt = match self.segments.latest {
            Some(latest) if latest.is_valid(cwnd, ack.now) => latest.cnt,
            latest => {
                let in_tick = latest.filter(|_| ack.now < self.tick_ends);
                let latest = in_tick.unwrap_or_else(|| self.evaluate(&stage, ack, cwnd));
                let cnt = self.no_slower_than_reno(latest.cnt, cwnd, &mut stage);
                self.segments.latest = Some(Evaluation { cnt, ..latest });
                cnt
            }
        };
        self.segments.count.grow(window, acked, cnt);
    }

    fn on_reduction(&mut self) {
        self.segments.on_reduction();
    }

    fn end_stage(&mut self) {
        self.segments.end_stage();
        self.acked = 0.0;
    }
}
