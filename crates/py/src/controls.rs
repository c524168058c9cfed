//! Congestion controls as eBPF programs: what ships, and what is in the kernel.

use anabranch_bpf::{Source, shipped};
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
/// choose, as JSON. The last three are `null` in a build without the feature `kernel`, those
/// loaded also where we may not see them.
#[pyfunction]
pub fn cc_list() -> String {
    let shipped: Vec<_> = shipped::ALL
        .iter()
        .map(|one| json!({ "name": one.name, "kernel_name": one.kernel_name }))
        .collect();
    let (loaded, available, allowed) = kernel::lists();
    json!({ "shipped": shipped, "loaded": loaded, "available": available, "allowed": allowed })
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
        kernel::load(&source.map_err(|error| error.to_string())?, interrupt)
    })?
    .map_err(ControlError::new_err)
}

/// Removes a control that `cc_load` left, by its name in the kernel. Raises `ControlError`.
#[pyfunction]
pub fn cc_unload(name: &str) -> PyResult<()> {
    kernel::unload(name).map_err(ControlError::new_err)
}

#[cfg(feature = "kernel")]
mod kernel {
    use anabranch::Interrupt;
    use anabranch_bpf::{
        Source,
        kernel::{self, pinned},
    };
    use serde_json::json;

    type Names = Option<Vec<String>>;

    pub fn lists() -> (Names, Names, Names) {
        let (available, allowed) = (kernel::available(), kernel::allowed());
        (pinned::list(), Some(available), Some(allowed))
    }

    pub fn load(source: &Source, interrupt: &Interrupt) -> Result<String, String> {
        let loaded = pinned::load(source, interrupt).map_err(|error| error.to_string())?;
        Ok(json!({
            "name": loaded.name,
            "path": loaded.path,
            "mounted": loaded.mounted,
        })
        .to_string())
    }

    pub fn unload(name: &str) -> Result<(), String> {
        pinned::unload(name).map_err(|error| error.to_string())
    }
}

/// Built on a machine without libelf.
#[cfg(not(feature = "kernel"))]
mod kernel {
    use anabranch::Interrupt;
    use anabranch_bpf::Source;

    type Names = Option<Vec<String>>;

    fn missing() -> String {
        format!(
            "this build cannot load congestion controls into the kernel; {}",
            anabranch_bpf::privilege::BUILD
        )
    }

    pub const fn lists() -> (Names, Names, Names) {
        (None, None, None)
    }
    pub fn load(_source: &Source, _interrupt: &Interrupt) -> Result<String, String> {
        Err(missing())
    }
    pub fn unload(_name: &str) -> Result<(), String> {
        Err(missing())
    }
}
