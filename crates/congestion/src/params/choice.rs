//! Choices in the arithmetic of a window.

use anabranch_core::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The base of a reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum ReductionBase {
    /// FlightSize, the data in flight (RFC 5681 §3.1 equation 4, RFC 9438 §4.6).
    #[default]
    FlightSize,
    /// The window, as in Linux, and in CUBIC of ns-3. The two differ if the receive window or the
    /// application keeps less data in flight.
    Cwnd,
}

impl ReductionBase {
    /// The base of a reduction by lost segments or marks, in bytes. Segments that limited transmit
    /// sent beyond the window do not count (RFC 5681 §3.2 step 1).
    #[must_use]
    pub fn on_congestion(self, in_flight: Bytes, cwnd: Bytes) -> Bytes {
        match self {
            Self::FlightSize => in_flight.min(cwnd),
            Self::Cwnd => cwnd,
        }
    }
    /// The base of a reduction by a timeout, in bytes. During a recovery the window may be far
    /// below FlightSize.
    #[must_use]
    pub fn on_rto(self, in_flight: Bytes, cwnd: Bytes) -> Bytes {
        match self {
            Self::FlightSize => in_flight,
            Self::Cwnd => cwnd,
        }
    }
}

/// Growth rate of W_est in CUBIC's Reno-friendly region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum RenoFriendly {
    /// As Reno, once W_est has reached the window before the last reduction (RFC 9438 §4.3).
    #[default]
    Rfc9438,
    /// 3 (1 - β) ÷ (1 + β) segments per round trip throughout (RFC 8312 §4.2, as in Linux and
    /// ns-3).
    Rfc8312,
}

/// The form of a control that Linux also has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Form {
    /// As in the paper.
    #[default]
    Published,
    /// As in Linux's module of the same name, as measured.
    Linux,
}

/// The unit in which a window is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum WindowCount {
    /// Bytes, as in the equations of the RFCs: every ACK changes the window slightly.
    #[default]
    Bytes,
    /// Whole segments, as in Linux and ns-3: the window grows by one once enough segments are
    /// acknowledged.
    Segments,
}
