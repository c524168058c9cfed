//! `cc = { kind = "bpf", … }` in scenario files.

use std::path::{Path, PathBuf};

use anabranch_elements::cc;
use serde_json::Value;

use crate::{Source, native};

/// Makes controls from what stands beside `kind = "bpf"`: `file`, a path beside the scenario's own file
/// in `folder`, or `name`, a control that ships.
///
/// For `Extensions::congestion_control` of the crate `anabranch-model`.
pub fn extension(
    folder: PathBuf,
) -> impl Fn(&Value) -> Result<cc::Factory, String> + Send + Sync + 'static {
    move |params| {
        let source = source(params, &folder)?;
        native::factory(&source).map_err(|error| error.to_string())
    }
}

const EXPECTED: &str = "write `file = \"my.bpf.c\"`, or `name = \"reno\"` for a control that ships";

fn source(params: &Value, folder: &Path) -> Result<Source, String> {
    let mut found = None;
    for (key, value) in params.as_object().into_iter().flatten() {
        let Value::String(text) = value else {
            return Err(format!("`{key}` of an eBPF control is a text; {EXPECTED}"));
        };
        let source = match key.as_str() {
            "file" => Source::file(&folder.join(text)),
            "name" => Source::shipped(text),
            _ => return Err(format!("an eBPF control has no `{key}`; {EXPECTED}")),
        };
        if found.is_some() {
            return Err(format!("an eBPF control has `file` or `name`, not both; {EXPECTED}"));
        }
        found = Some(source.map_err(|error| error.to_string())?);
    }
    found.ok_or_else(|| format!("an eBPF control is a file; {EXPECTED}"))
}
