//! Two directories change places at once.

use std::path::PathBuf;

use pyo3::prelude::*;

/// Exchanges two paths in one step (`renameat2` with `RENAME_EXCHANGE`); whether that is done. Where the file system or
/// the system has no such step, nothing has changed. Raises `OSError` for any other reason.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python hands values over")]
pub fn exchange(one: PathBuf, other: PathBuf) -> PyResult<bool> {
    system::exchange(&one, &other)
}

#[cfg(target_os = "linux")]
mod system {
    use std::path::Path;

    use pyo3::{PyResult, exceptions::PyOSError};
    use rustix::{
        fs::{CWD, RenameFlags, renameat_with},
        io::Errno,
    };

    pub fn exchange(one: &Path, other: &Path) -> PyResult<bool> {
        match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
            Ok(()) => Ok(true),
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(false),
            Err(error) => {
                let words = anabranch::system::words(&error);
                Err(PyOSError::new_err((error.raw_os_error(), words)))
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::path::Path;

    use pyo3::PyResult;

    #[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
    pub fn exchange(_one: &Path, _other: &Path) -> PyResult<bool> {
        Ok(false)
    }
}
