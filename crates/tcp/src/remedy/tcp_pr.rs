//! TCP-PR: no duplicates at all, a timer for each segment (Bohacek, Hespanha, Lee, Lim and Obraczka, A
//! new TCP for persistent packet reordering, ICNP 2003; IEEE/ACM Transactions on Networking 14(2),
//! 2006).
//!
//! A segment is lost when it has not been acknowledged for `mxrtt`:
//!
//! ```text
//! each acknowledgment:  ewrtt <- max(alpha^(1 / floor(cwnd)) ewrtt, sample)
//!                       mxrtt  = beta ewrtt
//! ```
//!
//! so that `ewrtt` follows a maximum that fades by `alpha` per round trip. A loss halves the window
//! with which the segment had been sent. What was outstanding then (the source's *memorize* list) is
//! retransmitted, too, when its time is over, without another reduction. If more than half a window of
//! it is, that is no longer a loss but a collapse: one segment, and a timer that backs off.
//!
//! # Differs from the source
//! - By how much a window is reduced is the control's; it is told the window of the segment's time.
//! - The window does not grow while memorized segments are outstanding.
//! - A collapse is treated as an expiry of the retransmission timer, which otherwise only stands
//!   behind the segments' own ones, at twice `mxrtt` at least.
//! - Which segments have arrived is known from SACK.
//!
//! # Differs from Linux
//! - Linux has nothing of the kind.
//!
//! # Not implemented
//! - The wait of `mxrtt` before the first segment after a collapse.

use std::collections::VecDeque;

use anabranch_core::{
    math::powf,
    registry::{Meta, Source},
    units::Duration,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Init, Policy, Progress, RemedyParams, View};
use anabranch_congestion::params::{Lifetimes, Share};
use anabranch_wire::seq::Seq;

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "tcp-pr",
    title: "TCP-PR",
    summary: "Takes no notice of duplicates: a segment is lost when it has been out for several round-trip times.",
    sources: &[Source {
        id: "Bohacek et al. 2006 (IEEE/ACM ToN 14(2)); ICNP 2003",
        items: &["abstract"],
    }],
};

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// What a round trip leaves of the largest round-trip time.
    pub alpha: Share,
    /// How many of the largest round-trip time a segment is given.
    pub beta: Lifetimes,
}

impl Default for Params {
    /// Those usual in simulations of it.
    fn default() -> Self {
        Self {
            alpha: Share::new(0.995),
            beta: Lifetimes::new(3.0),
        }
    }
}

impl RemedyParams for Params {
    const NEEDS_SACK: bool = true;
}

/// TCP-PR at work.
#[derive(Debug)]
pub struct TcpPr {
    alpha: f64,
    beta: f64,
    /// In seconds; zero before the first sample.
    ewrtt: f64,
    /// The window with which the segments up to a number were sent, oldest first; one entry for
    /// those of one window.
    windows: VecDeque<(Seq, u64)>,
}

impl TcpPr {
    /// Before the first sample.
    #[must_use]
    pub const fn new(params: &Params, _init: &Init) -> Self {
        Self {
            alpha: params.alpha.get(),
            beta: params.beta.get(),
            ewrtt: 0.0,
            windows: VecDeque::new(),
        }
    }
}

impl Policy for TcpPr {
    /// Never by duplicates.
    fn dupthresh(&self) -> u32 {
        u32::MAX
    }
    fn on_progress(&mut self, progress: &Progress, view: &View) {
        let cwnd = f64::from(view.segments(view.cwnd).max(1));
        let faded = powf(self.alpha, 1.0 / cwnd) * self.ewrtt;
        let sample = progress.rtt.map_or(0.0, Duration::as_secs_f64);
        self.ewrtt = faded.max(sample);
        // More windows than one per segment of a flight are not needed.
        let flight = view.segments(view.flight_size) as usize + 2;
        while self.windows.len() > flight {
            self.windows.pop_front();
        }
    }
    fn on_sent(&mut self, end: Seq, view: &View) {
        match self.windows.back_mut() {
            Some((last, window)) if *window == view.cwnd => *last = end,
            _ => self.windows.push_back((end, view.cwnd)),
        }
    }
    fn lifetime(&self) -> Option<Duration> {
        (self.ewrtt > 0.0).then(|| Duration::from_secs_f64(self.beta * self.ewrtt))
    }
    fn window_of(&self, start: Seq) -> Option<u64> {
        let index = self.windows.partition_point(|(end, _)| *end <= start);
        self.windows.get(index).map(|(_, window)| *window)
    }
    fn on_overdue(&mut self, segments: u32, view: &View) -> bool {
        segments > view.segments(view.cwnd) / 2 + 1
    }
    fn attends(&self) -> bool {
        true
    }
}
