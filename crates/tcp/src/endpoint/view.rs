//! An endpoint as those see it who look from outside.

use anabranch_core::{
    body::Body,
    units::{Bytes, Duration, Instant},
};

use super::{Ending, Endpoint};
use crate::{
    congestion_state::CongestionState,
    recovery::Phase,
    refusal::Refusals,
    settings::Settings,
    state::State,
    stats::{Snapshot, Stats},
};
use anabranch_congestion::{CongestionControl, Control};

impl<B: Body> Endpoint<B> {
    /// The state of the connection.
    #[must_use]
    #[inline]
    pub const fn state(&self) -> State {
        self.state
    }

    /// How the connection ended, if not by FIN.
    #[must_use]
    pub fn ending(&self) -> Option<Ending> {
        self.cold.ended().map(|(ending, _)| ending)
    }

    /// When [`Self::ending`] came.
    #[must_use]
    pub fn ended_at(&self) -> Option<Instant> {
        self.cold.ended().map(|(_, at)| at)
    }

    /// Counters.
    #[must_use]
    #[inline]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// What was refused, by reason. [`Stats::malformed`] sums up what only a faulty or hostile peer
    /// sends.
    #[must_use]
    pub fn refusals(&self) -> Refusals {
        let notes = self.cold.notes.as_ref();
        notes.map_or_else(Refusals::default, |notes| notes.refused)
    }

    /// The congestion window, inflation excluded.
    #[must_use]
    #[inline]
    pub fn cwnd(&self) -> Bytes {
        self.control.cwnd()
    }

    /// Smoothed round-trip time; zero before the first sample.
    #[must_use]
    #[inline]
    pub const fn srtt(&self) -> Duration {
        self.rtt.srtt()
    }

    /// The congestion control.
    #[must_use]
    pub const fn control(&self) -> &Control {
        &self.control
    }

    /// The switches.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Octets written and not yet sent.
    #[must_use]
    pub fn unsent(&self) -> u64 {
        self.buffer.end().since(self.snd_nxt)
    }

    /// Whether everything written, and the FIN after it if there is one, is acknowledged.
    #[must_use]
    pub fn all_acknowledged(&self) -> bool {
        self.board.is_empty()
            && self.snd_nxt >= self.buffer.end()
            && (!self.wanted.fin || self.send_is_over())
    }

    /// The state of the sending side.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let cwnd = self.control.cwnd();
        let ssthresh = self.control.ssthresh();
        Snapshot {
            cwnd,
            ssthresh,
            in_flight: Bytes::new(self.board.in_flight()),
            srtt: self.rtt.srtt(),
            rttvar: self.rtt.rttvar(),
            min_rtt: self.rtt.min_rtt(),
            rto: self.rtt.rto(),
            state: match self.recovery.phase {
                Phase::Reduction => CongestionState::Reduction,
                Phase::Recovery => CongestionState::Recovery,
                Phase::Loss => CongestionState::Loss,
                Phase::Open if self.recovery.dup_acks > 0 => CongestionState::Disorder,
                Phase::Open if ssthresh.is_none_or(|ssthresh| cwnd < ssthresh) => {
                    CongestionState::SlowStart
                }
                Phase::Open => CongestionState::Open,
            },
            pacing_rate: self.pacing_rate(),
        }
    }
}
