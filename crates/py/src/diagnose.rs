//! Diagnosis of captures from Python: the limit of each connection.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, BufWriter, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use anabranch::{Interrupt, system::words};
use anabranch_capture::{Error, annotate};
use anabranch_diagnose::{
    Bounds, Watch, diagnose as read,
    finding::Kind,
    limit::Limit,
    list,
    log::{diagnose_log, is_log, trace_log},
    trace as follow,
};
use anabranch_files::Files;
use pyo3::{
    create_exception,
    exceptions::{PyOSError, PyValueError},
    prelude::*,
    types::PyBytes,
};
use serde_json::json;

use crate::{
    interruptible::{interruptible, report},
    json_text::indented,
};

create_exception!(
    anabranch._engine,
    CaptureError,
    PyValueError,
    "A file that cannot be read as a capture, with the fault and the expected content."
);

/// A file that counts the bytes read.
struct Counted {
    file: File,
    at: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into)?;
        self.at.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

impl Seek for Counted {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = self.file.seek(to)?;
        self.at.store(at, Ordering::Relaxed);
        Ok(at)
    }
}

/// Reads a capture in a thread. `progress` is called many times per second with the share that has
/// been read, from 0 to 1; it restarts at 0 if the capture is read again. Raises `CaptureError`.
fn reading<T: Send + 'static>(
    py: Python<'_>,
    path: &Path,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(Counted, Interrupt) -> PyResult<T> + Send + 'static,
) -> PyResult<T> {
    let file = Files::default()
        .open(path)
        .map_err(|error| unreadable(&error))?;
    let size = file.metadata().map_or(1, |known| known.len()).max(1);
    let at = Arc::new(AtomicU64::new(0));
    let counted = Counted {
        file,
        at: Arc::clone(&at),
    };
    let mut pulse = |py: Python<'_>| {
        let share = at.load(Ordering::Relaxed) as f64 / size as f64;
        report(py, progress, share.min(1.0))
    };
    interruptible(py, &mut pulse, move |interrupt| {
        work(counted, interrupt.clone())
    })?
}

/// The diagnosis of a capture, as JSON; `is_indented`: with two spaces per level. `any_expansion`
/// permits a compressed capture to expand without limit. Raises `CaptureError`.
#[pyfunction]
#[pyo3(signature = (path, name, any_expansion = false, progress = None, is_indented = false))]
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over values")]
pub fn diagnose(
    py: Python<'_>,
    path: PathBuf,
    name: String,
    any_expansion: bool,
    progress: Option<Py<PyAny>>,
    is_indented: bool,
) -> PyResult<String> {
    let bounds = bounds(any_expansion);
    reading(py, &path, progress.as_ref(), move |mut file, interrupt| {
        let stop = move || interrupt.is_raised();
        let is_log = is_log(&mut file).map_err(|error| unreadable(&error))?;
        let report = if is_log {
            diagnose_log(file, &name, bounds, stop).map_err(|error| unreadable(&error))?
        } else {
            read(file, &name, bounds, stop).map_err(|error| unreadable(&error))?
        };
        let text = if is_indented {
            indented(&report)
        } else {
            serde_json::to_string(&report)
        };
        text.map_err(|error| unreadable(&error))
    })
}

/// The diagnosis of a capture as JSON, the records of its first `most` segments, and the number of
/// the others. Raises `CaptureError`.
#[pyfunction]
#[pyo3(signature = (path, name, most, any_expansion = false, progress = None))]
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over values")]
pub fn diagnose_segments(
    py: Python<'_>,
    path: PathBuf,
    name: String,
    most: usize,
    any_expansion: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, Bound<'_, PyBytes>, u64)> {
    let bounds = bounds(any_expansion);
    let (document, listing) = reading(py, &path, progress.as_ref(), move |file, interrupt| {
        let (report, listing) = list(file, &name, bounds, most, move || interrupt.is_raised())
            .map_err(|error| unreadable(&error))?;
        let document = serde_json::to_string(&report).map_err(|error| unreadable(&error))?;
        Ok((document, listing))
    })?;
    let records = PyBytes::new(py, &listing.records);
    Ok((document, records, listing.left_out))
}

/// The data for the charts of some connections of a capture that has been diagnosed, as JSON.
/// Raises `CaptureError`.
#[pyfunction]
#[pyo3(signature = (path, connections, frames, points, progress = None))]
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over values")]
pub fn diagnose_trace(
    py: Python<'_>,
    path: PathBuf,
    connections: Vec<u64>,
    frames: BTreeSet<u64>,
    points: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let watch = Watch {
        connections,
        frames,
        points,
    };
    reading(py, &path, progress.as_ref(), move |mut file, interrupt| {
        let stop = move || interrupt.is_raised();
        let is_log = is_log(&mut file).map_err(|error| unreadable(&error))?;
        let traces = if is_log {
            trace_log(file, Bounds::ANY_EXPANSION, &watch, stop)
                .map_err(|error| unreadable(&error))?
        } else {
            follow(file, Bounds::ANY_EXPANSION, &watch, stop).map_err(|error| unreadable(&error))?
        };
        serde_json::to_string(&traces).map_err(|error| unreadable(&error))
    })
}

/// Writes a capture as pcapng, with comments at some frames and one on the whole. Raises
/// `CaptureError`, and `OSError` if the system fails to write (a full disk).
#[pyfunction]
#[pyo3(signature = (path, target, comments, title, progress = None))]
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over values")]
pub fn annotate_capture(
    py: Python<'_>,
    path: PathBuf,
    target: PathBuf,
    comments: BTreeMap<u64, String>,
    title: String,
    progress: Option<Py<PyAny>>,
) -> PyResult<()> {
    reading(py, &path, progress.as_ref(), move |file, interrupt| {
        let out = File::create(&target).map_err(|error| unwritable(&error))?;
        annotate(file, BufWriter::new(out), &title, &comments, move || {
            interrupt.is_raised()
        })
        .map_err(|error| match error {
            Error::Unwritable {
                number: Some(number),
                ..
            } => unwritable(&io::Error::from_raw_os_error(number)),
            other => unreadable(&other),
        })
    })
}

const fn bounds(any_expansion: bool) -> Bounds {
    if any_expansion {
        Bounds::ANY_EXPANSION
    } else {
        Bounds::DEFAULT
    }
}

fn unreadable(error: &impl std::fmt::Display) -> PyErr {
    CaptureError::new_err(error.to_string())
}

fn unwritable(error: &io::Error) -> PyErr {
    PyOSError::new_err((error.raw_os_error(), words(error)))
}

/// The descriptions of every limit, in the order of the rules, and of every other finding, as JSON.
#[pyfunction]
pub fn diagnose_terms() -> String {
    json!({ "limits": Limit::ALL.map(Limit::meta), "findings": Kind::ALL.map(Kind::meta) })
        .to_string()
}
