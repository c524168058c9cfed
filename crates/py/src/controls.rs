//! Congestion controls as eBPF programs: what ships, and what is in the kernel.

use anabranch_bpf::{
    Source,
    kernel::{self, pinned},
    shipped,
};
use anabranch_files::Files;
use pyo3::{create_exception, exceptions::PyValueError, prelude::*};
use serde_json::json;

use crate::interruptible::quietly;

create_exception!(
    anabranch._engine,
    ControlError,
    PyValueError,
    "An eBPF congestion control cannot be loaded or unloaded: what is missing or wrong."
);

/// The controls that ship, those loaded to stay, and those that the kernel has and lets any user
/// choose, as JSON. Those loaded are `null` where we may not see them.
#[pyfunction]
pub fn cc_list() -> String {
    let shipped: Vec<_> = shipped::ALL
        .iter()
        .map(|one| json!({ "name": one.name, "kernel_name": one.kernel_name }))
        .collect();
    json!({
        "shipped": shipped,
        "loaded": pinned::list(),
        "available": kernel::available(),
        "allowed": kernel::allowed(),
    })
    .to_string()
}

/// Loads the control that `name` ships, or of the file, so that it outlives this process: its name in
/// the kernel, the file that holds it, and where a BPF file system was mounted for that, as JSON.
/// Raises `ControlError`.
#[pyfunction]
pub fn cc_load(py: Python<'_>, what: String, is_file: bool) -> PyResult<String> {
    quietly(py, move |interrupt| {
        let source = if is_file {
            let interrupt = interrupt.clone();
            let files = Files::default().stop(move || interrupt.is_raised());
            Source::file(what.as_ref(), &files)
        } else {
            Source::shipped(&what)
        };
        let source = source.map_err(|error| error.to_string())?;
        pinned::load(&source, interrupt).map_err(|error| error.to_string())
    })?
    .map(|loaded| {
        json!({ "name": loaded.name, "path": loaded.path, "mounted": loaded.mounted }).to_string()
    })
    .map_err(ControlError::new_err)
}

/// Removes a control that `cc_load` left, by its name in the kernel. Raises `ControlError`.
#[pyfunction]
pub fn cc_unload(name: &str) -> PyResult<()> {
    pinned::unload(name).map_err(|error| ControlError::new_err(error.to_string()))
}
