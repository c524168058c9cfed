//! A value with its confidence interval, and the statistics of intervals.

use serde::Serialize;

/// The 97.5th percentile of the normal distribution.
pub(super) const Z: f64 = 1.959_964;

/// The kind of an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seen {
    /// The value lies in the interval.
    Measured,
    /// The path was not loaded enough: the value may be larger.
    AtLeast,
    /// The value may be smaller.
    AtMost,
    /// The capture does not show the value.
    NotSeen,
}

/// A value with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The value, or the bound.
    pub value: Option<f64>,
    /// The lower end of the interval.
    pub low: Option<f64>,
    /// The upper end of the interval.
    pub high: Option<f64>,
    /// Its kind: a value or a bound.
    pub seen: Seen,
}

impl Estimate {
    pub(super) const NOT_SEEN: Self = Self::new(Seen::NotSeen, None, None, None);

    const fn new(seen: Seen, value: Option<f64>, low: Option<f64>, high: Option<f64>) -> Self {
        Self {
            value,
            low,
            high,
            seen,
        }
    }

    pub(super) const fn measured(value: f64, low: f64, high: f64) -> Self {
        Self::new(Seen::Measured, Some(value), Some(low), Some(high))
    }

    pub(crate) const fn at_least(value: f64) -> Self {
        Self::new(Seen::AtLeast, Some(value), Some(value), None)
    }

    /// A share of which no case was seen.
    pub(super) const fn none_up_to(high: f64) -> Self {
        Self::new(Seen::AtMost, Some(0.0), Some(0.0), Some(high))
    }

    pub(super) const fn at_most(value: f64) -> Self {
        Self::new(Seen::AtMost, Some(value), None, Some(value))
    }

    /// The same in another unit.
    pub(super) fn scaled(self, by: f64) -> Self {
        let [value, low, high] = [self.value, self.low, self.high].map(|of| of.map(|of| of * by));
        Self::new(self.seen, value, low, high)
    }
}

pub(super) fn square(value: f64) -> f64 {
    value * value
}

/// A line of least squares through octets over time.
pub(crate) struct Line {
    /// Its slope.
    pub(crate) rate: f64,
    /// The standard deviation of the octets.
    pub(crate) deviation: f64,
}

impl Line {
    /// The line through three points or more, if it rises.
    pub(crate) fn through(points: &[(f64, f64)]) -> Option<Self> {
        let count = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (time, octets) = (mean(|point| point.0), mean(|point| point.1));
        let squares: f64 = points.iter().map(|point| square(point.0 - time)).sum();
        let products = points
            .iter()
            .map(|point| (point.0 - time) * (point.1 - octets));
        let products: f64 = products.sum();
        if squares <= 0.0 || products <= 0.0 {
            return None;
        }
        let rate = products / squares;
        let start = octets - rate * time;
        let off = points
            .iter()
            .map(|point| square(point.1 - start - rate * point.0));
        Some(Self {
            rate,
            deviation: (off.sum::<f64>() / (count - 2.0)).sqrt(),
        })
    }
}

/// The 97.5th percentile of Student's distribution (Cornish and Fisher's expansion).
pub(super) fn student(degrees: f64) -> f64 {
    let cube = Z * Z * Z;
    let fifth = cube * Z * Z;
    let seventh = fifth * Z * Z;
    let inverse = 1.0 / degrees;
    Z + (cube + Z) / 4.0 * inverse
        + (5.0 * fifth + 16.0 * cube + 3.0 * Z) / 96.0 * inverse * inverse
        + (3.0 * seventh + 19.0 * fifth + 17.0 * cube - 15.0 * Z) / 384.0
            * inverse
            * inverse
            * inverse
}

/// The mean, and half the length of its 95 % interval, which is infinite for fewer than three
/// values.
pub(super) fn mean(values: impl Iterator<Item = f64> + Clone) -> Option<(f64, f64)> {
    let count = values.clone().count() as f64;
    if count < 1.0 {
        return None;
    }
    let mean = values.clone().sum::<f64>() / count;
    if count < 3.0 {
        return Some((mean, f64::INFINITY));
    }
    let squares: f64 = values.map(|value| square(value - mean)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    Some((mean, student(count - 1.0) * error))
}

/// The 95 % interval of the mean of a Poisson distribution, from one draw (Byar's approximation).
pub(super) fn poisson(count: f64) -> (f64, f64) {
    let bound = |of: f64, sign: f64| {
        let root = 1.0 - 1.0 / (9.0 * of) + sign * Z / (3.0 * of.sqrt());
        let root = root.max(0.0);
        of * root * root * root
    };
    let low = if count > 0.0 { bound(count, -1.0) } else { 0.0 };
    (low, bound(count + 1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(one: f64, other: f64) -> bool {
        (one - other).abs() <= 0.02 + 0.01 * other
    }

    #[test]
    fn intervals_agree_with_the_tables() {
        for (degrees, table) in [(3.0, 3.182), (5.0, 2.571), (10.0, 2.228), (60.0, 2.000)] {
            assert!(is_near(student(degrees), table), "{degrees}");
        }
        // Exact bounds of Poisson's distribution by the chi-squared distribution.
        for (count, low, high) in [
            (0.0, 0.0, 3.689),
            (1.0, 0.025, 5.572),
            (5.0, 1.623, 11.668),
            (20.0, 12.217, 30.888),
            (100.0, 81.364, 121.627),
        ] {
            let (from, to) = poisson(count);
            assert!(
                is_near(from, low) && is_near(to, high),
                "{count}: {from} {to}"
            );
        }
    }

    #[test]
    fn two_values_have_no_interval() {
        let of = |values: &[f64]| mean(values.iter().copied());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[1.0, 3.0]), Some((2.0, f64::INFINITY)));
        assert_eq!(of(&[2.0; 4]), Some((2.0, 0.0)));
    }
}
