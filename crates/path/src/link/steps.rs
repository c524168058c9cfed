//! Tables of values over time: rate and delay as step functions, read from the lines of a file.
//!
//! Each line is a time in seconds and one or two values, separated by commas or blanks. An optional
//! first line names the columns. A value holds until the time of the next line; the last value
//! holds as long as the one before it. Then the table begins again, for ever or a given number of
//! times.

use std::{borrow::Cow, fmt, ops::Range};

use anabranch_core::{
    side_file::{Misread, lines},
    units::{Duration, Instant, Rate, text::MAX_DURATION},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Number of times a trace is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Repeat {
    /// Without end.
    #[default]
    Always,
    /// This number of times, at least 1.
    Times(u32),
}

impl Repeat {
    /// Whether round `number`, counted from 0, is played.
    #[must_use]
    pub fn plays(self, number: u64) -> bool {
        match self {
            Self::Always => true,
            Self::Times(times) => number < u64::from(times),
        }
    }
    /// Number of rounds played out of `rounds`.
    #[must_use]
    pub fn of(self, rounds: u64) -> u64 {
        match self {
            Self::Always => rounds,
            Self::Times(times) => rounds.min(times.into()),
        }
    }
    /// Whether it is the default.
    #[must_use]
    pub fn is_always(&self) -> bool {
        *self == Self::Always
    }
}

impl Serialize for Repeat {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Always => serializer.serialize_bool(true),
            Self::Times(1) => serializer.serialize_bool(false),
            Self::Times(times) => serializer.serialize_u32(times),
        }
    }
}

impl<'de> Deserialize<'de> for Repeat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Times;
        impl de::Visitor<'_> for Times {
            type Value = Repeat;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, or how many times in all, 1 to 4294967295")
            }
            fn visit_bool<E: de::Error>(self, again: bool) -> Result<Repeat, E> {
                Ok(if again {
                    Repeat::Always
                } else {
                    Repeat::Times(1)
                })
            }
            fn visit_i64<E: de::Error>(self, times: i64) -> Result<Repeat, E> {
                match u32::try_from(times) {
                    Ok(times @ 1..) => Ok(Repeat::Times(times)),
                    _ => Err(E::invalid_value(de::Unexpected::Signed(times), &self)),
                }
            }
            fn visit_u64<E: de::Error>(self, times: u64) -> Result<Repeat, E> {
                self.visit_i64(i64::try_from(times).unwrap_or(i64::MAX))
            }
        }
        deserializer.deserialize_any(Times)
    }
}

impl JsonSchema for Repeat {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Repeat".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "boolean" },
                { "type": "integer", "minimum": 1, "maximum": u32::MAX },
            ],
        })
    }
}

/// The time axis of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps {
    /// Start of each step from the start of a round, in order; the first is 0.
    starts: Box<[Duration]>,
    /// Duration of a round, above the last start.
    round: Duration,
    repeat: Repeat,
}

/// A position on a time axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Round number, from 0; the number of rounds if the last is over.
    pub round: u64,
    /// Step number.
    pub step: usize,
    /// Time since the step began.
    pub since: Duration,
    /// Time until the step ends; unlimited after the last round.
    pub left: Duration,
    /// Whether the last round is over.
    pub is_over: bool,
}

impl Steps {
    fn new(starts: Vec<Duration>, repeat: Repeat) -> Self {
        let round = match starts[..] {
            [.., before, last] => last + (last - before),
            _ => MAX_DURATION,
        };
        Self {
            starts: starts.into(),
            round,
            repeat,
        }
    }

    /// Position of `now`.
    #[must_use]
    pub fn at(&self, now: Instant) -> Place {
        let now = (now - Instant::START).as_picos();
        let (round, rest) = (now / self.round.as_picos(), now % self.round.as_picos());
        let last = self.starts.len() - 1;
        if !self.repeat.plays(round) {
            return Place {
                round: self.repeat.of(round),
                step: last,
                since: Duration::ZERO,
                left: MAX_DURATION,
                is_over: true,
            };
        }
        let rest = Duration::from_picos(rest);
        let step = self.starts.partition_point(|start| *start <= rest) - 1;
        Place {
            round,
            step,
            since: rest - self.starts[step],
            left: self.end(step) - rest,
            is_over: false,
        }
    }

    /// End of `step`, from the start of a round.
    fn end(&self, step: usize) -> Duration {
        *self.starts.get(step + 1).unwrap_or(&self.round)
    }

    /// Duration of `step`.
    #[must_use]
    pub fn length(&self, step: usize) -> Duration {
        self.end(step) - self.starts[step]
    }

    /// The instant `since` after the start of `step` in `round`; [`Instant::NEVER`] if that round
    /// is not played or the instant exceeds the clock.
    #[must_use]
    pub fn instant(&self, round: u64, step: usize, since: Duration) -> Instant {
        if !self.repeat.plays(round) {
            return Instant::NEVER;
        }
        let into = u128::from(self.starts[step].as_picos()) + u128::from(since.as_picos());
        let ps = u128::from(round) * u128::from(self.round.as_picos()) + into;
        u64::try_from(ps).map_or(Instant::NEVER, |ps| {
            Instant::START.saturating_add(Duration::from_picos(ps))
        })
    }

    /// Duration of a round.
    #[must_use]
    pub fn round(&self) -> Duration {
        self.round
    }

    /// Number of steps.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there is at least one")]
    pub fn len(&self) -> usize {
        self.starts.len()
    }
}

/// A column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// `rate_mbit_s`.
    Rate,
    /// `delay_ms`.
    Delay,
}

/// Contents of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The time axis.
    pub steps: Steps,
    /// Bits per second in each step; 0 means that nothing can be sent.
    pub rates: Option<Box<[u64]>>,
    /// Delay of packets that leave in each step.
    pub delays: Option<Box<[Duration]>>,
}

/// Maximum rate in a table: 100 Tbit/s.
const MAX_RATE: u64 = 100_000_000_000_000;

const TIME: &str = "time_s";
const RATE: &str = "rate_mbit_s";
const DELAY: &str = "delay_ms";

impl Column {
    const fn name(self) -> &'static str {
        match self {
            Self::Rate => RATE,
            Self::Delay => DELAY,
        }
    }
    /// Example line of a file without column names.
    const fn example(self) -> &'static str {
        match self {
            Self::Rate => {
                "a time in seconds and a rate in Mbit/s, for example `0.25,12.5`, and perhaps a delay in ms"
            }
            Self::Delay => "a time in seconds and a delay in ms, for example `0.25,31.5`",
        }
    }
}

/// A field of a line.
type Field<'a> = (Range<usize>, &'a str);

/// Whether the file is a table: its first line is more than one number.
#[must_use]
pub fn is_table(text: &str) -> bool {
    let first = lines(text).next();
    first.is_some_and(|(at, line)| fields(at, line).len() > 1 || !is_number(line))
}

/// Whether the word looks like a number.
fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'))
}

/// Fields of a line, separated by commas, or by blanks if there are none.
fn fields(at: Range<usize>, line: &str) -> Vec<Field<'_>> {
    let has_commas = line.contains(',');
    let is_separator = |c: char| {
        if has_commas {
            c == ','
        } else {
            c.is_whitespace()
        }
    };
    let mut start = at.start;
    let mut fields = Vec::new();
    for piece in line.split(is_separator) {
        let indent = piece.len() - piece.trim_start().len();
        let word = piece.trim();
        let from = start + indent;
        start += piece.len() + 1;
        if has_commas || !word.is_empty() {
            fields.push((from..from + word.len(), word));
        }
    }
    fields
}

/// Column of each field after the time, and whether the first line has names.
fn columns(first: &[Field<'_>], needed: Column) -> Result<(Vec<Column>, bool), Misread> {
    let whole =
        first.first().map_or(0, |(at, _)| at.start)..first.last().map_or(0, |(at, _)| at.end);
    if first.first().is_some_and(|(_, word)| is_number(word)) {
        let columns = match (first.len(), needed) {
            (2, needed) => vec![needed],
            (3, _) => vec![Column::Rate, Column::Delay],
            (count, _) => {
                let message = format!("this line has {count} fields");
                return Err(Misread::new(whole, message, needed.example()));
            }
        };
        return Ok((columns, false));
    }
    let expected = format!("the names of columns: `{TIME}`, then `{RATE}` or `{DELAY}` or both");
    let mut columns = Vec::new();
    for (position, (at, name)) in first.iter().enumerate() {
        let column = [Column::Rate, Column::Delay]
            .into_iter()
            .find(|column| column.name() == *name && position > 0);
        match column {
            _ if position == 0 && *name == TIME => {}
            Some(column) if !columns.contains(&column) => columns.push(column),
            _ => {
                let message = format!("{name:?} is not an expected column here");
                return Err(Misread::new(at.clone(), message, expected));
            }
        }
    }
    if !columns.contains(&needed) {
        let message = format!("there is no column `{}`", needed.name());
        return Err(Misread::new(whole, message, expected));
    }
    Ok((columns, true))
}

fn time((at, word): &Field<'_>, before: Option<Duration>) -> Result<Duration, Misread> {
    let time = format!("{word} s").parse::<Duration>();
    let Some(time) = time.ok().filter(|_| is_number(word)) else {
        let expected = format!(
            "a number of seconds from 0 to {}",
            MAX_DURATION.as_picos() / 1_000_000_000_000
        );
        return Err(Misread::new(
            at.clone(),
            format!("{word:?} is no time"),
            expected,
        ));
    };
    match before {
        None if !time.is_zero() => Err(Misread::new(
            at.clone(),
            format!("the trace begins at {word} s"),
            "a first line at 0 s: times count from the start of the run",
        )),
        Some(before) if time <= before => Err(Misread::new(
            at.clone(),
            format!("the trace goes back in time: {word} s after {before}"),
            format!("more than {before}"),
        )),
        _ => Ok(time),
    }
}

fn rate((at, word): &Field<'_>) -> Result<u64, Misread> {
    let rate = match word.parse::<f64>() {
        Ok(0.0) => Some(0),
        _ => format!("{word} Mbit/s").parse().ok().map(Rate::bits_per_s),
    };
    let rate = rate.filter(|rate| *rate <= MAX_RATE && is_number(word));
    rate.ok_or_else(|| {
        let expected = format!(
            "a number of Mbit/s from 0 to {}, for example 12.5",
            MAX_RATE / 1_000_000
        );
        Misread::new(at.clone(), format!("{word:?} is no rate"), expected)
    })
}

fn delay((at, word): &Field<'_>) -> Result<Duration, Misread> {
    let delay = format!("{word} ms").parse::<Duration>();
    delay.ok().filter(|_| is_number(word)).ok_or_else(|| {
        let expected = "a number of milliseconds, for example 31.5";
        Misread::new(at.clone(), format!("{word:?} is no delay"), expected)
    })
}

impl Table {
    /// Reads a file's text, which must have the column `needed`.
    ///
    /// # Errors
    /// Names the first field that is not a valid number or goes back in time, or a missing value.
    pub fn parse(text: &str, repeat: Repeat, needed: Column) -> Result<Self, Misread> {
        let mut all = lines(text).map(|(at, line)| fields(at, line)).peekable();
        let end = text.len()..text.len();
        let (columns, has_names) = match all.peek() {
            Some(first) => columns(first, needed)?,
            None => return Err(Misread::new(end, "the trace is empty", needed.example())),
        };
        if has_names {
            all.next();
        }
        let (mut starts, mut rates, mut delays) = (Vec::new(), Vec::new(), Vec::new());
        for line in all {
            if line.len() != columns.len() + 1 {
                let whole = line.first().map_or(0, |(at, _)| at.start)
                    ..line.last().map_or(0, |(at, _)| at.end);
                return Err(Misread::new(
                    whole,
                    format!("this line has {} fields", line.len()),
                    format!("{} fields, as the first line", columns.len() + 1),
                ));
            }
            starts.push(time(&line[0], starts.last().copied())?);
            for (column, field) in columns.iter().zip(&line[1..]) {
                match column {
                    Column::Rate => rates.push(rate(field)?),
                    Column::Delay => delays.push(delay(field)?),
                }
            }
        }
        if starts.is_empty() {
            return Err(Misread::new(
                end,
                "the trace has names but no values",
                needed.example(),
            ));
        }
        if starts.last().is_some_and(|last| *last > MAX_DURATION / 2) {
            return Err(Misread::new(
                end,
                "the trace is too long",
                "53 days at most",
            ));
        }
        if needed == Column::Rate && rates.iter().all(|rate| *rate == 0) {
            return Err(Misread::new(
                end,
                "nothing can ever be sent: every rate is 0",
                "a rate above 0 on one line at least",
            ));
        }
        Ok(Self {
            steps: Steps::new(starts, repeat),
            rates: columns.contains(&Column::Rate).then(|| rates.into()),
            delays: columns.contains(&Column::Delay).then(|| delays.into()),
        })
    }
}
