//! The header of a file and of its traces.

use serde_json::{Map, Value};

use crate::{Error, fields::number};

/// Versions by name; later files name a schema.
pub(crate) const KNOWN_VERSIONS: [&str; 6] =
    ["draft-00", "draft-01", "draft-02", "0.2", "0.3", "0.4"];
const SCHEMAS: [&str; 2] = [
    "urn:ietf:params:qlog:file:contained",
    "urn:ietf:params:qlog:file:sequential",
];

/// The point at which a trace was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vantage {
    /// The end that opened the connection.
    Client,
    /// The other end.
    Server,
    /// Between the ends.
    Network,
    /// Unnamed.
    Unknown,
}

impl Vantage {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Network => "network",
            Self::Unknown => "unknown",
        }
    }

    fn of(value: Option<&Value>) -> Self {
        let point = value.and_then(Value::as_object);
        let named = |key: &str| {
            point
                .and_then(|point| point.get(key))
                .and_then(Value::as_str)
        };
        match named("type").map(str::to_ascii_lowercase).as_deref() {
            Some("client") => Self::Client,
            Some("server") => Self::Server,
            Some("network") => Self::Network,
            _ => Self::Unknown,
        }
    }
}

/// How times are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum TimeFormat {
    #[default]
    Relative,
    Absolute,
    /// Since the previous event.
    Delta,
}

/// The header of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    /// The point at which it was recorded.
    pub vantage: Vantage,
    /// Its group, if all events have the same one.
    pub group: Option<String>,
    pub(crate) format: TimeFormat,
    /// The time to which times are relative, in milliseconds.
    pub(crate) reference_ms: f64,
    /// Milliseconds of a unit of time.
    pub(crate) unit_ms: f64,
    /// The columns of the time, the name, the group and the data, if events are rows.
    pub(crate) columns: [Option<usize>; 4],
    pub(crate) schema: Option<String>,
}

/// A reference later than this is a time of the clock, not of a process: 1 January 2000.
const CLOCK_MS: f64 = 946_684_800_000.0;

/// The fields of a file or a trace that are read. Others are skipped: a file may have any number of
/// them.
const FIELDS: [&str; 10] = [
    "common_fields",
    "configuration",
    "event_fields",
    "event_schemas",
    "file_schema",
    "qlog_format",
    "qlog_version",
    "serialization_format",
    "trace",
    "vantage_point",
];

/// The names of the columns of the time, the name, the group and the data of an event.
const COLUMNS: [&[&str]; 4] = [
    &["relative_time", "time", "delta_time"],
    &["event", "event_type", "type", "name"],
    &["group_id"],
    &["data"],
];

/// Whether a field of a file or a trace is read.
pub(crate) fn is_read(field: &str) -> bool {
    FIELDS.contains(&field)
}

impl Header {
    /// Reads the header of a trace, without its events.
    pub(crate) fn of(trace: &Map<String, Value>) -> Self {
        let common = trace.get("common_fields").and_then(Value::as_object);
        let common = |key: &str| common.and_then(|fields| fields.get(key));
        let format = match common("time_format").and_then(Value::as_str) {
            Some("absolute") => TimeFormat::Absolute,
            Some("delta" | "relative_to_previous_event") => TimeFormat::Delta,
            _ => TimeFormat::Relative,
        };
        let configuration = trace.get("configuration").and_then(Value::as_object);
        let units = configuration.and_then(|all| all.get("time_units"));
        let units = units.and_then(Value::as_str);
        let unit_ms = if units == Some("us") { 1e-3 } else { 1.0 };
        let reference = common("reference_time").and_then(number).unwrap_or(0.0);
        let columns = trace.get("event_fields").and_then(Value::as_array);
        let columns = COLUMNS.map(|names| {
            let is_named = |one: &str| names.iter().any(|name| name.eq_ignore_ascii_case(one));
            let mut columns = columns?.iter();
            columns.position(|one| one.as_str().is_some_and(is_named))
        });
        let group = common("group_id").or_else(|| common("ODCID"));
        let schemas = trace.get("event_schemas").and_then(Value::as_array);
        let schema = schemas.and_then(|schemas| schemas.first());
        Self {
            vantage: Vantage::of(trace.get("vantage_point")),
            group: group.and_then(Value::as_str).map(short),
            format,
            // A monotonic clock's reference says nothing about the time of day.
            reference_ms: if reference * unit_ms >= CLOCK_MS {
                reference * unit_ms
            } else {
                0.0
            },
            unit_ms,
            columns,
            schema: schema.and_then(Value::as_str).map(short),
        }
    }
}

fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

/// Checks the version of a file.
pub(crate) fn check_version(file: &Map<String, Value>) -> Result<(), Error> {
    let named = |key: &str| file.get(key).and_then(Value::as_str);
    let schema = named("file_schema");
    if schema.is_some_and(|schema| SCHEMAS.contains(&schema)) {
        return Ok(());
    }
    let version = named("qlog_version").or(schema);
    match version {
        Some(version)
            if KNOWN_VERSIONS
                .iter()
                .any(|known| version.starts_with(known)) =>
        {
            Ok(())
        }
        Some(version) => Err(Error::UnknownVersion(short(version))),
        None => match file.get("qlog_version") {
            Some(other) => Err(Error::UnknownVersion(short(&other.to_string()))),
            None => Err(Error::NotQlog),
        },
    }
}
