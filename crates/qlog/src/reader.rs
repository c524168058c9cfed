//! Streams the events of a file.

use std::{
    fmt,
    io::{BufReader, Read},
    rc::Rc,
};

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Deserializer, Map, Value};

use crate::{
    Error,
    event::Event,
    fields,
    header::{Header, TimeFormat, Vantage, check_version, is_read},
    input::{Input, Progress},
    value::{Bounded, Name},
};

/// Maximum number of traces of a file.
const MOST_TRACES: usize = 1 << 16;

/// An event and its context.
#[derive(Debug)]
pub struct Record<'a> {
    /// Its number in the file, from 1. Events of all kinds are counted.
    pub number: u64,
    /// Nanoseconds since 1970, or since the start if the file does not say.
    pub time: i64,
    /// Its trace, from 0.
    pub trace: usize,
    /// The trace's header.
    pub header: &'a Header,
    /// Its group within the trace, if it differs from the trace's.
    pub group: Option<&'a str>,
    /// The event.
    pub event: Event,
}

/// Counts of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Account {
    /// Events of all kinds.
    pub events: u64,
    /// Packets sent and received.
    pub packets: u64,
    /// The file ends within an event.
    pub is_cut_off: bool,
    /// The reason for which reading ended before the end of the file.
    pub damaged: Option<String>,
}

/// Reads a file, and passes the events that concern packets, acknowledgments, loss and congestion
/// to `take`.
///
/// `open` returns the file's content from its beginning: a file that holds its traces in one object
/// is read twice, because the fields that events depend on may follow them.
///
/// # Errors
/// If it is not a qlog, of an unknown version, recorded at several points or between the ends, or
/// has no packets. A file that is damaged further on is read up to that point.
pub fn read<R: Read>(
    mut open: impl FnMut() -> Result<R, Error>,
    stop: impl Fn() -> bool,
    mut take: impl FnMut(Record<'_>),
) -> Result<Account, Error> {
    let progress = Rc::new(Progress::default());
    let input = Input::new(open()?, &stop, &progress);
    let mut json = Deserializer::from_reader(BufReader::with_capacity(1 << 16, input));
    let mut walk = Walk::new(&progress, None);
    let header = File(&mut walk).deserialize(&mut json);
    if let Err(error) = header
        && (error.is_io() || walk.traces.as_ref().is_none_or(Vec::is_empty))
    {
        return Err(broken(&error, &progress, 1));
    }
    let Walk {
        fields, mut traces, ..
    } = walk;
    check_version(&fields)?;
    let is_sequential = traces.is_none();
    if is_sequential {
        traces = fields
            .get("trace")
            .and_then(Value::as_object)
            .map(|trace| vec![Header::of(trace)]);
        // A sequence may have the fields of its trace in the header itself.
        let is_named = ["qlog_format", "serialization_format"]
            .iter()
            .any(|key| fields.contains_key(*key));
        if traces.is_none() && is_named {
            traces = Some(vec![Header::of(&fields)]);
        }
    }
    let traces = traces.ok_or(Error::NotQlog)?;
    check_vantages(&traces)?;
    let mut sink = Sink::new(&traces, &mut take);
    let end = if is_sequential {
        let mut end = None;
        for record in json.into_iter::<Bounded>() {
            progress.since.set(0);
            match record {
                Ok(Bounded(record)) => sink.add(0, &record),
                Err(error) => {
                    end = Some(error);
                    break;
                }
            }
        }
        end
    } else {
        drop(json);
        progress.since.set(0);
        let input = Input::new(open()?, &stop, &progress);
        let mut json = Deserializer::from_reader(BufReader::with_capacity(1 << 16, input));
        let mut each = |trace: usize, event: &Value| sink.add(trace, event);
        let mut walk = Walk::new(&progress, Some(&mut each));
        File(&mut walk).deserialize(&mut json).err()
    };
    let mut account = sink.account;
    if let Some(error) = end {
        if progress.is_interrupted.get() || progress.is_too_long.get() || error.is_io() {
            return Err(broken(&error, &progress, account.events + 1));
        }
        if error.is_eof() {
            account.is_cut_off = true;
        } else {
            account.damaged = Some(format!(
                "the data after event {} is damaged (line {}, column {}); expected JSON",
                account.events,
                error.line(),
                error.column()
            ));
        }
    }
    if account.packets == 0 {
        let schema = traces.iter().find_map(|header| header.schema.clone());
        return Err(Error::NoPackets { schema });
    }
    Ok(account)
}

/// The error of the header, or of reading.
fn broken(error: &serde_json::Error, progress: &Progress, event: u64) -> Error {
    if progress.is_interrupted.get() {
        return Error::Interrupted;
    }
    if progress.is_too_long.get() {
        return Error::LongEvent(event);
    }
    if error.is_io() {
        return Error::System(error.to_string());
    }
    let why = if error.is_eof() {
        "it is cut off"
    } else {
        "it is not JSON"
    };
    Error::Header {
        line: error.line(),
        column: error.column(),
        why: why.to_owned(),
    }
}

fn check_vantages(traces: &[Header]) -> Result<(), Error> {
    let mut named = traces.iter().map(|header| header.vantage);
    let Some(first) = named.next() else {
        return Ok(());
    };
    if let Some(other) = named.find(|other| *other != first) {
        return Err(Error::MixedVantages(first.name(), other.name()));
    }
    if first == Vantage::Network {
        return Err(Error::NetworkVantage);
    }
    Ok(())
}

/// Receives the events of a trace.
type Take<'t> = &'t mut dyn FnMut(usize, &Value);

/// The position in a file, and the parts found so far.
struct Walk<'t> {
    progress: Rc<Progress>,
    /// Ignores the events if there is none.
    take: Option<Take<'t>>,
    fields: Map<String, Value>,
    /// The headers of the traces that the file holds.
    traces: Option<Vec<Header>>,
    trace: usize,
}

impl<'t> Walk<'t> {
    fn new(progress: &Rc<Progress>, take: Option<Take<'t>>) -> Self {
        Self {
            progress: Rc::clone(progress),
            take,
            fields: Map::new(),
            traces: None,
            trace: 0,
        }
    }
}

/// The first object of a file.
struct File<'w, 't>(&'w mut Walk<'t>);
/// The list of traces.
struct Traces<'w, 't>(&'w mut Walk<'t>);
/// A trace.
struct Trace<'w, 't>(&'w mut Walk<'t>);
/// The list of events of a trace.
struct Events<'w, 't>(&'w mut Walk<'t>);

macro_rules! seeds {
    ($($name:ident: $how:ident;)*) => {$(
        impl<'de> DeserializeSeed<'de> for $name<'_, '_> {
            type Value = ();
            fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
                json.$how(self)
            }
        }
    )*};
}

seeds! {
    File: deserialize_map;
    Traces: deserialize_seq;
    Trace: deserialize_map;
    Events: deserialize_seq;
}

/// Reads the value of a field, and keeps it if it is used.
fn add_field<'de, A: MapAccess<'de>>(
    fields: &mut Map<String, Value>,
    key: Option<String>,
    map: &mut A,
) -> Result<(), A::Error> {
    if let Some(key) = key.filter(|key| is_read(key)) {
        fields.insert(key, map.next_value::<Bounded>()?.0);
    } else {
        map.next_value::<IgnoredAny>()?;
    }
    Ok(())
}

impl<'de> Visitor<'de> for File<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key_seed(Name)? {
            if key.as_deref() == Some("traces") {
                self.0.traces.get_or_insert_default();
                map.next_value_seed(Traces(self.0))?;
            } else {
                add_field(&mut self.0.fields, key, &mut map)?;
            }
            self.0.progress.since.set(0);
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for Traces<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of traces")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut traces: A) -> Result<(), A::Error> {
        while traces.next_element_seed(Trace(self.0))?.is_some() {
            self.0.trace += 1;
            if self.0.trace > MOST_TRACES {
                return Err(serde::de::Error::custom("too many traces"));
            }
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for Trace<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a trace")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut fields = Map::new();
        let mut read = || -> Result<(), A::Error> {
            while let Some(key) = map.next_key_seed(Name)? {
                if key.as_deref() == Some("events") {
                    map.next_value_seed(Events(self.0))?;
                } else {
                    add_field(&mut fields, key, &mut map)?;
                }
                self.0.progress.since.set(0);
            }
            Ok(())
        };
        let end = read();
        // A trace that is cut off has the fields before the cut.
        let mut header = Header::of(&fields);
        let traces = self.0.traces.get_or_insert_default();
        if traces.first().is_some_and(|one| one.schema.is_some()) {
            // A message names one.
            header.schema = None;
        }
        traces.push(header);
        end
    }
}

impl<'de> Visitor<'de> for Events<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut events: A) -> Result<(), A::Error> {
        let trace = self.0.trace;
        loop {
            self.0.progress.since.set(0);
            match &mut self.0.take {
                None if events.next_element::<IgnoredAny>()?.is_none() => return Ok(()),
                None => {}
                Some(take) => match events.next_element::<Bounded>()? {
                    Some(Bounded(event)) => take(trace, &event),
                    None => return Ok(()),
                },
            }
        }
    }
}

/// Converts the events of a file, and counts them.
struct Sink<'s, F> {
    traces: &'s [Header],
    account: Account,
    /// The time of the last event of a trace whose times are differences, in milliseconds.
    last: Vec<f64>,
    take: F,
}

impl<'s, F: FnMut(Record<'_>)> Sink<'s, F> {
    fn new(traces: &'s [Header], take: F) -> Self {
        Self {
            traces,
            account: Account::default(),
            last: vec![0.0; traces.len()],
            take,
        }
    }

    fn add(&mut self, trace: usize, value: &Value) {
        self.account.events += 1;
        let Some(header) = self.traces.get(trace) else {
            return;
        };
        let Some(Parts {
            time,
            name,
            group,
            data,
        }) = parts(header, value)
        else {
            return;
        };
        let at = time * header.unit_ms;
        // The reference has too many digits to be added in floating point.
        let reference = nanos(header.reference_ms);
        let time = match header.format {
            TimeFormat::Relative => reference + nanos(at),
            TimeFormat::Absolute => nanos(at),
            TimeFormat::Delta => {
                self.last[trace] += at;
                reference + nanos(self.last[trace])
            }
        };
        // `transport:packet_sent`, `quic:packet_sent`, or `packet_sent` alone.
        let (space, name) = name.split_once(':').unwrap_or(("", name));
        if !["", "quic", "transport", "recovery", "connectivity"].contains(&space) {
            return;
        }
        let name = name.to_ascii_lowercase();
        let Some(event) = fields::event(&name, data) else {
            return;
        };
        self.account.packets += u64::from(matches!(event, Event::Packet(_)));
        (self.take)(Record {
            number: self.account.events,
            time,
            trace,
            header,
            group: group.filter(|group| header.group.as_deref() != Some(group)),
            event,
        });
    }
}

/// The parts of an event.
struct Parts<'v> {
    time: f64,
    name: &'v str,
    group: Option<&'v str>,
    data: &'v Value,
}

/// An event's parts: an object, or a row of columns.
fn parts<'v>(header: &Header, value: &'v Value) -> Option<Parts<'v>> {
    if let Some(row) = value.as_array() {
        let [time, name, group, data] = header.columns.map(|column| row.get(column?));
        return Some(Parts {
            time: fields::number(time?)?,
            name: name?.as_str()?,
            group: group.and_then(Value::as_str),
            data: data?,
        });
    }
    let one = |names: &[&str]| names.iter().find_map(|name| value.get(*name));
    Some(Parts {
        time: fields::number(one(&["time", "relative_time"])?)?,
        name: one(&["name", "event", "type"])?.as_str()?,
        group: one(&["group_id"]).and_then(Value::as_str),
        data: value.get("data")?,
    })
}

/// The bound on times: the difference of two fits in 64 bits.
const LATEST_MS: f64 = 2e12;

#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn nanos(ms: f64) -> i64 {
    (ms.clamp(-LATEST_MS, LATEST_MS) * 1e6).round() as i64
}
