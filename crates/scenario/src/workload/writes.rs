//! The division of an application's data into writes.

use std::{borrow::Cow, fmt};

use anabranch_core::units::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, SeqAccess},
};

/// The writes of a request or a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Writes {
    /// A number of writes of equal size; the first ones have one byte more if the division has a
    /// remainder.
    Equal(u32),
    /// Writes of these sizes, in order.
    Sizes(Vec<Bytes>),
}

impl Writes {
    /// Whether all data is written at once.
    pub(super) fn is_one(&self) -> bool {
        *self == Self::default()
    }

    /// Bytes of write `number`, from 0, of data of `total` bytes; `None` after the last.
    #[must_use]
    pub fn part(&self, total: u64, number: u32) -> Option<u64> {
        match self {
            Self::Equal(count) => {
                let (count, number) = (u64::from((*count).max(1)), u64::from(number));
                let part = total / count + u64::from(number < total % count);
                (number < count).then_some(part)
            }
            Self::Sizes(sizes) => Some(sizes.get(usize::try_from(number).ok()?)?.get()),
        }
    }
}

impl Default for Writes {
    fn default() -> Self {
        Self::Equal(1)
    }
}

impl<'de> Deserialize<'de> for Writes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Writes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of writes, 1 or more, or a list of their sizes")
            }
            fn visit_i64<E: de::Error>(self, count: i64) -> Result<Writes, E> {
                match u32::try_from(count) {
                    Ok(count @ 1..) => Ok(Writes::Equal(count)),
                    _ => Err(E::invalid_value(de::Unexpected::Signed(count), &self)),
                }
            }
            fn visit_u64<E: de::Error>(self, count: u64) -> Result<Writes, E> {
                self.visit_i64(i64::try_from(count).unwrap_or(i64::MAX))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Writes, A::Error> {
                let mut sizes = Vec::new();
                while let Some(size) = list.next_element()? {
                    sizes.push(size);
                }
                if sizes.is_empty() {
                    return Err(de::Error::invalid_length(0, &self));
                }
                Ok(Writes::Sizes(sizes))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Writes {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Writes".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "integer", "minimum": 1, "maximum": u32::MAX },
                { "type": "array", "minItems": 1, "items": generator.subschema_for::<Bytes>() },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(writes: &Writes, total: u64) -> Vec<u64> {
        (0..)
            .map_while(|number| writes.part(total, number))
            .collect()
    }

    #[test]
    fn equal_writes_differ_by_at_most_a_byte() {
        assert_eq!(parts(&Writes::Equal(3), 10), [4, 3, 3]);
        assert_eq!(parts(&Writes::default(), 10), [10]);
    }

    #[test]
    fn listed_writes_are_in_order() {
        let sizes = [100, 4_000, 1].map(Bytes::new).to_vec();
        assert_eq!(parts(&Writes::Sizes(sizes), 4_101), [100, 4_000, 1]);
    }
}
