//! Reno (RFC 5681): slow start, congestion avoidance, and half the window at a loss.
//!
//! NewReno (RFC 6582) has the same window law; what differs is the recovery, and that is the
//! stack's (`transport.recovery`), so `new-reno` names this file too.
//!
//! # Differs from Linux
//! - The reduction is taken from FlightSize (RFC 5681 §3.1 equation 4); Linux takes it from cwnd.
//!
//! # Not implemented
//! - Nothing of RFC 5681 §3.1; §4.1 (restart after idle) is the endpoint's `on_idle`.

use anabranch_core::{
    registry::{Meta, Source},
    units::Bytes,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Ack, Congestion, CongestionControl, ControlParams, Init, Rto};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "reno",
    title: "Reno",
    summary: "One segment more per round trip, half the window at a loss.",
    sources: &[Source { id: "RFC 5681", items: &["§3.1", "§3.2"] }],
};

/// Reno has no parameters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {}

impl ControlParams for Params {}

/// Reno's state, in bytes.
#[derive(Debug)]
pub struct Reno {
    smss: u64,
    cwnd: u64,
    ssthresh: u64,
    /// Bytes acknowledged since cwnd last grew in congestion avoidance (RFC 5681 §3.1, the
    /// byte-counting way).
    bytes_acked: u64,
}

impl Reno {
    /// A control before its first acknowledgment.
    #[must_use]
    pub fn new(_params: &Params, init: &Init) -> Self {
        Self { smss: init.smss.get(), cwnd: init.initial_cwnd.get(), ssthresh: u64::MAX, bytes_acked: 0 }
    }
}

impl CongestionControl for Reno {
    fn on_ack(&mut self, ack: &Ack) {
        if ack.in_recovery || !ack.cwnd_limited {
            return;
        }
        let acked = ack.acked.get();
        if self.cwnd < self.ssthresh {
            // RFC 5681 §3.1 equation 2.
            self.cwnd += acked.min(self.smss);
            return;
        }
        self.bytes_acked += acked;
        if self.bytes_acked >= self.cwnd {
            self.bytes_acked -= self.cwnd;
            self.cwnd += self.smss;
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        // RFC 5681 §3.1 equation 4.
        self.ssthresh = (event.in_flight.get() / 2).max(2 * self.smss);
        self.cwnd = self.ssthresh;
        self.bytes_acked = 0;
    }

    fn on_rto(&mut self, event: &Rto) {
        // RFC 5681 §3.1: ssthresh is held when the timer expires again for the same segment.
        if event.consecutive == 1 {
            self.ssthresh = (event.in_flight.get() / 2).max(2 * self.smss);
        }
        self.cwnd = self.smss;
        self.bytes_acked = 0;
    }

    fn cwnd(&self) -> Bytes {
        Bytes::new(self.cwnd)
    }
    fn ssthresh(&self) -> Option<Bytes> {
        (self.ssthresh != u64::MAX).then(|| Bytes::new(self.ssthresh))
    }
}
