//! The owning process of a temporary directory, as part of its name.

use std::{fs, process};

/// Index of a process's start time among the fields of `/proc/PID/stat` (proc(5), field 22),
/// counted after the name.
const START: usize = 19;

/// Number and start time of this process, and their scope: the running kernel and its PID
/// namespace. The Python package writes and reads the same form (`anabranch.files.owner`).
pub(super) fn mark() -> String {
    let described = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name, in parentheses, may contain any character.
    let start = described
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_whitespace().nth(START))
        .unwrap_or("0");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let boot = boot.get(..8).unwrap_or("0");
    let space = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let space: String = space
        .to_string_lossy()
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    format!("{}-{start}-{boot}{space}", process::id())
}
