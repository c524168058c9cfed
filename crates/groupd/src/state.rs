//! The state file: the information that brings a bond's members back after the daemon was killed.

use std::{
    fs,
    io::{self, ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use anabranch_core::system::words;
use serde::{Deserialize, Serialize};

use crate::netlink::Netlink;

/// The directory of state files and sockets.
pub const DIRECTORY: &str = "/run/anabranch-group";

/// Written before the first change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub bond: String,
    /// Members under control. Members that were down at the start are not among them.
    pub members: Vec<String>,
    /// The bond's option before the start.
    pub all_active: bool,
}

/// Creates the directory.
///
/// # Errors
/// If the system refuses.
pub fn create(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(directory)
}

fn file(directory: &Path, bond: &str) -> PathBuf {
    directory.join(format!("{bond}.json"))
}

/// The path of the daemon's socket.
#[must_use]
pub fn socket(directory: &Path, bond: &str) -> PathBuf {
    directory.join(format!("{bond}.sock"))
}

impl State {
    /// Reads the state of a bond; `None` if it is not controlled.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(directory: &Path, bond: &str) -> Result<Option<Self>, String> {
        let path = file(directory, bond);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("{}: {}", path.display(), words(&error))),
        };
        let state = serde_json::from_str(&text);
        state.map(Some).map_err(|error| {
            format!(
                "{}: {error}; set the members of {bond} up with `ip link set`, and delete the file",
                path.display()
            )
        })
    }

    /// Replaces the file in one step.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        let path = file(directory, &self.bond);
        let next = path.with_extension("next");
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut written = options.open(&next)?;
        written.write_all(serde_json::to_string(self)?.as_bytes())?;
        written.sync_all()?;
        fs::rename(next, path)
    }

    /// Brings all members back: ends redirections, and sets the interfaces up. Members that have
    /// left the bond are skipped. Returns the errors.
    pub fn bring_back(&self, netlink: &mut Netlink) -> Vec<String> {
        let links = match netlink.links() {
            Ok(links) => links,
            Err(error) => return vec![words(&error)],
        };
        let bond = links.iter().find(|link| link.name == self.bond);
        let Some(bond) = bond else {
            return Vec::new();
        };
        let mut errors = Vec::new();
        let members = links
            .iter()
            .filter(|link| link.master == Some(bond.index) && self.members.contains(&link.name));
        for member in members {
            let up = netlink.set_up(member.index, true);
            let direct = netlink.end_redirect(member.index);
            for error in [up.err(), direct.err()].into_iter().flatten() {
                errors.push(format!("{}: {}", member.name, words(&error)));
            }
        }
        errors
    }

    /// Restores the bond's option, and deletes the file.
    ///
    /// # Errors
    /// The system refuses; the file remains.
    pub fn finish(&self, netlink: &mut Netlink, directory: &Path) -> Result<(), String> {
        let links = netlink.links().map_err(|error| words(&error))?;
        let bond = links.iter().find(|link| link.name == self.bond);
        if let Some((index, options)) = bond.and_then(|link| Some((link.index, link.bond?.options)))
            && options.all_active != self.all_active
        {
            netlink
                .set_all_active(index, self.all_active)
                .map_err(|error| format!("{}: {}", self.bond, words(&error)))?;
        }
        for path in [file(directory, &self.bond), socket(directory, &self.bond)] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(format!("{}: {}", path.display(), words(&error)));
                }
                _ => {}
            }
        }
        Ok(())
    }
}
