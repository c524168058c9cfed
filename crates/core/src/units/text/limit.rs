//! Quantities that may be unlimited, or counted in more than one way.

use std::{fmt, str::FromStr};

use super::{ParseQuantityError, SIZE, number::Decimal};
use crate::units::{Bytes, Rate};

/// Capacity of a queue, or a threshold within it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Limit {
    /// No limit: `"unlimited"`.
    #[default]
    Unlimited,
    /// A count of packets: `"100 packets"`.
    Packets(u64),
    /// A sum of packet sizes: `"64 KiB"`.
    Bytes(Bytes),
    /// A multiple of the bandwidth-delay product: `"1 bdp"`. Resolving a scenario turns it into
    /// [`Limit::Bytes`].
    Bdp(f64),
}

impl Limit {
    /// Replaces a multiple of the bandwidth-delay product `bdp` by bytes; the result is never
    /// [`Limit::Bdp`].
    #[must_use]
    pub fn with_bdp(self, bdp: Bytes) -> Self {
        match self {
            Self::Bdp(factor) => Self::Bytes(bdp.mul_f64(factor)),
            other => other,
        }
    }
}

impl Limit {
    /// Whether another packet may join a queue of `packets`, with `bytes` in the queue including
    /// it.
    ///
    /// A multiple of the bandwidth-delay product admits everything: it is resolved before a run.
    #[must_use]
    #[inline]
    pub fn admits(self, packets: u64, bytes: u64) -> bool {
        match self {
            Self::Unlimited | Self::Bdp(_) => true,
            Self::Packets(limit) => packets < limit,
            Self::Bytes(limit) => bytes <= limit.get(),
        }
    }
}

/// Largest number of bandwidth-delay products in a limit.
const MAX_BDP: f64 = 1e6;

fn too_large(text: &str, largest: &str) -> ParseQuantityError {
    ParseQuantityError {
        message: format!("{text:?} is too large"),
        help: format!("expected {largest} at most"),
    }
}

fn problem(message: String) -> ParseQuantityError {
    ParseQuantityError {
        message,
        help: "expected how much fits, for example \"100 packets\", \"64 KiB\", \"1 bdp\" or \
               \"unlimited\""
            .to_owned(),
    }
}

/// A unit of limits in the spelling of other tools, and the spelling here.
fn other_spelling(unit: &str) -> Option<(&str, &'static str)> {
    match unit.to_ascii_lowercase().as_str() {
        "bdp" | "bdps" if unit != "bdp" => Some((unit, "bdp")),
        "p" | "pkt" | "pkts" | "packets" | "packet" if !matches!(unit, "packets" | "packet") => {
            Some((unit, "packets"))
        }
        _ => None,
    }
}

impl FromStr for Limit {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        if text == "unlimited" {
            return Ok(Self::Unlimited);
        }
        let (number, unit) =
            Decimal::prefix(text).map_err(|_| problem(format!("{text:?} is not a limit")))?;
        if number.is_negative() {
            return Err(problem(format!("{text:?} is negative")));
        }
        match unit {
            "packets" | "packet" => {
                let count = number
                    .times(1)
                    .ok_or_else(|| too_large(text, &Self::Packets(u64::MAX).to_string()))?;
                if !number.is_whole() {
                    return Err(problem(format!(
                        "{text:?} is not a whole number of packets"
                    )));
                }
                Ok(Self::Packets(count))
            }
            "bdp" => {
                let digits = text.strip_suffix("bdp").unwrap_or(text).trim_end();
                match digits.parse::<f64>() {
                    Ok(factor) if factor <= MAX_BDP => Ok(Self::Bdp(factor)),
                    _ => Err(too_large(text, &Self::Bdp(MAX_BDP).to_string())),
                }
            }
            "" => Err(problem(format!("{text:?} has no unit"))),
            _ => {
                if let Some(unit) = other_spelling(unit) {
                    let digits = text.strip_suffix(unit.0).unwrap_or(text).trim_end();
                    let mut wrong = problem(format!("{text:?} is not a limit"));
                    wrong.help = format!("did you mean \"{digits} {}\"? {}", unit.1, wrong.help);
                    return Err(wrong);
                }
                match SIZE.parse(text) {
                    Ok(bytes) => Ok(Self::Bytes(Bytes::new(bytes))),
                    Err(size) if SIZE.all_units().any(|known| known.name == unit) => Err(size),
                    Err(size) => Err(problem(size.message.replace("a size", "a limit"))),
                }
            }
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("unlimited"),
            Self::Packets(count) => write!(f, "{count} packets"),
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Bdp(factor) => write!(f, "{factor} bdp"),
        }
    }
}

/// Transmission rate of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LinkRate {
    /// Packets take no time: `"unlimited"`.
    #[default]
    Unlimited,
    /// This rate.
    Rate(Rate),
}

impl LinkRate {
    /// The rate; `None` without a limit.
    #[must_use]
    pub fn rate(self) -> Option<Rate> {
        match self {
            Self::Unlimited => None,
            Self::Rate(rate) => Some(rate),
        }
    }
}

impl FromStr for LinkRate {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        if text == "unlimited" {
            return Ok(Self::Unlimited);
        }
        text.parse().map(Self::Rate)
    }
}

impl fmt::Display for LinkRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("unlimited"),
            Self::Rate(rate) => rate.fmt(f),
        }
    }
}
