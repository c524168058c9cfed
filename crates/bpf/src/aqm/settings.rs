//! The queue to attach: a queue of the simulator with its parameters, and the rate of the virtual link.

use anabranch_core::units::{Rate, text::Limit};
use anabranch_path::queue::{
    QueueParams as _,
    red::Adaptive,
    share_red::{META, Params},
};
use serde_json::{Map, Value};

use super::config::{MOST_PACKETS, MOST_RECORDS};
use crate::Error;

/// Queues that have a program.
pub const KINDS: &[&str] = &[META.name];

/// Bounds of the rate, in bit/s. Below, one packet takes ten seconds; above, the clock's nanosecond
/// is longer than a packet.
const RATES: std::ops::RangeInclusive<u64> = 1_000..=1_000_000_000_000;

/// A queue and the rate at which it sends.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Rate of the virtual link.
    pub rate: Rate,
    /// Parameters of the queue.
    pub params: Params,
}

/// A message, and after `"; "` its help.
fn wrong<T>(message: impl Into<String>) -> Result<T, Error> {
    Err(Error::System(message.into()))
}

impl Settings {
    /// Reads a rate, and the parameters that are not the default.
    ///
    /// # Errors
    /// A name or a value is not one that the program supports.
    pub fn read(kind: &str, rate: &str, options: &Map<String, Value>) -> Result<Self, Error> {
        if !KINDS.contains(&kind) {
            return wrong(format!(
                "no queue `{kind}` has a program; there is {}",
                KINDS.join(", ")
            ));
        }
        let rate = match rate.parse::<Rate>() {
            Ok(rate) if RATES.contains(&rate.bits_per_s()) => rate,
            Ok(rate) => {
                return wrong(format!(
                    "--rate {rate} is out of range; expected from 1 kbit/s to 1 Tbit/s, e.g. --rate '100 Mbit/s'"
                ));
            }
            Err(error) => return wrong(format!("--rate: {error}; e.g. --rate '100 Mbit/s'")),
        };
        let known = Self::options();
        if let Some(name) = options.keys().find(|name| !known.contains_key(*name)) {
            let names: Vec<&String> = known.keys().collect();
            let hint = anabranch_document::nearest(name, &names).map_or_else(
                || {
                    format!(
                        "options: {}",
                        names
                            .iter()
                            .map(|name| name.as_str())
                            .collect::<Vec<_>>()
                            .join(", ")
                    )
                },
                |near| format!("did you mean `{near}`?"),
            );
            return wrong(format!("{kind} has no option `{name}`; {hint}"));
        }
        // Value by value, so that a message names its option.
        for (name, value) in options {
            let alone = Map::from_iter([(name.clone(), value.clone())]);
            if let Err(error) = serde_json::from_value::<Params>(Value::Object(alone)) {
                return wrong(format!("--set {name}={}: {error}", plain(value)));
            }
        }
        let params: Params = match serde_json::from_value(Value::Object(options.clone())) {
            Ok(params) => params,
            Err(error) => return wrong(error.to_string()),
        };
        let settings = Self { rate, params };
        settings.check()?;
        Ok(settings)
    }

    /// All options with their defaults.
    #[must_use]
    pub fn options() -> Map<String, Value> {
        match serde_json::to_value(Params::default()) {
            Ok(Value::Object(options)) => options,
            _ => Map::new(),
        }
    }

    fn check(&self) -> Result<(), Error> {
        let params = &self.params;
        if let Some(path) = params.in_bdp() {
            return wrong(format!(
                "`{}` is a multiple of the bandwidth-delay product, which a device does not know; give packets or bytes",
                path.join(".")
            ));
        }
        params
            .check()
            .or_else(|error| wrong(format!("{}; expected {}", error.message, error.expected)))?;
        if params.adaptive != Adaptive::Off {
            return wrong("the program does not adapt `max_probability`; leave `adaptive` out");
        }
        for (name, limit) in [
            ("limit", params.limit),
            ("max_threshold", params.max_threshold),
        ] {
            if matches!(limit, Limit::Packets(packets) if packets > MOST_PACKETS) {
                return wrong(format!(
                    "`{name}` is {limit}; the program's queue holds {MOST_PACKETS} packets at most"
                ));
            }
        }
        if params.history_length.get() > MOST_RECORDS {
            return wrong(format!(
                "`history_length` is {}; the program records {MOST_RECORDS} packets at most",
                params.history_length.get()
            ));
        }
        Ok(())
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
