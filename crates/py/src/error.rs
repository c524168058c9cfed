//! Bad input, as a Python exception.

use anabranch::scenario::Error;
use pyo3::{PyErr, create_exception, exceptions::PyValueError, prelude::*};

use crate::signals;

create_exception!(
    anabranch._engine,
    ScenarioError,
    PyValueError,
    "Bad input. `str(error)` is the complete message, with the source line and a caret; `file`, `line`, `column` (from \
     1, or None) and `message` are its parts; `more` has the further errors, each as a tuple of these parts."
);

/// The exception for an error, with its parts as attributes. If a signal has interrupted the
/// reading of a file, the exception of its handler takes precedence.
pub fn raise(py: Python<'_>, error: &Error) -> PyErr {
    if let Some(interrupt) = signals::take() {
        return interrupt;
    }
    let raised = ScenarioError::new_err(error.to_string());
    let value = raised.value(py);
    let set = || -> PyResult<()> {
        value.setattr("file", &error.file)?;
        value.setattr("line", error.line)?;
        value.setattr("column", error.column)?;
        value.setattr("message", &error.message)?;
        let part = |error: &Error| {
            (
                error.file.clone(),
                error.line,
                error.column,
                error.message.clone(),
            )
        };
        value.setattr("more", error.more().iter().map(part).collect::<Vec<_>>())
    };
    match set() {
        Ok(()) => raised,
        Err(problem) => problem,
    }
}
