//! Numbers that a word can replace.

use std::{fmt, marker::PhantomData};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{DecreaseFactor, EcnFactor, SearchStep, Share};

/// A word that can replace a number.
pub trait Word {
    /// The word.
    const WORD: &'static str;
}

/// The number comes from the stack, or from the control's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stack;

impl Word for Stack {
    const WORD: &'static str = "stack";
}

/// The number is the one that applies to losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss;

impl Word for Loss {
    const WORD: &'static str = "loss";
}

/// A number, or the word `W`, which is the default.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NumberOr<W, T> {
    own: Option<T>,
    word: PhantomData<W>,
}

/// A share: a number, or the stack's (`"stack"`).
pub type ShareOrStack = NumberOr<Stack, Share>;
/// The share of the window that remains after a reduction: a number, or the stack's (`"stack"`).
pub type DecreaseFactorOrStack = NumberOr<Stack, DecreaseFactor>;
/// The smallest step of a search: a number, or the stack's (`"stack"`).
pub type SearchStepOrStack = NumberOr<Stack, SearchStep>;
/// The share of the window that remains after a mark: a number, or that of a loss (`"loss"`).
pub type EcnFactorOrLoss = NumberOr<Loss, EcnFactor>;

impl<W, T> NumberOr<W, T> {
    /// The number, or `other` if the word is written.
    #[must_use]
    pub fn or(self, other: T) -> T {
        self.own.unwrap_or(other)
    }

    /// The number, or `None` if the word is written.
    #[must_use]
    pub fn own(self) -> Option<T> {
        self.own
    }
}

impl<W, T> Default for NumberOr<W, T> {
    fn default() -> Self {
        Self {
            own: None,
            word: PhantomData,
        }
    }
}

impl<W, T> From<T> for NumberOr<W, T> {
    fn from(own: T) -> Self {
        Self {
            own: Some(own),
            word: PhantomData,
        }
    }
}

impl<W: Word, T: Serialize> Serialize for NumberOr<W, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match &self.own {
            None => to.serialize_str(W::WORD),
            Some(own) => own.serialize(to),
        }
    }
}

impl<'de, W: Word, T: TryFrom<f64, Error = String>> Deserialize<'de> for NumberOr<W, T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct WordOrNumber<W, T>(PhantomData<(W, T)>);
        impl<W: Word, T: TryFrom<f64, Error = String>> de::Visitor<'_> for WordOrNumber<W, T> {
            type Value = NumberOr<W, T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "\"{}\" or a number", W::WORD)
            }
            fn visit_str<E: de::Error>(self, word: &str) -> Result<Self::Value, E> {
                if word == W::WORD {
                    Ok(NumberOr::default())
                } else {
                    Err(E::invalid_value(de::Unexpected::Str(word), &self))
                }
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Self::Value, E> {
                T::try_from(number).map(NumberOr::from).map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
                self.visit_f64(number as f64)
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
                self.visit_f64(number as f64)
            }
        }
        from.deserialize_any(WordOrNumber(PhantomData))
    }
}

impl<W: Word, T: JsonSchema> JsonSchema for NumberOr<W, T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("{}Or{}", T::schema_name(), W::WORD).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let own = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [{ "const": W::WORD }, own] })
    }
}
