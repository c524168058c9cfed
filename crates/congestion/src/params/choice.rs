//! Choices among ways of reckoning a window.

use anabranch_core::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// From what a reduction is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum ReductionBase {
    /// From what is in flight, FlightSize (RFC 5681 §3.1 equation 4, RFC 9438 §4.6).
    #[default]
    FlightSize,
    /// From the window, as Linux does, and ns-3 in CUBIC. It matters where the receive window or
    /// the application keeps less in flight.
    Cwnd,
}

impl ReductionBase {
    /// The bytes that a reduction by lost segments or marks starts from. Segments that limited
    /// transmit sent beyond the window do not count (RFC 5681 §3.2 step 1).
    #[must_use]
    pub fn on_congestion(self, in_flight: Bytes, cwnd: Bytes) -> Bytes {
        match self {
            Self::FlightSize => in_flight.min(cwnd),
            Self::Cwnd => cwnd,
        }
    }
    /// The bytes that a reduction by a timeout starts from. The window may be far below
    /// FlightSize there, in the middle of a recovery.
    #[must_use]
    pub fn on_rto(self, in_flight: Bytes, cwnd: Bytes) -> Bytes {
        match self {
            Self::FlightSize => in_flight,
            Self::Cwnd => cwnd,
        }
    }
}

/// How fast W_est grows in CUBIC's Reno-friendly region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum RenoFriendly {
    /// As Reno itself once the window from before the last reduction is reached (RFC 9438 §4.3).
    #[default]
    Rfc9438,
    /// By 3 (1 - β) ÷ (1 + β) segments per round trip throughout (RFC 8312 §4.2, as Linux and
    /// ns-3 do).
    Rfc8312,
}

/// The form of a control that Linux has as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Form {
    /// As in its paper.
    #[default]
    Published,
    /// As in Linux's module of the same name, as measured.
    Linux,
}

/// In what a window is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum WindowCount {
    /// In bytes, as the equations of the RFCs have it: every ACK moves the window a little.
    #[default]
    Bytes,
    /// In whole segments, as Linux and ns-3 do: the window moves by one once enough are
    /// acknowledged.
    Segments,
}
