//! A replay of recorded traffic: each packet's length at its time.

pub mod recording;
pub mod select;

use anabranch_capture::Selection;
use anabranch_core::units::{Duration, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::profile::Wrong;
pub use recording::{CaptureSummary, Recording, RecordingError};
use select::{Captured, Host};

/// Parameters of a replay. Only lengths and times are taken from the capture: the packets have the
/// addresses, ports and flags of the flow, and no host answers. A packet shorter than the flow's
/// headers (28 bytes, 48 over IPv6) is sent as the headers alone. A capture in which hosts answer
/// each other needs `from` or `to`: a flow sends in one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The capture: pcap or pcapng, optionally compressed with gzip or zstd, of 1 GiB at most. Its
    /// path is relative to the scenario's file.
    #[schemars(extend("x-type" = "path"))]
    pub file: String,
    /// Only packets from this sender: an address, a network or `*`, with or without a port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Host")]
    pub from: Option<Host>,
    /// Only packets to this receiver, in the same form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Host")]
    pub to: Option<Host>,
    /// Only packets of this protocol: its name, or its number in IP headers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Captured")]
    pub protocol: Option<Captured>,
    /// The speed relative to the recording, 0.001 to 1000.
    #[serde(default = "as_recorded")]
    #[schemars(range(min = 0.001, max = 1000.0))]
    pub speed: f64,
    /// The mean rate of IP packets; the times are scaled to reach it. Instead of `speed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Rate")]
    pub rate: Option<Rate>,
    /// Whether it begins again after its last packet and a pause of its mean interval.
    #[serde(default)]
    pub repeat: bool,
}

fn as_recorded() -> f64 {
    1.0
}

impl Replay {
    /// Checks that its parameters do not contradict each other.
    ///
    /// # Errors
    /// For the first contradiction.
    pub fn check(&self) -> Result<(), Wrong> {
        if !(0.001..=1000.0).contains(&self.speed) {
            let message = format!("a speed of {} is out of range", self.speed);
            return Err((&["speed"], message, "a number from 0.001 to 1000"));
        }
        #[expect(clippy::float_cmp, reason = "the default is this very number")]
        if self.rate.is_some() && self.speed != as_recorded() {
            let message = "`speed` and `rate` contradict each other".to_owned();
            return Err((&["speed"], message, "one of them"));
        }
        Ok(())
    }

    /// The selection of packets of the capture.
    #[must_use]
    pub fn selection(&self) -> Selection {
        Selection {
            from: self.from.map(|host| host.0),
            to: self.to.map(|host| host.0),
            protocol: self.protocol.map(|protocol| protocol.0),
        }
    }

    /// The speed relative to the recording, from `speed` or from `rate`.
    ///
    /// # Errors
    /// If `rate` is given for a recording with a span of zero.
    pub fn factor(&self, recording: &Recording) -> Result<f64, Wrong> {
        let takes = recording.span();
        let Some(rate) = self.rate else {
            if self.repeat && takes.is_zero() {
                let message = format!(
                    "all packets of `{}` have the same time, so it cannot repeat",
                    self.file
                );
                return Err((&["repeat"], message, "a longer recording, or no `repeat`"));
            }
            return Ok(self.speed);
        };
        if takes.is_zero() {
            let message = format!(
                "all packets of `{}` have the same time, so it has no rate",
                self.file
            );
            return Err((&["rate"], message, "a longer recording, or `speed`"));
        }
        let mean = recording.bytes() as f64 * 8.0 / takes.as_secs_f64();
        Ok(rate.bits_per_s() as f64 / mean)
    }
}

/// Scales a time of the recording by the speed.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float-to-int cast saturates"
)]
pub fn at_speed(time: Duration, factor: f64) -> Duration {
    Duration::from_picos((time.as_picos() as f64 / factor) as u64)
}
