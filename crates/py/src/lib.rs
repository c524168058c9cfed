//! The engine as a Python module, `anabranch._engine`.
//!
//! One file per noun: errors of scenarios, runs, tables. Inputs are text and bytes, outputs are
//! JSON and Arrow columns. Only broken invariants panic across the boundary; they become
//! `PanicException`.

mod aqm;
mod controls;
mod depends;
mod diagnose;
mod error;
mod exchange;
mod interruptible;
mod json_text;
mod live;
mod many;
mod memory;
mod python_control;
mod results;
mod run;
mod scenario;
mod script;
mod signals;
mod stopwatch;
mod table;

use pyo3::prelude::*;

/// The compiled engine. Code outside the package does not need it directly.
#[pymodule]
mod _engine {
    #[pymodule_export]
    use super::aqm::{AqmError, aqm_attach, aqm_confirm, aqm_detach, aqm_kinds, aqm_status};
    #[pymodule_export]
    use super::controls::{ControlError, cc_list, cc_load, cc_unload};
    #[pymodule_export]
    use super::depends::file_hash;
    #[pymodule_export]
    use super::diagnose::{
        CaptureError, annotate_capture, diagnose, diagnose_segments, diagnose_terms, diagnose_trace,
    };
    #[pymodule_export]
    use super::error::ScenarioError;
    #[pymodule_export]
    use super::exchange::{exchange, rename_new};
    #[pymodule_export]
    use super::live::{
        LiveUnavailableError, UntraceableError, check_live, live_hosts, live_program_hindrance,
        live_send_buffer, prepare_live, run_live,
    };
    #[pymodule_export]
    use super::many::{check_many, run_many, summarize_many};
    #[pymodule_export]
    use super::run::{PacketBatches, Run, run};
    #[pymodule_export]
    use super::scenario::resolve;
    #[pymodule_export]
    use super::script::{run_script, script_files};
    #[pymodule_export]
    use super::table::ArrowTable;

    use pyo3::prelude::*;

    /// The engine's version.
    #[pyfunction]
    fn version() -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    /// The JSON Schema of scenario files.
    #[pyfunction]
    fn schema() -> String {
        let mut schema = anabranch::scenario::schema();
        if let Some(controls) = schema["$defs"]["cc"]["anyOf"].as_array_mut() {
            controls.push(anabranch_bpf::schema());
        }
        schema.to_string()
    }

    /// Other names used in the field, in lower case with hyphens, and the names used here.
    #[pyfunction]
    fn synonyms() -> Vec<(&'static str, &'static str)> {
        anabranch::scenario::synonyms().collect()
    }

    /// The classes of a gateway configuration, as JSON: `name`, `match`, `mode`, and `path` if
    /// pinned.
    #[pyfunction]
    fn gateway_classes(py: Python<'_>, text: &str, file: &str) -> PyResult<String> {
        let classes = anabranch::scenario::gateway_classes(text, file)
            .map_err(|error| super::error::raise(py, &error))?;
        let named = classes.0.iter().map(|(name, class)| {
            let mut table = serde_json::to_value(class)?;
            table["name"] = name.as_str().into();
            Ok(table)
        });
        let listed: serde_json::Result<Vec<serde_json::Value>> = named.collect();
        let text = listed.and_then(|classes| serde_json::to_string(&classes));
        text.map_err(|error| pyo3::exceptions::PyRuntimeError::new_err(error.to_string()))
    }

    /// The declarations of a run's results, as JSON: the JSON Schema of each struct of the summary,
    /// and the columns of each table.
    #[pyfunction]
    fn results() -> String {
        let definitions = &*super::results::DEFINITIONS;
        let tables = anabranch_results::declared();
        serde_json::json!({ "definitions": definitions, "tables": tables }).to_string()
    }

    /// The content of a file of the library of ready paths; `None` if there is none of that name.
    #[pyfunction]
    fn library_file(name: &str) -> Option<&'static str> {
        anabranch::scenario::catalog::library_file(name)
    }

    /// Every component with its sources and parameters, as JSON.
    #[pyfunction]
    fn registry() -> PyResult<String> {
        let failed =
            |error: serde_json::Error| pyo3::exceptions::PyRuntimeError::new_err(error.to_string());
        let mut entries: Vec<serde_json::Value> = anabranch::catalog()
            .iter()
            .map(serde_json::to_value)
            .collect::<Result<_, _>>()
            .map_err(failed)?;
        let controls = entries.iter().filter(|entry| entry["kind"] == "cc").count();
        entries.insert(controls, anabranch_bpf::entry());
        serde_json::to_string(&entries).map_err(failed)
    }
}

/// The text of a file as passed from Python.
#[derive(FromPyObject)]
enum Text {
    /// As read in text mode.
    Str(String),
    /// As read in binary mode.
    Bytes(Vec<u8>),
}
