//! Capacity and delay, each fixed or from a trace.

use std::{borrow::Cow, fmt};

use anabranch_core::units::Duration;
use anabranch_path::link::steps::Repeat;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Visitor, ser};

use crate::{
    de::{TABLE_OR_VALUE, tagged},
    kind::Seam,
    schema,
    types::{Medium, cable, cellular, wifi},
};

/// The capacity of a link over time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// Always `rate`.
    #[default]
    Fixed,
    /// Follows a trace, in place of `rate`. The file is in mahimahi's format: each line is a time
    /// in whole milliseconds at which 1,500 bytes can be delivered. Or each line holds a time in
    /// seconds, the rate in Mbit/s from then on, and optionally a delay in milliseconds, separated
    /// by commas or blanks, after an optional line of column names, `time_s,rate_mbit_s,delay_ms`.
    /// After the end of a trace that does not repeat, nothing is sent.
    Trace(TraceFile),
    /// A Wi-Fi station whose physical layer has `rate`.
    Wifi(wifi::Params),
    /// A cable modem's upstream, which requests grants for its data and is granted `rate`.
    Cable(cable::Params),
    /// The link of a cell to one phone, at `rate` or at the rate of a trace: scheduling requests,
    /// transport blocks, HARQ.
    Cellular(cellular::Params),
}

impl Service {
    /// The trace that the capacity follows, if any.
    pub(crate) fn trace(&self) -> Option<TraceFile> {
        match self {
            Self::Trace(trace) => Some(trace.clone()),
            Self::Cellular(cellular) => cellular.file.clone().map(|file| TraceFile {
                file,
                repeat: cellular.repeat,
            }),
            Self::Fixed | Self::Wifi(_) | Self::Cable(_) => None,
        }
    }

    /// The medium, if the service models its medium access.
    pub(crate) fn medium(self) -> Option<Medium> {
        match self {
            Self::Wifi(wifi) => Some(Medium::Wifi(wifi)),
            Self::Cable(cable) => Some(Medium::Cable(cable)),
            Self::Cellular(cellular) => Some(Medium::Cellular(cellular)),
            Self::Fixed | Self::Trace(_) => None,
        }
    }
}

/// A trace in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceFile {
    /// The file; its path is relative to the scenario's file.
    pub file: String,
    /// Whether the trace begins again at its end, which is the default, or the number of times it
    /// is played in total. In a trace of times in seconds, the last line lasts as long as the line
    /// before it; a round of mahimahi's format ends with its last line.
    #[serde(default, skip_serializing_if = "Repeat::is_always")]
    pub repeat: Repeat,
}

impl Seam for Service {
    const NAME: &'static str = "service";
    const MARK: &'static str = "kind:service";
    fn custom(&self) -> Option<(&str, &serde_json::Value)> {
        None
    }
}

/// The propagation delay of packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delay {
    /// Constant.
    Fixed(Duration),
    /// From another source.
    Kind(DelayKind),
}

/// The source of a variable delay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DelayKind {
    /// A trace: each line of the file holds a time in seconds and the delay from then on in
    /// milliseconds, separated by a comma or blanks, after an optional line of column names,
    /// `time_s,delay_ms`. A file of capacities with a column `delay_ms` works, too. A line applies
    /// to packets that depart from its time on. After the end of a trace that does not repeat, the
    /// last delay remains.
    Trace(TraceFile),
}

impl From<Duration> for Delay {
    fn from(delay: Duration) -> Self {
        Self::Fixed(delay)
    }
}

impl<'de> Deserialize<'de> for Delay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Delay;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration with its unit, or a table with `kind`")
            }
            fn visit_newtype_struct<D: Deserializer<'de>>(self, d: D) -> Result<Delay, D::Error> {
                DelayKind::deserialize(d).map(Delay::Kind)
            }
            fn visit_some<D: Deserializer<'de>>(self, d: D) -> Result<Delay, D::Error> {
                Duration::deserialize(d).map(Delay::Fixed)
            }
        }
        deserializer.deserialize_newtype_struct(TABLE_OR_VALUE, Either)
    }
}

impl Serialize for Delay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(delay) => delay.serialize(serializer),
            Self::Kind(kind) => tagged(kind)
                .map_err(ser::Error::custom)?
                .serialize(serializer),
        }
    }
}

impl JsonSchema for Delay {
    fn schema_name() -> Cow<'static, str> {
        "delay".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let fixed = generator.subschema_for::<Duration>();
        let kind = schema::kind_table::<DelayKind>(generator, "delay", &[]);
        let mut forms = vec![serde_json::Value::from(fixed)];
        let tables = kind.get("anyOf").and_then(serde_json::Value::as_array);
        forms.extend(tables.into_iter().flatten().cloned());
        json_schema!({ "anyOf": forms })
    }
}
