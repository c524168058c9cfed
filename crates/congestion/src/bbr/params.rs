//! BBR's parameters, under the names of the draft's constants.

use anabranch_core::units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ControlParams, Family,
    params::{Gain, Packets, Samples, Share},
};

/// Acknowledgments that update the count of packet-timed round trips and the bandwidth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Rounds {
    /// Those whose rate sample spans the smallest round-trip time, as in Linux.
    #[default]
    ReliableSamples,
    /// All that deliver data, with the rate of the last reliable sample (draft 00 §4.1.1).
    Acknowledgments,
}

/// Parameters of BBR.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// BBRHighGain: gain of rate and window in Startup. 2/ln 2 is the smallest value that lets the
    /// delivery rate double every round trip; Drain uses its inverse.
    pub high_gain: Gain,
    /// Gain of the window in ProbeBW: room for delayed and aggregated ACKs.
    pub cwnd_gain: Gain,
    /// Gain of the rate while ProbeBW probes for more bandwidth.
    pub probe_up_gain: Gain,
    /// Gain of the rate while ProbeBW drains the queue that the probe has built.
    pub probe_down_gain: Gain,
    /// BtlBwFilterLen: round trips for which a delivery rate remains in the maximum.
    pub bw_window_rounds: Samples,
    /// Acknowledgments that update rounds and BtlBw: those with a reliable rate sample (Linux), or all
    /// (draft 00 §4.1.1).
    pub rounds: Rounds,
    /// RTpropFilterLen: lifetime of the smallest round-trip time.
    pub min_rtt_window: Duration,
    /// ProbeRTTDuration: minimum time for which the window is `min_window`.
    pub probe_rtt_duration: Duration,
    /// BBRMinPipeCwnd: the smallest window, except after a timeout.
    pub min_window: Packets,
    /// Startup ends if the bandwidth has not grown by this factor …
    pub full_bw_growth: Gain,
    /// … in this number of round trips.
    pub full_bw_rounds: Samples,
    /// BBRPacingMarginPercent: the share of the rate that is left for the queue to drain. 0.01 in
    /// Linux and in draft-cardwell-iccrg-bbr-congestion-control-02; 0 in draft 00.
    pub pacing_margin: Share,
    /// Share of the data that arrives beyond the estimated bandwidth (aggregated ACKs) for which
    /// the window has room: 1 in Linux and in draft 02, 0 in draft 00.
    pub extra_acked_gain: Share,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            high_gain: Gain::new(2.885),
            cwnd_gain: Gain::new(2.0),
            probe_up_gain: Gain::new(1.25),
            probe_down_gain: Gain::new(0.75),
            bw_window_rounds: Samples::new(10),
            rounds: Rounds::ReliableSamples,
            min_rtt_window: Duration::from_secs(10),
            probe_rtt_duration: Duration::from_millis(200),
            min_window: Packets::new(4),
            full_bw_growth: Gain::new(1.25),
            full_bw_rounds: Samples::new(3),
            pacing_margin: Share::new(0.01),
            extra_acked_gain: Share::new(1.0),
        }
    }
}

impl ControlParams for Params {
    const FAMILY: Family = Family::ModelBased;

    fn sets_its_rate(&self) -> bool {
        true
    }
}
