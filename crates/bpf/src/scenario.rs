//! `cc = { kind = "bpf", … }` in scenario files.

use std::path::{Path, PathBuf};

use anabranch_congestion::{self as cc};
use anabranch_core::interrupt::Interrupt;
use anabranch_files::Files;
use serde_json::{Value, json};

use crate::{Source, native, shipped};

/// Creates controls from the parameters beside `kind = "bpf"`: `file`, a path relative to the
/// scenario's `folder`, which `files` reads, or `name`, a shipped control. Raising `interrupt` ends
/// the compiler.
///
/// For `Extensions::congestion_control` of the crate `anabranch-scenario`.
pub fn extension(
    folder: PathBuf,
    files: Files,
    interrupt: Interrupt,
) -> impl Fn(&Value) -> Result<cc::Factory, String> + Send + Sync + 'static {
    move |params| {
        let source = source_of(params, &folder, &files)?;
        native::factory(&source, &interrupt).map_err(|error| error.to_string())
    }
}

/// The JSON Schema of `cc = { kind = "bpf", … }`, for editors.
#[must_use]
pub fn schema() -> Value {
    let names: Vec<_> = shipped::ALL.iter().map(|one| one.name).collect();
    json!({
        "type": "object",
        "title": "bpf",
        "description": "A congestion control as an eBPF program, which the kernel takes as well.",
        "properties": {
            "kind": { "enum": ["bpf"] },
            "file": {
                "type": "string",
                "description": "Its C file, beside the scenario's. It is compiled by the system's compiler and \
                                runs as a part of this program: name only files that you would run.",
            },
            "name": { "enum": names, "description": "One that ships, instead of a file." },
        },
        "required": ["kind"],
        // `kind`, and one other key.
        "minProperties": 2,
        "maxProperties": 2,
        "additionalProperties": false,
    })
}

/// The entry of `bpf` in the form that `anabranch_engine::catalog` has for built-in controls.
#[must_use]
pub fn entry() -> Value {
    let schema = schema();
    let parameter = |name: &str, value_type: &str| {
        json!({
            "name": name,
            "type": value_type,
            "units": "",
            "default": null,
            "description": schema["properties"][name]["description"],
            "minimum": null,
            "maximum": null,
        })
    };
    let names: Vec<_> = shipped::ALL
        .iter()
        .map(|one| format!("\"{}\"", one.name))
        .collect();
    json!({
        "kind": "cc",
        "name": "bpf",
        "title": "A congestion control as an eBPF program",
        "summary": "A user's congestion control as a C file, written against the kernel's interface: the simulator \
                    runs it, and the kernel loads the same file. Takes `file` or `name`, not both.",
        "sources": [{ "id": "Linux, include/net/tcp.h", "items": ["struct tcp_congestion_ops"] }],
        "parameters": [parameter("file", "text"), parameter("name", &names.join(" | "))],
        "details": {},
    })
}

const EXPECTED: &str = "write `file = \"my.bpf.c\"`, or `name = \"reno\"` for a control that ships";

/// The control of the parameters beside `kind = "bpf"`: a shipped one, or a file relative to the
/// scenario's `folder`.
///
/// # Errors
/// There is neither, or both; the message contains the expected form after a `"; "`.
pub fn source_of(params: &Value, folder: &Path, files: &Files) -> Result<Source, String> {
    let mut found = None;
    for (key, value) in params.as_object().into_iter().flatten() {
        let Value::String(text) = value else {
            return Err(format!("`{key}` of an eBPF control is a text; {EXPECTED}"));
        };
        let source = match key.as_str() {
            "file" => Source::file(&folder.join(text), files),
            "name" => Source::shipped(text),
            _ => return Err(format!("an eBPF control has no `{key}`; {EXPECTED}")),
        };
        if found.is_some() {
            return Err(format!(
                "an eBPF control has `file` or `name`, not both; {EXPECTED}"
            ));
        }
        found = Some(source.map_err(|error| error.to_string())?);
    }
    found.ok_or_else(|| format!("an eBPF control is a file; {EXPECTED}"))
}
