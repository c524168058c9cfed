//! The files that hold the links of confirmed queues.
//!
//! A file is named by the network namespace and the device's number in it: a device can be renamed,
//! and the BPF file system reserves names with dots, as VLAN devices have them. A file remains when
//! its device is gone; [`sweep`] removes such files.

use std::{
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use anabranch_core::system;

use super::checked;
use crate::{
    Error,
    kernel::{call_loader, pinned::FILE_SYSTEM},
    loader::{Octets, Sink, loader},
};

/// A file that holds a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pin {
    pub(super) path: PathBuf,
    /// Number of the link.
    pub(super) link: u32,
    /// Number of the device to which the link is attached; 0 if that is gone.
    device: u32,
}

fn folder() -> PathBuf {
    Path::new(FILE_SYSTEM).join("anabranch-aqm")
}

/// The file for the device of this number in this network namespace.
pub(super) fn path(device: u32) -> PathBuf {
    let namespace = fs::read_link("/proc/thread-self/ns/net").unwrap_or_default();
    let namespace = namespace.to_string_lossy();
    let number: String = namespace.chars().filter(char::is_ascii_digit).collect();
    folder().join(format!("{number}-{device}"))
}

/// All files of links, of every network namespace; none if the process may not read them.
pub(super) fn all() -> Vec<Pin> {
    let entries = fs::read_dir(folder()).into_iter().flatten();
    entries
        .filter_map(|entry| read(entry.ok()?.path()))
        .collect()
}

/// The link that a file holds.
fn read(path: PathBuf) -> Option<Pin> {
    let loader = loader().ok()?;
    let mut octets = Vec::new();
    let mut take = |piece: &[u8]| octets.extend_from_slice(piece);
    let (name, sink) = (Octets::of(path.as_os_str().as_bytes()), Sink::to(&mut take));
    // SAFETY: octets, sink and report are valid until the call returns.
    let output = call_loader(|report| unsafe { (loader.queue_pinned)(name, sink, report) });
    checked(&output).ok()?;
    let &[link, device] = octets.as_chunks::<4>().0 else {
        return None;
    };
    Some(Pin {
        path,
        link: u32::from_ne_bytes(link),
        device: u32::from_ne_bytes(device),
    })
}

/// The file that holds the link of this number.
pub(super) fn of(link: u32) -> Option<Pin> {
    all().into_iter().find(|pin| pin.link == link)
}

/// Removes the files whose device is gone; returns their number.
#[expect(clippy::must_use_candidate, reason = "it is called for its effect")]
pub fn sweep() -> usize {
    let stale = all().into_iter().filter(|pin| pin.device == 0);
    let removed = stale
        .filter(|pin| fs::remove_file(&pin.path).is_ok())
        .count();
    if removed > 0 {
        tidy();
    }
    removed
}

/// Removes the folder, unless it holds the files of other devices.
pub(super) fn tidy() {
    let _ = fs::remove_dir(folder());
}

/// Pins a link.
pub(super) fn pin(link: u32, path: &Path) -> Result<(), Error> {
    let loader = loader()?;
    fs::create_dir_all(folder()).map_err(|error| {
        let why = system::words(&error);
        Error::System(format!(
            "cannot keep the queue at {}: {why}",
            path.display()
        ))
    })?;
    let octets = Octets::of(path.as_os_str().as_bytes());
    // SAFETY: octets and report are valid until the call returns.
    let output = call_loader(|report| unsafe { (loader.queue_pin)(link, octets, report) });
    checked(&output)
}
