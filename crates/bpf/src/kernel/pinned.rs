//! Controls that remain in the kernel when the process that loaded them ends.
//!
//! Each is pinned to a file in a BPF file system. Removing the file, or a restart of the machine,
//! removes the control.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anabranch_core::{interrupt::Interrupt, system};
use rustix::{fs::statfs, io::Errno};

use super::attach;
use crate::{Error, Source};

/// Conventional mount point of the BPF file system.
pub(crate) const FILE_SYSTEM: &str = "/sys/fs/bpf";
/// `BPF_FS_MAGIC` (statfs(2)).
const MAGIC: u64 = 0xcafe_4a11;

/// A control that was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The name by which programs select it.
    pub name: String,
    /// The file to which it is pinned.
    pub path: PathBuf,
    /// Mount point of the BPF file system, if it had to be mounted.
    pub mounted: Option<&'static str>,
}

fn folder() -> PathBuf {
    Path::new(FILE_SYSTEM).join("anabranch")
}

pub(crate) fn is_there() -> bool {
    statfs(FILE_SYSTEM).is_ok_and(|found| {
        // The field's type differs between machines; the magic number has 32 bits.
        #[expect(clippy::cast_sign_loss, reason = "compared by bits")]
        let kind = found.f_type as u64;
        kind & 0xffff_ffff == MAGIC
    })
}

/// Mounts the BPF file system.
#[cfg(target_os = "linux")]
fn mount() -> Result<(), Errno> {
    use rustix::mount::{MountFlags, mount};
    mount("bpf", FILE_SYSTEM, "bpf", MountFlags::empty(), None)
}

#[cfg(not(target_os = "linux"))]
fn mount() -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

/// Mounts a BPF file system unless there is one; returns its mount point if it did.
pub(crate) fn mount_if_missing() -> Result<Option<&'static str>, Error> {
    if is_there() {
        return Ok(None);
    }
    mount().map_err(|error| {
        Error::System(format!(
            "there is no BPF file system at {FILE_SYSTEM} to keep the program in, and mounting one failed: {}; as root: mount -t bpf bpf {FILE_SYSTEM}",
            system::words(&error)
        ))
    })?;
    Ok(Some(FILE_SYSTEM))
}

/// Loads a control permanently. Raising `interrupt` ends the compiler.
///
/// # Errors
/// See [`attach`]; or there is no BPF file system and none can be mounted.
pub fn load(source: &Source, interrupt: &Interrupt) -> Result<Loaded, Error> {
    let mut attached = attach(source, interrupt)?;
    let mounted = mount_if_missing()?;
    let path = folder().join(attached.name());
    let unable = |error: &dyn std::fmt::Display| {
        Error::System(format!(
            "cannot keep the control at {}: {}",
            path.display(),
            system::words(error)
        ))
    };
    fs::create_dir_all(folder()).map_err(|error| unable(&error))?;
    attached.pin(&path).map_err(|error| unable(&error))?;
    Ok(Loaded {
        name: attached.name.clone(),
        path,
        mounted,
    })
}

/// Removes a control loaded by [`load`]. Connections that use it keep it.
///
/// # Errors
/// No control of that name was loaded by [`load`], or the privilege is missing.
pub fn unload(name: &str) -> Result<(), Error> {
    let loaded = list().ok_or_else(|| {
        Error::System(format!(
            "cannot unload `{name}`: the loaded controls are in {FILE_SYSTEM}, which only root may read here"
        ))
    })?;
    if !loaded.iter().any(|one| one == name) {
        let there = if loaded.is_empty() {
            "none is".to_owned()
        } else {
            loaded.join(", ")
        };
        return Err(Error::System(format!(
            "no control `{name}` was loaded by `anabranch cc load`; loaded so: {there}"
        )));
    }
    fs::remove_file(folder().join(name)).map_err(|error| {
        let why = system::words(&error);
        Error::System(format!("cannot unload `{name}`: {why}"))
    })?;
    // An empty folder is removed; a folder with other controls remains.
    match fs::remove_dir(folder()) {
        Err(error) if error.kind() != io::ErrorKind::DirectoryNotEmpty => {
            let why = system::words(&error);
            Err(Error::System(format!(
                "`{name}` is unloaded, but its folder cannot be removed: {why}"
            )))
        }
        _ => Ok(()),
    }
}

/// Names of the controls loaded by [`load`]; `None` if the process may not read the folder.
#[must_use]
pub fn list() -> Option<Vec<String>> {
    let entries = match fs::read_dir(folder()) {
        Ok(entries) => entries,
        Err(error) => return (error.kind() == io::ErrorKind::NotFound).then(Vec::new),
    };
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Some(names)
}
