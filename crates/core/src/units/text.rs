//! Quantities in the spelling of scenario files: `"100 Mbit/s"`, `"15 ms"`, `"64 KiB"`, `"1 bdp"`.
//!
//! A quantity is a number and a unit. Prefixes k, M, G, T are decimal, Ki, Mi, Gi, Ti binary.
//! Reading is exact: the number is read as a decimal, without a binary float, and rounded to the
//! nearest integer of the type (a picosecond, a byte, a bit per second). [`Display`] writes the
//! canonical form, which reads back as the same value.
//!
//! [`Display`]: std::fmt::Display

mod limit;
mod number;
mod wire;

pub use limit::{Limit, LinkRate};

use std::{fmt, str::FromStr};

use number::Decimal;

use super::{Bytes, Duration, Power, Rate};

/// The error of a text that is not such a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}; {help}")]
pub struct ParseQuantityError {
    /// Description of the error.
    pub message: String,
    /// The expected form, with an example.
    pub help: String,
}

/// A unit, as a multiple of the type's unit.
struct Unit {
    name: &'static str,
    scale: u64,
}

const fn unit(name: &'static str, scale: u64) -> Unit {
    Unit { name, scale }
}

/// Name and units of a kind of quantity; the canonical units come first, in ascending order.
struct Kind {
    noun: &'static str,
    example: &'static str,
    /// The largest value, rounded.
    largest: &'static str,
    units: &'static [Unit],
    /// Other spellings, which are read but never written.
    aliases: &'static [Unit],
}

const RATE: Kind = Kind {
    noun: "a rate",
    example: "100 Mbit/s",
    largest: "18446744 Tbit/s",
    units: &[
        unit("bit/s", 1),
        unit("kbit/s", 1_000),
        unit("Mbit/s", 1_000_000),
        unit("Gbit/s", 1_000_000_000),
        unit("Tbit/s", 1_000_000_000_000),
    ],
    aliases: &[
        unit("Kibit/s", 1 << 10),
        unit("Mibit/s", 1 << 20),
        unit("Gibit/s", 1 << 30),
        unit("Tibit/s", 1 << 40),
    ],
};

const DURATION: Kind = Kind {
    noun: "a duration",
    example: "15 ms",
    largest: "9223372 s (106 days)",
    units: &[
        unit("ps", 1),
        unit("ns", 1_000),
        unit("us", 1_000_000),
        unit("ms", 1_000_000_000),
        unit("s", super::PS_PER_S),
    ],
    aliases: &[
        unit("µs", 1_000_000),
        unit("min", 60 * super::PS_PER_S),
        unit("h", 3_600 * super::PS_PER_S),
    ],
};

const SIZE: Kind = Kind {
    noun: "a size",
    example: "64 KiB",
    largest: "18446744 TB",
    units: &[
        unit("bytes", 1),
        unit("kB", 1_000),
        unit("MB", 1_000_000),
        unit("GB", 1_000_000_000),
        unit("TB", 1_000_000_000_000),
    ],
    aliases: &[
        unit("byte", 1),
        unit("B", 1),
        unit("KiB", 1 << 10),
        unit("MiB", 1 << 20),
        unit("GiB", 1 << 30),
        unit("TiB", 1 << 40),
    ],
};

const POWER: Kind = Kind {
    noun: "a power",
    example: "0.5 W",
    largest: "18446744 MW",
    units: &[
        unit("uW", 1),
        unit("mW", 1_000),
        unit("W", 1_000_000),
        unit("kW", 1_000_000_000),
        unit("MW", 1_000_000_000_000),
    ],
    aliases: &[unit("µW", 1)],
};

/// The longest duration in a text, about 106 days: the sum of two fits an
/// [`Instant`](super::Instant).
pub const MAX_DURATION: Duration = Duration::from_picos(i64::MAX.unsigned_abs());

impl Kind {
    fn all_units(&self) -> impl Iterator<Item = &'static Unit> {
        self.units.iter().chain(self.aliases)
    }

    /// The units from the smallest to the largest, with other names of a unit in parentheses:
    /// `us (µs)`.
    fn unit_list(&self) -> String {
        let mut units: Vec<_> = self.all_units().collect();
        units.sort_by_key(|unit| unit.scale);
        let same: Vec<_> = units
            .chunk_by(|a, b| a.scale == b.scale)
            .map(|same| {
                let names: Vec<_> = same.iter().map(|unit| unit.name).collect();
                match &names[..] {
                    [name, others @ ..] if !others.is_empty() => {
                        format!("{name} ({})", others.join(", "))
                    }
                    names => names.concat(),
                }
            })
            .collect();
        same.join(", ")
    }

    fn too_large(&self, text: &str) -> ParseQuantityError {
        ParseQuantityError {
            message: format!("{text:?} is too large"),
            help: format!("expected {} at most", self.largest),
        }
    }

    fn problem(&self, message: String) -> ParseQuantityError {
        ParseQuantityError {
            message,
            help: format!(
                "expected {} with its unit, for example \"{}\" (units: {})",
                self.noun,
                self.example,
                self.unit_list()
            ),
        }
    }

    /// Reads `text` as an integer of the type.
    fn parse(&self, text: &str) -> Result<u64, ParseQuantityError> {
        let (number, rest) = Decimal::prefix(text)
            .map_err(|_| self.problem(format!("{text:?} is not {}", self.noun)))?;
        let Some(unit) = self.all_units().find(|u| u.name == rest) else {
            return Err(self.wrong_unit(text, rest));
        };
        if number.is_negative() {
            return Err(self.problem(format!("{text:?} is negative")));
        }
        let value = number
            .times(unit.scale)
            .ok_or_else(|| self.too_large(text))?;
        if value == 0 && !number.is_zero() {
            return Err(self.problem(format!("{text:?} is too small")));
        }
        Ok(value)
    }

    fn wrong_unit(&self, text: &str, rest: &str) -> ParseQuantityError {
        if rest.is_empty() {
            return self.problem(format!("{text:?} has no unit"));
        }
        let mut problem = self.problem(format!("{text:?} is not {}", self.noun));
        // Mbps, mbit/s, MBIT/S, KB, MS …
        let plain = |s: &str| {
            s.to_lowercase()
                .replace("bps", "bit/s")
                .replace("it/sec", "it/s")
        };
        if let Some(unit) = self.all_units().find(|u| plain(u.name) == plain(rest)) {
            let number = text.strip_suffix(rest).unwrap_or(text).trim_end();
            problem.help = format!("did you mean \"{number} {}\"? {}", unit.name, problem.help);
        }
        problem
    }

    /// The error for a wrong text, with a suggestion.
    fn meant(&self, text: &str, meant: &str) -> ParseQuantityError {
        let mut problem = self.problem(format!("{text:?} is not {}", self.noun));
        problem.help = format!("did you mean {meant}? {}", problem.help);
        problem
    }

    /// Writes the canonical spelling: the largest unit of which the value is at least one.
    fn write(&self, value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = self
            .units
            .iter()
            .rev()
            .find(|u| value >= u.scale)
            .unwrap_or(&self.units[0]);
        number::write(value, unit.scale, unit.name, f)
    }

    /// The pattern of the spelling, for the JSON Schema.
    fn pattern(&self) -> String {
        let names: Vec<_> = self.all_units().map(|u| u.name).collect();
        format!(
            r"^[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)? ?({})$",
            names.join("|")
        )
    }
}

/// The rate of a text in octets per second, `20 MB/s` or `20 MBps`: eight times the bits.
fn octets_per_second(text: &str) -> Option<Rate> {
    let (number, rest) = Decimal::prefix(text).ok()?;
    if number.is_negative() {
        return None;
    }
    let size = ["/s", "/sec", "ps"]
        .into_iter()
        .find_map(|per| rest.strip_suffix(per))?;
    let unit = SIZE.all_units().find(|unit| unit.name == size)?;
    Rate::new(number.times(unit.scale.checked_mul(8)?)?)
}

impl FromStr for Rate {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        if let Some(rate) = octets_per_second(text) {
            return Err(RATE.meant(text, &format!("\"{rate}\"")));
        }
        Self::new(RATE.parse(text)?)
            .ok_or_else(|| RATE.problem(format!("{text:?} is zero, and a rate is positive")))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        RATE.write(self.bits_per_s(), f)
    }
}

impl FromStr for Duration {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        let value = Self::from_picos(DURATION.parse(text)?);
        if value > MAX_DURATION {
            return Err(DURATION.too_large(text));
        }
        Ok(value)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0 s");
        }
        DURATION.write(self.as_picos(), f)
    }
}

impl FromStr for Power {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        POWER.parse(text).map(Self::from_microwatts)
    }
}

impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.microwatts() == 0 {
            return f.write_str("0 W");
        }
        POWER.write(self.microwatts(), f)
    }
}

impl FromStr for Bytes {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        SIZE.parse(text).map(Self::new)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.get();
        let (scale, name) = match value {
            0 => (1, "bytes"),
            v if v % (1 << 20) == 0 => (1 << 20, "MiB"),
            v if v % 1_000_000 == 0 => (1_000_000, "MB"),
            v if v % (1 << 10) == 0 => (1 << 10, "KiB"),
            v if v % 10_000 == 0 => (1_000, "kB"),
            _ => (1, "bytes"),
        };
        number::write(value, scale, name, f)
    }
}

#[cfg(test)]
mod tests;
