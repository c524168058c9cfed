//! Data caps and rate limits of paths.

use std::{fmt, str::FromStr};

use anabranch_core::units::{Bytes, Rate};
use anabranch_document::from_text;
use serde::Deserialize;

use crate::calendar::Period;

/// A number of octets in a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cap {
    /// Octets of IP packets in both directions.
    pub bytes: u64,
    /// The period; a month begins on its first day here.
    pub period: Period,
}

impl FromStr for Cap {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (size, period) = text.split_once('/').ok_or("has no period")?;
        let size: Bytes = size.trim().parse().map_err(|_| "has no size")?;
        let period = match period.trim() {
            "day" => Period::Day,
            "week" => Period::Week,
            "month" => Period::Month(1),
            _ => return Err("has another period than `day`, `week` or `month`"),
        };
        if size.get() == 0 {
            return Err("permits nothing");
        }
        let bytes = size.get();
        Ok(Self { bytes, period })
    }
}

impl fmt::Display for Cap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} a {}", amount(self.bytes), self.period.name())
    }
}

from_text!(
    Cap,
    "a size and a period, for example \"20 GB/month\", \"5 GB/week\" or \"500 MB/day\""
);

/// A number of octets for people: three digits and a decimal unit.
pub fn amount(octets: u64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let value = octets as f64;
    match units.into_iter().find(|(scale, _)| value >= *scale) {
        Some((scale, unit)) => {
            let value = value / scale;
            let decimals = match value {
                value if value >= 99.95 => 0,
                value if value >= 9.995 => 1,
                _ => 2,
            };
            let digits = format!("{value:.decimals$}");
            let digits = if decimals > 0 {
                digits.trim_end_matches('0').trim_end_matches('.')
            } else {
                &digits
            };
            format!("{digits} {unit}")
        }
        None => format!("{octets} bytes"),
    }
}

/// The use of a path whose cap is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AtCap {
    /// As a metered path: if no other path delivers.
    #[default]
    Metered,
    /// None.
    Off,
}

/// A limit of a path's sending rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxRate(pub Rate);

/// The least limit: the rate below which the gateway sets no path.
const LEAST_BITS_PER_S: u64 = 64_000;

impl FromStr for MaxRate {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse::<Rate>() {
            Ok(rate) if rate.bits_per_s() < LEAST_BITS_PER_S => Err("is below 64 kbit/s"),
            Ok(rate) => Ok(Self(rate)),
            Err(_) => Err("is no rate"),
        }
    }
}

from_text!(MaxRate, "a rate with its unit, for example \"20 Mbit/s\"");

#[cfg(test)]
mod tests {
    use super::{Cap, amount};

    #[test]
    fn caps_are_read_and_shown() {
        for (text, shown) in [
            ("20 GB/month", "20 GB a month"),
            ("1.5 GB / week", "1.5 GB a week"),
            ("500 MB/day", "500 MB a day"),
            ("512 MiB/day", "537 MB a day"),
        ] {
            assert_eq!(text.parse::<Cap>().expect(text).to_string(), shown);
        }
        for (text, why) in [
            ("20 GB", "has no period"),
            ("20/month", "has no size"),
            ("0 GB/month", "permits nothing"),
            (
                "20 GB/year",
                "has another period than `day`, `week` or `month`",
            ),
        ] {
            assert_eq!(text.parse::<Cap>(), Err(why));
        }
    }

    #[test]
    fn amounts_have_three_digits() {
        let shown = [
            0,
            999,
            1_000,
            1_234_567,
            99_960_000,
            16_049_000_000,
            123_456_000_000,
        ];
        assert_eq!(
            shown.map(amount),
            [
                "0 bytes",
                "999 bytes",
                "1 kB",
                "1.23 MB",
                "100 MB",
                "16 GB",
                "123 GB"
            ]
        );
    }
}
