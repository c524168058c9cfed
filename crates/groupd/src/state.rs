//! The state file: the information that brings a bond's members back after the daemon was killed.

use std::{
    fs,
    io::{self, ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process,
    time::SystemTime,
};

use anabranch_core::system::words;
use serde::{Deserialize, Serialize};

use crate::netlink::{Link, Netlink};

/// The directory of state files and sockets.
pub const DIRECTORY: &str = "/run/anabranch-group";

/// Written before the first change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The bond's name at the start, which names the files.
    pub bond: String,
    /// The bond's interface number. Names may change.
    pub index: u32,
    /// Members under control. Members that were down at the start are not among them.
    pub members: Vec<Saved>,
    /// The bond's option before the start.
    pub all_active: bool,
    /// Identifies the daemon.
    pub nonce: String,
}

/// A member under control.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    pub name: String,
    pub index: u32,
    /// Whether the daemon created the queue `clsact` that it has.
    pub has_our_queue: bool,
}

/// What went wrong when members were brought back.
#[derive(Debug, Default)]
pub struct Trouble {
    /// The system refused.
    pub errors: Vec<String>,
    /// There are no such interfaces.
    pub missing: Vec<String>,
}

impl Trouble {
    /// One error if there is any.
    ///
    /// # Errors
    /// A sentence.
    pub fn checked(self) -> Result<(), String> {
        let all: Vec<String> = self.errors.into_iter().chain(self.missing).collect();
        if all.is_empty() {
            Ok(())
        } else {
            Err(all.join("; "))
        }
    }
}

/// A text that no other daemon has.
#[must_use]
pub fn nonce() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    format!("{}-{}", process::id(), now.unwrap_or_default().as_nanos())
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
    /// left the bond are not set up.
    pub fn bring_back(&self, directory: &Path, netlink: &mut Netlink) -> Trouble {
        let mut trouble = Trouble::default();
        let links = match netlink.links() {
            Ok(links) => links,
            Err(error) => {
                trouble.errors.push(words(&error));
                return trouble;
            }
        };
        // A bond that was deleted has released its members.
        let has_bond = links.iter().any(|link| link.index == self.index);
        let is_member = |link: &Link| has_bond && link.master == Some(self.index);
        for saved in &self.members {
            let by_number = links.iter().find(|link| link.index == saved.index);
            // An interface that was removed and added again has another number.
            let by_name = || {
                let same = links.iter().find(|link| link.name == saved.name);
                same.filter(|link| is_member(link))
            };
            let Some(link) = by_number.or_else(by_name) else {
                if has_bond {
                    trouble.missing.push(format!(
                        "there is no interface {} (number {}); if it was removed, delete {}",
                        saved.name,
                        saved.index,
                        file(directory, &self.bond).display()
                    ));
                }
                continue;
            };
            let up = if is_member(link) {
                netlink.set_up(link.index, true)
            } else {
                Ok(())
            };
            let direct = netlink.end_redirect(link.index, saved.has_our_queue);
            for error in [up.err(), direct.err()].into_iter().flatten() {
                trouble
                    .errors
                    .push(format!("{}: {}", link.name, words(&error)));
            }
        }
        trouble
    }

    /// Restores the bond's option, and deletes state and socket. Does nothing if they are not, or no
    /// longer, this daemon's.
    ///
    /// # Errors
    /// The system refuses; the file remains.
    pub fn finish(&self, netlink: &mut Netlink, directory: &Path) -> Result<(), String> {
        if Self::read(directory, &self.bond)?.is_none_or(|found| found.nonce != self.nonce) {
            return Ok(());
        }
        let links = netlink.links().map_err(|error| words(&error))?;
        let bond = links.iter().find(|link| link.index == self.index);
        if let Some((index, options)) = bond.and_then(|link| Some((link.index, link.bond?.options)))
            && options.all_active != self.all_active
        {
            netlink
                .set_all_active(index, self.all_active)
                .map_err(|error| format!("{}: {}", self.bond, words(&error)))?;
        }
        for path in [socket(directory, &self.bond), file(directory, &self.bond)] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(format!("{}: {}", path.display(), words(&error)));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The entry of an interface.
    pub fn saved(&mut self, index: u32) -> Option<&mut Saved> {
        self.members.iter_mut().find(|saved| saved.index == index)
    }
}
