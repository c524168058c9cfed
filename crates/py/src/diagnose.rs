//! Captures from Python: what limits each connection.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, BufWriter},
    path::PathBuf,
};

use anabranch::system::words;
use anabranch_capture::{Error, annotate};
use anabranch_diagnose::{
    Bounds, Watch, diagnose as read,
    finding::Kind,
    limit::{Limit, Meta},
    trace as follow,
};
use anabranch_files::Files;
use pyo3::{
    create_exception,
    exceptions::{PyOSError, PyValueError},
    prelude::*,
};
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

/// What the charts of some connections of a capture are drawn from, as JSON. Raises `CaptureError`.
#[pyfunction]
pub fn diagnose_trace(
    py: Python<'_>,
    path: PathBuf,
    connections: Vec<u64>,
    frames: BTreeSet<u64>,
    points: usize,
) -> PyResult<String> {
    let found = quietly(py, move |interrupt| {
        let file = Files::default()
            .open(&path)
            .map_err(|error| error.to_string())?;
        let stop = interrupt.clone();
        let watch = Watch {
            connections,
            frames,
            points,
        };
        let traces = follow(file, Bounds::default(), watch, move || stop.is_raised())
            .map_err(|error| error.to_string())?;
        serde_json::to_string(&traces).map_err(|error| error.to_string())
    })?;
    found.map_err(CaptureError::new_err)
}

/// Writes a capture as pcapng, with comments at some frames and one on the whole. Raises `CaptureError`, and `OSError` if
/// the system refuses to write (a full disk).
#[pyfunction]
pub fn annotate_capture(
    py: Python<'_>,
    path: PathBuf,
    target: PathBuf,
    comments: BTreeMap<u64, String>,
    title: String,
) -> PyResult<()> {
    quietly(py, move |interrupt| {
        let file = Files::default()
            .open(&path)
            .map_err(|error| CaptureError::new_err(error.to_string()))?;
        let out = File::create(&target).map_err(|error| unwritable(&error))?;
        let stop = interrupt.clone();
        annotate(file, BufWriter::new(out), &title, &comments, move || {
            stop.is_raised()
        })
        .map_err(|error| match error {
            Error::Unwritable {
                number: Some(number),
                ..
            } => unwritable(&io::Error::from_raw_os_error(number)),
            other => CaptureError::new_err(other.to_string()),
        })
    })?
}

fn unwritable(error: &io::Error) -> PyErr {
    PyOSError::new_err((error.raw_os_error(), words(error)))
}

/// Every limit, in the order in which rules are asked, and every other finding: meaning, evidence and what looks the same, as
/// JSON.
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
