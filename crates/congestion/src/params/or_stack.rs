//! Parameters that default to the stack's value.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{
    super::{
        Init,
        hystart::{Kind, plus_plus},
    },
    Packets,
};

/// Name that indicates to a deserializer that `stack` is also valid: `or:WORD`.
const OR_STACK: &str = "or:stack";

/// A parameter that defaults to the stack's value (`"stack"`). Other values are written as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OrStack<T> {
    /// The stack's value.
    #[default]
    Stack,
    /// The control's value.
    Own(T),
}

impl<T: Copy> OrStack<T> {
    /// The value, given that of the stack.
    #[must_use]
    pub fn or(self, stack: T) -> T {
        match self {
            Self::Stack => stack,
            Self::Own(own) => own,
        }
    }
}

impl<T: Serialize> Serialize for OrStack<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Stack => to.serialize_str("stack"),
            Self::Own(own) => own.serialize(to),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OrStack<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Word<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> de::Visitor<'de> for Word<T> {
            type Value = OrStack<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"stack\" or a value of the control's own")
            }
            fn visit_str<E: de::Error>(self, word: &str) -> Result<OrStack<T>, E> {
                if word == "stack" {
                    Ok(OrStack::Stack)
                } else {
                    T::deserialize(de::value::StrDeserializer::new(word)).map(OrStack::Own)
                }
            }
            fn visit_newtype_struct<D: Deserializer<'de>>(
                self,
                from: D,
            ) -> Result<OrStack<T>, D::Error> {
                from.deserialize_str(self)
            }
        }
        from.deserialize_newtype_struct(OR_STACK, Word(std::marker::PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for OrStack<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("{}OrStack", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let own = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [{ "const": "stack" }, own] })
    }
}

/// Largest growth by one ACK in slow start: the stack's (`"stack"`), or the control's, for example
/// `"2 packets"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SlowStartLimit(pub OrStack<Packets>);

impl SlowStartLimit {
    /// The limit in segments, for a slow start with this variant of HyStart. RFC 9406 §4.2 has a
    /// separate limit: eight segments, or none if the sender paces.
    #[must_use]
    pub fn segments(self, init: &Init, hystart: OrStack<Kind>) -> f64 {
        let stack = init.stack;
        match (self.0, hystart.or(stack.hystart)) {
            (OrStack::Own(own), _) => own.as_f64(),
            (OrStack::Stack, Kind::Rfc9406) if stack.paced => f64::INFINITY,
            (OrStack::Stack, Kind::Rfc9406) => stack.slow_start_limit.max(plus_plus::L),
            (OrStack::Stack, _) => stack.slow_start_limit,
        }
    }
}

impl JsonSchema for SlowStartLimit {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SlowStartLimit".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        OrStack::<Packets>::json_schema(generator)
    }
}
