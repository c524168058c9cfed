//! TCP-PR: a timer for each segment instead of duplicates (Bohacek, Hespanha, Lee, Lim and
//! Obraczka, A new TCP for persistent packet reordering, ICNP 2003; IEEE/ACM Transactions on
//! Networking 14(2), 2006).
//!
//! A segment is lost when it has not been acknowledged for `mxrtt`:
//!
//! ```text
//! each acknowledgment:  ewrtt <- max(alpha^(1 / floor(cwnd)) ewrtt, sample)
//!                       mxrtt  = beta ewrtt
//! ```
//!
//! `ewrtt` thus follows a maximum that decays by `alpha` per round trip. A loss halves the window
//! with which the segment was sent. Data outstanding then (the source's *memorize* list) is also
//! retransmitted when its lifetime ends, but without another reduction. If more than half a window
//! of it is retransmitted, the sender treats it as a collapse: it sends one segment, and a timer
//! backs off.
//!
//! # Differs from the source
//! - The control decides the size of the reduction, from the window at the segment's transmission.
//! - The window does not grow while memorized segments are outstanding.
//! - A collapse is treated as an expiry of the retransmission timer. Otherwise that timer expires
//!   after the segments' own lifetimes, at twice `mxrtt` or later.
//! - SACK shows which segments have arrived.
//!
//! # Differs from Linux
//! - Linux has no equivalent.
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
    summary: "Ignores duplicate ACKs: a segment is marked lost when it has been in flight for several round-trip times.",
    sources: &[Source {
        id: "Bohacek et al. 2006 (IEEE/ACM ToN 14(2)); ICNP 2003",
        items: &["abstract"],
    }],
};

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Factor by which the largest round-trip time decays per round trip.
    pub alpha: Share,
    /// Lifetime of a segment, in multiples of the largest round-trip time.
    pub beta: Lifetimes,
}

impl Default for Params {
    /// The values usual in simulations of TCP-PR.
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

/// State of TCP-PR.
#[derive(Debug)]
pub struct TcpPr {
    alpha: f64,
    beta: f64,
    /// The decaying maximum of the round-trip time, in seconds; zero before the first sample.
    ewrtt: f64,
    /// The window with which the segments up to a number were sent, oldest first. Consecutive
    /// segments sent with the same window share one entry.
    windows: VecDeque<(Seq, u64)>,
}

impl TcpPr {
    /// Creates the state before the first sample.
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
    /// Duplicates never indicate a loss.
    fn dupthresh(&self) -> u32 {
        u32::MAX
    }
    fn on_progress(&mut self, progress: &Progress, view: &View) {
        let cwnd = f64::from(view.segments(view.cwnd).max(1));
        let faded = powf(self.alpha, 1.0 / cwnd) * self.ewrtt;
        let sample = progress.rtt.map_or(0.0, Duration::as_secs_f64);
        self.ewrtt = faded.max(sample);
        // One window per segment of a flight suffices.
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
