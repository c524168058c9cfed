//! Captures from Python: what limits each connection.

use std::path::PathBuf;

use anabranch_diagnose::{Bounds, diagnose as read, limit::Limit};
use anabranch_files::Files;
use pyo3::{create_exception, exceptions::PyValueError, prelude::*};
use serde_json::json;

use crate::interruptible::quietly;

create_exception!(
    anabranch._engine,
    CaptureError,
    PyValueError,
    "A file that cannot be read as a capture: what is wrong, and what was expected."
);

/// What a capture shows, as JSON. Raises `CaptureError`.
#[pyfunction]
pub fn diagnose(py: Python<'_>, path: PathBuf, name: String) -> PyResult<String> {
    let found = quietly(py, move |interrupt| {
        let file = Files::default()
            .open(&path)
            .map_err(|error| error.to_string())?;
        let stop = interrupt.clone();
        let report = read(file, &name, Bounds::default(), move || stop.is_raised())
            .map_err(|error| error.to_string())?;
        serde_json::to_string(&report).map_err(|error| error.to_string())
    })?;
    found.map_err(CaptureError::new_err)
}

/// Every limit with its meaning, evidence and what looks the same, as JSON, in the order in which rules are asked.
#[pyfunction]
pub fn diagnose_terms() -> String {
    let limits = Limit::ALL.into_iter().map(|limit| {
        let meta = limit.meta();
        json!({
            "name": meta.name,
            "title": meta.title,
            "meaning": meta.meaning,
            "evidence": meta.evidence,
            "confusion": meta.confusion,
        })
    });
    json!({ "limits": limits.collect::<Vec<_>>() }).to_string()
}
