//! The declaration of a run's summary: the JSON Schema of its structs.

#[cfg(feature = "schema")]
use std::sync::LazyLock;

#[cfg(feature = "schema")]
use anabranch::summary::Summary;
#[cfg(feature = "schema")]
use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde::Serialize;
#[cfg(feature = "schema")]
use serde_json::Value;

#[cfg(feature = "schema")]
static DEFINITIONS: LazyLock<Value> = LazyLock::new(|| definitions(|_| ()));

/// The schemas of all structs of the summary, and of the structs that `more` adds, by their names.
#[cfg(feature = "schema")]
pub fn definitions(more: impl FnOnce(&mut SchemaGenerator)) -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut generator = settings.into_generator();
    generator.subschema_for::<Summary>();
    more(&mut generator);
    Value::Object(generator.take_definitions(true))
}

/// The description of a column.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct DeclaredColumn {
    /// Its name.
    pub name: &'static str,
    /// `text`, `number`, `count`, `small_count` or `flag`.
    pub kind: &'static str,
    /// Its meaning, a sentence.
    pub meaning: &'static str,
    /// `None` for the unit that the name's ending states.
    pub unit: Option<&'static str>,
    /// `None` for the engine of the table.
    pub engine: Option<&'static str>,
}

/// None: without the schema of the summary its scalars are not known.
#[cfg(not(feature = "schema"))]
pub fn scalars(_kind: &str) -> impl Iterator<Item = DeclaredColumn> {
    std::iter::empty()
}

/// The scalars of a struct of the summary: numbers, then counts, texts and flags.
#[cfg(feature = "schema")]
pub fn scalars(kind: &str) -> impl Iterator<Item = DeclaredColumn> {
    let fields = DEFINITIONS[kind]["properties"].as_object();
    let forms = [
        ("number", "number"),
        ("integer", "count"),
        ("string", "text"),
        ("boolean", "flag"),
    ];
    forms.into_iter().flat_map(move |(form, kind)| {
        let of_form = fields.into_iter().flatten().filter(move |(_, field)| {
            let form_of = field["type"].get(0).unwrap_or(&field["type"]);
            form_of == form
        });
        of_form.map(move |(name, field)| DeclaredColumn {
            name,
            kind,
            meaning: field["description"].as_str().unwrap_or_default(),
            unit: field["unit"].as_str(),
            engine: field["engine"].as_str(),
        })
    })
}
