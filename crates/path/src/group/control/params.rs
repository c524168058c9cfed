//! Types of controller parameters. Values outside their bounds cannot be built, from a file or from
//! code.

use anabranch_core::{bounded, quantity, units::Duration};

use super::Contradiction;

quantity! {
    /// A time over which traffic is measured.
    Span, Duration, Duration::from_micros(1), Duration::from_secs(86_400)
}
quantity! {
    /// Transition time of a port between two states.
    Transition, Duration, Duration::ZERO, Duration::from_secs(1)
}
bounded! {
    /// A percentile.
    Percentile, 0.0..=100.0, "a percentile in percent"
}
bounded! {
    /// A share of a capacity.
    Utilization, 0.01..=1.0, "a share of the capacity"
}
bounded! {
    /// A share of counted items.
    Share, 0.0..=1.0, "a share"
}
bounded! {
    /// Weight of the last measurement.
    Weight, 0.001..=1.0, "the weight of the last interval"
}

impl Span {
    /// # Panics
    /// If `us` is 0 or more than a day; in a `const` this is a compile error.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        assert!(us >= 1 && us <= 86_400_000_000, "1 us to a day");
        Self(Duration::from_micros(us))
    }
}
impl Transition {
    /// # Panics
    /// If `ns` is more than a second; in a `const` this is a compile error.
    #[must_use]
    pub const fn from_nanos(ns: u64) -> Self {
        assert!(ns <= 1_000_000_000, "1 s at most");
        Self(Duration::from_nanos(ns))
    }
}

/// Checks that the value of `whole` is a multiple of the value of `part`.
pub(super) fn check_spans(
    (part_key, part): (&'static str, Span),
    (whole_key, whole): (&'static [&'static str], Span),
) -> Result<(), Contradiction> {
    let (part, whole) = (part.get(), whole.get());
    let name = whole_key.last().copied().unwrap_or_default();
    if whole < part {
        return Err(Contradiction {
            key: whole_key,
            message: format!("`{name}` is {whole}, shorter than `{part_key}`, {part}"),
            expected: format!("{part} or a multiple of it"),
        });
    }
    if !whole.as_picos().is_multiple_of(part.as_picos()) {
        return Err(Contradiction {
            key: whole_key,
            message: format!("`{name}`, {whole}, is no multiple of `{part_key}`, {part}"),
            expected: format!("a multiple of {part}"),
        });
    }
    Ok(())
}
