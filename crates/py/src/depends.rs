//! The content of files that a result depends on.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use anabranch_files::Files;
use pyo3::prelude::*;

/// The largest file that a scenario may name, in bytes: recorded content is held in memory.
const MAX_FILE_BYTES: u64 = 1 << 30;
/// Largest number of files that a control may include, directly or indirectly.
const MAX_INCLUDED: usize = 1000;

/// Files that have been read, by path, with a hash of their content. Clones share the list.
#[derive(Clone, Default)]
pub struct Depends(Arc<Mutex<BTreeMap<PathBuf, String>>>);

impl Depends {
    /// Records the content of a file.
    pub fn note(&self, path: &Path, content: &[u8]) {
        self.noted().insert(path.to_owned(), hash(content));
    }
    /// Records a control's file and the files that it includes by `#include "…"`, even in branches
    /// that the preprocessor skips.
    pub fn note_program(&self, file: &Path) {
        let mut seen = BTreeSet::new();
        let mut left = vec![file.to_owned()];
        while let Some(path) = left.pop() {
            if seen.len() >= MAX_INCLUDED || !seen.insert(path.clone()) {
                continue;
            }
            // A file that does not exist is found in another folder, or nowhere.
            let Some(content) = read(&path) else {
                continue;
            };
            self.note(&path, &content);
            let text = String::from_utf8_lossy(&content);
            // The compiler searches the folder of the including file and that of the control's
            // file.
            let folders = [path.parent(), file.parent()];
            for name in text.lines().filter_map(included) {
                left.extend(folders.iter().flatten().map(|folder| folder.join(name)));
            }
        }
    }
    /// Path and hash of each file.
    pub fn list(&self) -> Vec<(String, String)> {
        let noted = self.noted();
        let shown = noted
            .iter()
            .map(|(path, hash)| (path.to_string_lossy().into_owned(), hash.clone()));
        shown.collect()
    }
    fn noted(&self) -> std::sync::MutexGuard<'_, BTreeMap<PathBuf, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The file that a line includes by `#include "…"`.
fn included(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start();
    let rest = rest.strip_prefix("include")?.trim_start();
    rest.strip_prefix('"')?
        .split_once('"')
        .map(|(name, _)| name)
}

/// FNV-1a with 128 bits (RFC 9923). It detects accidental changes; intentional collisions are no
/// concern here.
fn hash(content: &[u8]) -> String {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let mut state = OFFSET;
    for byte in content {
        state = (state ^ u128::from(*byte)).wrapping_mul(PRIME);
    }
    let mut text = format!("{state:032x}");
    // Infallible, because it writes to a string.
    let _ = write!(text, "-{}", content.len());
    text
}

fn read(path: &Path) -> Option<Vec<u8>> {
    Files::default().read(path, MAX_FILE_BYTES).ok()
}

/// The hash of a file's content as in [`Depends`]; `None` if the file cannot be read.
#[pyfunction]
pub fn file_hash(py: Python<'_>, path: PathBuf) -> PyResult<Option<String>> {
    crate::interruptible::quietly(py, move |_| read(&path).map(|content| hash(&content)))
}
