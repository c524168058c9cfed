//! Atomic renames: an exchange of two names, or a rename to a name that must be free.

use std::path::PathBuf;

use pyo3::prelude::*;

/// Exchanges two paths atomically (`renameat2` with `RENAME_EXCHANGE`). Returns whether this was
/// done; nothing has changed if the file system or the system does not support it. Raises `OSError`
/// for any other reason.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python hands values over")]
pub fn exchange(one: PathBuf, other: PathBuf) -> PyResult<bool> {
    system::exchange(&one, &other)
}

/// Renames a path atomically to a name that must be free (`renameat2` with `RENAME_NOREPLACE`).
/// Returns whether this was done; nothing has changed if the file system or the system does not
/// support it. Raises `FileExistsError` if the name is taken, and `OSError` for any other reason.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python hands values over")]
pub fn rename_new(one: PathBuf, other: PathBuf) -> PyResult<bool> {
    system::rename_new(&one, &other)
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
        rename(one, other, RenameFlags::EXCHANGE)
    }

    pub fn rename_new(one: &Path, other: &Path) -> PyResult<bool> {
        rename(one, other, RenameFlags::NOREPLACE)
    }

    fn rename(one: &Path, other: &Path, flags: RenameFlags) -> PyResult<bool> {
        match renameat_with(CWD, one, CWD, other, flags) {
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

    #[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
    pub fn rename_new(_one: &Path, _other: &Path) -> PyResult<bool> {
        Ok(false)
    }
}
