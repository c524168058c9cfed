//! The declaration of a run's summary: the JSON Schema of its structs.

use std::sync::LazyLock;

use anabranch::summary::Summary;
#[cfg(all(feature = "live", target_os = "linux"))]
use anabranch_live::LiveSummary;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::Value;

use crate::scenario::Description;

/// The schemas of all structs of the summary, by their names.
pub static DEFINITIONS: LazyLock<Value> = LazyLock::new(|| {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut generator = settings.into_generator();
    generator.subschema_for::<Summary>();
    #[cfg(all(feature = "live", target_os = "linux"))]
    generator.subschema_for::<LiveSummary>();
    generator.subschema_for::<Description>();
    Value::Object(generator.take_definitions(true))
});

/// The description of a column.
#[derive(Clone, Copy, Serialize)]
pub struct DeclaredColumn {
    pub name: &'static str,
    /// `text`, `number`, `count`, `small_count` or `flag`.
    pub kind: &'static str,
    pub meaning: &'static str,
    /// `None` for the unit that the name's ending states.
    pub unit: Option<&'static str>,
    /// `None` for the engine of the table.
    pub engine: Option<&'static str>,
}

/// The scalars of a struct of the summary: numbers, then counts, texts and flags.
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
