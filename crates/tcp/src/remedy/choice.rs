//! A remedy as written in a scenario: a bare name, or a table with `kind`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::{Config, registry};

/// A remedy as written in a scenario.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Choice(pub Config);

impl Serialize for Choice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut table = Map::new();
        table.insert("kind".to_owned(), self.0.name().into());
        let params = match &self.0 {
            Config::Custom(custom) => custom.params.clone(),
            built_in => {
                let tagged = serde_json::to_value(built_in).map_err(serde::ser::Error::custom)?;
                tagged.get(self.0.name()).cloned().unwrap_or_default()
            }
        };
        if let Value::Object(params) = params {
            table.extend(params);
        }
        table.serialize(serializer)
    }
}

impl JsonSchema for Choice {
    fn schema_name() -> Cow<'static, str> {
        "remedy".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut names = Vec::new();
        let mut tables = Vec::new();
        for (meta, _, schema) in registry() {
            names.push(Value::from(meta.name));
            let mut properties = Map::new();
            properties.insert("kind".to_owned(), json!({ "enum": [meta.name] }));
            if let Some(own) = schema.get("properties").and_then(Value::as_object) {
                properties.extend(own.clone());
            }
            tables.push(json!({
                "type": "object",
                "title": meta.name,
                "description": meta.summary,
                "properties": properties,
                "required": ["kind"],
                "additionalProperties": false,
            }));
        }
        let mut any_of =
            vec![json!({ "enum": names, "description": "A remedy with its defaults." })];
        any_of.extend(tables);
        Schema::try_from(json!({ "anyOf": any_of })).expect("an object is a schema")
    }
}
