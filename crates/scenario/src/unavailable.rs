//! Parts of the format that this version cannot run. Deleting a line makes its feature available.

use super::format::{Family, File};

/// Names by seam. A built-in name is available even if listed.
const NAMES: &[(&str, &[&str])] = &[("stack", &["linux", "linux-6.18"])];

/// The names of a seam that are part of the format.
pub(super) fn names(seam: &str) -> &'static [&'static str] {
    NAMES
        .iter()
        .find(|(name, _)| *name == seam)
        .map_or(&[], |(_, names)| names)
}

/// Returns the keys in `file` that only the live engine implements: path and description.
pub(super) fn only_live(file: &File) -> Vec<(Vec<&str>, &'static str)> {
    let mut used = Vec::new();
    for (name, host) in &file.host.0 {
        if host.attach.is_some() {
            used.push((vec!["host", name, "attach"], "`attach`"));
        }
        if host.exec.is_some() {
            used.push((vec!["host", name, "exec"], "`exec`"));
        }
    }
    for (name, flow) in &file.flow.0 {
        if flow.family == Family::V6 {
            used.push((vec!["flow", name, "family"], "IPv6"));
        }
        if flow.select.is_some() {
            used.push((vec!["flow", name, "match"], "`match`"));
        }
    }
    used
}
