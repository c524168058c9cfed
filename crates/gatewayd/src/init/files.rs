//! The files that `init` writes: all of them or none, and none that exists.

use std::{
    fmt::{Display, Write as _},
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, lchown},
    path::{Path, PathBuf},
};

use anabranch_core::system::words;
use anabranch_files::write_new;
use ipnet::IpNet;

use super::shown;
use crate::{Failure, config};

/// The files, relative to one folder.
pub struct Set {
    folder: PathBuf,
    files: Vec<(String, String, u32)>,
}

impl Set {
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            files: Vec::new(),
        }
    }

    /// Refuses names that exist.
    ///
    /// # Errors
    /// A message that names the first one.
    pub fn plan(&self, names: &[&str]) -> Result<(), String> {
        for name in names {
            let path = self.folder.join(name);
            if fs::symlink_metadata(&path).is_ok() {
                return Err(format!(
                    "{} exists and is left as it is; expected another --folder, or none of the files",
                    path.display()
                ));
            }
        }
        Ok(())
    }

    pub fn add(&mut self, name: &str, content: String, mode: u32) {
        self.files.push((name.to_owned(), content, mode));
    }

    /// Writes the files and reads those configurations. After a failure the files are removed.
    ///
    /// # Errors
    /// If the system refuses, or a configuration is refused: facts contradict each other.
    pub fn write(&self, configurations: &[&str]) -> Result<String, Failure> {
        let mut written = Vec::new();
        let outcome = self.write_all(&mut written).and_then(|()| {
            for name in configurations {
                config::load(&self.folder.join(name))
                    .map_err(|failure| Failure::Input(failure.to_string()))?;
            }
            Ok(())
        });
        if let Err(failure) = outcome {
            for path in written {
                let _ = fs::remove_file(path);
            }
            return Err(failure);
        }
        let mut said = String::from("wrote\n");
        for path in written {
            let _ = writeln!(said, "  {}", path.display());
        }
        Ok(said)
    }

    /// Removes the files that [`Self::write`] has written.
    pub fn remove(&self) {
        for (name, _, _) in &self.files {
            let _ = fs::remove_file(self.folder.join(name));
        }
    }

    /// Gives a file, and a folder between it and the set's, to the owner of the set's folder, so that
    /// a service with a user reads the files that root writes.
    fn own(&self, path: &Path) -> io::Result<()> {
        let owner = fs::metadata(&self.folder)?;
        let (user, group) = (owner.uid(), owner.gid());
        let inside = path.ancestors().take_while(|above| *above != self.folder);
        for place in inside {
            let about = fs::symlink_metadata(place)?;
            if (about.uid(), about.gid()) != (user, group) {
                lchown(place, Some(user), Some(group))?;
            }
        }
        Ok(())
    }

    fn write_all(&self, written: &mut Vec<PathBuf>) -> Result<(), Failure> {
        for (name, content, mode) in &self.files {
            let path = self.folder.join(name);
            let failed =
                |path: &Path, why: String| Failure::System(format!("{}: {why}", shown(path)));
            if let Some(folder) = path.parent() {
                let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
                made.map_err(|error| failed(folder, words(&error)))?;
            }
            write_new(&path, content.as_bytes(), *mode)
                .map_err(|error| failed(&path, error.to_string()))?;
            written.push(path.clone());
            self.own(&path)
                .map_err(|error| failed(&path, words(&error)))?;
        }
        Ok(())
    }
}

/// The first lines of a configuration.
pub fn end_at(addresses: impl IntoIterator<Item = IpNet>) -> String {
    format!(
        "# Written by anabranch-gateway init. Rates, delays, loss and MTU are measured and have no key here.\n\
         [gateway]\naddresses = {}\nprivate_key_file = \"key\"\n",
        list(addresses)
    )
}

/// An array of texts that need no escapes.
pub fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items
        .into_iter()
        .map(|item| format!("\"{item}\""))
        .collect();
    format!("[{}]", items.join(", "))
}

/// A name as key of a table.
pub fn toml_key(name: &str) -> String {
    let is_bare = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'-' || octet == b'_';
    if !name.is_empty() && name.bytes().all(is_bare) {
        return name.to_owned();
    }
    // JSON's escapes are TOML's.
    serde_json::json!(name).to_string()
}
