//! Days, weeks and months of the calendar in UTC, as days since 1970-01-01.

use std::{fmt, time::SystemTime};

/// A day, counted from 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Day(pub u32);

/// The period of a data cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    /// From midnight.
    Day,
    /// From Monday.
    Week,
    /// From this day of the month, or the last day of a shorter month.
    Month(u8),
}

/// The year of 1970-01-01.
const FIRST: u32 = 1970;
/// 1970-01-01 was a Thursday.
const THURSDAY: u32 = 3;

impl Day {
    /// The present day by the system's clock.
    pub fn today() -> Self {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let days = time.unwrap_or_default().as_secs() / 86_400;
        Self(u32::try_from(days).unwrap_or(u32::MAX).min(LAST))
    }

    /// A date of the Gregorian calendar.
    pub const fn of(year: u32, month: u32, day: u32) -> Self {
        let mut days = day.saturating_sub(1);
        let mut before = FIRST;
        while before < year {
            days += year_length(before);
            before += 1;
        }
        let mut before = 1;
        while before < month {
            days += month_length(year, before);
            before += 1;
        }
        Self(days)
    }

    /// Year, month and day of the month.
    fn date(self) -> (u32, u32, u32) {
        let (mut year, mut month, mut rest) = (FIRST, 1, self.0);
        while rest >= year_length(year) {
            rest -= year_length(year);
            year += 1;
        }
        while rest >= month_length(year, month) {
            rest -= month_length(year, month);
            month += 1;
        }
        (year, month, rest + 1)
    }
}

/// The last day that is computed: in the year 9999.
const LAST: u32 = 2_932_896;

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.date();
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

impl Period {
    /// The first day of the period that contains a day, and the first day after it.
    pub fn around(self, day: Day) -> [Day; 2] {
        match self {
            Self::Day => [day, Day(day.0 + 1)],
            Self::Week => {
                let first = day.0.saturating_sub((day.0 + THURSDAY) % 7);
                [Day(first), Day(day.0 + 7 - (day.0 + THURSDAY) % 7)]
            }
            Self::Month(reset) => {
                let (year, month, _) = day.date();
                let start = |year: u32, month: u32| {
                    let last = month_length(year, month);
                    Day::of(year, month, u32::from(reset).clamp(1, last))
                };
                let this = start(year, month);
                if day < this {
                    let (year, month) = if month == 1 {
                        (year.saturating_sub(1), 12)
                    } else {
                        (year, month - 1)
                    };
                    // Nothing is before 1970.
                    let before = if year < FIRST {
                        Day(0)
                    } else {
                        start(year, month)
                    };
                    return [before, this];
                }
                let (year, month) = if month == 12 {
                    (year + 1, 1)
                } else {
                    (year, month + 1)
                };
                [this, start(year, month)]
            }
        }
    }

    /// Its name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month(_) => "month",
        }
    }
}

const fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

const fn year_length(year: u32) -> u32 {
    if is_leap(year) { 366 } else { 365 }
}

const fn month_length(year: u32, month: u32) -> u32 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::{Day, LAST, Period};

    #[test]
    fn dates_match_the_calendar() {
        for (day, text) in [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (20_786, "2026-11-29"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
            (LAST, "9999-12-31"),
        ] {
            assert_eq!(Day(day).to_string(), text);
            let (year, month, of_month) = Day(day).date();
            assert_eq!(Day::of(year, month, of_month), Day(day));
        }
    }

    #[test]
    fn periods_begin_on_their_days() {
        let day = |year, month, day| Day::of(year, month, day);
        for (period, of, expected) in [
            (
                Period::Day,
                day(2026, 12, 31),
                [day(2026, 12, 31), day(2027, 1, 1)],
            ),
            // A Sunday and a Monday.
            (
                Period::Week,
                day(2026, 11, 29),
                [day(2026, 11, 23), day(2026, 11, 30)],
            ),
            (
                Period::Week,
                day(2026, 11, 30),
                [day(2026, 11, 30), day(2026, 12, 7)],
            ),
            (
                Period::Month(1),
                day(2026, 11, 29),
                [day(2026, 11, 1), day(2026, 12, 1)],
            ),
            (
                Period::Month(15),
                day(2026, 11, 14),
                [day(2026, 10, 15), day(2026, 11, 15)],
            ),
            (
                Period::Month(15),
                day(2026, 11, 15),
                [day(2026, 11, 15), day(2026, 12, 15)],
            ),
            (
                Period::Month(15),
                day(2027, 1, 3),
                [day(2026, 12, 15), day(2027, 1, 15)],
            ),
            // Shorter months.
            (
                Period::Month(31),
                day(2027, 2, 27),
                [day(2027, 1, 31), day(2027, 2, 28)],
            ),
            (
                Period::Month(31),
                day(2027, 2, 28),
                [day(2027, 2, 28), day(2027, 3, 31)],
            ),
            (
                Period::Month(30),
                day(2028, 2, 29),
                [day(2028, 2, 29), day(2028, 3, 30)],
            ),
            (
                Period::Month(15),
                day(1970, 1, 2),
                [Day(0), day(1970, 1, 15)],
            ),
        ] {
            assert_eq!(period.around(of), expected, "{period:?} {of}");
        }
    }

    #[test]
    fn each_day_is_in_its_period_and_periods_adjoin() {
        for period in [
            Period::Day,
            Period::Week,
            Period::Month(1),
            Period::Month(31),
        ] {
            for day in 20_000..23_000 {
                let [first, next] = period.around(Day(day));
                assert!(first <= Day(day) && Day(day) < next, "{period:?} {day}");
                assert_eq!(period.around(next)[0], next, "{period:?} {day}");
            }
        }
    }
}
