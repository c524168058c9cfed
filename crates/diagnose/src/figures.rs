//! Figures that people know: responsiveness, the use of the path's rate, and Jain's index.

use serde::Serialize;

use crate::{
    connection::rtt::Rtt,
    path::{Model, Seen},
    time::millis,
};

/// Share of the round trips, the shortest ones, over which the mean is taken.
const TRIMMED_PERCENT: u32 = 95;
/// Least number of round trips under load.
const FEW: u64 = 10;
const MS_PER_MINUTE: f64 = 60_000.0;

/// Round trips per minute, idle and under load (draft-ietf-ippm-responsiveness). `None` if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Responsiveness {
    /// The least round trip.
    pub idle_ms: Option<f64>,
    /// 60,000 ÷ `idle_ms`.
    pub idle_rpm: Option<f64>,
    /// The mean of the shortest 95 % of the round trips that were measured while the connection
    /// filled the path.
    pub loaded_ms: Option<f64>,
    /// 60,000 ÷ `loaded_ms`.
    pub loaded_rpm: Option<f64>,
    /// These round trips, all of them.
    pub loaded_samples: u64,
}

impl Responsiveness {
    /// `back_ms` is the sender's part of the round trip.
    pub(crate) fn of(rtt: &Rtt, back_ms: f64) -> Self {
        let idle = rtt.min.map(millis);
        let idle_ms = idle.map(|ms| ms + back_ms).filter(|ms| *ms > 0.0);
        let loaded = &rtt.loaded;
        let loaded_ms = if loaded.count() < FEW {
            None
        } else {
            let quantile = |k: u32| loaded.percentile(f64::from(k) + 0.5);
            let sum: u64 = (0..TRIMMED_PERCENT).filter_map(quantile).sum();
            Some(sum as f64 / f64::from(TRIMMED_PERCENT) / 1e3 + back_ms)
        };
        let rpm = |ms: f64| MS_PER_MINUTE / ms;
        Self {
            idle_ms,
            idle_rpm: idle_ms.map(rpm),
            loaded_ms,
            loaded_rpm: loaded_ms.map(rpm),
            loaded_samples: loaded.count(),
        }
    }
}

/// Jain's index of the connections to a host, or from one, while most of them sent data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fairness {
    /// The host that all of them send to or receive from.
    pub host: String,
    /// Whether the host receives their data.
    pub receives: bool,
    /// The connections.
    pub connections: Vec<u64>,
    /// Start of the time in which they all sent data, as in the file.
    pub start_s: f64,
    /// Its length.
    pub duration_s: f64,
    /// Their goodputs in this time.
    pub goodput_mbit_s: Vec<f64>,
    /// The square of the sum of the goodputs ÷ their number ÷ the sum of their squares: 1 if they
    /// are equal.
    pub jain: f64,
}

/// A goodput ÷ the rate of the path, if that was measured.
pub(crate) fn rate_used(model: &Model, goodput_mbit_s: Option<f64>) -> Option<f64> {
    let rate = model.rate_mbit_s;
    let rate = rate
        .value
        .filter(|value| rate.seen == Seen::Measured && *value > 0.0)?;
    Some(goodput_mbit_s? / rate)
}
