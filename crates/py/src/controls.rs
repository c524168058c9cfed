//! Congestion controls as eBPF programs: the shipped ones, and those in the kernel.

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
    "An eBPF congestion control cannot be loaded or unloaded, with the reason."
);

/// The shipped controls, the controls loaded permanently, and the kernel's available and allowed
/// controls, as JSON. `loaded` is `null` if this process may not read it.
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

/// Loads the shipped control `what`, or that of the file, so that it outlives this process. Returns
/// its name in the kernel, the file to which it is pinned, and the mount point if a BPF file system
/// was mounted, as JSON. Raises `ControlError`.
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

/// Removes a control loaded by `cc_load`, by its name in the kernel. Raises `ControlError`.
#[pyfunction]
pub fn cc_unload(name: &str) -> PyResult<()> {
    pinned::unload(name).map_err(|error| ControlError::new_err(error.to_string()))
}
