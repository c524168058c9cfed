//! Captures from Python: what limits each connection.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::BufWriter,
    path::PathBuf,
};

use anabranch_capture::annotate;
use anabranch_diagnose::{
    Bounds, Watch, diagnose as read,
    finding::Kind,
    limit::{Limit, Meta},
    trace as follow,
};
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

use anabranch_capture::annotate;
use anabranch_diagnose::{
    Bounds, Watch, diagnose as read,
    finding::Kind,
    limit::{Limit, Meta},
    trace as follow,
};
#[pyfunction]
pub fn diagnose_terms() -> String {
    let term = |meta: &Meta| {
        json!({
            "name": meta.name,
            "title": meta.title,
            "meaning": meta.meaning,
            "evidence": meta.evidence,
            "confusion": meta.confusion,
        })
    };
    let limits = Limit::ALL.into_iter().map(|limit| term(limit.meta()));
    let findings = Kind::ALL.into_iter().map(|kind| term(kind.meta()));
    json!({ "limits": limits.collect::<Vec<_>>(), "findings": findings.collect::<Vec<_>>() })
        .to_string()
}
