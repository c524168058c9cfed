//! Selection of heavy flows: named flows, or the connection that a detector finds.
//!
//! Every detector of [`heavy`] is a `kind` of the same name. The study's history is called
//! `dynamic`, as in the study, or `history`.

use std::{borrow::Cow, fmt, sync::LazyLock};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{EnumAccess, VariantAccess, Visitor},
    ser::Error as _,
};
use serde_json::{Map, Value, json};

use super::super::{Contradiction, Init, Item};
use crate::{heavy, heavy::HeavyFlows};

/// Selection of heavy flows.
#[derive(Debug, Clone, PartialEq)]
pub enum Select {
    /// Named flows.
    Static(Static),
    /// The connection that a detector finds to be the heaviest.
    Found(heavy::Config),
}

/// Named flows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Static {
    /// Names of `[flow.NAME]` tables, with all their copies, or of single copies (`"cubic/3"`).
    pub flows: Vec<String>,
}

/// The study's name for its history.
const DYNAMIC: &str = "dynamic";
const STATIC: &str = "static";

/// All kinds, the study's names first.
static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let detectors = heavy::registry().into_iter().map(|(meta, ..)| meta.name);
    [STATIC, DYNAMIC].into_iter().chain(detectors).collect()
});

impl Default for Select {
    fn default() -> Self {
        Self::Found(heavy::Config::History(heavy::history::Params::default()))
    }
}

impl Select {
    pub(super) fn check(&self) -> Result<(), Contradiction> {
        match self {
            Self::Static(named) if named.flows.is_empty() => Err(Contradiction {
                key: &["select", "flows"],
                message: "no flow is named".to_owned(),
                expected: "a list such as [\"cubic\"], or `kind = \"dynamic\"`".to_owned(),
            }),
            _ => Ok(()),
        }
    }
    fn name(&self) -> &str {
        match self {
            Self::Static(_) => STATIC,
            Self::Found(heavy::Config::History(_)) => DYNAMIC,
            Self::Found(detector) => detector.name(),
        }
    }
}

impl Serialize for Select {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parameters = match self {
            Self::Static(named) => serde_json::to_value(named),
            Self::Found(detector) => detector.parameters(),
        };
        let mut table = Map::new();
        table.insert("kind".to_owned(), self.name().into());
        if let Value::Object(parameters) = parameters.map_err(S::Error::custom)? {
            table.extend(parameters);
        }
        table.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Select {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Kind;
        impl<'de> Visitor<'de> for Kind {
            type Value = Select;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table with `kind`")
            }
            fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<Select, A::Error> {
                let (Name(name), parameters) = access.variant()?;
                let name = match name {
                    STATIC => return parameters.newtype_variant().map(Select::Static),
                    DYNAMIC => heavy::history::META.name,
                    other => other,
                };
                heavy::Config::read(name, parameters)
                    .expect("every name belongs to a detector")
                    .map(Select::Found)
            }
        }
        deserializer.deserialize_enum("Select", &NAMES, Kind)
    }
}

/// Name of a kind.
struct Name(&'static str);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Word;
        impl Visitor<'_> for Word {
            type Value = Name;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a kind")
            }
            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Name, E> {
                let known = NAMES.iter().find(|name| **name == word);
                known
                    .map(|name| Name(name))
                    .ok_or_else(|| E::unknown_variant(word, &NAMES))
            }
        }
        deserializer.deserialize_identifier(Word)
    }
}

impl JsonSchema for Select {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Select".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let flows = Static::json_schema(generator);
        let mut tables = vec![table(
            &[STATIC],
            "Flows that are known (§4.1 of the study).",
            &flows,
            &["kind", "flows"],
        )];
        let mut bare = Vec::new();
        for (meta, _, schema) in heavy::registry() {
            let kinds = if meta.name == heavy::history::META.name {
                vec![DYNAMIC, meta.name]
            } else {
                vec![meta.name]
            };
            tables.push(table(&kinds, meta.summary, &schema, &["kind"]));
            bare.extend(kinds);
        }
        let bare = json!({ "enum": bare, "description": "A detector with its defaults." });
        tables.insert(0, bare);
        Schema::try_from(json!({ "anyOf": tables })).expect("an object is a schema")
    }
}

fn table(kinds: &[&str], description: &str, own: &Schema, required: &[&str]) -> Value {
    let mut properties = Map::new();
    properties.insert("kind".to_owned(), json!({ "enum": kinds }));
    if let Some(own) = own.get("properties").and_then(Value::as_object) {
        properties.extend(own.clone());
    }
    json!({
        "type": "object",
        "title": kinds[0],
        "description": description,
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// State of a selection.
#[derive(Debug)]
pub(super) enum Selector {
    /// Indexed by flow number.
    Static(Vec<bool>),
    Found(heavy::Detector),
}

impl Selector {
    pub(super) fn new(select: &Select, init: &Init<'_>) -> Self {
        match select {
            Select::Static(named) => {
                let mut flows = vec![false; init.flows.len()];
                for name in &named.flows {
                    for flow in init.flows_named(name) {
                        flows[flow.0 as usize] = true;
                    }
                }
                Self::Static(flows)
            }
            Select::Found(detector) => Self::Found(detector.build()),
        }
    }
    /// Counts an arriving packet; returns whether it belongs to a heavy flow.
    #[inline]
    pub(super) fn selects(&mut self, item: &Item) -> bool {
        match self {
            Self::Static(flows) => flows.get(item.flow.0 as usize).copied().unwrap_or(false),
            Self::Found(detector) => {
                detector.on_packet(item.connection, item.size);
                detector.heaviest() == Some(item.connection)
            }
        }
    }
}
