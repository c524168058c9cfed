//! The catalog: every registered component with its sources and parameters, for the command line,
//! the documentation and editors.

use anabranch_congestion::{self as cc};
use anabranch_core::registry::{Meta, Source};
use anabranch_fec::{self as fec};
use anabranch_path::{
    group::control,
    impair,
    multipath::{restore, split},
    queue,
};
use anabranch_tcp::{self as tcp};
use schemars::Schema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::library;

/// A component of the catalog.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// The family: `cc`, `queue`, `reorder`, `impair`, `control`, `split`, `restore`, `remedy`,
    /// `fec`, `workload`, `stack`, `path`.
    pub kind: &'static str,
    /// The name that scenario files use.
    pub name: String,
    /// The name that people use.
    pub title: String,
    /// Description and purpose.
    pub summary: String,
    /// The documents that specify it.
    pub sources: Vec<SourceEntry>,
    /// The keys that can be set next to `kind`.
    pub parameters: Vec<Parameter>,
    /// Further facts by key: for a stack profile, every switch.
    pub details: Map<String, Value>,
}

/// A source of a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceEntry {
    /// The document.
    pub id: String,
    /// The sections or figures in it.
    pub items: Vec<String>,
}

/// A parameter of a component.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parameter {
    /// Its key.
    pub name: String,
    /// The type of its value.
    #[serde(rename = "type")]
    pub value_type: String,
    /// The units that a value may have, with other spellings of a unit in parentheses; empty for
    /// bare numbers, words and switches.
    pub units: String,
    /// The value if the file gives none; `null` if it must be given.
    pub default: Value,
    /// The meaning.
    pub description: String,
    /// Smallest value, if bounded.
    pub minimum: Value,
    /// Largest value, if bounded.
    pub maximum: Value,
}

/// Lists every component of this version, by family, in registry order.
#[must_use]
pub fn catalog() -> Vec<Entry> {
    let mut entries = Vec::new();
    entries.extend(
        cc::registry()
            .into_iter()
            .map(|(meta, config, schema)| component("cc", meta, &config, &schema)),
    );
    entries.extend(queue::registry().into_iter().map(|(meta, config, schema)| {
        let mut entry = component("queue", meta, &config, &schema);
        entry.parameters.push(reorder());
        entry
    }));
    entries.push(component(
        "reorder",
        &queue::reorder::META,
        &Value::Null,
        &schemars::schema_for!(queue::reorder::Interval),
    ));
    entries.extend(
        impair::registry()
            .into_iter()
            .map(|(meta, config, schema)| component("impair", meta, &config, &schema)),
    );
    entries.extend(
        control::registry()
            .into_iter()
            .map(|(meta, config, schema)| component("control", meta, &config, &schema)),
    );
    entries.extend(
        split::registry()
            .into_iter()
            .map(|(meta, config, schema)| component("split", meta, &config, &schema)),
    );
    entries.extend(
        restore::registry()
            .into_iter()
            .map(|(meta, config, schema)| component("restore", meta, &config, &schema)),
    );
    entries.extend(
        tcp::remedy::registry()
            .into_iter()
            .map(|(meta, config, schema)| component("remedy", meta, &config, &schema)),
    );
    entries.extend(
        fec::params::registry()
            .into_iter()
            .map(|(meta, config, schema)| component("fec", meta, &config, &schema)),
    );
    entries.extend(workloads());
    entries.extend(tcp::profiles().iter().map(stack));
    entries.extend(library::described().into_iter().map(path));
    entries
}

/// Returns a file of the library of ready paths by the name that scenarios use, `anabranch:NAME`.
#[must_use]
pub fn library_file(name: &str) -> Option<&'static str> {
    library::file(name)?.ok()
}

fn path(path: library::Described) -> Entry {
    let sources = path.sources.into_iter();
    Entry {
        kind: "path",
        name: path.name.to_owned(),
        title: path.title,
        summary: path.summary,
        sources: sources
            .map(|(id, items)| SourceEntry { id, items })
            .collect(),
        parameters: Vec::new(),
        details: path.details,
    }
}

fn sources(list: &[Source]) -> Vec<SourceEntry> {
    list.iter()
        .map(|source| SourceEntry {
            id: source.id.to_owned(),
            items: source.items.iter().map(|item| (*item).to_owned()).collect(),
        })
        .collect()
}

fn component<T: Serialize>(kind: &'static str, meta: &Meta, config: &T, schema: &Schema) -> Entry {
    let config = serde_json::to_value(config).unwrap_or_default();
    // Externally tagged: the parameters are the only member.
    let defaults = config
        .as_object()
        .and_then(|o| o.values().next())
        .cloned()
        .unwrap_or_default();
    Entry {
        kind,
        name: meta.name.to_owned(),
        title: meta.title.to_owned(),
        summary: meta.summary.to_owned(),
        sources: sources(meta.sources),
        parameters: parameters(schema, &defaults),
        details: Map::new(),
    }
}

/// Lists the parameters that a schema describes.
fn parameters(schema: &Schema, defaults: &Value) -> Vec<Parameter> {
    let schema = schema.as_value();
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    properties
        .iter()
        .map(|(name, property)| {
            let target = resolve(schema, property);
            let choices = alternatives(target).map(|choice| resolve(schema, choice));
            // For an alternative of a word and a quantity, the attributes of the quantity apply.
            let places: Vec<_> = [property, target].into_iter().chain(choices).collect();
            let find = |key: &str| {
                places
                    .iter()
                    .find_map(|place| place.get(key))
                    .cloned()
                    .unwrap_or_default()
            };
            // A quantity's bounds are strings, which the keys of JSON Schema do not accept.
            let bound = |number: &str, text: &str| match find(number) {
                Value::Null => find(text),
                bound => bound,
            };
            Parameter {
                name: name.clone(),
                value_type: value_type(schema, target),
                default: defaults.get(name).cloned().unwrap_or_default(),
                description: find("description")
                    .as_str()
                    .unwrap_or_default()
                    .replace('\n', " "),
                units: find("x-units").as_str().unwrap_or_default().to_owned(),
                minimum: bound("minimum", "x-minimum"),
                maximum: bound("maximum", "x-maximum"),
            }
        })
        .collect()
}

/// The key `reorder`, which every queue accepts next to its parameters.
fn reorder() -> Parameter {
    let name = queue::reorder::META.name;
    Parameter {
        name: "reorder".to_owned(),
        value_type: "table".to_owned(),
        units: String::new(),
        default: Value::Null,
        description: format!(
            "Reordering inside the queue, none where it is left out: see `{name}`."
        ),
        minimum: Value::Null,
        maximum: Value::Null,
    }
}

/// Returns the target of a property's `$ref`, or the property itself.
fn resolve<'a>(schema: &'a Value, property: &'a Value) -> &'a Value {
    let reference = property
        .get("$ref")
        .or_else(|| {
            property
                .get("allOf")
                .and_then(|list| list.get(0))
                .and_then(|first| first.get("$ref"))
        })
        .and_then(Value::as_str)
        .and_then(|path| path.strip_prefix('#'));
    reference
        .and_then(|path| schema.pointer(path))
        .unwrap_or(property)
}

/// The alternatives (`oneOf`, `anyOf`) of a schema.
fn alternatives(schema: &Value) -> impl Iterator<Item = &Value> {
    let list = schema.get("oneOf").or_else(|| schema.get("anyOf"));
    list.and_then(Value::as_array).into_iter().flatten()
}

fn value_type(schema: &Value, target: &Value) -> String {
    if let Some(word) = target.get("const").and_then(Value::as_str) {
        return format!("\"{word}\"");
    }
    if let Some(choices) = target.get("enum").and_then(Value::as_array) {
        return choices
            .iter()
            .filter_map(Value::as_str)
            .map(|c| format!("\"{c}\""))
            .collect::<Vec<_>>()
            .join(" | ");
    }
    let mut forms: Vec<String> = Vec::new();
    for choice in alternatives(target) {
        let form = value_type(schema, resolve(schema, choice));
        if form != "null" && !forms.contains(&form) {
            forms.push(form);
        }
    }
    if !forms.is_empty() {
        return forms.join(" | ");
    }
    if let Some(quantity) = target.get("x-type").and_then(Value::as_str) {
        return quantity.to_owned();
    }
    match target.get("type") {
        Some(Value::String(name)) if name == "number" && is_ratio(target) => "ratio".to_owned(),
        Some(Value::String(name)) if name == "object" => "table".to_owned(),
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(" or "),
        _ => "value".to_owned(),
    }
}

fn is_ratio(target: &Value) -> bool {
    let bounds = (target.get("minimum"), target.get("maximum"));
    let number = |bound: Option<&Value>| bound.and_then(Value::as_f64);
    (number(bounds.0), number(bounds.1)) == (Some(0.0), Some(1.0))
}

fn workloads() -> Vec<Entry> {
    let entry =
        |name: &str, title: &str, summary: &str, schema: Option<Schema>, source: (&str, &str)| {
            Entry {
                kind: "workload",
                name: name.to_owned(),
                title: title.to_owned(),
                summary: summary.to_owned(),
                sources: vec![SourceEntry {
                    id: source.0.to_owned(),
                    items: vec![source.1.to_owned()],
                }],
                parameters: schema
                    .map(|schema| parameters(&schema, &Value::Null))
                    .unwrap_or_default(),
                details: Map::new(),
            }
        };
    vec![
        entry(
            "bulk",
            "Bulk",
            "Always has data to send, until the flow stops.",
            None,
            ("RFC 6349", "§3.3"),
        ),
        entry(
            "file",
            "File",
            "Sends one file and closes; the flow ends when all of it has arrived.",
            Some(schemars::schema_for!(crate::workload::File)),
            ("RFC 6349", "§4.1"),
        ),
        entry(
            "poisson",
            "Poisson file arrivals",
            "Files that arrive as a Poisson process, each on a separate connection; over UDP each file is a burst of \
             datagrams. With a `profile` the load follows a curve, with short bursts on top.",
            Some(schemars::schema_for!(crate::workload::Poisson)),
            ("Paxson and Floyd 1995 (IEEE/ACM ToN 3(3))", "§III"),
        ),
        entry(
            "paced",
            "Paced",
            "Sends at a fixed rate, evenly spaced, as a call, a video or a sensor does. Over UDP it does not react to \
             congestion; over TCP it is an application-limited flow, and data waits while the network is slower.",
            Some(schemars::schema_for!(crate::workload::Paced)),
            ("RFC 8085", "§3.1"),
        ),
        entry(
            "on-off",
            "On and off",
            "Alternates between evenly spaced datagrams and silence, over UDP. Many such flows whose periods have a \
             heavy tail (Pareto, shape below 2) add up to self-similar traffic.",
            Some(schemars::schema_for!(crate::workload::OnOff)),
            ("Willinger et al. 1997 (IEEE/ACM ToN 5(1))", "§2"),
        ),
        entry(
            "replay",
            "Replay of a capture",
            "Sends a datagram of each recorded packet's length at its recorded time, over UDP: measured traffic, which \
             does not react to congestion.",
            Some(schemars::schema_for!(crate::workload::Replay)),
            ("draft-ietf-opsawg-pcap", "§5"),
        ),
        Entry {
            parameters: parameters(
                &schemars::schema_for!(crate::workload::RequestResponse),
                &serde_json::to_value(crate::workload::RequestResponse::default())
                    .unwrap_or_default(),
            ),
            ..entry(
                "request-response",
                "Requests and responses",
                "A closed loop: a client at `to` opens one connection and sends a request, the server at `from` \
                 responds, and after a pause the client sends the next request. The data, as with every workload, goes \
                 from `from` to `to`. The default sizes are as in netperf's `TCP_RR`.",
                None,
                ("Schroeder, Wierman and Harchol-Balter 2006 (NSDI)", "§2"),
            )
        },
    ]
}

fn stack(profile: &tcp::Profile) -> Entry {
    let mut details = Map::new();
    let switches = serde_json::to_value(&profile.settings).unwrap_or_default();
    details.insert("cc".to_owned(), profile.cc.into());
    details.extend(switches.as_object().cloned().unwrap_or_default());
    let reasons = profile
        .reasons
        .iter()
        .map(|(switch, reason)| ((*switch).to_owned(), Value::from(*reason)));
    details.insert("reasons".to_owned(), Value::Object(reasons.collect()));
    details.insert("not_modelled".to_owned(), profile.not_modelled.into());
    details.insert("aliases".to_owned(), profile.aliases.into());
    Entry {
        kind: "stack",
        name: profile.meta.name.to_owned(),
        title: profile.meta.title.to_owned(),
        summary: profile.meta.summary.to_owned(),
        sources: sources(profile.meta.sources),
        parameters: Vec::new(),
        details,
    }
}

#[cfg(test)]
mod tests {
    use anabranch_congestion::params::Packets;
    use anabranch_core::units::{
        Bytes, Duration, Rate,
        text::{Limit, LinkRate},
    };

    use super::*;

    /// Whether `text` is a valid value of this quantity.
    fn reads(value_type: &str, text: &str) -> bool {
        let quantity = value_type
            .split(" | ")
            .find(|form| !form.starts_with('"'))
            .unwrap_or_default();
        match quantity {
            "duration" => text.parse::<Duration>().is_ok(),
            "rate" => text.parse::<Rate>().is_ok(),
            "rate or \"unlimited\"" => text.parse::<LinkRate>().is_ok(),
            "size" => text.parse::<Bytes>().is_ok(),
            "limit" => text.parse::<Limit>().is_ok(),
            "packets" => text.parse::<Packets>().is_ok(),
            other => panic!("{other} is no quantity"),
        }
    }

    #[test]
    fn quantities_list_valid_units_and_bounds() {
        let mut quantities = 0;
        for entry in catalog() {
            for p in &entry.parameters {
                let name = format!("{}.{}", entry.name, p.name);
                assert!(!["value", "string"].contains(&&*p.value_type), "{name}");
                let bounded = p.minimum.is_number() || p.maximum.is_number();
                assert!(!bounded || p.units.is_empty(), "{name}");
                if p.units.is_empty() {
                    continue;
                }
                for bound in [&p.minimum, &p.maximum] {
                    let text = bound.as_str().unwrap_or_default();
                    assert!(reads(&p.value_type, text), "{name}: {text}");
                }
                // Each unit must parse, and the unit of the default must be listed.
                let units: Vec<_> = p
                    .units
                    .split([',', ' ', '(', ')'])
                    .filter(|unit| !unit.is_empty())
                    .collect();
                for unit in &units {
                    assert!(reads(&p.value_type, &format!("1 {unit}")), "{name}: {unit}");
                }
                let default = p.default.as_str().unwrap_or("unlimited");
                let unit = default.rsplit(' ').next().unwrap_or_default();
                assert!(
                    unit == "unlimited"
                        || units.contains(&unit)
                        || p.value_type.contains(&format!("\"{default}\"")),
                    "{name}: {default}"
                );
                quantities += 1;
            }
        }
        assert!(quantities >= 8, "{quantities}");
    }

    #[test]
    fn a_parameter_lists_every_form_of_its_value() {
        let entries = catalog();
        let told = |name: &str, parameter: &str| {
            let entry = entries.iter().find(|entry| entry.name == name);
            let mut parameters = entry.into_iter().flat_map(|entry| &entry.parameters);
            let found = parameters.find(|p| p.name == parameter).expect(parameter);
            (found.value_type.clone(), found.units.clone())
        };
        for (name, parameter, value_type) in [
            (
                "cubic",
                "reno_friendly",
                r#""stack" | "rfc9438" | "rfc8312""#,
            ),
            ("cubic", "count", r#""stack" | "bytes" | "segments""#),
            (
                "cubic",
                "reduce_from",
                r#""stack" | "flight-size" | "cwnd""#,
            ),
            ("cubic", "first_epoch_growth", r#""stack" | ratio"#),
            ("cubic", "slow_start_limit", r#""stack" | packets"#),
            ("fq-codel", "ce_threshold", r#""off" | duration"#),
            ("fq-codel", "memory_limit", r#""unlimited" | size"#),
            ("red", "reorder", "table"),
        ] {
            assert_eq!(told(name, parameter).0, value_type, "{name}.{parameter}");
        }
        let hystart = told("cubic", "hystart").0;
        for word in ["stack", "off", "linux", "ha-rhee", "rfc9406"] {
            assert!(hystart.contains(&format!("\"{word}\"")), "{hystart}");
        }
        assert!(told("fq-codel", "ce_threshold").1.contains("ms"));
    }

    #[test]
    fn values_out_of_bounds_are_refused() {
        for (value_type, text) in [
            ("duration", "-1 ps"),
            ("duration", "9223373 s"),
            ("rate", "0 bit/s"),
            ("rate", "18446744073709551616 bit/s"),
            ("size", "18446744073709551616 bytes"),
            ("packets", "0 packets"),
            ("packets", "1000001 packets"),
        ] {
            assert!(!reads(value_type, text), "{text}");
        }
    }

    #[test]
    fn every_entry_is_unique_sourced_and_described() {
        let entries = catalog();
        for entry in &entries {
            assert!(!entry.sources.is_empty(), "{} cites nothing", entry.name);
            assert!(!entry.summary.is_empty(), "{} says nothing", entry.name);
            for parameter in &entry.parameters {
                assert!(
                    !parameter.description.is_empty(),
                    "{}.{} says nothing",
                    entry.name,
                    parameter.name
                );
            }
            let same = entries
                .iter()
                .filter(|e| (e.kind, &e.name) == (entry.kind, &entry.name))
                .count();
            assert_eq!(same, 1, "{} stands twice", entry.name);
        }
    }
}
