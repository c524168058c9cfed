//! Behaviour scripts from Python: on our TCP, and on this machine's kernel.

use std::collections::BTreeMap;

use anabranch_script::{Cause, EndpointTarget, Error, Field, Position, Script, parse_with, run};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::interruptible::quietly;

/// A position for options that are not of the file.
const OUTSIDE: Position = Position { line: 0, column: 0 };

/// Runs a behaviour script, and returns its outcome as JSON: `outcome`, `stack`, `agreed`, `runs`,
/// and of an error `message`, `line`, `column` and `fields`. `outcome` is `agrees`, `differs`,
/// `varies`, `late`, `not-applicable`, `failed`, `invalid` (the script is wrong) or `unsupported`.
/// `stack` replaces the script's profile; its error has no line. `on_kernel` runs it on this
/// machine's kernel, until there are `runs` results, or `most` runs including late ones. `files` has
/// the texts of [`script_files`]. Raises `LiveUnavailableError` in a build without the live engine.
#[pyfunction]
#[pyo3(signature = (text, file, *, stack = None, on_kernel = false, runs = 1, most = 1, files = None))]
#[expect(clippy::needless_pass_by_value, reason = "Python hands values over")]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub fn run_script(
    py: Python<'_>,
    text: String,
    file: String,
    stack: Option<String>,
    on_kernel: bool,
    runs: usize,
    most: usize,
    files: Option<BTreeMap<String, String>>,
) -> PyResult<String> {
    let mut script = match parse_with(&text, &file, &files.unwrap_or_default()) {
        Ok(script) => script,
        Err(error) => return Ok(outcome("rfc", (0, 0), judged(&error), Some(&error)).to_string()),
    };
    if let Some(stack) = stack {
        replace_stack(&mut script, stack);
    }
    let done = if on_kernel {
        kernel::run(py, script, runs, most)?
    } else {
        quietly(py, move |_| on_endpoint(&script))?
    };
    Ok(done.to_string())
}

/// The init scripts that a script names, as paths from its folder.
#[pyfunction]
pub fn script_files(text: &str) -> Vec<String> {
    anabranch_script::init_scripts(text)
}

/// Replaces the script's profile; the switches that it sets remain.
fn replace_stack(script: &mut Script, stack: String) {
    script.options.retain(|(_, name, _)| name != "stack");
    let option = (OUTSIDE, "stack".to_owned(), stack);
    script.options.insert(0, option);
}

fn profile(script: &Script) -> &str {
    script.option("stack").unwrap_or("rfc")
}

fn on_endpoint(script: &Script) -> Value {
    let done = run(script, &mut EndpointTarget::default(), 0);
    match done {
        Ok(()) => outcome(profile(script), (1, 1), "agrees", None),
        Err(error) => {
            let runs = usize::from(matches!(error.cause, Cause::Target(_)));
            outcome(profile(script), (0, runs), judged(&error), Some(&error))
        }
    }
}

const fn judged(error: &Error) -> &'static str {
    match error.cause {
        Cause::Script => "invalid",
        Cause::Unsupported => "unsupported",
        Cause::Target(_) => "differs",
    }
}

fn outcome(
    stack: &str,
    (agreed, runs): (usize, usize),
    name: &str,
    error: Option<&Error>,
) -> Value {
    let place = error.map(|error| error.at).filter(|at| *at != OUTSIDE);
    json!({
        "outcome": name,
        "stack": stack,
        "agreed": agreed,
        "runs": runs,
        "message": error.map(|error| &error.message),
        "line": place.map(|at| at.line),
        "column": place.map(|at| at.column),
        "fields": error.map(fields).unwrap_or_default(),
    })
}

fn fields(error: &Error) -> Vec<Value> {
    let Cause::Target(fields) = &error.cause else {
        return Vec::new();
    };
    fields.iter().map(field).collect()
}

fn field(field: &Field) -> Value {
    json!({
        "name": field.name,
        "expected": field.expected,
        "actual": field.actual,
        "differs": field.differs,
    })
}

#[cfg(not(all(feature = "live", target_os = "linux")))]
mod kernel {
    use super::{PyResult, Python, Script, Value};

    pub fn run(_py: Python<'_>, _script: Script, _runs: usize, _most: usize) -> PyResult<Value> {
        Err(crate::live::LiveUnavailableError::new_err((
            "this build has no live engine: it needs Linux, and the feature `live`",
            "",
        )))
    }
}

#[cfg(all(feature = "live", target_os = "linux"))]
mod kernel {
    use anabranch_live::{Favour, KernelOutcome, ScriptRuns};

    use super::{PyResult, Python, Script, Value, outcome, profile, quietly};

    pub fn run(py: Python<'_>, script: Script, runs: usize, most: usize) -> PyResult<Value> {
        quietly(py, move |_| {
            let _favour = Favour::ask();
            let mut done = ScriptRuns::default();
            done.run(&script, &[], runs, most);
            let judged = done.outcome(runs);
            let error = done.error().filter(|_| judged != KernelOutcome::Agrees);
            let counts = (done.agreed, done.runs());
            let mut told = outcome(profile(&script), counts, judged.name(), error);
            if judged != KernelOutcome::Agrees && error.is_none() {
                told["message"] = done.message().into();
            }
            told
        })
    }
}
