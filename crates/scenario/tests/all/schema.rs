//! The JSON Schema matches the reader.

use anabranch_core::units::{Bytes, Duration, Rate, text::Limit};
use anabranch_scenario::schema;
use serde_json::Value;

/// The target of a `$ref`, or the node itself.
fn follow<'a>(root: &'a Value, node: &'a Value) -> &'a Value {
    match node.get("$ref").and_then(Value::as_str) {
        Some(reference) => root
            .pointer(&reference[1..])
            .expect("references lead somewhere"),
        None => node,
    }
}

fn property<'a>(root: &'a Value, table: &'a Value, key: &str) -> &'a Value {
    let property = &follow(root, table)["properties"][key];
    assert!(property.is_object(), "{key}");
    follow(root, property)
}

fn names(kind: &Value) -> Vec<&str> {
    let bare = kind["anyOf"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|case| case["enum"].as_array());
    bare.flatten().filter_map(Value::as_str).collect()
}

fn table<'a>(kind: &'a Value, name: &str) -> &'a Value {
    let cases = kind["anyOf"].as_array().expect("a kind has cases");
    cases
        .iter()
        .find(|case| {
            case.pointer("/properties/kind/enum")
                .and_then(Value::as_array)
                .is_some_and(|names| names.iter().any(|n| n == name))
        })
        .expect("the kind has a table")
}

#[test]
fn kinds_are_bare_names_or_tables() {
    let root = schema();
    let flow = follow(&root, &root["properties"]["flow"]["additionalProperties"]);
    let cc = property(&root, flow, "cc");
    let cc = cc
        .get("anyOf")
        .and_then(|cases| cases.get(0))
        .filter(|case| case.get("$ref").is_some())
        .map_or(cc, |case| follow(&root, case));
    assert!(
        names(cc).contains(&"reno") && names(cc).contains(&"new-reno"),
        "{cc}"
    );
    assert_eq!(table(cc, "new-reno")["additionalProperties"], false);
    let workload = property(&root, flow, "workload");
    assert!(
        names(workload).contains(&"bulk") && !names(workload).contains(&"file"),
        "a file needs a size"
    );
    assert_eq!(
        table(workload, "file")["required"],
        serde_json::json!(["kind", "size"])
    );
    let link = follow(&root, &root["properties"]["link"]["additionalProperties"]);
    let queue = property(&root, link, "queue");
    assert!(table(queue, "drop-tail")["properties"]["reorder"].is_object());
    assert!(table(queue, "drop-tail")["properties"]["limit"].is_object());
}

#[test]
fn references_resolve_and_keys_have_descriptions() {
    fn walk(root: &Value, node: &Value, path: &str) {
        match node {
            Value::Object(map) => {
                follow(root, node);
                if let Some(properties) = map.get("properties").and_then(Value::as_object) {
                    for (key, property) in properties {
                        let explained = property
                            .get("description")
                            .or_else(|| follow(root, property).get("description"));
                        assert!(
                            explained.is_some() || key == "kind" || key == "reorder",
                            "{path}.{key} has no description"
                        );
                    }
                }
                map.iter()
                    .for_each(|(key, child)| walk(root, child, &format!("{path}/{key}")));
            }
            Value::Array(list) => list.iter().for_each(|child| walk(root, child, path)),
            _ => {}
        }
    }
    let root = schema();
    walk(&root, &root, "");
    assert_eq!(root["additionalProperties"], false);
    assert_eq!(root["required"], serde_json::json!(["duration"]));
}

#[test]
fn examples_of_quantities_parse() {
    let root = schema();
    let examples = |name: &str| -> Vec<String> {
        let examples = root["$defs"][name]["examples"].as_array().expect(name);
        examples
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    assert!(
        examples("Duration")
            .iter()
            .all(|text| text.parse::<Duration>().is_ok())
    );
    assert!(
        examples("Limit")
            .iter()
            .all(|text| text.parse::<Limit>().is_ok())
    );
    assert!(
        examples("Bytes")
            .iter()
            .all(|text| text.parse::<Bytes>().is_ok())
    );
    assert!(
        examples("Rate")
            .iter()
            .all(|text| text.parse::<Rate>().is_ok())
    );
}
