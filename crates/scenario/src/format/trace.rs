//! Capacity and delay, which may follow a trace.

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

/// How a link's capacity behaves.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// It is always `rate`.
    #[default]
    Fixed,
    /// It follows a trace, which stands in the place of `rate`. The file is in mahimahi's format, each line a time in whole
    /// milliseconds at which 1,500 bytes can be delivered; or each line is a time in seconds and a rate in Mbit/s from then on,
    /// and perhaps a delay in milliseconds, with commas or blanks between, below an optional line of their names,
    /// `time_s,rate_mbit_s,delay_ms`. Behind the end of a trace that ends nothing is sent any more.
    Trace(TraceFile),
    /// That of a Wi-Fi station whose physical layer has `rate`.
    Wifi(wifi::Params),
    /// That of a cable modem's upstream, which requests what it sends and is granted `rate`.
    Cable(cable::Params),
    /// That of a cell's link to one phone, at `rate` or at that of a trace: scheduling requests, transport blocks, HARQ.
    Cellular(cellular::Params),
}

impl Service {
    /// The trace that its capacity follows, if it does.
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

    /// The medium, if it has an access of its own.
    pub(crate) fn medium(self) -> Option<Medium> {
        match self {
            Self::Wifi(wifi) => Some(Medium::Wifi(wifi)),
            Self::Cable(cable) => Some(Medium::Cable(cable)),
            Self::Cellular(cellular) => Some(Medium::Cellular(cellular)),
            Self::Fixed | Self::Trace(_) => None,
        }
    }
}

/// A trace beside the scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceFile {
    /// The file; its path counts from where the scenario's file is.
    pub file: String,
    /// Whether the trace begins again at its end, as it does by default, or how often it is played in all. A round of times in seconds ends as long
    /// after the last line as that is after the line before it; one of mahimahi's format with its last line.
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

/// How long a packet travels once it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delay {
    /// Always as long.
    Fixed(Duration),
    /// As long as something else says.
    Kind(DelayKind),
}

/// What says how long a packet travels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DelayKind {
    /// A trace: each line of the file a time in seconds and the delay from then on in milliseconds, with a comma or blanks between,
    /// below an optional line of names, `time_s,delay_ms`; a file of capacities with a column `delay_ms` does, too. It
    /// holds for packets that leave from then on, and behind the end of a trace that ends the last delay stays.
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
