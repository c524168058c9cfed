//! Parameter types. A value out of bounds cannot be built, from a file or from code.

mod count;

pub use self::count::Count;

/// A contradiction between parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// Path of the key to change, relative to the component's table.
    pub key: &'static [&'static str],
    /// Description of the error.
    pub message: String,
    /// The expected value.
    pub expected: String,
}

/// Declares a number within bounds: type, bounds, and its meaning.
#[macro_export]
macro_rules! bounded {
    ($(#[$meta:meta])* $Name:ident, $min:literal ..= $max:literal, $hint:literal) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "f64", into = "f64")]
        pub struct $Name(f64);

        impl $Name {
            /// # Panics
            /// If `value` is outside the bounds; in a `const` this is a compile error.
            #[must_use]
            pub const fn new(value: f64) -> Self {
                assert!(value >= $min && value <= $max, $hint);
                Self(value)
            }
            /// The number.
            #[must_use]
            pub const fn get(self) -> f64 {
                self.0
            }
        }
        impl TryFrom<f64> for $Name {
            type Error = String;
            fn try_from(value: f64) -> Result<Self, String> {
                if ($min..=$max).contains(&value) {
                    Ok(Self(value))
                } else {
                    Err(format!(
                        "{value} is out of range; expected {} to {}: {}",
                        $min, $max, $hint
                    ))
                }
            }
        }
        impl From<$Name> for f64 {
            fn from(value: $Name) -> Self {
                value.0
            }
        }
        impl schemars::JsonSchema for $Name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($Name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "number", "minimum": $min, "maximum": $max })
            }
        }
    };
}

/// Declares a quantity with a unit, within bounds.
#[macro_export]
macro_rules! quantity {
    ($(#[$meta:meta])* $Name:ident, $Of:ty, $min:expr, $max:expr) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
        #[serde(transparent)]
        pub struct $Name($Of);

        impl $Name {
            /// Lower bound.
            pub const MIN: $Of = $min;
            /// Upper bound.
            pub const MAX: $Of = $max;

            /// The quantity.
            #[must_use]
            pub const fn get(self) -> $Of {
                self.0
            }
        }

        impl TryFrom<$Of> for $Name {
            type Error = String;
            fn try_from(value: $Of) -> Result<Self, String> {
                if (Self::MIN..=Self::MAX).contains(&value) {
                    Ok(Self(value))
                } else {
                    Err(format!(
                        "{value} is out of range; expected {} to {}",
                        Self::MIN,
                        Self::MAX
                    ))
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $Name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                Self::try_from(<$Of>::deserialize(from)?).map_err(serde::de::Error::custom)
            }
        }

        impl schemars::JsonSchema for $Name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($Name).into()
            }
            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut schema = <$Of>::json_schema(generator);
                schema.remove("description");
                schema.insert("x-minimum".to_owned(), Self::MIN.to_string().into());
                schema.insert("x-maximum".to_owned(), Self::MAX.to_string().into());
                schema
            }
        }
    };
}

/// Declares a quantity with a unit that a word can replace.
#[macro_export]
macro_rules! optional {
    ($(#[$meta:meta])* $Name:ident, $Of:ty, $word:literal, $example:literal) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $Name(pub Option<$Of>);

        impl serde::Serialize for $Name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                match &self.0 {
                    None => to.serialize_str($word),
                    Some(value) => value.serialize(to),
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $Name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct Text;
                impl serde::de::Visitor<'_> for Text {
                    type Value = $Name;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("\"", $word, "\" or ", $example))
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$Name, E> {
                        if text == $word {
                            return Ok($Name(None));
                        }
                        let value: $Of = text.parse().map_err(|wrong| {
                            E::custom(format_args!(concat!("{}, or \"", $word, "\""), wrong))
                        })?;
                        Ok($Name(Some(value)))
                    }
                }
                from.deserialize_str(Text)
            }
        }

        impl schemars::JsonSchema for $Name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($Name).into()
            }
            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut own = <$Of>::json_schema(generator);
                own.remove("description");
                schemars::json_schema!({ "anyOf": [{ "const": $word }, own] })
            }
        }
    };
}
