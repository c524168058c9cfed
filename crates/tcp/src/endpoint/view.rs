//! Read access to the state of an endpoint.

use anabranch_congestion::CongestionControl as _;
use anabranch_core::{
    body::Body,
    packet::Ecn,
    units::{Bytes, Duration, Instant},
};

use super::{Ending, Endpoint};
use crate::{
    refusal::Refusals,
    send_limit::{LimitTimes, SendLimit},
    settings::Settings,
    state::State,
    stats::{Snapshot, Stats},
    window_log::WindowEvent,
};
use anabranch_congestion::Control;

/// The options that both ends of a connection use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each option is on or off")]
pub struct Agreed {
    /// Timestamps (RFC 7323).
    pub timestamps: bool,
    /// SACK (RFC 2018).
    pub sack: bool,
    /// Window scaling (RFC 7323).
    pub window_scaling: bool,
    /// ECN (RFC 3168, RFC 9768).
    pub ecn: bool,
}

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

    /// Time of [`Self::ending`].
    #[must_use]
    pub fn ended_at(&self) -> Option<Instant> {
        self.cold.ended().map(|(_, at)| at)
    }

    /// The options that both ends use.
    #[must_use]
    pub const fn agreed(&self) -> Agreed {
        Agreed {
            timestamps: self.rcv.agreed.timestamps,
            sack: self.rcv.agreed.sack,
            window_scaling: self.rcv.agreed.scaling,
            ecn: self.rcv.agreed.ecn,
        }
    }

    /// Whether the octet with the number `seq` is outstanding, or our SYN.
    #[must_use]
    pub fn is_outstanding(&self, seq: u32) -> bool {
        let una = self.snd.peer.una();
        let seq = una.near(seq);
        let syn = self.snd.queue.first_octet() - 1;
        seq >= una && seq < self.snd.nxt
            || seq == syn && !self.state.is_synchronized() && self.snd.nxt > syn
    }

    /// Counters.
    #[must_use]
    #[inline]
    pub const fn stats(&self) -> Stats {
        Stats::of(&self.snd.stats, &self.rcv.stats)
    }

    /// Refused segments, by reason. [`Stats::malformed`] sums up the reasons that only a faulty or
    /// hostile peer causes.
    #[must_use]
    pub fn refusals(&self) -> Refusals {
        let notes = self.cold.notes.as_ref();
        let refused = notes.map_or_else(Refusals::default, |notes| notes.refused);
        match self.snd.recovery.refused() {
            Some(blocks) => refused.plus(blocks),
            None => refused,
        }
    }

    /// The congestion window, inflation excluded.
    #[must_use]
    #[inline]
    pub fn cwnd(&self) -> Bytes {
        self.snd.window.cwnd()
    }

    /// Smoothed round-trip time; zero before the first sample.
    #[must_use]
    #[inline]
    pub const fn srtt(&self) -> Duration {
        self.snd.rtt.srtt()
    }

    /// The congestion control.
    #[must_use]
    pub const fn control(&self) -> &Control {
        self.snd.window.control()
    }

    /// The switches.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Octets written and not yet sent.
    #[must_use]
    pub fn unsent(&self) -> u64 {
        self.snd.queue.unsent(self.snd.nxt)
    }

    /// Whether everything written, and the FIN after it if there is one, is acknowledged.
    #[must_use]
    pub fn all_acknowledged(&self) -> bool {
        self.snd.recovery.is_idle()
            && self.snd.nxt >= self.snd.queue.end()
            && !self.snd.queue.is_closing()
    }

    /// The state of the sending side.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let cwnd = self.snd.window.cwnd();
        let ssthresh = self.snd.window.ssthresh();
        Snapshot {
            cwnd,
            ssthresh,
            in_flight: Bytes::new(self.snd.recovery.in_flight()),
            srtt: self.snd.rtt.srtt(),
            rttvar: self.snd.rtt.rttvar(),
            min_rtt: self.snd.rtt.min_rtt(),
            rto: self.snd.rtt.rto(),
            state: self
                .snd
                .recovery
                .congestion_state(self.snd.window.is_slow_start()),
            pacing_rate: self.snd.pacing_rate(),
            bandwidth_estimate: self.snd.window.control().bandwidth_estimate(),
        }
    }

    /// The current limit of the sender.
    #[must_use]
    pub const fn send_limit(&self) -> SendLimit {
        self.snd.limits.limit()
    }

    /// How long each limit has held, up to now.
    #[must_use]
    pub fn limit_times(&self, now: Instant) -> LimitTimes {
        self.snd.limits.times(now)
    }

    /// Keeps every change of the window from now on, for [`Self::take_window_log`].
    pub fn keep_window_log(&mut self) {
        self.snd.window.keep_log();
    }

    /// The changes of the window since the last call, oldest first; none unless they are kept.
    pub fn take_window_log(&mut self) -> Vec<WindowEvent> {
        self.snd.window.take_log()
    }

    /// The ECN field of a pure acknowledgment.
    #[must_use]
    pub fn acknowledgment_ecn(&self) -> Ecn {
        self.rcv.acknowledgment_ecn()
    }
}
