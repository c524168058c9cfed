//! Counts within bounds.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A whole number from 1 to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "u32")]
pub struct Count<const MAX: u32>(u32);

impl<const MAX: u32> Count<MAX> {
    /// # Panics
    /// If `count` is 0 or above `MAX`; in a `const` this is a compile error.
    #[must_use]
    pub const fn new(count: u32) -> Self {
        assert!(count >= 1 && count <= MAX, "out of bounds");
        Self(count)
    }
    /// The count.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl<const MAX: u32> TryFrom<i64> for Count<MAX> {
    type Error = String;
    fn try_from(count: i64) -> Result<Self, String> {
        match u32::try_from(count) {
            Ok(small) if (1..=MAX).contains(&small) => Ok(Self(small)),
            _ => Err(format!(
                "{count} is out of range; expected a whole number from 1 to {MAX}"
            )),
        }
    }
}

impl<const MAX: u32> From<Count<MAX>> for u32 {
    fn from(count: Count<MAX>) -> Self {
        count.0
    }
}

impl<const MAX: u32> JsonSchema for Count<MAX> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("CountTo{MAX}").into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": MAX })
    }
}
