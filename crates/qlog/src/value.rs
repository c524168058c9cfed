//! Values of JSON whose memory is bounded: a small text may be a large tree.

use std::{cell::Cell, fmt};

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Value};

/// Octets of memory of a value. A packet of 65,527 octets as hexadecimal digits takes a thirtieth.
const MOST: usize = 4 << 20;
/// Octets of an element of a list and of a member of an object, without their text. Their containers double
/// when they are full.
const ELEMENT: usize = 64;
const MEMBER: usize = 192;
/// Octets of the name of a member: longer ones are no names of qlog.
const LONGEST_NAME: usize = 64;

/// A value. Elements and members beyond the bound are left out.
#[derive(Debug)]
pub(crate) struct Bounded(pub(crate) Value);

impl<'de> Deserialize<'de> for Bounded {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let left = Cell::new(MOST);
        Part(&left).deserialize(json).map(Self)
    }
}

/// A name of a member; `None` if it is too long.
pub(crate) struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Option<String>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok((name.len() <= LONGEST_NAME).then(|| name.to_owned()))
    }
}

/// A part of a value, and the octets that are left for it.
struct Part<'b>(&'b Cell<usize>);

impl Part<'_> {
    /// Takes memory for an element. Returns whether there is enough.
    fn take(&self, octets: usize) -> bool {
        let left = self.0.get().checked_sub(octets);
        self.0.set(left.unwrap_or(0));
        left.is_some()
    }
}

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        let is_enough = self.take(text.len());
        Ok(if is_enough { text.into() } else { Value::Null })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut made = Vec::new();
        while self.take(ELEMENT) {
            let Some(element) = list.next_element_seed(Part(self.0))? else {
                return Ok(made.into());
            };
            made.push(element);
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(made.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut made = Map::new();
        while let Some(name) = object.next_key_seed(Name)? {
            match name.filter(|name| self.take(MEMBER + name.len())) {
                Some(name) => {
                    made.insert(name, object.next_value_seed(Part(self.0))?);
                }
                None => {
                    object.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(made.into())
    }
}
