//! The C file of a control.

use std::path::{Path, PathBuf};

use anabranch_files::Files;

use crate::{Error, shipped};

/// The largest C file of a control, in bytes: 4 MiB.
const MAX_BYTES: u64 = 4 << 20;

/// A control's C file, shipped or supplied by a user.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// Name in messages.
    pub name: String,
    /// Text of the file.
    pub text: String,
    /// Folder of the files that it includes with `"…"`; `None` for a shipped control.
    pub folder: Option<PathBuf>,
}

impl Source {
    /// A shipped control, by name.
    ///
    /// # Errors
    /// There is no control of that name.
    pub fn shipped(name: &str) -> Result<Self, Error> {
        let shipped = shipped::find(name).ok_or_else(|| Error::Unknown {
            name: name.to_owned(),
        })?;
        Ok(Self {
            name: format!("{name}.bpf.c"),
            text: shipped.text.to_owned(),
            folder: None,
        })
    }

    /// A user's file.
    ///
    /// # Errors
    /// The file cannot be read, or is not text.
    pub fn file(path: &Path, files: &Files) -> Result<Self, Error> {
        let unreadable = |reason: String| Error::Unreadable {
            file: path.display().to_string(),
            reason,
        };
        let content = files
            .read(path, MAX_BYTES)
            .map_err(|error| unreadable(error.to_string()))?;
        let text = String::from_utf8(content).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            unreadable(format!("byte {at} is not UTF-8; C in UTF-8 was expected"))
        })?;
        Ok(Self {
            name: path.display().to_string(),
            text,
            folder: Some(match path.parent() {
                Some(parent) if parent != Path::new("") => parent.to_owned(),
                _ => PathBuf::from("."),
            }),
        })
    }
}
