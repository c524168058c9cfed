//! The C file of a control.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{Error, shipped};

/// A control's C file, shipped or a user's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// As messages name it.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Where files are that it includes by `"…"`; none for a shipped one.
    pub folder: Option<PathBuf>,
}

impl Source {
    /// A control that ships, by name.
    ///
    /// # Errors
    /// There is none of that name.
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
    /// It cannot be read, or is no text.
    pub fn file(path: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(path).map_err(|error| Error::Unreadable {
            file: path.display().to_string(),
            reason: error.to_string(),
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
