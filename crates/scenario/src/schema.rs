//! The JSON Schema of the format, generated from its types.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Converts the schema of serde's form of an enum (`{ "cubic": { … } }`) to the format's form: a
/// bare name, or a table with the name as `kind` and the content as its other keys.
pub(super) fn kind_table<T: JsonSchema>(
    generator: &mut SchemaGenerator,
    noun: &str,
    aliases: &[(&str, &str)],
) -> Schema {
    let plain: Value = T::json_schema(generator).into();
    let definitions = generator.definitions().clone();
    let mut names = Vec::new();
    let mut tables = Vec::new();
    for variant in variants(&plain) {
        let spellings = |name: &str| -> Vec<Value> {
            let same = aliases.iter().filter(|(_, of)| *of == name);
            std::iter::once(name)
                .chain(same.map(|(alias, _)| *alias))
                .map(Value::from)
                .collect()
        };
        let spelled = spellings(&variant.name);
        let content = resolve_reference(&variant.content, &definitions);
        let needs = content
            .get("required")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        if needs.is_empty() {
            names.extend(spelled.iter().cloned());
        }
        let mut properties = Map::new();
        properties.insert("kind".to_owned(), json!({ "enum": spelled }));
        if let Some(own) = content.get("properties").and_then(Value::as_object) {
            properties.extend(own.clone());
        }
        let mut required = vec![Value::from("kind")];
        required.extend(needs);
        let description = variant
            .description
            .clone()
            .or_else(|| content.get("description").cloned());
        let mut table = json!({
            "type": "object",
            "title": variant.name,
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        });
        if let Some(description) = description {
            table["description"] = description;
        }
        tables.push(table);
    }
    let mut any_of = Vec::new();
    if !names.is_empty() {
        any_of
            .push(json!({ "enum": names, "description": format!("A {noun} with its defaults.") }));
    }
    any_of.extend(tables);
    Schema::try_from(json!({ "anyOf": any_of })).expect("an object is a schema")
}

/// Returns the schema with `key` allowed in every table.
pub(super) fn with_property(mut kind: Schema, key: &str, property: &Schema) -> Schema {
    let tables = kind.get_mut("anyOf").and_then(Value::as_array_mut);
    for table in tables.into_iter().flatten() {
        if let Some(properties) = table.get_mut("properties").and_then(Value::as_object_mut) {
            properties.insert(key.to_owned(), property.clone().into());
        }
    }
    kind
}

struct Variant {
    name: String,
    description: Option<Value>,
    content: Value,
}

fn variants(schema: &Value) -> Vec<Variant> {
    let one = |schema: &Value| -> Vec<Variant> {
        let description = schema.get("description").cloned();
        let unit = |name: &Value| Variant {
            name: name.as_str().unwrap_or_default().to_owned(),
            description: description.clone(),
            content: json!({}),
        };
        if let Some(name) = schema.get("const") {
            return vec![unit(name)];
        }
        if let Some(names) = schema.get("enum").and_then(Value::as_array) {
            return names.iter().map(unit).collect();
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        properties
            .into_iter()
            .flatten()
            .map(|(name, content)| Variant {
                name: name.clone(),
                description: description.clone(),
                content: content.clone(),
            })
            .collect()
    };
    match schema
        .get("oneOf")
        .or_else(|| schema.get("anyOf"))
        .and_then(Value::as_array)
    {
        Some(each) => each.iter().flat_map(one).collect(),
        None => one(schema),
    }
}

fn resolve_reference(content: &Value, definitions: &Map<String, Value>) -> Value {
    content
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| reference.strip_prefix("#/$defs/"))
        .and_then(|name| definitions.get(name))
        .unwrap_or(content)
        .clone()
}
