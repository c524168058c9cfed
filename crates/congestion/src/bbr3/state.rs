//! The states (draft-ietf-ccwg-bbr §5.1) and their gains of rate and window (§5.6.1).

use anabranch_core::units::Instant;

use super::Params;

/// BBR.state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Doubles the rate every round trip until the pipe is full.
    Startup,
    /// Empties the queue that Startup has built.
    Drain {
        /// BBR.drain_start_round
        since_round: u64,
    },
    ProbeBw(Phase),
    /// Half a window, to measure the propagation delay.
    ProbeRtt(Low),
}

/// Phase of a cycle of ProbeBW (§5.3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Below the bandwidth, until the queue is empty and there is headroom.
    Down,
    /// At the bandwidth.
    Cruise,
    /// At the bandwidth without the short-term bounds, for a round trip.
    Refill,
    /// Above the bandwidth, until it no longer grows or too much is lost.
    Up,
}

/// Progress of ProbeRTT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Low {
    /// More than the reduced window is in flight.
    Emptying,
    /// The window is reduced at least until this time (BBR.probe_rtt_done_stamp) …
    Holding {
        until: Instant,
        /// … and for one round trip, which has passed (BBR.probe_rtt_round_done).
        round_done: bool,
    },
}

impl State {
    /// BBR.pacing_gain
    pub(super) fn pacing_gain(self, params: &Params) -> f64 {
        match self {
            Self::Startup => params.startup_pacing_gain.get(),
            Self::Drain { .. } => params.drain_pacing_gain.get(),
            Self::ProbeBw(Phase::Down) => params.probe_down_pacing_gain.get(),
            Self::ProbeBw(Phase::Up) => params.probe_up_pacing_gain.get(),
            Self::ProbeBw(Phase::Cruise | Phase::Refill) | Self::ProbeRtt(_) => 1.0,
        }
    }

    /// BBR.cwnd_gain
    pub(super) fn cwnd_gain(self, params: &Params) -> f64 {
        match self {
            Self::ProbeBw(Phase::Up) => params.probe_up_cwnd_gain.get(),
            Self::ProbeRtt(_) => params.probe_rtt_cwnd_gain.get(),
            _ => params.cwnd_gain.get(),
        }
    }

    /// IsProbingBW
    pub(super) const fn accelerates(self) -> bool {
        matches!(
            self,
            Self::Startup | Self::ProbeBw(Phase::Refill | Phase::Up)
        )
    }

    /// A number for traces, in the order of the draft's diagram.
    pub(super) const fn number(self) -> f64 {
        match self {
            Self::Startup => 0.0,
            Self::Drain { .. } => 1.0,
            Self::ProbeBw(Phase::Down) => 2.0,
            Self::ProbeBw(Phase::Cruise) => 3.0,
            Self::ProbeBw(Phase::Refill) => 4.0,
            Self::ProbeBw(Phase::Up) => 5.0,
            Self::ProbeRtt(_) => 6.0,
        }
    }
}
