//! A resolved scenario as text.

use serde::{Serialize, Serializer};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

/// A scenario with every default written out, as JSON text, which takes a tenth of the memory of a
/// tree.
#[derive(Debug, Clone)]
pub struct ResolvedText(Box<RawValue>);

impl ResolvedText {
    /// Serializes `tables`.
    ///
    /// # Errors
    /// If they are not valid JSON: a key is not a string, or a number is not finite.
    pub fn new<T: Serialize + ?Sized>(tables: &T) -> serde_json::Result<Self> {
        to_raw_value(tables).map(Self)
    }
    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.get()
    }
    /// Parses the text.
    ///
    /// # Panics
    /// Never: the text was written from a tree.
    #[must_use]
    pub fn value(&self) -> Value {
        serde_json::from_str(self.text()).expect("it was written as JSON")
    }
}

impl PartialEq for ResolvedText {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Serialize for ResolvedText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}
