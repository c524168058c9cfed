//! Values chosen by name: built-in components and components of other crates.

use std::{borrow::Cow, fmt, marker::PhantomData};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, DeserializeOwned, SeqAccess, Visitor},
};

use super::{de::tagged, schema};

/// A family of components that scenario files name: the congestion controls, the queues, ….
pub trait Seam:
    Clone + fmt::Debug + PartialEq + Serialize + DeserializeOwned + JsonSchema + 'static
{
    /// The family's name, as [`Extensions`](super::Extensions) and error messages use it.
    const NAME: &'static str;
    /// `"kind:NAME"`, by which the reader recognizes the family.
    const MARK: &'static str;
    /// Aliases of built-in names: (alias, name).
    const ALIASES: &'static [(&'static str, &'static str)] = &[];

    /// The name and the parameters of a component from outside the workspace.
    fn custom(&self) -> Option<(&str, &serde_json::Value)>;
}

/// A component as named in the file.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind<T> {
    /// Built in.
    BuiltIn(T),
    /// Made by the factory with this name in [`Extensions`](super::Extensions).
    Extension {
        /// Its name.
        name: String,
        /// The keys next to `kind`.
        params: serde_json::Value,
    },
}

impl<T: Default> Default for Kind<T> {
    fn default() -> Self {
        Self::BuiltIn(T::default())
    }
}

impl<'de, T: Seam> Deserialize<'de> for Kind<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any<T>(PhantomData<T>);
        impl<'de, T: Seam> Visitor<'de> for Any<T> {
            type Value = Kind<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a {}: a name, or a table with `kind`", T::NAME)
            }
            fn visit_newtype_struct<D: Deserializer<'de>>(self, d: D) -> Result<Kind<T>, D::Error> {
                T::deserialize(d).map(Kind::BuiltIn)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut pair: A) -> Result<Kind<T>, A::Error> {
                match (pair.next_element()?, pair.next_element()?) {
                    (Some(name), Some(params)) => Ok(Kind::Extension { name, params }),
                    _ => Err(de::Error::invalid_length(0, &self)),
                }
            }
        }
        deserializer.deserialize_newtype_struct(T::MARK, Any(PhantomData))
    }
}

impl<T: Seam> Serialize for Kind<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (name, params) = match self {
            Self::Extension { name, params } => (name.as_str(), params),
            Self::BuiltIn(value) => match value.custom() {
                Some(custom) => custom,
                None => {
                    return tagged(value)
                        .map_err(serde::ser::Error::custom)?
                        .serialize(serializer);
                }
            },
        };
        let mut table = serde_json::Map::new();
        table.insert("kind".to_owned(), name.into());
        if let Some(params) = params.as_object() {
            table.extend(params.clone());
        }
        table.serialize(serializer)
    }
}

impl<T: Seam> JsonSchema for Kind<T> {
    fn schema_name() -> Cow<'static, str> {
        T::NAME.into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schema::kind_table::<T>(generator, T::NAME, T::ALIASES)
    }
}

/// An enum with a fixed set of names, written as a bare name or as a table with `kind`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(transparent)]
pub struct Choice<T>(pub T);

impl<T: Serialize> Serialize for Choice<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        tagged(&self.0)
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for Choice<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}-choice", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schema::kind_table::<T>(generator, "name", &[])
    }
}
