//! BBRv3's parameters: the constants of draft-ietf-ccwg-bbr §2.

use anabranch_core::units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ControlParams, Family,
    params::{DecreaseFactor, Gain, LossThreshold, Packets, Samples, Share},
};

/// Parameters of BBRv3.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// BBR.StartupPacingGain (§2.5): gain of the rate in Startup. 4 ln 2 lets the rate double every
    /// round trip.
    pub startup_pacing_gain: Gain,
    /// BBR.DrainPacingGain (§2.5): gain of the rate in Drain. 0.5 in draft 06; 0.35 in earlier
    /// drafts.
    pub drain_pacing_gain: Gain,
    /// Gain of the rate in ProbeBW_UP (§5.3.3.5).
    pub probe_up_pacing_gain: Gain,
    /// Gain of the rate in ProbeBW_DOWN (§5.3.3.1).
    pub probe_down_pacing_gain: Gain,
    /// BBR.DefaultCwndGain (§2.6): gain of the window, except in ProbeBW_UP and ProbeRTT.
    pub cwnd_gain: Gain,
    /// Gain of the window in ProbeBW_UP (§5.3.3.5).
    pub probe_up_cwnd_gain: Gain,
    /// BBR.ProbeRTTCwndGain (§2.16.2): gain of the window in ProbeRTT.
    pub probe_rtt_cwnd_gain: Gain,
    /// BBR.PacingMarginPercent (§2.5), as a share: the rate is below the bandwidth by this share.
    pub pacing_margin: Share,
    /// BBR.LossThresh (§2.8): the share of a round trip's data that may be lost during a bandwidth
    /// probe.
    pub loss_threshold: LossThreshold,
    /// BBR.Beta (§2.8): a round trip with losses keeps at least this share of the short-term
    /// bounds, and a probe that lost too much at least this share of the target.
    pub beta: DecreaseFactor,
    /// BBR.Headroom (§2.8): the share of `inflight_longterm` left to other flows in CRUISE.
    pub headroom: Share,
    /// BBR.MinPipeCwnd (§2.8): the smallest window, except right after a timeout.
    pub min_window: Packets,
    /// BBR.MinRTTFilterLen (§2.16.1): lifetime of the smallest round-trip time.
    pub min_rtt_window: Duration,
    /// BBR.ProbeRTTInterval (§2.16.2): ProbeRTT follows if the round-trip time has had no new
    /// minimum for this time.
    pub probe_rtt_interval: Duration,
    /// BBR.ProbeRTTDuration (§2.16.2): minimum time for which the window is reduced.
    pub probe_rtt_duration: Duration,
    /// BBR.MaxBwFilterLen (§2.11): cycles of ProbeBW for which a delivery rate remains in the
    /// maximum.
    pub bw_window_cycles: Samples,
    /// BBR.ExtraAckedFilterLen (§2.12): round trips for which the largest ACK aggregation remains
    /// in the maximum; one in Startup.
    pub extra_acked_window_rounds: Samples,
    /// The pipe is considered full if the delivery rate has not grown by this factor …
    pub full_bw_growth: Gain,
    /// … in this number of round trips (§5.3.1.2).
    pub full_bw_rounds: Samples,
    /// BBRStartupFullLossCnt (§5.3.1.3): Startup ends by losses if at least this number of separate
    /// runs of a round trip's data were lost.
    pub startup_full_losses: Samples,
    /// The minimum time between bandwidth probes (§5.3.3.8) …
    pub probe_wait_min: Duration,
    /// … to which a random part of this is added.
    pub probe_wait_spread: Duration,
    /// Upper bound of the round trips between bandwidth probes. The bound is the number of segments
    /// in the window if that is less, and is reduced by a random 0 or 1 (§5.3.3.8: coexistence with
    /// Reno and CUBIC).
    pub probe_wait_rounds: Samples,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            startup_pacing_gain: Gain::new(2.77),
            drain_pacing_gain: Gain::new(0.5),
            probe_up_pacing_gain: Gain::new(1.25),
            probe_down_pacing_gain: Gain::new(0.9),
            cwnd_gain: Gain::new(2.0),
            probe_up_cwnd_gain: Gain::new(2.25),
            probe_rtt_cwnd_gain: Gain::new(0.5),
            pacing_margin: Share::new(0.01),
            loss_threshold: LossThreshold::new(0.02),
            beta: DecreaseFactor::new(0.7),
            headroom: Share::new(0.15),
            min_window: Packets::new(4),
            min_rtt_window: Duration::from_secs(10),
            probe_rtt_interval: Duration::from_secs(5),
            probe_rtt_duration: Duration::from_millis(200),
            bw_window_cycles: Samples::new(2),
            extra_acked_window_rounds: Samples::new(10),
            full_bw_growth: Gain::new(1.25),
            full_bw_rounds: Samples::new(3),
            startup_full_losses: Samples::new(6),
            probe_wait_min: Duration::from_secs(2),
            probe_wait_spread: Duration::from_secs(1),
            probe_wait_rounds: Samples::new(63),
        }
    }
}

impl ControlParams for Params {
    const FAMILY: Family = Family::ModelBased;

    fn sets_its_rate(&self) -> bool {
        true
    }
}
