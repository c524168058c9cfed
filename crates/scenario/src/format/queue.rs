//! A queue as written in the file.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{SeqAccess, Visitor},
};

use crate::{de::tagged, kind::Kind, schema, types::queue};

/// A queue: its discipline, and the reordering inside it, which any `kind` accepts as a further
/// key.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Queue {
    /// The discipline: which packet is sent next, and which are dropped.
    pub discipline: Kind<queue::Config>,
    /// Reordering inside the queue.
    pub reorder: Option<queue::Reorder>,
}

impl<'de> Deserialize<'de> for Queue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Parts;
        impl<'de> Visitor<'de> for Parts {
            type Value = Queue;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a queue: a name, or a table with `kind`")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Queue, A::Error> {
                Ok(Queue {
                    discipline: parts.next_element()?.unwrap_or_default(),
                    reorder: parts.next_element()?,
                })
            }
        }
        deserializer.deserialize_newtype_struct("beside:reorder", Parts)
    }
}

impl Serialize for Queue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error;
        let mut table = serde_json::to_value(&self.discipline).map_err(S::Error::custom)?;
        if let (Some(reorder), Some(table)) = (&self.reorder, table.as_object_mut()) {
            let reorder = tagged(reorder).map_err(S::Error::custom)?;
            table.insert("reorder".to_owned(), reorder);
        }
        table.serialize(serializer)
    }
}

impl JsonSchema for Queue {
    fn schema_name() -> Cow<'static, str> {
        "queue-with-reorder".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let reorder = schema::kind_table::<queue::Reorder>(generator, "reorder", &[]);
        let queue = schema::kind_table::<queue::Config>(generator, "queue", &[]);
        schema::with_property(queue, "reorder", &reorder)
    }
}
