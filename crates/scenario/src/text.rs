//! A resolved scenario as text.

use serde::{Serialize, Serializer};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

/// A scenario with every default written out: JSON, kept as text, which takes a tenth of a tree's memory.
#[derive(Debug, Clone)]
pub struct ResolvedText(Box<RawValue>);

impl ResolvedText {
    /// What `tables` say.
    ///
    /// # Errors
    /// If they are no JSON: a key is no text, or a number is not finite.
    pub fn new<T: Serialize + ?Sized>(tables: &T) -> serde_json::Result<Self> {
        to_raw_value(tables).map(Self)
    }
    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.get()
    }
    /// The tree that the text stands for.
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
