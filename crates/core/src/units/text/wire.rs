//! Quantities in scenario files, in resolved scenarios and in the JSON Schema.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Visitor},
};

use super::{DURATION, Limit, LinkRate, POWER, RATE, SIZE};
use crate::units::{Bytes, Duration, Fraction, Power, Rate};

macro_rules! quantity {
    (
        $Type:ident, $kind:literal, $expecting:literal, $pattern:expr, $description:literal,
        $examples:expr, $units:expr, $minimum:expr, $maximum:expr $(, bare: $bare:expr)?
    ) => {
        impl Serialize for $Type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $Type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $Type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: Error>(self, text: &str) -> Result<$Type, E> {
                        text.parse().map_err(E::custom)
                    }
                    $(
                    fn visit_i64<E: Error>(self, value: i64) -> Result<$Type, E> {
                        Err(without_unit(value, $bare, $expecting))
                    }
                    fn visit_u64<E: Error>(self, value: u64) -> Result<$Type, E> {
                        Err(without_unit(value, $bare, $expecting))
                    }
                    fn visit_f64<E: Error>(self, value: f64) -> Result<$Type, E> {
                        Err(without_unit(value, $bare, $expecting))
                    }
                    )?
                }
                deserializer.deserialize_str(Text)
            }
        }

        impl JsonSchema for $Type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($Type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string",
                    "description": $description,
                    "pattern": $pattern,
                    "examples": $examples,
                    // For readers of the schema, by the names of the number keywords.
                    "x-type": $kind,
                    "x-units": $units,
                    "x-minimum": $minimum,
                    "x-maximum": $maximum,
                })
            }
        }
    };
}

quantity!(
    Rate,
    "rate",
    "a rate with its unit, for example \"100 Mbit/s\"",
    RATE.pattern(),
    "A data rate with its unit; positive.",
    ["100 Mbit/s", "128 kbit/s"],
    RATE.unit_list(),
    "1 bit/s",
    format!("{} bit/s", u64::MAX)
);
quantity!(
    Duration,
    "duration",
    "a duration with its unit, for example \"15 ms\"",
    DURATION.pattern(),
    "A span of time with its unit; 106 days at most.",
    ["15 ms", "10.2 s"],
    DURATION.unit_list(),
    "0 s",
    super::MAX_DURATION.to_string(),
    bare: ["ms", "s"]
);
quantity!(
    Bytes,
    "size",
    "a size with its unit, for example \"64 KiB\"",
    SIZE.pattern(),
    "A size with its unit.",
    ["64 KiB", "1448 bytes", "2 MB"],
    SIZE.unit_list(),
    "0 bytes",
    format!("{} bytes", u64::MAX)
);
quantity!(
    Power,
    "power",
    "a power with its unit, for example \"0.5 W\"",
    POWER.pattern(),
    "Electrical power of a device, with its unit.",
    ["0.5 W", "50 mW"],
    POWER.unit_list(),
    "0 W",
    format!("{} uW", u64::MAX)
);
quantity!(
    Limit,
    "limit",
    "how much fits, for example \"100 packets\", \"64 KiB\", \"1 bdp\" or \"unlimited\"",
    either(
        &SIZE
            .pattern()
            .replace("(bytes|", "(packets|packet|bdp|bytes|")
    ),
    "How much fits: packets, a size, a multiple of the bandwidth-delay product, or everything.",
    ["100 packets", "64 KiB", "1 bdp", "unlimited"],
    format!("packet (packets), bdp, {}", SIZE.unit_list()),
    "0 packets",
    "unlimited"
);
quantity!(
    LinkRate,
    "rate or \"unlimited\"",
    "a rate with its unit, for example \"100 Mbit/s\", or \"unlimited\"",
    either(&RATE.pattern()),
    "A data rate with its unit, or no limit.",
    ["100 Mbit/s", "unlimited"],
    RATE.unit_list(),
    "1 bit/s",
    "unlimited"
);

/// The error for a number in place of a text with a unit, with the likely units.
fn without_unit<E: Error>(value: impl fmt::Display, units: [&str; 2], expected: &str) -> E {
    let [one, other] = units.map(|unit| format!("\"{value} {unit}\""));
    E::custom(format_args!(
        "this is the number `{value}`; did you mean {one} or {other}? expected {expected}"
    ))
}

fn either(pattern: &str) -> String {
    format!("^unlimited$|{pattern}")
}

impl Serialize for Fraction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.get())
    }
}

impl<'de> Deserialize<'de> for Fraction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Fraction;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a bare number from 0 to 1")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Fraction, E> {
                let per_cent = text.trim_end().strip_suffix('%').map(str::trim_end);
                let number = per_cent.map_or_else(
                    || text.parse().ok(),
                    |number| number.parse::<f64>().ok().map(|number| number / 100.0),
                );
                let meant = number
                    .filter(|number| Fraction::try_from(*number).is_ok())
                    .map_or_else(String::new, |number| format!("did you mean {number}? "));
                Err(E::custom(format_args!(
                    "this is the text {text:?}; {meant}expected a bare number from 0 to 1"
                )))
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<Fraction, E> {
                Fraction::try_from(value).map_err(|_| {
                    E::custom(format_args!(
                        "{value} is out of range; expected a bare number from 0 to 1"
                    ))
                })
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<Fraction, E> {
                self.visit_f64(value as f64)
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<Fraction, E> {
                self.visit_f64(value as f64)
            }
        }
        deserializer.deserialize_f64(Number)
    }
}

impl JsonSchema for Fraction {
    fn schema_name() -> Cow<'static, str> {
        "Fraction".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "number",
            "description": "A share or a probability.",
            "minimum": 0,
            "maximum": 1,
        })
    }
}
