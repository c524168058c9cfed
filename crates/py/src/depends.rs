//! The content of files that a result depends on.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use anabranch_files::Files;
use pyo3::prelude::*;

/// The largest file that a scenario may name, in bytes: what is recorded is held in memory.
const MAX_FILE_BYTES: u64 = 1 << 30;
/// The most files that a control may include, one in the other.
const MAX_INCLUDED: usize = 1000;

/// Files that have been read, by path, with a hash of what was read. Clones share it.
#[derive(Clone, Default)]
pub struct Depends(Arc<Mutex<BTreeMap<PathBuf, String>>>);

impl Depends {
    /// Notes what has been read of a file.
    pub fn note(&self, path: &Path, content: &[u8]) {
        self.noted().insert(path.to_owned(), hash(content));
    }
    /// Notes a control's file and what it includes by `#include "…"`, whether or not the preprocessor would get there.
    pub fn note_program(&self, file: &Path) {
        let mut seen = BTreeSet::new();
        let mut left = vec![file.to_owned()];
        while let Some(path) = left.pop() {
            if seen.len() >= MAX_INCLUDED || !seen.insert(path.clone()) {
                continue;
            }
            // What is not there is found elsewhere, or by nobody.
            let Some(content) = read(&path) else {
                continue;
            };
            self.note(&path, &content);
            let text = String::from_utf8_lossy(&content);
            // The compiler looks beside the control's file as well as beside the file that includes.
            let folders = [path.parent(), file.parent()];
            for name in text.lines().filter_map(included) {
                left.extend(folders.iter().flatten().map(|folder| folder.join(name)));
            }
        }
    }
    /// Path and hash of each.
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

/// What a line includes by `#include "…"`.
fn included(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start();
    let rest = rest.strip_prefix("include")?.trim_start();
    rest.strip_prefix('"')?
        .split_once('"')
        .map(|(name, _)| name)
}

/// FNV-1a with 128 bits (RFC 9923): content changes by accident, and nobody gains by a collision.
fn hash(content: &[u8]) -> String {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let mut state = OFFSET;
    for byte in content {
        state = (state ^ u128::from(*byte)).wrapping_mul(PRIME);
    }
    let mut text = format!("{state:032x}");
    // Infallible: it is written to a text.
    let _ = write!(text, "-{}", content.len());
    text
}

fn read(path: &Path) -> Option<Vec<u8>> {
    Files::default().read(path, MAX_FILE_BYTES).ok()
}

/// The hash of a file's content as [`Depends`] notes it; `None` where it cannot be read.
#[pyfunction]
pub fn file_hash(py: Python<'_>, path: PathBuf) -> PyResult<Option<String>> {
    crate::interruptible::quietly(py, move |_| read(&path).map(|content| hash(&content)))
}
